"""The charge law of `Product` along a path, for diagonal generators: everything in closed form from the moments.

p = [γ, *q, ‖A‖, diagonal of A (d)]. ∇LᵀA∇L = (2·scale·(β₁v - β₂))² ∇vᵀA∇v and Tr[ΣA] = 4·scale²·q(v) ∇vᵀA∇v.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import TRACK
from sgdsde._jit import kernel
from sgdsde.models import model
from sgdsde.models.product_kernels import BETA1, BETA2, SCALE, value_and_slope, variance
from sgdsde.models.views import matrix, rest, vector

__all__ = ["NUMBERS", "charge_law"]

NUMBERS = 10
"""Length of q."""

SUM_H_CHARGE = model.SUM_H_CHARGE
SUM_H2_CHARGE = model.SUM_H2_CHARGE
SUM_H2_GRADIENT = model.SUM_H2_GRADIENT
SUM_H_TRACE = model.SUM_H_TRACE
SUM_CROSS = model.SUM_CROSS
SUM_ABS_CROSS = model.SUM_ABS_CROSS
SUM_QUADRATIC = model.SUM_QUADRATIC
CHARGE = model.CHARGE
SUM_SCALE = model.SUM_SCALE


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows named in `models.model`."""
    q = rest(p, 1)
    a = rest(q, NUMBERS)
    d, n_columns = x0.shape
    value, after, slope = (
        vector(work, 0, n_columns),
        vector(work, n_columns, n_columns),
        matrix(work, 2 * n_columns, d, n_columns),
    )
    value_and_slope(slope, x0, value, after, q)
    for b in range(n_columns):
        decay = 1.0 - 2.0 * p[0] * h[b]
        charge = moved = along = cross = quadratic = length0 = length = 0.0
        for r in range(d):
            v = x1[r, b] - decay * x0[r, b]
            charge += a[1 + r] * x0[r, b] * x0[r, b]
            moved += a[1 + r] * x1[r, b] * x1[r, b]
            along += a[1 + r] * slope[r, b] * slope[r, b]
            cross += 2.0 * decay * a[1 + r] * x0[r, b] * v
            quadratic += a[1 + r] * v * v
            length0 += x0[r, b] * x0[r, b]
            length += v * v
        mean = q[BETA1] * value[b] - q[BETA2]
        unit = 4.0 * q[SCALE] * q[SCALE] * along
        acc[SUM_H_CHARGE, b] += h[b] * charge
        acc[SUM_H2_CHARGE, b] += h[b] * h[b] * charge
        acc[SUM_H2_GRADIENT, b] += h[b] * h[b] * unit * mean * mean
        acc[SUM_H_TRACE, b] += h[b] * unit * variance(value[b], q)
        acc[SUM_CROSS, b] += cross
        acc[SUM_ABS_CROSS, b] += abs(cross)
        acc[SUM_QUADRATIC, b] += quadratic
        acc[CHARGE, b] = moved
        acc[SUM_SCALE, b] += a[0] * np.sqrt(length0 * length)
