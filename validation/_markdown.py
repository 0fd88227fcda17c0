"""The table of claims as a page of the docs: claim, paper, where it holds and where not, from the outcomes of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from validation import _table
from validation._runner import is_good
from validation.claim import Claim

Outcomes = Sequence[Mapping[str, Any]]


def write(path: Path, claims: Mapping[str, Claim], found: Mapping[str, Outcomes], size: str) -> Path:
    """The page, to the file `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(claims, found, size), encoding="utf-8")
    return path


def page(claims: Mapping[str, Claim], found: Mapping[str, Outcomes], size: str) -> str:
    """The whole page. It has no date, so that the same results give the same text."""
    seeds = sorted({o["seed"] for some in found.values() for o in some})
    good = sum(all(map(is_good, some)) for some in found.values())
    which = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    return (
        "# Claims: where they hold, and where they do not\n\n"
        f"Written by `python -m validation --{size} --table docs/claims.md` ({which}). {good} of {len(found)} claims\n"
        "are as they must be. What was measured is in italics. A control is a wrong statement in the same test, and\n"
        "must fail. A limit is the claim itself where it is known not to hold.\n"
        "[Put the claims to the test](howto/validation.md) says how each is checked.\n\n"
        "| Claim | Paper | Where it holds | Where it does not |\n|---|---|---|---|\n"
        + "".join(_row(claims[name], some) for name, some in found.items())
    )


def _row(claim: Claim, some: Outcomes) -> str:
    broken = any(outcome["error"] for outcome in some)
    word = "" if all(map(is_good, some)) else " **ERROR**" if broken else " **FAILED**"
    cells = (
        f"`{claim.name}`: {escape(claim.statement)}{word}",
        escape(claim.paper or claim.source),
        f"{escape(claim.holds)} *{escape(_table.measured(some))}*",
        f"{escape(claim.fails_where)} *{escape(_table.refuted(some))}*",
    )
    return f"| {' | '.join(cells)} |\n"


def escape(text: str) -> str:
    """Plain text within a cell of a Markdown table."""
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", " ".join(text.split()))
