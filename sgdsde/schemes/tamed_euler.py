"""Tamed Euler: the whole increment of Euler-Maruyama, shortened where it is long, so that no path explodes.

    Y' = Y + Δ / √(1 + h^½ |Δ|²),   Δ = a(t, Y) h + b(t, Y) ΔW              after Tretyakov & Zhang 2013, sec. 3

a, b: Itô drift and noise coefficient; |Δ| is the Euclidean norm over all components. One scalar shortens the vector, so
its direction is kept: if every increment of a model is at right angles to Aθ, so is the tamed one (taming each
component by itself would break that). A step is shorter than h^{-1/4}, so n steps stay within n h^{-1/4} of their
start, and moments of the numerical solution stay finite where those of Euler-Maruyama do not.

Order. Tretyakov & Zhang divide by 1 + |a|h + Σ_j|b^j ΔW^j| and prove strong order 0.5 for coefficients of polynomial
growth with (x−y)ᵀ(a(x)−a(y)) + K|b(x)−b(y)|² <= c|x−y|². Their argument carries over: a path grows at most by a power
of 1/h, and a step differs from Δ by a higher order of |Δ|. Theirs differs by O(|Δ|²), which takes half an order from
the mean; ours by ½h^{1/2}|Δ|³ = O(h²), which costs nothing: strong order 0.5, 1.0 when the noise is additive, weak
order 1.0. Without noise it is Euler's method with steps of bounded length, of order 1. One evaluation of the increment.

Not for: accuracy where the noise is strong. It does not explode, which is not to say that it is right: a path far out,
where |Δ| is large, comes back by less than h^{-1/4} a step, and long runs are biased by it. For uw-gauss
(`models.Product` on `models.uw_gauss`) at T = 0.05 the stationary mean of uw is within 2 percent; at T = 0.2, where
0.586 is right, it is near 1.1 with h = 0.01 and larger still with h = 0.001, as a few paths in a thousand are far out.
Steps that depend on the state (`step_size`) are better there. States whose natural size is far from 1: measure them in
other units.
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, zeros
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME", "step"]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    y = matrix(work, 0, d, n)
    increment(y, x, t, h, dW, p, data, rest(work, d * n))
    square = zeros(work, d * n, n)
    for i in range(d):
        for b in range(n):
            square[b] += y[i, b] * y[i, b]
    for b in range(n):
        square[b] = 1.0 / math.sqrt(1.0 + math.sqrt(h[b]) * square[b])
    for i in range(d):
        for b in range(n):
            x[i, b] += square[b] * y[i, b]


SCHEME = Scheme(
    "tamed-euler",
    step,
    calculus=("ito",),
    strong={kind: 1.0 if kind == "additive" else 0.5 for kind in NOISE_KINDS},
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    work=lambda d, m: (0, d + 1),
    evaluations="1",
    ode_order=1,
    reference="Tretyakov & Zhang 2013, SIAM J. Numer. Anal. 51, 3135",
    summary="never explodes; keeps the direction of every increment",
)
