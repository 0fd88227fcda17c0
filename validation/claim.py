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

    `passed` is what the numbers say; `control` marks a check of a wrong statement, which must not pass.
    """

    name: str
    measured: float
    predicted: float
    error: float
    passed: bool
    control: bool = False
    how: str = ""

    @property
    def good(self) -> bool:
        """A check passed, or a control that failed as it should."""
        return self.passed != self.control

    @property
    def z(self) -> float:
        return (self.measured - self.predicted) / self.error if self.error > 0 else np.nan


def statistical(name: str, measured: float, predicted: float, stderr: float, *, control: bool = False) -> Check:
    """Within `SIGMAS` standard errors. A value that is not finite never passes."""
    passed = bool(np.isfinite(measured) and stderr > 0 and abs(measured - predicted) <= SIGMAS * stderr)
    return Check(name, measured, predicted, stderr, passed, control, f"within {SIGMAS:g} standard errors")


def bounded(name: str, measured: float, predicted: float, tolerance: float, *, control: bool = False) -> Check:
    """Within a tolerance that was fixed beforehand: an identity to rounding, or a term that is known to be small."""
    passed = bool(abs(measured - predicted) <= tolerance)
    return Check(name, measured, predicted, tolerance, passed, control, f"within {tolerance:.2g}")


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
