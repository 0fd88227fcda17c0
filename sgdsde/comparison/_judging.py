"""From the errors of levels to an order: weighted regression, an interval, a verdict, and the right to say nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgdsde.comparison.order_result import OrderResult

__all__ = ["BEND", "EXACT", "FLOOR", "judge", "slope"]

EXACT = 1e-12
"""An error below this fraction of the solution is rounding."""
FLOOR = 4.0
"""An error must be this many of its standard errors for its logarithm to mean something."""
LEAST = 0.25
"""Below it there is no convergence, and so no share of the reference in the error."""
BEND = 0.05
"""What terms beyond the leading one bend the line by, however many paths there are: no interval is narrower."""


def judge(
    errors: np.ndarray,
    covariance: np.ndarray,
    dts: np.ndarray,
    n_diverged: np.ndarray,
    *,
    size: float,
    finest: float,
    widest: float,
    expected: float | None,
    sigmas: float,
    **about: Any,
) -> OrderResult:
    """The result for errors (n_levels,), signed or not, with the covariance (n_levels, n_levels) of their estimates.

    `size` is that of the quantity, `finest` the step of a numerical reference, 0 for one without error; orders are
    multiples of twice `widest`.
    """
    signed, errors = errors, np.abs(errors)
    stderr = np.sqrt(np.diag(covariance))
    used = (n_diverged == 0) & (np.maximum(errors, stderr) > EXACT * size)
    about |= {"expected": expected, "sigmas": sigmas, "errors": errors, "stderr": stderr, "dts": dts, "used": used}
    about["n_diverged"] = n_diverged
    nothing = {**about, "order": math.nan, "interval": (math.nan, math.nan)}
    if not used.any() and not n_diverged.any():
        return OrderResult(verdict="exact", reason=f"every error is at most {EXACT:g} of the solution", **nothing)
    if used.sum() < 3:
        reason = "fewer than three levels can be used"
        if n_diverged.any():
            reason += f"; up to {n_diverged.max()} of {about['n_paths']} paths left the finite numbers"
        return OrderResult(verdict="inconclusive", reason=reason, **nothing)
    noisy = (errors < FLOOR * stderr)[used]
    if noisy.all():
        bound = float((errors + FLOOR * stderr)[used].max())
        reason = f"no error is seen, and none is larger than {bound:.2g} (estimate and {FLOOR:g} standard errors)"
        return OrderResult(verdict="inconclusive", reason=reason + _wanted(about), **nothing)

    size_of = np.where(errors > 0, errors, stderr)[used]  # an error of nothing is noisy: what stands for it is not used
    x, y = np.log2(dts[used]), np.log2(size_of)
    relative = np.where(signed[used] < 0, -1, 1) * size_of * math.log(2)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = covariance[np.ix_(used, used)] / relative / relative[:, None]  # of log2(error): delta method
    order, error = slope(x, y, spread)
    bend, towards = _bend(x, y, spread)
    reach = max(sigmas * error + bend, BEND)
    low, high = order - reach, order + reach
    if finest and order > LEAST:  # the reference errs too, by its share: order p gives (finest / dt)^p of the error
        corrected, _ = slope(x, y - np.log2(1 - (finest / dts[used]) ** order), spread)
        low, high = min(low, corrected - reach), max(high, corrected + reach)
    verdict, reason = "measured", ""
    if expected is not None:
        verdict = "consistent" if low <= expected <= high else "inconsistent"
    missing = 0.0 if expected is None else expected - order
    if verdict == "inconsistent" and missing * towards > 0 and abs(missing) <= 2 * abs(towards):
        verdict = "inconclusive"
        reason = f"the order still changes between levels, towards {expected:g}: smaller steps"
    if noisy.any():
        verdict = "inconclusive"
        reason = f"an error is less than {FLOOR:g} of its standard errors: more paths, or coarser levels"
        reason += _wanted(about)
    elif (signed[used] < 0).any() and (signed[used] > 0).any():
        verdict, reason = (
            "inconclusive",
            "the error changes its sign between levels, where no power leads: finer levels",
        )
    elif max(order - low, high - order) > widest and verdict != "inconsistent":
        verdict, reason = "inconclusive", "the interval is too wide to tell orders apart: more paths, or finer levels"
    return OrderResult(order=order, interval=(low, high), verdict=verdict, reason=reason, **about)


def slope(x: np.ndarray, y: np.ndarray, covariance: np.ndarray) -> tuple[float, float]:
    """Weighted least squares slope of y on x and its standard error; `covariance` is that of y."""
    coefficient = _coefficient(x, covariance)
    return float(coefficient @ y), _error(coefficient, covariance)


def _coefficient(x: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    variance = np.diag(covariance)
    weight = 1.0 / np.maximum(variance, 1e-3 * max(variance.max(), 1e-30))
    centred = x - np.average(x, weights=weight)
    return weight * centred / (weight * centred**2).sum()


def _error(coefficient: np.ndarray, covariance: np.ndarray) -> float:
    return math.sqrt(max(0.0, float(coefficient @ covariance @ coefficient)))


def _bend(x: np.ndarray, y: np.ndarray, covariance: np.ndarray) -> tuple[float, float]:
    """Twice what the finer half of the levels would change, as far as that is no noise: less and at least its error.

    Where steps are halved a term beyond the leading one bends four levels by 1.8 times that, and three by three times:
    so for three it is 3.5. The second number is with its sign, noise and all: where the order moves.
    """
    half, times = (len(x) + 1) // 2, 2.0 if len(x) > 3 else 3.5
    change = -_coefficient(x, covariance)
    change[-half:] += _coefficient(x[-half:], covariance[-half:, -half:])
    error, moved = _error(change, covariance), times * float(change @ y)
    return max(abs(moved) - (times - 1.0) * error, error), moved


def _wanted(about: dict[str, Any]) -> str:
    """How many paths it would take, where the coarsest error is seen and an order is expected."""
    order, errors, stderr, dts = (about[name] for name in ("expected", "errors", "stderr", "dts"))
    if not order or not errors[0] > FLOOR * stderr[0]:
        return ""
    model = errors[0] * (dts / dts[0]) ** order
    factor = float(np.max((FLOOR * stderr / model)[about["used"]] ** 2))
    if not 1 < factor < 1e9:
        return ""
    return f" (order {order:g} would take some {about['n_paths'] * factor:.1g} paths)"
