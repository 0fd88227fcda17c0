"""What a claim is, and what a run of it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

SIGMAS = 5.0
"""A statistical check passes within five standard errors: false alarm 6e-7 for each."""


@dataclass(frozen=True)
class Check:
    """One number against its prediction.

    `passed` is what the numbers say. `control` marks a check of a wrong statement, and `limit` one of the claim itself
    where it is known not to hold: neither must pass.
    """

    name: str
    measured: float
    predicted: float
    error: float
    """The standard error of a statistical check; of others what is allowed."""
    passed: bool
    control: bool = False
    how: str = ""
    limit: bool = False
    allowed: float = np.nan
    """How far from the prediction still passes; NaN where that is no distance."""

    @property
    def good(self) -> bool:
        """A check passed, or a control, or one beyond the limits of the claim, that failed as it should."""
        return self.passed != (self.control or self.limit)

    @property
    def z(self) -> float:
        return (self.measured - self.predicted) / self.error if self.error > 0 else np.nan

    @property
    def share(self) -> float:
        """The distance to the prediction in units of what is allowed: at most 1 passes. NaN where neither is known."""
        return abs(self.measured - self.predicted) / self.allowed if self.allowed > 0 else np.nan


def statistical(
    name: str, measured: float, predicted: float, stderr: float, *, control: bool = False, limit: bool = False
) -> Check:
    """Within `SIGMAS` standard errors. A value that is not finite never passes."""
    passed = bool(np.isfinite(measured) and stderr > 0 and abs(measured - predicted) <= SIGMAS * stderr)
    how = f"{SIGMAS:g} standard errors"
    return Check(name, float(measured), float(predicted), float(stderr), passed, control, how, limit, SIGMAS * stderr)


def bounded(
    name: str, measured: float, predicted: float, tolerance: float, *, control: bool = False, limit: bool = False
) -> Check:
    """Within a tolerance that was fixed beforehand: an identity to rounding, or a term that is known to be small."""
    passed = bool(abs(measured - predicted) <= tolerance)
    how = f"within {tolerance:.2g}"
    return Check(name, float(measured), float(predicted), float(tolerance), passed, control, how, limit, tolerance)


def at_least(name: str, measured: float, least: float, *, control: bool = False, limit: bool = False) -> Check:
    """Not below a number that was fixed beforehand."""
    passed = bool(measured >= least)
    return Check(name, float(measured), float(least), 0.0, passed, control, f"at least {least:g}", limit)


def at_most(name: str, measured: float, most: float, *, control: bool = False, limit: bool = False) -> Check:
    """Not above a number that was fixed beforehand."""
    passed = bool(measured <= most)
    return Check(name, float(measured), float(most), 0.0, passed, control, f"at most {most:g}", limit)


def means(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error over independent paths."""
    values = np.asarray(values, dtype=float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


@dataclass(frozen=True)
class Claim:
    """A statement, where it stands, and how it is put to the test.

    `run(settings, seed)` returns checks and the data of the figure; `draw(figure, data)` draws them (matplotlib).
    """

    name: str
    statement: str
    source: str
    quick: Mapping[str, Any]
    full: Mapping[str, Any]
    run: Callable[[Mapping[str, Any], int], tuple[list[Check], dict[str, Any]]]
    draw: Callable[[Any, dict[str, Any]], None]
    doubts: str = ""
    """What remains open about the source or the reading of it."""
    paper: str = ""
    """The paper in a few words, for tables."""
    could_fail: str = ""
    """What the numbers would look like if the claim were wrong."""
    holds: str = ""
    """Where the claim holds, in words; the report adds what was measured."""
    fails_where: str = ""
    """Where it does not; the report adds the checks marked `limit`."""
    deviation: str = ""
    """Where what is measured differs from what the source or a plan expected, and why."""
    caption: str = ""
    """What the figure shows."""
    size: tuple[float, float] = (10.0, 4.2)
    """Of the figure, in inches, where there is room."""
