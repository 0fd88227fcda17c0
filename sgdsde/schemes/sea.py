"""SEA: the shifted Euler method for additive noise, of order 1.0 with the error of Euler's method from ∫W du removed.

    u  = ½ΔW + H                                                      u_k = I_(k,0)/h, H the space-time area
    Y' = Y + a(t+h, Y + b(t) u) h + b(t) u + b(t+h)(ΔW − u)                            Foster, dos Reis, Strange 2024

b(t) u + b(t+h)(ΔW − u) = b(t) ΔW + [b(t+h) − b(t)](½ΔW − H): the noise of a step, also where b depends on time, but for
O(h^{5/2}) of mean zero. Strong and weak order 1.0, as Euler's method, of whose error a step keeps the mean alone,

    E[Y' − X(t+h)] = h² [½ (a_t − a·∇a) − 1/12 Σ_k b_k·b_k·∇∇a] + O(h³),

and no O(h^{3/2}). With no noise it is an Euler step with the drift at t + h: taken there, where the second b is wanted,
everything is two increments. Additive noise has one law in both calculi: it is taken from either.

Cost: 2 increments, of which 1 is the noise alone. As many normal numbers again as ΔW has, for H.

Not for: noise that depends on the state, which is refused (`milstein`); order 1.5 (`shark`, one increment more).
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, zeros
from sgdsde.schemes._aux import space_time
from sgdsde.schemes._scheme import Scheme

__all__ = ["SCHEME"]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    v = matrix(work, d * n, m, n)
    no_time = zeros(work, (d + m) * n, n)
    end = zeros(work, (d + m + 1) * n, n)
    tail = rest(work, (d + m + 2) * n)
    for b in range(n):
        end[b] = t[b] + h[b]
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.5 * dW[k, b] + aux[k, b]
    increment(y, x, t, no_time, v, p, data, tail)  # b(t) u
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.5 * dW[k, b] - aux[k, b]
    increment(y, x, end, h, v, p, data, tail)  # a(t+h) h + b(t+h)(ΔW − u)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


SCHEME = Scheme(
    "sea",
    step,
    calculus=("ito", "stratonovich"),
    strong={"additive": 1.0},
    weak={"additive": 1.0},
    aux=space_time(),
    work=lambda d, m: (0, d + m + 2),
    evaluations="1 drift, 2 noises",
    ode_order=1,
    reference="Foster, dos Reis & Strange 2024, SIAM J. Numer. Anal. 62, 500",
    summary="order 1.0 for additive noise, better than Euler at one drift",
)
