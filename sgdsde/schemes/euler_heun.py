"""Euler-Heun: Euler's drift and Heun's noise, for Stratonovich equations.

    Ȳ  = Y + b(t, Y)·ΔW
    Y' = Y + a(t, Y)·h + ½[b(t, Y) + b(t+h, Ȳ)]·ΔW

a: Stratonovich drift. H. Gilsing, T. Shardlow, J. Comput. Appl. Math. 205 (2007) 1002, for coefficients without time;
programs differ in the time of the second b, and this is the form with the end of the step. The average makes
½Σ_jk (b_j·∇)b_k ΔW_j ΔW_k, so the strong order is 1.0 for scalar, diagonal, commutative and additive noise, 0.5 for
general noise, where the Lévy areas are missing; weak order 1.0. Where b changes with time a step errs by
∂_t b [½h ΔW − ∫(s − t)dW], of mean zero and mean square h³/12. With b(t, Ȳ) instead, the step is the one of
`milstein-symmetric` and errs by ∂_t b ∫(s − t)dW, of mean square h³/3: order 1.0 too, with twice the constant.

Cost: 3 increments; 2 for additive noise, Y' = Y + a h + ½[b(t) + b(t+h)]ΔW. No noise leaves Euler's method.

Not for: Itô equations (it would converge to the solution of another equation): convert with `to_stratonovich`; smooth
drift, which `heun` integrates to order 2 in 2 increments. Only additive noise is taken from either calculus.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector, zeros
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME"]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    g = matrix(work, 0, d, n)
    support = matrix(work, d * n, d, n)
    y = matrix(work, 2 * d * n, d, n)
    no_noise = matrix(work, 3 * d * n, dW.shape[0], n)
    at = (3 * d + dW.shape[0]) * n
    no_time = zeros(work, at, n)
    end = vector(work, at + n, n)
    tail = rest(work, at + 2 * n)
    no_noise[:] = 0.0
    increment(g, x, t, no_time, dW, p, data, tail)  # b ΔW
    increment(y, x, t, h, no_noise, p, data, tail)  # a h
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b] + g[i, b]
            y[i, b] += 0.5 * g[i, b]
    for b in range(n):
        end[b] = t[b] + h[b]
    increment(g, support, end, no_time, dW, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + 0.5 * g[i, b]


@kernel(STEP)
def additive(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    v = matrix(work, 2 * d * n, m, n)
    no_time = zeros(work, (2 * d + m) * n, n)
    end = vector(work, (2 * d + m + 1) * n, n)
    tail = rest(work, (2 * d + m + 2) * n)
    for b in range(n):
        end[b] = t[b] + h[b]
        for j in range(m):
            v[j, b] = 0.5 * dW[j, b]
    increment(y, x, t, h, v, p, data, tail)
    increment(g, x, end, no_time, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + g[i, b]


SCHEME = Scheme(
    "euler-heun",
    {
        ("general", "stratonovich"): step,
        ("additive", "stratonovich"): additive,
        ("additive", "ito"): additive,
    },
    calculus=("stratonovich",),
    strong={kind: 0.5 if kind == "general" else 1.0 for kind in NOISE_KINDS},
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    work=lambda d, m: (0, 3 * d + m + 2),
    evaluations="3; additive 2",
    ode_order=1,
    reference="Gilsing & Shardlow 2007, J. Comput. Appl. Math. 205, 1002",
    summary="Heun's average of the noise, Euler's drift",
)
