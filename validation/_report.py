"""The report: one HTML file that needs nothing beside it, for wide and narrow pages, in light and dark."""

from __future__ import annotations

import html
import json
import platform
import re
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import sgdsde
from validation import _table
from validation._figures import themed
from validation._runner import LIBRARIES, checks_of, is_good
from validation.claim import Check, Claim

Outcomes = Sequence[Mapping[str, Any]]


def write(
    out: Path, claims: Mapping[str, Claim], found: Mapping[str, Outcomes], size: str, seconds: float, n_tasks: int
) -> Path:
    """report.html, and report.json with the same numbers, in the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    plain = {name: [{k: v for k, v in o.items() if k != "figures"} for o in some] for name, some in found.items()}
    (out / "report.json").write_text(json.dumps(plain, indent=1), encoding="utf-8")
    path = out / "report.html"
    path.write_text(page(claims, found, size, seconds, n_tasks), encoding="utf-8")
    return path


def page(claims: Mapping[str, Claim], found: Mapping[str, Outcomes], size: str, seconds: float, n_tasks: int) -> str:
    """The whole report as text."""
    style = (Path(__file__).parent / "_report.css").read_text(encoding="utf-8")
    body = [_head(found, size, seconds, n_tasks), _overview(claims, found)]
    body += [_claim(claims[name], some) for name, some in found.items()]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Validation of sgdsde</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


# --- the first page ---------------------------------------------------------------------------------------------------


def _head(found: Mapping[str, Outcomes], size: str, seconds: float, n_tasks: int) -> str:
    every = [outcome for some in found.values() for outcome in some]
    good = sum(all(map(is_good, some)) for some in found.values())
    numbers = _table.counts(every)
    seeds = sorted({o["seed"] for o in every})
    words = [f"{a} of {b} {kind}" for kind, (a, b) in _named(numbers).items() if b]
    left = n_tasks - len(every)
    versions = ", ".join(f"{name} {import_module(name).__version__}" for name in LIBRARIES)
    kind = "good" if good == len(found) and not left else "bad"
    return (
        "<header>\n<h1>Validation of sgdsde: claims of the papers put to the test</h1>\n"
        f'<p class="lead"><span class="verdict {kind}">{good} of {len(found)} claims are as they must be.</span> '
        f"{'; '.join(words)}.{f' {left} runs are missing: this one was interrupted.' if left else ''}</p>\n"
        "<p>A control is a wrong statement put to the same test: a factor 2, another weight decay, isotropic noise. It "
        "must fail, or the test could not tell. A limit is the claim itself where it does not hold.</p>\n"
        f'<p class="meta">{size.capitalize()} settings, seed{"s" * (len(seeds) > 1)} '
        f"{', '.join(map(str, seeds))}. sgdsde {escape(sgdsde.__version__)}, Python {platform.python_version()}, "
        f"{versions}. {time.strftime('%Y-%m-%d %H:%M')}; this run took {seconds:.0f} s, the results "
        f"{sum(o['seconds'] for o in every):.0f} s of computing.</p>\n</header>"
    )


def _named(numbers: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    words = {
        "checks": "checks hold",
        "controls": "controls fail, as they must",
        "limits": "checks beyond a limit fail, as they must",
    }
    return {words[kind]: pair for kind, pair in numbers.items()}


def _overview(claims: Mapping[str, Claim], found: Mapping[str, Outcomes]) -> str:
    rows = []
    for name, some in found.items():
        claim = claims[name]
        cells = [
            ("", f'<a href="#{name}">{escape(claim.statement)}</a><br>{_verdict(some)}'),
            ("Paper", escape(claim.paper or claim.source)),
            ("Holds", f'{escape(claim.holds)} <span class="soft">{escape(_table.measured(some))}</span>'),
            ("Does not hold", f'{escape(claim.fails_where)} <span class="soft">{escape(_table.refuted(some))}</span>'),
        ]
        rows.append("<tr>" + "".join(f'<td data-label="{a}">{b}</td>' if a else f"<td>{b}</td>" for a, b in cells))
    titles = "".join(f"<th>{word}</th>" for word in ("Claim", "Paper", "Where it holds", "Where it does not"))
    body = "</tr>\n".join(rows)
    return f'<table class="overview">\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}</tr>\n</tbody>\n</table>'


def _verdict(some: Outcomes) -> str:
    if any(outcome["error"] for outcome in some):
        return '<span class="verdict bad">error</span>'
    good = all(map(is_good, some))
    return f'<span class="verdict {"good" if good else "bad"}">{"as it must be" if good else "FAILED"}</span>'


# --- one claim --------------------------------------------------------------------------------------------------------


def _claim(claim: Claim, some: Outcomes) -> str:
    facts = [
        ("Paper", claim.paper),
        ("Source", claim.source),
        ("Settings", _settings(some[0]["settings"])),
        ("How it could have failed", claim.could_fail),
        ("Where it holds", claim.holds),
        ("Where it does not", claim.fails_where),
        ("Otherwise than expected", claim.deviation),
        ("Doubts", claim.doubts),
    ]
    items = "\n".join(
        f"<dt>{word}</dt><dd{_css('settings', word == 'Settings')}>{escape(text)}</dd>" for word, text in facts if text
    )
    parts = [
        f'<article id="{claim.name}">\n<header><h2>{escape(_capital(claim.statement))}</h2>{_verdict(some)}</header>',
        f"<dl>\n{items}\n</dl>",
        *_drawn(claim, some),
        _checks(some),
    ]
    for outcome in some:
        if outcome["error"]:
            parts.append(
                f"<h3>Seed {outcome['seed']} ended with an error</h3><pre>{html.escape(outcome['error'])}</pre>"
            )
    times = ", ".join(f"{o['seconds']:.0f} s for seed {o['seed']} ({o['when']})" for o in some)
    parts.append(f'<p class="meta">{escape(claim.name)}: {times}. Code {escape(some[0]["digest"])}.</p>')
    return "\n".join(parts) + "\n</article>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _settings(settings: Any) -> str:
    if isinstance(settings, Mapping):
        return ", ".join(f"{key} = {_settings(value)}" for key, value in settings.items())
    if isinstance(settings, list):
        inner = "; ".join(map(_settings, settings)) if settings and isinstance(settings[0], Mapping) else None
        return inner or "[" + ", ".join(map(_settings, settings)) + "]"
    return f"{settings:g}" if isinstance(settings, float) else str(settings)


def _drawn(claim: Claim, some: Outcomes) -> list[str]:
    """The figure of the first seed, and of every other one that is not as it must be."""
    made = []
    for k, outcome in enumerate(some):
        if outcome["figures"] and (k == 0 or not is_good(outcome)):
            title = html.escape(f"{claim.name}, seed {outcome['seed']}")
            drawn = "".join(
                f'<div class="{kind}">{themed(svg, title)}</div>' for kind, svg in outcome["figures"].items()
            )
            caption = " ".join(filter(None, [claim.caption, f"Seed {outcome['seed']}." if len(some) > 1 else ""]))
            made.append(f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>")
    return made


def _checks(some: Outcomes) -> str:
    """One body for each check, one row for each seed."""
    lists = [checks_of(outcome) for outcome in some]
    groups: dict[str, list[tuple[int, Check]]] = {}
    for outcome, checks in zip(some, lists):
        for check in checks:
            groups.setdefault(check.name, []).append((outcome["seed"], check))
    ordered = sorted(groups.values(), key=lambda group: (group[0][1].control, group[0][1].limit))
    many = len(some) > 1
    titles = ["Check", *(["Seed"] if many else []), "Measured", "Predicted", "Allowed", "Of allowed", "Verdict"]
    right = ("Seed", "Measured", "Predicted", "Of allowed")
    head = "".join(f"<th{_css('n', t in right)}>{t}</th>" for t in titles)
    bodies = "\n".join("<tbody>" + _rows(group, many) + "</tbody>" for group in ordered)
    return f'<table class="checks">\n<thead><tr>{head}</tr></thead>\n{bodies}\n</table>'


def _rows(group: Sequence[tuple[int, Check]], many: bool) -> str:
    rows = []
    for k, (seed, check) in enumerate(group):
        kind = "Control: " if check.control else "Limit: " if check.limit else ""
        name = escape(kind + check.name) if k == 0 else ""
        word, colour = _table.verdict(check), "bad"
        if check.good:
            colour = "must" if check.control or check.limit else "good"
        error = f" ± {check.error:.1g}" if check.how.endswith("errors") else ""
        cells = [
            *([("Seed", "n", str(seed))] if many else []),
            ("Measured", "n", number(check.measured) + error),
            ("Predicted", "n", "" if check.how.startswith("at ") else number(check.predicted)),
            ("Allowed", "how", escape(check.how)),
            ("Of allowed", "n", _table.of_allowed(check).replace(">", "&gt;")),
            ("Verdict", f"verdict {colour}", word),
        ]
        told = "".join(f'<td class="{c}" data-label="{label}">{text}</td>' for label, c, text in cells)
        rows.append(f"<tr{_css('more', k > 0)}><td>{name}</td>{told}</tr>")
    return "".join(rows)


def escape(text: str) -> str:
    """Plain text for the page, with raised and lowered parts: η^{3/2}, Σ_x, W_{i+1}."""
    text = html.escape(text)
    text = re.sub(r"\^\{([^}]+)\}", r"<sup>\1</sup>", text)
    return re.sub(r"(?<=\w)_(?:\{([^}]+)\}|([^\W\d_]+|\d+))", r"<sub>\1\2</sub>", text)


def _css(word: str, wanted: bool) -> str:
    return f' class="{word}"' if wanted else ""


def number(value: float) -> str:
    """Four digits, with a real minus sign and powers of ten where they are shorter."""
    text = f"{value:.4g}".replace("-", "−")
    if "e" in text:
        digits, power = text.split("e")
        text = f"{digits}·10<sup>{power.replace('+', '').replace('−0', '−').lstrip('0')}</sup>"
    return text
