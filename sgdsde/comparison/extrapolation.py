"""Richardson extrapolation of means that have errors: the limit of step → 0, its error, and whether the fit is good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["Extrapolation", "richardson"]

GOOD = 1e-3
"""A fit is good unless chance alone gives so large a chi² less often than this."""


@dataclass(frozen=True, repr=False, eq=False)
class Extrapolation:
    """The limit of values(step) as step → 0, by values = limit + Σ_k c_k step^{p_k}.

    Attributes
    ----------
    limit, stderr : float
    coefficients : (n_powers,) array
        c_k.
    chi2 : float
        Of the residuals, with the covariance of the values.
    dof : int
        How many values there are beyond what is fitted. With 0 nothing tells a good fit from a bad one.
    p_value : float
        Chance of a chi² as large where the model is right; NaN with dof = 0.
    steps, values, errors : (n_levels,) arrays
        What was given; `errors` are the standard errors of `values`.
    gap, gap_stderr : (n_levels,) arrays
        values - limit, and the standard error of that: how far each level is from the limit. It carries that the
        limit is made of the values.
    powers : tuple of float
    """

    limit: float
    stderr: float
    coefficients: np.ndarray
    chi2: float
    dof: int
    p_value: float
    steps: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    gap: np.ndarray
    gap_stderr: np.ndarray
    powers: tuple[float, ...]

    @property
    def good(self) -> bool:
        """Whether the residuals are what the errors allow; False too where nothing can tell (dof = 0)."""
        return self.dof > 0 and self.p_value > GOOD

    def __repr__(self) -> str:
        fit = f"chi2={self.chi2:.2f}, dof={self.dof}, p_value={self.p_value:.2g}"
        return f"Extrapolation(limit={self.limit:.6g}, stderr={self.stderr:.2g}, {fit})"

    def table(self, step: str = "step") -> str:
        """The levels, how far each is from the limit, and the fit, as text."""
        lines = [f"{step:>10} {'mean':>12} {'std. error':>12} {'gap':>12} {'std. error':>12} {'z':>8}"]
        for row in zip(self.steps, self.values, self.errors, self.gap, self.gap_stderr):
            h, value, error, gap, of_gap = (float(number) for number in row)
            z = f"{gap / of_gap:8.2f}" if of_gap > 0 else f"{'-':>8}"
            lines.append(f"{h:10.4g} {value:12.6g} {error:12.2g} {gap:12.3g} {of_gap:12.2g} {z}")
        lines.append(f"{'limit':>10} {self.limit:12.6g} {self.stderr:12.2g}")
        if not self.dof:
            lines.append("as many parameters as values: nothing tells whether the fit is good")
        else:
            word = "good" if self.good else "BAD: the limit is not to be used; smaller steps, or more powers"
            lines.append(f"chi2 {self.chi2:.2f} for {self.dof} degrees of freedom, p = {self.p_value:.2g}: {word}")
        return "\n".join(lines)


def richardson(steps: Any, values: Any, errors: Any, *, powers: Sequence[float] = (1.0,)) -> Extrapolation:
    """Extrapolate values(step) = limit + Σ_k c_k step^{p_k} to step → 0, by generalised least squares.

    Parameters
    ----------
    steps : (n_levels,) array_like
        Positive and different: learning rates, steps of a method, 1/l of SVAG.
    values : (n_levels,) array_like
        Means at these steps.
    errors : (n_levels,) or (n_levels, n_levels) array_like
        Standard errors of independent values, or the covariance of values that share their noise.
    powers : sequence of float
        p_k > 0, in fewer numbers than there are levels: (1,) for methods of weak order 1, (1, 2) where the steps are
        too large for that (D. Talay, L. Tubaro, Stoch. Anal. Appl. 8 (1990) 483: the error is a power series).

    Raises
    ------
    ArgumentError, ShapeError

    Examples
    --------
    >>> found = richardson([0.4, 0.2, 0.1], [1.42, 1.19, 1.10], [0.01, 0.01, 0.01])
    >>> found
    Extrapolation(limit=0.985, stderr=0.012, chi2=1.79, dof=1, p_value=0.18)
    >>> found.gap.round(2), found.good
    (array([0.43, 0.2 , 0.11]), True)
    """
    h = _check.array("steps", steps)
    y = _check.array("values", values)
    if h.ndim != 1 or y.shape != h.shape:
        raise ShapeError(f"steps and values must have shape (n_levels,), got {h.shape} and {y.shape}")
    if (h <= 0).any() or np.unique(h).size < h.size:
        raise ArgumentError(f"steps must be positive and different, got {_check.show(h)}")
    of = tuple(_check.positive("powers", power) for power in (powers if np.ndim(powers) else (powers,)))
    if len(set(of)) < len(of) or not 0 < len(of) < h.size:
        raise ArgumentError(f"powers must be different, and fewer than the {h.size} steps, got {of}")
    design = np.stack([np.ones_like(h), *(h**power for power in of)], axis=1)
    if np.linalg.matrix_rank(design / np.abs(design).max(axis=0), tol=1e-10) < design.shape[1]:
        raise ArgumentError(f"powers must tell the steps {_check.show(h)} apart, and {of} do not")
    root = _root(errors, h.size)
    # whitened: least squares of root⁻¹y on root⁻¹design; `by` maps values to parameters
    white = np.linalg.solve(root, design)
    by = np.linalg.pinv(white) @ np.linalg.inv(root)
    found = by @ y
    residual = np.linalg.solve(root, y - design @ found)
    chi2, dof = float(residual @ residual), h.size - design.shape[1]
    spread = by @ root
    apart = root - spread[0]  # rows: values - limit, in terms of what is independent
    return Extrapolation(
        limit=float(found[0]),
        stderr=float(np.linalg.norm(spread[0])),
        coefficients=found[1:],
        chi2=chi2,
        dof=dof,
        p_value=_tail(chi2, dof),
        steps=h,
        values=y,
        errors=np.linalg.norm(root, axis=1),
        gap=y - found[0],
        gap_stderr=np.linalg.norm(apart, axis=1),
        powers=of,
    )


def _root(errors: Any, n: int) -> np.ndarray:
    """R with R Rᵀ the covariance."""
    given = _check.array("errors", errors)
    if given.shape == (n,):
        if (given <= 0).any():
            raise ArgumentError(f"errors must be positive, got {_check.show(given)}")
        return np.diag(given)
    if given.shape != (n, n) or not np.allclose(given, given.T):
        raise ShapeError(f"errors must be ({n},) standard errors or a ({n}, {n}) covariance, got shape {given.shape}")
    try:
        return np.linalg.cholesky(given)
    except np.linalg.LinAlgError:
        raise ArgumentError(
            "errors must be a positive definite covariance: are there more levels than paths?"
        ) from None


def _tail(chi2: float, dof: int) -> float:
    if not dof:
        return math.nan
    from scipy.special import gammaincc

    return float(gammaincc(0.5 * dof, 0.5 * chi2))
