"""Itô and Stratonovich: one equation in either calculus, its drift changed so that the solutions are the same.

    Stratonovich dX = f dt + G∘dW   is   Itô dX = (f + c) dt + G dW,    c = ½ Σ_j (b_j·∇)b_j,  b_j the columns of G

(Kloeden & Platen, eq. (4.9.11)). c is exact where the derivative of G is given (`derivative`), and found by differences
of columns elsewhere (`differences`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from sgdsde import _check
from sgdsde._abi import BLOCK, CORRECTION, INCREMENT, VECTOR
from sgdsde._errors import ArgumentError
from sgdsde._jit import kernel, kernel_uncached
from sgdsde.equation._equation import Equation, Kernels, Problem
from sgdsde.equation.differences import column_correction

__all__ = ["Converted", "ConvertedEquation", "column_correction", "to_ito", "to_stratonovich"]

_ADD = types.void(
    types.FunctionType(INCREMENT),
    types.FunctionType(CORRECTION),
    types.float64,
    BLOCK,
    BLOCK,
    VECTOR,
    VECTOR,
    BLOCK,
    VECTOR,
    VECTOR,
    VECTOR,
)


@kernel(_ADD)
def _shifted_drift(increment, correction, sign, out, x, t, h, v, p, data, work):
    """out = f·h + G·v + sign·c·h, what the increment gives after the drift is converted."""
    d, B = x.shape
    c = work[: d * B].reshape(d, B)
    rest = work[d * B :]
    increment(out, x, t, h, v, p, data, rest)
    moves = False
    for b in range(B):
        moves = moves or h[b] != 0.0
    if not moves:  # schemes ask for the noise alone by h = 0
        return
    correction(c, x, t, p, data, rest)
    for i in range(d):
        for b in range(B):
            if h[b] != 0.0:
                out[i, b] += sign * h[b] * c[i, b]


@lru_cache(maxsize=128)
def _increment_of(increment: Any, correction: Any, sign: float) -> Any:
    @kernel_uncached(INCREMENT)
    def converted(out, x, t, h, v, p, data, work):
        _shifted_drift(increment, correction, sign, out, x, t, h, v, p, data, work)

    return converted


class Converted:
    """A problem in the other calculus: the same solutions, its drift changed by c. `to_ito` makes one."""

    def __init__(self, problem: Problem, calculus: str) -> None:
        self.problem = problem
        self.calculus = calculus

    def bind(self, t0: float, y0: np.ndarray, args: Sequence[Any] | None = None) -> Equation:
        """Bind the problem that is converted, and convert it."""
        bound = self.problem.bind(t0, y0, args)
        if bound.calculus == self.calculus:
            return bound
        if bound.calculus not in ("ito", "stratonovich"):
            raise ArgumentError(f"only a differential equation has a calculus to convert, got {bound.calculus!r}")
        return ConvertedEquation(bound, self.calculus)

    def replace(self, **changes: Any) -> Converted:
        """The same conversion of `problem.replace(**changes)`."""
        return Converted(self.problem.replace(**changes), self.calculus)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"to_{self.calculus}({self.problem!r})"


class ConvertedEquation:
    """An equation whose INCREMENT adds ±c·h to that of another one."""

    def __init__(self, equation: Equation, calculus: str) -> None:
        self.equation = equation
        self.calculus = calculus
        self.dim, self.noise_dim, self.noise = equation.dim, equation.noise_dim, equation.noise
        self.block = equation.block
        self.has_derivative = getattr(equation, "has_derivative", False)
        self.exact_correction = getattr(equation, "exact_correction", False)

    def kernels(self, *, correction: bool = False) -> Kernels:
        """Kernels of the equation with its drift converted; the CORRECTION is the same in both calculi."""
        base = self.equation.kernels(correction=True)
        sign = 1.0 if self.calculus == "ito" else -1.0
        increment = _increment_of(base.increment, base.correction, sign)
        fixed, per_path = base.work
        if self.has_derivative:  # a step's extended noise, and that of the correction inside the increment
            per_path *= 2
        return base._replace(increment=increment, work=(fixed, per_path + self.dim))

    def columns_kernel(self) -> Any:
        """The COLUMNS kernel of the equation: noise is not converted."""
        own = getattr(self.equation, "columns_kernel", None)
        return own() if own is not None else None

    def __repr__(self) -> str:
        return f"to_{self.calculus}({self.equation!r})"


def to_ito(problem: Any) -> Any:
    """The Itô equation with the same solutions: its drift is f + ½ Σ_j (b_j·∇)b_j where the problem is Stratonovich.

    Parameters
    ----------
    problem : SDE or other problem
        Anything `solve` takes.

    Returns
    -------
    problem
        For `solve`, with any method for Itô equations. The SDE itself where it is Itô already; with additive noise,
        which means the same in both, an SDE with the same functions.

    Notes
    -----
    The correction is found by differences of the columns of G (relative error 1e-7 to 1e-10), which costs 3m
    evaluations of the increment at each evaluation of the drift, 3 if the noise is measured to be diagonal. With
    ``SDE(derivative=...)`` it is exact and costs one.

    Examples
    --------
    dX = X∘dW has the Itô drift ½X:

    >>> import numpy as np
    >>> from sgdsde import SDE, to_ito
    >>> sde = SDE(lambda t, y: (0.0,), lambda t, y: (y[0],), dim=1, noise="scalar", calculus="stratonovich")
    >>> equation = to_ito(sde).bind(0.0, [3.0])
    >>> k = equation.kernels()
    >>> out, work = np.empty((1, 1)), np.empty(sum(k.work))
    >>> k.increment(out, np.array([[3.0]]), np.zeros(1), np.ones(1), np.zeros((1, 1)), k.p, k.data, work)
    >>> round(out.item(), 8)
    1.5
    """
    return _convert(problem, "ito")


def to_stratonovich(problem: Any) -> Any:
    """The Stratonovich equation with the same solutions: its drift is f − ½ Σ_j (b_j·∇)b_j where the problem is Itô.

    Parameters, return value and cost are those of `to_ito`.

    Examples
    --------
    >>> from sgdsde import SDE, to_stratonovich
    >>> sde = SDE(lambda t, y: (-y[0],), lambda t, y: (0.5,), dim=1, noise="additive")
    >>> to_stratonovich(sde)
    SDE(<lambda>, <lambda>, dim=1, noise='additive', calculus='stratonovich')
    """
    return _convert(problem, "stratonovich")


def _convert(problem: Any, calculus: str) -> Any:
    if isinstance(problem, type) or not isinstance(problem, Problem):
        raise ArgumentError(f"problem must be an SDE or another problem that solve takes, got {_check.show(problem)}")
    if getattr(problem, "calculus", None) == calculus:
        return problem
    if isinstance(problem, Converted):  # back to where it came from
        return _convert(problem.problem, calculus)
    if getattr(problem, "noise", None) == "additive" and hasattr(problem, "replace"):
        return problem.replace(calculus=calculus)
    return Converted(problem, calculus)
