"""The derivative of a diffusion, which a person may give: its shape, whether it is one, and what is made of it.

An INCREMENT that knows ∂G takes, beside the m rows of v, the *extended noise*: more rows u, with which

    out = f·h + G·v + Σ_(j,k) (b_j·∇)b_k u_jk,    u_jk in row m + j·m + k,

and for a diagonal G, whose columns do not mix, m more rows: out_i = f_i h + g_i v_i + g_i ∂g_i/∂x_i u_i, u_i in row
m + i. It is linear in (h, v, u) still, and with m rows it is the INCREMENT that every equation has. A step that gives u
the iterated integrals is Milstein's in one evaluation, and u = ½ on the diagonal is the CORRECTION.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from sgdsde._abi import CORRECTION
from sgdsde._errors import ModelError, ShapeError
from sgdsde._jit import kernel_uncached
from sgdsde._views import matrix, rest, vector
from sgdsde.equation._equation import Kernels
from sgdsde.equation.probing import COLUMN, DIAGONAL, _called, _shaped, values

__all__ = [
    "check_derivative",
    "check_differences",
    "derivative_shape",
    "double_sum",
    "extended_rows",
    "with_derivative",
]

EQUAL = 1e-5
"""Relative: what a derivative may differ from differences."""
MOST, SAMPLED = 64, 16
SHIFT = float(np.finfo(float).eps ** (1 / 3))
ROUNDING = 4e-15
"""Relative error of an entry of G, times a few."""


def derivative_shape(d: int, m: int, form: str) -> tuple[int, ...]:
    """Shape of ∂G: (d,) = ∂g_i/∂y_i, (d, d) = ∂g_i/∂y_k or (d, m, d) = ∂G_ij/∂y_k, by the layout of G."""
    return {DIAGONAL: (d,), COLUMN: (d, d)}.get(form, (d, m, d))


def extended_rows(m: int, form: str) -> int:
    """Rows of the extended noise."""
    return 2 * m if form == DIAGONAL else m + m * m


def check_derivative(function: Any, returned: Any, d: int, m: int, form: str) -> np.ndarray:
    """What a derivative returned, as an array of `derivative_shape`."""
    shape = derivative_shape(d, m, form)
    meaning = {DIAGONAL: "entry i is ∂g_i/∂y_i", COLUMN: "entry (i, k) is ∂g_i/∂y_k"}
    wanted = f"shape {shape} ({meaning.get(form, 'entry (i, j, k) is ∂G_ij/∂y_k')})"
    array = values("derivative", function, returned, wanted)
    if array.shape != shape and not (shape == (1,) and array.ndim == 0):
        raise ShapeError(
            f"{_called('derivative', function)} returned {_shaped(returned, array)}, but {wanted} is wanted"
        )
    return array.reshape(shape)


def check_differences(
    function: Any, D: np.ndarray, diffusion: Callable[[np.ndarray], np.ndarray], y: np.ndarray, form: str
) -> None:
    """ModelError where D is not the derivative at y of `diffusion`, which maps y to G; by central differences.

    Entries in whose direction G cannot be evaluated, or has an edge, are taken at their word. Of more than 64
    components 16 are looked at.
    """
    G, d = diffusion(y), len(y)
    for k in range(d) if d <= MOST else np.unique(np.linspace(0, d - 1, SAMPLED).astype(int)):
        step = SHIFT * (1.0 + abs(y[k]))
        found = _difference(diffusion, G, y, k, step) or _difference(diffusion, G, y, k, SHIFT * abs(y[k]))
        if found is None:
            continue
        slope, spread, step = found
        given = D[..., k]
        if form == DIAGONAL:  # only entry k is asked for
            slope, spread, given = slope[k : k + 1], spread[k : k + 1], D[k : k + 1]
        allowed = EQUAL * np.maximum(np.abs(slope), np.abs(given)) + spread + ROUNDING * np.abs(G).max() / step
        wrong = np.abs(given - slope) > allowed
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            index = (k,) if form == DIAGONAL else (*where, k)
            raise ModelError(
                f"{_called('derivative', function)} is not the derivative of the diffusion at the start: entry "
                f"[{', '.join(map(str, index))}] is {given[where]:.6g}, and differences give {slope[where]:.6g}"
            )


def _difference(
    diffusion: Callable[[np.ndarray], np.ndarray], G: np.ndarray, y: np.ndarray, k: int, step: float
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """∂G/∂y_k, how far the differences of both sides are apart, and the step; None where G is not finite there."""
    up, down = y.copy(), y.copy()
    up[k] += step
    down[k] -= step
    if up[k] == down[k]:
        return None
    try:
        above, below = diffusion(up), diffusion(down)
    except Exception:  # a state that the user did not choose
        return None
    if not (np.isfinite(above).all() and np.isfinite(below).all()):
        return None
    width = up[k] - down[k]
    return (above - below) / width, 2.0 * np.abs(above - 2.0 * G + below) / width, width


def double_sum(g: np.ndarray, D: np.ndarray, u: np.ndarray, form: str) -> np.ndarray:
    """Σ_(j,k) (b_j·∇)b_k u_jk, (d,), in Python: g as the layout has it, u (m m,) or (m,)."""
    if form == DIAGONAL:
        return g * D * u
    d = len(g)
    m = g.size // d
    return np.einsum("ikl,lj,jk->i", D.reshape(d, m, d), g.reshape(d, m), u.reshape(m, m))


@lru_cache(maxsize=128)
def _correction_of(increment: Any, m: int, rows: int) -> Any:
    diagonal = rows == 2 * m

    @kernel_uncached(CORRECTION)
    def correction(out, x, t, p, data, work):
        n = x.shape[1]
        v = matrix(work, 0, rows, n)
        h = vector(work, rows * n, n)
        for j in range(rows):
            for b in range(n):
                v[j, b] = 0.0
        for b in range(n):
            h[b] = 0.0
        for j in range(m):
            for b in range(n):
                v[m + (j if diagonal else j * m + j), b] = 0.5
        increment(out, x, t, h, v, p, data, rest(work, (rows + 1) * n))

    return correction


def with_derivative(kernels: Kernels, m: int, form: str, correction: bool) -> Kernels:
    """Kernels whose INCREMENT takes the extended noise: with room for it, and the CORRECTION it gives where wanted."""
    rows, (fixed, per_path) = extended_rows(m, form), kernels.work
    if not correction:
        return kernels._replace(work=(fixed, per_path + rows))
    made = _correction_of(kernels.increment, m, rows)
    return kernels._replace(correction=made, work=(fixed, per_path + rows + 1))
