"""What both solvers of an implicit step share: F, its residual, and how far each column is."""

from __future__ import annotations

from sgdsde._jit import inline

__all__ = ["COLUMNS", "DONE", "LOOSE", "OPEN", "TIGHT", "evaluate", "measure"]

TIGHT = 2.0**-43
"""A column is done when max|F(u) − u| is below this fraction of max|base| + max|u|: rounding, and a few operations."""
LOOSE = 2.0**-26
"""Where the residual falls no more, this will do: rounding in F is larger where large terms cancel, and much larger
(1e-7 of h·c) where the correction is made by differences."""
OPEN, DONE, LEFT = 0.0, 1.0, 2.0
"""States of a column: iterating, solved, given up by this solver."""
COLUMNS = 11
"""Rows of numbers for each column: state, residual, its size, poison, best residual; two of a solver's own; scratch;
size at the best residual, β, first residual."""


@inline
def evaluate(increment, correction, f, u, base, theta, t, h, v, with_correction, p, data, y, c, tail):
    """f = F(u)."""
    d, n = base.shape
    for i in range(d):
        for b in range(n):
            y[i, b] = base[i, b] + theta * u[i, b]
    increment(f, y, t, h, v, p, data, tail)
    if with_correction:
        correction(c, y, t, p, data, tail)
        for i in range(d):
            for b in range(n):
                f[i, b] -= h[b] * c[i, b]


@inline
def measure(f, u, base, columns):
    """residual[b] = max|f − u|, size[b] = max|base| + max|u|; not a number where f is not finite."""
    d, n = base.shape
    residual, size, poison, largest = columns[1], columns[2], columns[3], columns[7]
    for b in range(n):
        residual[b], size[b], poison[b], largest[b] = 0.0, 0.0, 0.0, 0.0
    for i in range(d):
        for b in range(n):
            g = f[i, b] - u[i, b]
            poison[b] += g * 0.0
            residual[b] = max(residual[b], abs(g))
            size[b] = max(size[b], abs(base[i, b]))
            largest[b] = max(largest[b], abs(u[i, b]))
    for b in range(n):
        residual[b] += poison[b]
        size[b] += largest[b]
