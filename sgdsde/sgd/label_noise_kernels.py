"""The SDE's increment where several points share an input: their weights are added up before the pass over samples.

With c_ik the weight of label y_ik = y_i + δ_k of input i and a gradient linear in the label,

    Σ_k c_ik ∇ℓ(θ; x_i, y_ik) = c_i ∇ℓ(θ; x_i, y_i'),    c_i = Σ_k c_ik,  c_i y_i' = Σ_k c_ik y_ik,

so that one weighted gradient over N samples does for N·K points. A c_i that happens to be very small only makes y_i'
large: what comes out, c_i f - c_i y_i', has the rounding errors of its parts, and an exact zero is moved away from 0.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import INCREMENT
from sgdsde._address import function_at
from sgdsde._jit import kernel
from sgdsde._views import rest, vector
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.model import WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = ["TAIL", "increment"]

TAIL = 7
"""Numbers at the end of p: the words of the WEIGHTED kernel, N, K, d_x, d_y."""
TINY = 2.0**-300
_weighted = function_at(WEIGHTED)


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    """out = -Σ_i c_i ∇ℓ_i - 2γhθ over the points: p = [γ, s, *q, *q of the N samples, tail], data as of the points."""
    d, n_columns = x.shape
    end = p.shape[0] - TAIL
    weighted = _weighted(np.int64(p[end]), np.int64(p[end + 1]), np.int64(p[end + 2]))
    n, n_points, dx, dy = int(p[end + 3]), int(p[end + 4]), int(p[end + 5]), int(p[end + 6])
    c, total, at = vector(work, 0, n * n_points), vector(work, n * n_points, n), n * (n_points + 1)
    own, at = vector(work, at, n * (dx + dy)), at + n * (dx + dy)
    length = (end - 2) // 2
    q = vector(p, 2 + length, length)
    space, moved, tail = vector(work, at, d), vector(work, at + d, d), rest(work, at + 2 * d)
    for i in range(n * dx):
        own[i] = data[i]
    for b in range(n_columns):
        theta = column(x, b, space)
        sde_weights(c, h[b], v, b, p[1])
        for i in range(n * dy):
            own[n * dx + i] = 0.0
        for i in range(n):
            total[i] = 0.0
        for k in range(n_points):
            labels = vector(data, n * n_points * dx + k * n * dy, n * dy)
            for i in range(n):
                w = c[k * n + i]
                total[i] += w
                for j in range(dy):
                    own[n * dx + i * dy + j] += w * labels[i * dy + j]
        for i in range(n):
            if abs(total[i]) < TINY:
                total[i] = TINY
            for j in range(dy):
                own[n * dx + i * dy + j] /= total[i]
        target = vector(out, 0, d) if n_columns == 1 else moved
        weighted(target, theta, total, q, own, tail)
        decay = 2.0 * p[0] * h[b]
        for i in range(d):
            target[i] -= decay * theta[i]
        if n_columns > 1:
            for i in range(d):
                out[i, b] = target[i]
