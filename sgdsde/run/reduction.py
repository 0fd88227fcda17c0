"""Kernels of the tree of moments (`statistics`), apart because a run that keeps its paths does not need them."""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._jit import inline, kernel

__all__ = ["FIELDS", "merge_nodes", "reduce_block"]

CUBE = types.float64[:, :, ::1]
FIELDS = 5
"""Count, mean, sum of squared deviations, smallest, largest."""


@inline
def _merge(a, b, i, j):
    """Fold column j of b into column i of a (fields along the first axis)."""
    n_a, n_b = a[0, i], b[0, j]
    n = n_a + n_b
    if n_a == 0.0:
        for f in range(1, FIELDS):
            a[f, i] = b[f, j]
    elif n_b > 0.0:
        delta = b[1, j] - a[1, i]
        a[1, i] += delta * (n_b / n)
        a[2, i] += b[2, j] + delta * delta * (n_a * n_b / n)
        a[3, i] = min(a[3, i], b[3, j])
        a[4, i] = max(a[4, i], b[4, j])
    a[0, i] = n


@kernel(types.void(CUBE, CUBE, types.float64[:, ::1]))
def reduce_block(saved, out, scratch):
    """Rows (n_times, rows, B) of a block to a node (FIELDS, n_times, rows), NaN left out. scratch: (FIELDS, B)."""
    n_times, rows, n = saved.shape
    for s in range(n_times):
        for r in range(rows):
            for b in range(n):
                value = saved[s, r, b]
                good = not np.isnan(value)
                scratch[0, b] = 1.0 if good else 0.0
                scratch[1, b] = value if good else 0.0
                scratch[2, b] = 0.0
                scratch[3, b] = value if good else np.inf
                scratch[4, b] = value if good else -np.inf
            width = 1
            while width < n:
                for b in range(0, n - width, 2 * width):
                    _merge(scratch, scratch, b, b + width)
                width *= 2
            for f in range(FIELDS):
                out[f, s, r] = scratch[f, 0]


@kernel(types.void(types.float64[:, ::1], types.float64[:, ::1]))
def merge_nodes(a, b):
    """Fold node b into node a, both (FIELDS, n_times·rows)."""
    for i in range(a.shape[1]):
        _merge(a, b, i, i)
