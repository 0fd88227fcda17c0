"""The charge law of `Product` along a path, for diagonal generators: everything in closed form from the moments.

p = [γ, *q, ‖A‖, diagonal of A (d)]. ∇LᵀA∇L = (2·scale·(β₁v - β₂))² ∇vᵀA∇v and Tr[ΣA] = 4·scale²·q(v) ∇vᵀA∇v.
"""

from __future__ import annotations

from sgdsde._abi import TRACK
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.product_kernels import BETA1, BETA2, SCALE, value_and_slope, variance

__all__ = ["NUMBERS", "charge_law"]

NUMBERS = 10
"""Length of q."""


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`."""
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
        push, trace = unit * mean * mean, unit * variance(value[b], q)
        add_step(acc, b, h[b], charge, push, trace, cross, quadratic, moved, a[0], length0, length)
