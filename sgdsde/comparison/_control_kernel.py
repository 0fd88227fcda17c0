"""The linear part of what noise does to means of functions, summed along a run: a martingale, whatever the weights."""

from __future__ import annotations

import numpy as np

from sgdsde._abi import INCREMENT, TRACK
from sgdsde._address import function_at
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector

__all__ = ["HEADER", "linear"]

HEADER = 6
"""Numbers before the equation's own in `p`: t0, h, the number of steps, and the three words of its increment."""
_increment = function_at(INCREMENT)


@kernel(TRACK)
def linear(acc, x0, x1, t, h, p, data, work):
    """acc[q] += ψ[k, q]·(x1 - x0 - f(t, x0)h), k the number of the step; data = ψ (n_steps, q, d), the equation's."""
    d, n = x0.shape
    q, n_steps = acc.shape[0], int(p[2])
    drift = _increment(np.int64(p[3]), np.int64(p[4]), np.int64(p[5]))
    moved, no_noise = matrix(work, 0, d, n), matrix(work, 0, 0, n)
    own = n_steps * q * d
    drift(moved, x0, t, h, no_noise, rest(p, HEADER), rest(data, own), rest(work, d * n))
    for b in range(n):
        k = min(max(int((t[b] - p[0]) / p[1] + 0.5), 0), n_steps - 1)
        for i in range(d):
            moved[i, b] = x1[i, b] - x0[i, b] - moved[i, b]
        for r in range(q):
            weight = vector(data, (k * q + r) * d, d)
            total = 0.0
            for i in range(d):
                total += weight[i] * moved[i, b]
            acc[r, b] += total
