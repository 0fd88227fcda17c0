"""Milstein without derivatives, for noise that needs no Lévy areas: scalar, diagonal, commutative, additive.

    Υ^j = Y + b^j √h                                                        no drift in the support (see below)
    Y'  = Y + a h + Σ_j b^j ΔW^j + h^{-1/2} Σ_jk [b^k(t, Υ^j) − b^k(t, Y)] I_jk
    Itô:           I_jk = ½(ΔW^j ΔW^k − h δ_jk)                             Kloeden & Platen (11.1.3), (11.1.7)
    Stratonovich:  I_jk = ½ ΔW^j ΔW^k

with the drift of the calculus the equation is written in. When the columns commute, (b^j·∇)b^k = (b^k·∇)b^j, only the
symmetric part of the double integrals enters, which is I_jk above. Strong and weak order 1.0 in both calculi.

The support: in the Itô form (book: Y + a h + b^j √h) a drift in it does no harm and no good. In the Stratonovich form
it costs half an order: E I_jj = h/2 there, so h^{-1/2} (a h·∇)b^j I_jj biases every step by ½h^{3/2} (a·∇)b^j.

Cost, in increments: 3 for scalar and diagonal noise (one call with v = 1 gives every b^i at once), 2m + 2 for
commutative noise (linear in v: Σ_k b^k I_jk is one call, and no d × m matrix is stored), 1 for additive noise, where it
is `euler-maruyama`. 'Diagonal' as in Kloeden & Platen: m = d, and b^i has component i alone, a function of y_i alone.

Not for: general noise, which is refused (`milstein-symmetric` takes it); large m, where `milstein-symmetric` has the
same order for 3 increments; noise that is diagonal as a matrix while entry i depends on other components (the columns
do not commute, and the step converges to the solution of another equation).
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde.schemes import euler_maruyama
from sgdsde.schemes._scheme import Scheme
from sgdsde.schemes._scratch import block, rest, zeros

__all__ = ["SCHEME"]


@inline
def _columns_apart(increment, x, t, h, dW, work, p, data, ito):
    """Each component sees one Brownian motion: component i number i (diagonal), or all of them number 0 (scalar)."""
    d, n = x.shape
    m = dW.shape[0]
    y = block(work, 0, d, n)
    g = block(work, d * n, d, n)
    support = block(work, 2 * d * n, d, n)
    v = block(work, 3 * d * n, m, n)
    no_time = zeros(work, (3 * d + m) * n, n)
    root = zeros(work, (3 * d + m + 1) * n, n)
    tail = rest(work, (3 * d + m + 2) * n)
    for b in range(n):
        root[b] = math.sqrt(h[b])
    increment(y, x, t, h, dW, p, data, tail)
    for j in range(m):
        for b in range(n):
            v[j, b] = 1.0
    increment(g, x, t, no_time, v, p, data, tail)  # b itself
    for j in range(m):
        for b in range(n):
            v[j, b] = 0.5 * (dW[j, b] * dW[j, b] - ito * h[b]) / root[b]
    for i in range(d):
        j = i if m > 1 else 0
        for b in range(n):
            support[i, b] = x[i, b] + g[i, b] * root[b]
            y[i, b] -= g[i, b] * v[j, b]
    increment(g, support, t, no_time, v, p, data, tail)  # b(Υ) I / √h
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + g[i, b]


@inline
def _columns_mixed(increment, x, t, h, dW, work, p, data, ito):
    """Commuting columns: one support Υ^j for each, and row j of I / √h as the noise there."""
    d, n = x.shape
    m = dW.shape[0]
    y = block(work, 0, d, n)
    g = block(work, d * n, d, n)
    support = block(work, 2 * d * n, d, n)
    v = block(work, 3 * d * n, m, n)
    total = zeros(work, (3 * d + m) * n, n)
    no_time = zeros(work, (3 * d + m + 1) * n, n)
    root = zeros(work, (3 * d + m + 2) * n, n)
    tail = rest(work, (3 * d + m + 3) * n)
    for b in range(n):
        root[b] = math.sqrt(h[b])
    increment(y, x, t, h, dW, p, data, tail)
    for j in range(m):
        for b in range(n):
            total[b] += dW[j, b]
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.5 * (total[b] * dW[k, b] - ito * h[b]) / root[b]
    increment(g, x, t, no_time, v, p, data, tail)  # Σ_j Σ_k b^k(Y) I_jk / √h
    for i in range(d):
        for b in range(n):
            y[i, b] -= g[i, b]
    for j in range(m):
        for k in range(m):
            for b in range(n):
                v[k, b] = 1.0 if k == j else 0.0
        increment(g, x, t, no_time, v, p, data, tail)  # b^j
        for i in range(d):
            for b in range(n):
                support[i, b] = x[i, b] + g[i, b] * root[b]
        for k in range(m):
            for b in range(n):
                v[k, b] = 0.5 * (dW[j, b] * dW[k, b] - (ito * h[b] if k == j else 0.0)) / root[b]
        increment(g, support, t, no_time, v, p, data, tail)  # Σ_k b^k(Υ^j) I_jk / √h
        for i in range(d):
            for b in range(n):
                y[i, b] += g[i, b]
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


@kernel(STEP)
def apart_ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _columns_apart(increment, x, t, h, dW, work, p, data, 1.0)


@kernel(STEP)
def apart_stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _columns_apart(increment, x, t, h, dW, work, p, data, 0.0)


@kernel(STEP)
def mixed_ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _columns_mixed(increment, x, t, h, dW, work, p, data, 1.0)


@kernel(STEP)
def mixed_stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _columns_mixed(increment, x, t, h, dW, work, p, data, 0.0)


KINDS = ("additive", "scalar", "diagonal", "commutative")

SCHEME = Scheme(
    "milstein",
    {
        ("additive", "ito"): euler_maruyama.step,
        ("additive", "stratonovich"): euler_maruyama.step,
        ("scalar", "ito"): apart_ito,
        ("scalar", "stratonovich"): apart_stratonovich,
        ("diagonal", "ito"): apart_ito,
        ("diagonal", "stratonovich"): apart_stratonovich,
        ("commutative", "ito"): mixed_ito,
        ("commutative", "stratonovich"): mixed_stratonovich,
    },
    calculus=("ito", "stratonovich"),
    strong=dict.fromkeys(KINDS, 1.0),
    weak=dict.fromkeys(KINDS, 1.0),
    work=lambda d, m: (0, 3 * d + m + 3),
    evaluations="3; commutative 2m + 2; additive 1",
    ode_order=1,
    reference="Kloeden & Platen 1992, (11.1.3), (11.1.7)",
    summary="derivative-free, for noise without Lévy areas",
    extra={
        "general": "columns that do not commute need Lévy areas, without which its order is 0.5; use "
        "'milstein-symmetric', or declare noise='commutative' if the columns commute (noise_structure measures it)"
    },
)
