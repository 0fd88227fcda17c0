"""ShARK: the shifted additive-noise Runge-Kutta method, of strong order 1.5 in three increments.

    Z₁ = Y + b(t) H                                                   H the space-time area, I_(k,0) = h(½ΔW_k + H_k)
    Z₂ = Z₁ + 5/6 [a(t, Z₁) h + b(t) ΔW]
    Y' = Y + [2/5 a(t, Z₁) + 3/5 a(t+5/6 h, Z₂)] h + b(t) ΔW + 6/5 [b(t+5/6 h) − b(t)](½ΔW − H)
                                                                                       Foster, dos Reis, Strange 2024

Strong order 1.5 and weak order 2.0, for any number of Brownian motions. The last term is for noise that depends on
time, b_t h(½ΔW − H), by the difference over the time at which the drift is taken anyway; with it the order stays 1.5
(without it, 1.0), and the whole noise is 2/5 b(t)(ΔW + 3H) + 3/5 b(t+5/6 h)(ΔW − 2H): no increment more. Against SRA1
the supports are shifted so that the mean of their squares, E Σ_i α_i S_i² = h/2, is met with smaller coefficients. With
no noise it is a method of Runge and Kutta of order 2. Additive noise is taken from either calculus.

Cost: 3 increments, of which 1 is the noise alone. As many normal numbers again as ΔW has, for H.

Not for: noise that depends on the state, which is refused (`sriw1`, `milstein`).
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, zeros
from sgdsde.schemes._aux import space_time
from sgdsde.schemes._scheme import Scheme

__all__ = ["SCHEME"]

C = 5 / 6


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    v = matrix(work, 3 * d * n, m, n)
    no_time = zeros(work, (3 * d + m) * n, n)
    time = zeros(work, (3 * d + m + 1) * n, n)
    tail = rest(work, (3 * d + m + 2) * n)
    for k in range(m):
        for b in range(n):
            v[k, b] = aux[k, b]
    increment(g, x, t, no_time, v, p, data, tail)  # b(t) H
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b] + g[i, b]
            x[i, b] += 1.2 * g[i, b]
    increment(y, support, t, h, dW, p, data, tail)  # a(t, Z₁) h + b(t) ΔW
    for i in range(d):
        for b in range(n):
            support[i, b] += C * y[i, b]
            x[i, b] += 0.4 * y[i, b]
    for b in range(n):
        time[b] = t[b] + C * h[b]
    for k in range(m):
        for b in range(n):
            v[k, b] = dW[k, b] - 2.0 * aux[k, b]
    increment(y, support, time, h, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += 0.6 * y[i, b]


SCHEME = Scheme(
    "shark",
    step,
    calculus=("ito", "stratonovich"),
    strong={"additive": 1.5},
    weak={"additive": 2.0},
    aux=space_time(),
    work=lambda d, m: (0, 3 * d + m + 2),
    evaluations="2 drifts, 3 noises",
    ode_order=2,
    reference="Foster, dos Reis & Strange 2024, SIAM J. Numer. Anal. 62, 500",
    summary="strong order 1.5 for additive noise in three increments",
)
