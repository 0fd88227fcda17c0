"""The Itô–Stratonovich correction c = ½ Σ_j (b_j·∇)b_j by differences of the columns b_j of G.

An INCREMENT gives b_j for h = 0 and v = e_j, and

    (b·∇)b ≈ [b(x + εb) − b(x − εb)] / 2ε,    ε = ∛(machine epsilon)·(1 + |x|)/|b|,    |·| the largest component.

The relative error is about 1e-10. Where a component is small, so that εb would change it by more than a thousandth, ε
is up to a thousand times smaller (error 1e-7): G may have an edge at zero, as √x does. Where b(x ± εb) is not finite
still, ε is chosen anew so that no component changes by more than ∛(machine epsilon) of itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from sgdsde._abi import BLOCK, CORRECTION, INCREMENT, VECTOR
from sgdsde._jit import inline, kernel, kernel_uncached
from sgdsde.equation._equation import Kernels

__all__ = ["column_correction", "no_correction", "with_correction"]

SHIFT = float(np.finfo(float).eps ** (1 / 3))
PART = 1e-3

_SUM = types.void(types.FunctionType(INCREMENT), BLOCK, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR, types.int64)


@inline
def _step(largest, least):
    """A step for differences: `largest`, or less where that would change a component by more than a part of itself."""
    return min(largest, max(PART * least, PART * largest))


@kernel(_SUM)
def _columns(increment, out, x, t, p, data, work, m):
    """out = ½ Σ_j (b_j·∇)b_j, one column of G after another."""
    d, B = x.shape
    n = d * B
    b = work[:n].reshape(d, B)
    shifted = work[n : 2 * n].reshape(d, B)
    plus = work[2 * n : 3 * n].reshape(d, B)
    minus = work[3 * n : 4 * n].reshape(d, B)
    eps = work[4 * n : 4 * n + B]
    smallest = work[4 * n + B : 4 * n + 2 * B]  # |x_i/b_i| over the components
    h = work[4 * n + 2 * B : 4 * n + 3 * B]
    v = work[4 * n + 3 * B : 4 * n + 3 * B + m * B].reshape(m, B)
    rest = work[4 * n + 3 * B + m * B :]
    out[:] = 0.0
    h[:] = 0.0
    v[:] = 0.0
    for j in range(m):
        v[j, :] = 1.0
        increment(b, x, t, h, v, p, data, rest)
        for c in range(B):
            size, length, least = 0.0, 0.0, np.inf
            for i in range(d):
                size = max(size, abs(x[i, c]))
                length = max(length, abs(b[i, c]))
                if b[i, c] != 0.0 and x[i, c] != 0.0:
                    least = min(least, abs(x[i, c] / b[i, c]))
            eps[c] = 0.0
            if length > 0.0:
                eps[c] = _step(SHIFT * (1.0 + size) / length, least)
            smallest[c] = least
        for attempt in range(2):
            for i in range(d):
                for c in range(B):
                    shifted[i, c] = x[i, c] + eps[c] * b[i, c]
            increment(plus, shifted, t, h, v, p, data, rest)
            for i in range(d):
                for c in range(B):
                    shifted[i, c] = x[i, c] - eps[c] * b[i, c]
            increment(minus, shifted, t, h, v, p, data, rest)
            again = False
            for c in range(B):
                finite = True
                for i in range(d):
                    finite = finite and np.isfinite(plus[i, c]) and np.isfinite(minus[i, c])
                if finite or attempt == 1:
                    continue
                again = True
                if smallest[c] < np.inf:
                    eps[c] = SHIFT * smallest[c]
            if not again:
                break
        for c in range(B):
            if eps[c] != 0.0:
                for i in range(d):
                    out[i, c] += (plus[i, c] - minus[i, c]) / (4.0 * eps[c])
        v[j, :] = 0.0


@kernel(_SUM)
def _diagonal(increment, out, x, t, p, data, work, m):
    """The same for diagonal noise, out_i = ½ g_i ∂g_i/∂x_i with g_i a function of x_i alone: all columns in one go."""
    d, B = x.shape
    n = d * B
    g = work[:n].reshape(d, B)
    shift = work[n : 2 * n].reshape(d, B)
    shifted = work[2 * n : 3 * n].reshape(d, B)
    plus = work[3 * n : 4 * n].reshape(d, B)
    v = work[4 * n : 5 * n].reshape(d, B)
    h = work[5 * n : 5 * n + B]
    rest = work[5 * n + B :]
    h[:] = 0.0
    v[:] = 1.0
    increment(g, x, t, h, v, p, data, rest)
    for i in range(d):
        for c in range(B):
            shift[i, c] = _step(SHIFT * (1.0 + abs(x[i, c])), abs(x[i, c]))
    for attempt in range(2):
        for i in range(d):
            for c in range(B):
                shifted[i, c] = x[i, c] + shift[i, c]
        increment(plus, shifted, t, h, v, p, data, rest)
        for i in range(d):
            for c in range(B):
                shifted[i, c] = x[i, c] - shift[i, c]
        increment(out, shifted, t, h, v, p, data, rest)
        again = False
        for i in range(d):
            for c in range(B):
                if not (np.isfinite(plus[i, c]) and np.isfinite(out[i, c])) and attempt == 0 and x[i, c] != 0.0:
                    again = True
                    shift[i, c] = SHIFT * abs(x[i, c])
        if not again:
            break
    for i in range(d):
        for c in range(B):
            slope = (plus[i, c] - out[i, c]) / (2.0 * shift[i, c])
            out[i, c] = 0.5 * g[i, c] * slope if g[i, c] != 0.0 else 0.0


@kernel(CORRECTION)
def no_correction(out, x, t, p, data, work):
    """The CORRECTION of additive noise: zero."""
    out[:] = 0.0


@lru_cache(maxsize=128)
def _correction_of(increment: Any, m: int, diagonal: bool) -> Any:
    total = _diagonal if diagonal else _columns

    @kernel_uncached(CORRECTION)
    def correction(out, x, t, p, data, work):
        total(increment, out, x, t, p, data, work, m)

    return correction


def column_correction(
    increment: Any, d: int, m: int, work: tuple[int, int] = (0, 0), *, diagonal: bool = False
) -> tuple[Any, tuple[int, int]]:
    """A CORRECTION kernel from an INCREMENT, by central differences along the columns of G.

    Parameters
    ----------
    increment : dispatcher
        Compiled for the signature INCREMENT.
    d, m : int
        Number of components and of noises.
    work : (int, int)
        Doubles of scratch that the increment needs: (fixed, per path).
    diagonal : bool
        Only for diagonal noise in Kloeden–Platen's sense (m = d, entry i depends on x_i alone), where three
        evaluations do.

    Returns
    -------
    correction : dispatcher
        Compiled for the signature CORRECTION; the same object for the same increment.
    work : (int, int)
        Scratch that it needs.

    Notes
    -----
    Costs 3m evaluations of the increment, 3 if diagonal. Compiles in about 0.1 s.
    """
    fixed, per_path = work
    return _correction_of(increment, m, diagonal), (fixed, per_path + (5 * d + 1 if diagonal else 4 * d + 3 + m))


def with_correction(equation: Any, kernels: Kernels) -> Kernels:
    """The kernels of a `BoundSDE` with a CORRECTION: zero if additive, cheap if measured to be diagonal."""
    if equation.noise == "additive":
        return kernels._replace(correction=no_correction)
    diagonal = equation.noise == "diagonal" and equation.measured_diagonal()
    correction, work = column_correction(
        kernels.increment, equation.dim, equation.noise_dim, kernels.work, diagonal=diagonal
    )
    return kernels._replace(correction=correction, work=work)
