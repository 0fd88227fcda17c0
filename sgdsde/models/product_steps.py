"""How far a step of the SDE of `Product` may go: δ in (0, 1], the part of dt, from how fast the coefficients change.

    δ = 1 / (1 + R·η/ε),    R = 2·scale·(|β₁v - β₂|·‖∇²v‖ + β₁‖∇v‖²) + 2γ + s²·4·scale²·(q(v)‖∇²v‖² + α₁‖∇v‖⁴),

s² = 2σ²ρ. R bounds the Lipschitz constant of the drift plus the square of that of the noise 2·scale·s·√q(v)·∇v (for
(√q)'² <= α₁), both local, so that Euler-Maruyama is a small relative change where step·R is small. With dt = η no step
times R is larger than ε = 0.1, and with a smaller dt it is smaller in proportion. Where the noise grows like θ³ and
plain Euler-Maruyama explodes, steps are short and nothing is lost; they follow from the state at their start alone, so
that no law is bent (W. Fang, M. B. Giles, Ann. Appl. Probab. 30 (2020) 526: the same idea, with its convergence).

For one unit of D factors ‖∇v‖² = e_{D-1}(u_1², …, u_D²), an elementary symmetric polynomial; ∇²v has trace zero and
‖∇²v‖_F² = 2e_{D-2}, so that its largest eigenvalue squared is at most 2(1 - 1/D)e_{D-2}. Units do not share factors:
the ‖∇v‖² add, and ‖∇²v‖ is the largest.
"""

from __future__ import annotations

from sgdsde._abi import OBSERVE
from sgdsde._jit import kernel
from sgdsde._views import rest, vector
from sgdsde.models.product_kernels import ALPHA1, BETA1, BETA2, DEPTH, SCALE, WIDTH, variance

__all__ = ["ROWS", "SMALL", "step_size"]

SMALL = 0.1
"""ε."""
ROWS = 6
"""Doubles of scratch for each path."""


@kernel(OBSERVE)
def step_size(out, x, t, p, data, work):
    """δ of each column. p = [η/ε, γ, s², *q]."""
    q = rest(p, 3)
    n = x.shape[1]
    width, depth = int(q[WIDTH]), int(q[DEPTH])
    value, slope, curve = vector(work, 0, n), vector(work, n, n), vector(work, 2 * n, n)  # v, ‖∇v‖², e_{D-2}
    top, one, two = vector(work, 3 * n, n), vector(work, 4 * n, n), vector(work, 5 * n, n)  # e_k, e_{k-1}, e_{k-2}
    for b in range(n):
        value[b] = slope[b] = curve[b] = 0.0
    for i in range(width):
        for b in range(n):
            top[b], one[b], two[b] = 1.0, 0.0, 0.0
        for k in range(depth):
            for b in range(n):
                a = x[k * width + i, b] * x[k * width + i, b]
                two[b] = two[b] * a + one[b]
                one[b] = one[b] * a + top[b]
                top[b] *= a
        for b in range(n):
            slope[b] += one[b]
            curve[b] = max(curve[b], two[b])
            product = 1.0
            for k in range(depth):
                product *= x[k * width + i, b]
            value[b] += product
    for b in range(n):
        bend = 2.0 * (1.0 - 1.0 / depth) * curve[b]
        drift = abs(q[BETA1] * value[b] - q[BETA2]) * bend**0.5 + q[BETA1] * slope[b]
        noise = variance(value[b], q) * bend + q[ALPHA1] * slope[b] * slope[b]
        rate = 2.0 * q[SCALE] * drift + 2.0 * p[1] + p[2] * 4.0 * q[SCALE] * q[SCALE] * noise
        out[0, b] = 1.0 / (1.0 + p[0] * rate)
