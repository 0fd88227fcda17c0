"""Small loops over a block of paths, inlined into the engine."""

from __future__ import annotations

import numpy as np

from sgdsde._jit import inline

__all__ = ["column_finite", "columns_finite", "copy", "fill", "scale", "turn"]


@inline
def columns_finite(x):
    total = 0.0
    for i in range(x.shape[0]):
        for b in range(x.shape[1]):
            total += x[i, b] * 0.0
    return total == 0.0


@inline
def column_finite(x, b):
    for i in range(x.shape[0]):
        if not np.isfinite(x[i, b]):
            return False
    return True


@inline
def copy(to, source):
    for i in range(source.shape[0]):
        for b in range(source.shape[1]):
            to[i, b] = source[i, b]


@inline
def fill(row, value):
    for b in range(row.shape[0]):
        row[b] = value


@inline
def scale(x, begin, end, factor):
    for i in range(begin, end):
        for b in range(x.shape[1]):
            x[i, b] *= factor


@inline
def turn(out, source, start):
    """out[j, b] = source[b, start + j], a line of cache at a time."""
    rows, n = out.shape
    for j0 in range(0, rows, 8):
        for b in range(n):
            for j in range(j0, min(j0 + 8, rows)):
                out[j, b] = source[b, start + j]
