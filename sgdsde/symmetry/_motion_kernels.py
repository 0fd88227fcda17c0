"""Compiled sums of a trajectory along and across symmetry directions, step by step (imported when a run tracks them).

p as in `_projection_solver`, of which only K, the norms and the forms are read.
"""

from __future__ import annotations

import math

from sgdsde._abi import TRACK
from sgdsde._jit import kernel
from sgdsde._views import matrix, vector
from sgdsde.symmetry._projection_solver import directions, solve

__all__ = ["OWN_ROWS", "motion", "motion_size"]

OWN_ROWS = 4  # Σ‖Δθ_∥‖², Σ‖Δθ_⊥‖², Σ‖Δθ_∥‖, Σ‖Δθ_⊥‖; then K times Σ 2A_aθ_mid·Δθ_∥


def motion_size(d: int, k: int) -> int:
    """Doubles of scratch."""
    return k * d + k * k + 4 * k + 3 * d


@kernel(TRACK)
def motion(acc, x0, x1, t, h, p, data, work):
    d, n, k = x0.shape[0], x0.shape[1], int(p[0])
    J, K = matrix(work, 0, k, d), matrix(work, k * d, k, k)
    at = k * (d + k)
    none, miss, c = vector(work, at, k), vector(work, at + k, k), vector(work, at + 2 * k, k)
    at += 4 * k
    y, delta, along = vector(work, at, d), vector(work, at + d, d), vector(work, at + 2 * d, d)
    for a in range(k):
        none[a] = 0.0
    for b in range(n):
        for i in range(d):
            y[i] = 0.5 * (x0[i, b] + x1[i, b])
            delta[i] = x1[i, b] - x0[i, b]
            along[i] = 0.0
        directions(J, miss, y, none, p)
        for a in range(k):
            dot = 0.0
            for i in range(d):
                dot += J[a, i] * delta[i]
            miss[a] = 2.0 * dot
        solve(c, miss, J, K)
        for a in range(k):
            for i in range(d):
                along[i] += c[a] * J[a, i]
        parallel, orthogonal = 0.0, 0.0
        for i in range(d):
            parallel += along[i] * along[i]
            orthogonal += (delta[i] - along[i]) * (delta[i] - along[i])
        acc[0, b] += parallel
        acc[1, b] += orthogonal
        acc[2, b] += math.sqrt(parallel)
        acc[3, b] += math.sqrt(orthogonal)
        for a in range(k):
            change = 0.0
            for i in range(d):
                change += J[a, i] * along[i]
            acc[OWN_ROWS + a, b] += 2.0 * change
