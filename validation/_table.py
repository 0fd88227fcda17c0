"""What the terminal shows: the checks of a claim as it is finished, and one line for each claim at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from validation._runner import checks_of, is_good
from validation.claim import Check

HEAD = f"  {'':<66} {'measured':>12} {'predicted':>12} {'error':>10} {'of allowed':>10}"


def verdict(check: Check) -> str:
    if not check.good:
        return "FAILED" if check.passed is False else "PASSED, and must not"
    if check.control:
        return "fails, as it must"
    return "does not hold here, as it must" if check.limit else "ok"


def of_allowed(check: Check) -> str:
    """The share in words: two digits, nothing where it is not known."""
    if not np.isfinite(check.share):
        return ""
    return f"{check.share:.2f}" if check.share < 1000 else "> 1000"


def row(check: Check) -> str:
    kind = "control: " if check.control else "limit: " if check.limit else ""
    share = f"{of_allowed(check):>10}"
    numbers = f"{check.measured:12.5g} {check.predicted:12.5g} {check.error:10.2g} {share}"
    return f"  {kind + check.name:<66} {numbers}  {verdict(check)}"


def block(outcome: Mapping[str, Any], statement: str, again: bool) -> str:
    """All checks of one claim with one seed."""
    how = "as kept from " + outcome["when"] if again else f"{outcome['seconds']:.0f} s"
    lines = [f"\n{outcome['claim']}, seed {outcome['seed']} ({how}): {statement}", HEAD]
    lines += [row(check) for check in checks_of(outcome)]
    if outcome["error"]:
        lines.append("  ERROR: " + outcome["error"].strip().replace("\n", "\n  "))
    return "\n".join(lines)


def counts(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Good ones and all: of the checks of the claim, of the controls, and of checks beyond its limits."""
    checks = [check for outcome in outcomes for check in checks_of(outcome)]
    kinds = {
        "checks": [c for c in checks if not (c.control or c.limit)],
        "controls": [c for c in checks if c.control],
        "limits": [c for c in checks if c.limit],
    }
    return {kind: (sum(c.good for c in some), len(some)) for kind, some in kinds.items()}


def measured(some: Sequence[Mapping[str, Any]]) -> str:
    """What a run says of where a claim holds: how many checks, and the closest call."""
    good, n = counts(some)["checks"]
    text = f"{good} of {n} checks hold" + (f", over {len(some)} seeds" if len(some) > 1 else "")
    known = [c for o in some for c in checks_of(o) if not (c.control or c.limit) and np.isfinite(c.share)]
    if known:
        worst = max(known, key=lambda check: check.share)
        text += f"; closest: {worst.name}, {100 * worst.share:.0f} % of what is allowed"
    return text + "."


def refuted(some: Sequence[Mapping[str, Any]]) -> str:
    """What it says of where it does not: the checks beyond a limit with their numbers, and how many controls fail."""
    told = [f"{c.name}: {c.measured:.4g}, not {c.predicted:.4g}. " for c in checks_of(some[0]) if c.limit]
    good, n = counts(some)["controls"]
    return "".join(told) + f"{good} of {n} controls fail."


def summary(outcomes: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """One line for each claim: checks, controls, limits, the closest call, time, verdict."""
    lines = [f"{'claim':<26} {'seeds':<9} {'checks':>8} {'controls':>9} {'limits':>7} {'largest share':>14} {'s':>6}"]
    for name, some in outcomes.items():
        numbers = counts(some)
        shares = [c.share for o in some for c in checks_of(o) if not (c.control or c.limit) and np.isfinite(c.share)]
        seeds = ",".join(str(o["seed"]) for o in some)
        cells = [f"{a}/{b}" if b else "" for a, b in numbers.values()]
        seconds = sum(o["seconds"] for o in some)
        word = "ok" if all(map(is_good, some)) else "ERROR" if any(o["error"] for o in some) else "FAILED"
        largest = f"{max(shares):.2f}" if shares else ""
        lines.append(
            f"{name:<26} {seeds:<9} {cells[0]:>8} {cells[1]:>9} {cells[2]:>7} {largest:>14} {seconds:>6.0f}  {word}"
        )
    lines.append("largest share: the largest distance to a prediction, of what is allowed; below 1 passes.")
    return "\n".join(lines)
