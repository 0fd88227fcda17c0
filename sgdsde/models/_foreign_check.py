"""Is the gradient that somebody wrote the derivative of the loss that somebody wrote? Differences, and a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde.models.model import DIFFERENCE

__all__ = ["GradientReport", "check_gradient"]

CLOSE = 1e-6
"""Relative to the largest component (to the length, along a direction): far above what differences err."""
ALL = 64
"""Up to so many parameters every component is looked at, beyond it some directions first."""
MOST = 2000
"""Components that are looked at for a report."""
DIRECTIONS = 4
SHOWN = 6

Loss = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class GradientReport:
    """Outcome of a comparison of a gradient with differences of its loss; true when they agree, prints as a table.

    Attributes
    ----------
    sample : int
        The sample at which they differ most; the last one tried where they agree.
    components : dict
        Name of a component, "W[1,0]" -> (gradient, difference of the loss, tolerance), the worst first; empty where
        they agree, or where only a sum of many components was seen to differ.
    n_wrong, n_seen : int
        How many components differ, of how many that were looked at.
    ratio : float or None
        By what one number the gradient differs, where it is one.
    """

    holds: bool
    sample: int
    components: Mapping[str, tuple[float, float, float]]
    n_wrong: int
    n_seen: int
    ratio: float | None

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if self.holds:
            return "gradient is the derivative of loss, by differences"
        if not self.components:
            return (
                f"gradient is not the derivative of loss at sample {self.sample}, along a direction of all components"
            )
        head = (
            f"gradient is not the derivative of loss at sample {self.sample}: {self.n_wrong} of {self.n_seen} "
            "components differ"
        )
        width = max(9, *map(len, self.components))
        lines = [head, f"  {'component':<{width}}  {'gradient':>14}  {'wanted':>14}"]
        lines += [f"  {name:<{width}}  {g:>14.8g}  {w:>14.8g}" for name, (g, w, _) in self.components.items()]
        if self.n_wrong > len(self.components):
            lines.append(f"  and {self.n_wrong - len(self.components)} more")
        if self.ratio is not None:
            lines.append(f"  every component is {self.ratio:.6g} times what is wanted: a factor, or a mean for a sum?")
        return "\n".join(lines)


def check_gradient(
    loss: Loss, gradient: np.ndarray, theta: np.ndarray, sample: int, name: Callable[[int], str]
) -> GradientReport:
    """Compare ∇ℓ_i(θ) with central differences of ℓ_i, at two step lengths each, which say how good they are.

    At a kink the tolerance is as wide as the slope jumps. `name` gives a component's name.
    """
    d = theta.size
    good = GradientReport(True, sample, {}, 0, min(d, ALL), None)
    if d > ALL:
        random, wrong = np.random.default_rng(0), False
        for _ in range(DIRECTIONS):
            v = random.choice([-1.0, 1.0], d)
            slope, error = _slope(loss, theta, v, (1.0 + float(np.linalg.norm(theta))) / np.sqrt(d))
            wrong = wrong or not abs(gradient @ v - slope) <= error + CLOSE * float(np.linalg.norm(gradient))
        if not wrong:
            return good
    seen = np.unique(np.linspace(0, d - 1, min(d, MOST)).astype(int))
    unit, slopes, errors = np.zeros(d), np.empty(seen.size), np.empty(seen.size)
    for j, k in enumerate(seen):
        unit[k] = 1.0
        slopes[j], errors[j] = _slope(loss, theta, unit, 1.0 + abs(theta[k]))
        unit[k] = 0.0
    found = gradient[seen]
    size = max(float(np.abs(found).max()), float(np.abs(slopes).max()))
    allowed = errors + CLOSE * size
    gap = np.abs(found - slopes)
    bad = np.flatnonzero(~(gap <= allowed))
    if not bad.size:
        return good if d <= ALL else GradientReport(False, sample, {}, 0, seen.size, None)
    order = bad[np.argsort(-gap[bad], kind="stable")][:SHOWN]
    rows = {name(int(seen[j])): (float(found[j]), float(slopes[j]), float(allowed[j])) for j in order}
    return GradientReport(False, sample, rows, bad.size, seen.size, _ratio(found, slopes, size))


def _slope(loss: Loss, theta: np.ndarray, v: np.ndarray, size: float) -> tuple[float, float]:
    """The derivative of the loss along v, and how far it may be off.

    Where the slope jumps, the difference of the two one-sided slopes does not become half as large with half the step.
    """
    slopes, jumps, rounding, here = [], [], 0.0, loss(theta)
    for h in (DIFFERENCE * size, 0.5 * DIFFERENCE * size):
        ahead, behind = (loss(theta + s * v) for s in (h, -h))
        slopes.append((ahead - behind) / (2.0 * h))
        jumps.append(abs(ahead - 2.0 * here + behind) / h)
        rounding = 32.0 * np.finfo(float).eps * max(abs(ahead), abs(behind), abs(here)) / h
    jump = max(0.0, 2.0 * jumps[1] - jumps[0])
    return slopes[1], 4.0 * abs(slopes[0] - slopes[1]) + jump + rounding


def _ratio(found: np.ndarray, wanted: np.ndarray, size: float) -> float | None:
    """found = ratio · wanted, if that is what is wrong."""
    length: Any = wanted @ wanted
    ratio = float(found @ wanted / length) if length > 0 else 0.0
    same = np.abs(found - ratio * wanted).max() <= 10 * CLOSE * size
    return ratio if same and ratio != 0.0 and found.size > 1 else None
