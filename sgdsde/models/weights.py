"""From noise to sample weights: all in which the SGD SDE of the per-sample factor differs from gradient descent."""

from __future__ import annotations

import numpy as np

from sgdsde._jit import inline

__all__ = ["sde_weights"]


@inline
def sde_weights(c, h, v, b, s):
    """-c_i = -h/N + s·(v_i - v̄)/√N for column b of v, so that Σ_i (-c_i) g_i = -∇L·h + s·G·v with G = (g - ḡ)/√N.

    v without rows stands for no noise.
    """
    n = c.shape[0]
    mean = 0.0
    if v.shape[0] > 0:
        for i in range(n):
            mean += v[i, b]
        mean /= n
        factor = s / np.sqrt(n)
        for i in range(n):
            c[i] = factor * (v[i, b] - mean) - h / n
    else:
        for i in range(n):
            c[i] = -h / n
