"""Second derivatives of `Product`, and norms of single gradients, in closed form.

    H_i = 2·scale·(x_i² ∇v∇vᵀ + x_i(v x_i - y_i) ∇²v),   Tr H_i = 2·scale·x_i²‖∇v‖²,   ‖∇ℓ_i‖² = (2·scale·x_i r_i)²‖∇v‖²

for ∇²v has no diagonal: a factor stands in its product once.
"""

from __future__ import annotations

from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import rest, vector
from sgdsde.models.model import HESSIAN, LOSSES
from sgdsde.models.product_kernels import DEPTH, SCALE, WIDTH, pointwise

__all__ = ["gradient_norms", "hessian", "hessian_traces"]


@kernel(HESSIAN)
def hessian(out, theta, v, c, q, data, work):
    """out = Σ_i c_i H_i v."""
    n, d = c.shape[0], theta.shape[0]
    width, depth = int(q[WIDTH]), int(q[DEPTH])
    slope = vector(work, 2, d)
    value = pointwise(slope, theta, q, work)
    along = 0.0
    for r in range(d):
        along += slope[r] * v[r]
    weighted = vector(work, 2 + d, n)
    for i in range(n):
        weighted[i] = c[i] * data[i]
    first = dot(weighted, data)
    second = value * first - dot(weighted, rest(data, n))
    for k in range(depth):
        for i in range(width):
            product, moved = 1.0, 0.0  # Π_{l≠k} u_i^(l), and its derivative along v
            for l in range(depth):
                if l != k:
                    moved = moved * theta[l * width + i] + product * v[l * width + i]
                    product *= theta[l * width + i]
            r = k * width + i
            out[r] = 2.0 * q[SCALE] * (first * along * slope[r] + second * moved)


@inline
def _length(theta, q, work):
    """v and ‖∇v‖²."""
    d = theta.shape[0]
    slope = vector(work, 2, d)
    value = pointwise(slope, theta, q, work)
    total = 0.0
    for r in range(d):
        total += slope[r] * slope[r]
    return value, total


@kernel(LOSSES)
def gradient_norms(out, theta, q, data, work):
    """out_i = ‖∇ℓ_i‖²."""
    n = out.shape[0]
    v, length = _length(theta, q, work)
    for i in range(n):
        out[i] = 4.0 * (q[SCALE] * data[i] * (v * data[i] - data[n + i])) ** 2 * length


@kernel(LOSSES)
def hessian_traces(out, theta, q, data, work):
    """out_i = Tr H_i."""
    _, length = _length(theta, q, work)
    for i in range(out.shape[0]):
        out[i] = 2.0 * q[SCALE] * data[i] * data[i] * length
