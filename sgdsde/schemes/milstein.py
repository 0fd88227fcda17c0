"""Milstein without derivatives, for noise that needs no Lévy areas: scalar, diagonal, commutative, additive.

Itô, with I_jk = ½(ΔW^j ΔW^k − h δ_jk):                                     Kloeden & Platen (11.1.3), (11.1.7)

    Υ^j = Y + b^j √h
    Y'  = Y + a h + Σ_j b^j ΔW^j + h^{-1/2} Σ_jk [b^k(t, Υ^j) − b^k(t, Y)] I_jk

Stratonovich, a being its drift, with b(y) = Σ_j b^j(t, y) ΔW^j:

    Y'  = Y + a h + b(Y) + ½[b(Y + b(Y)) − b(Y)]

When the columns commute, (b^j·∇)b^k = (b^k·∇)b^j, only the symmetric part of the double integrals enters, which is
I_jk, or ½ΔW^j ΔW^k. Strong and weak order 1.0 in both calculi.

Why two supports. A difference over b^j √h errs by ½h^{1/2} (b^j·b^j·∇∇)b^j I_jj, and a drift in the support (the book's
Υ^j = Y + a h + b^j √h) by h^{1/2} (a·∇)b^j I_jj. In Itô form both have mean zero and cost nothing, with or without the
drift. In Stratonovich form E I_jj = h/2: both bias every step by O(h^{3/2}) and the strong order falls to 0.5 (without
the drift only when b is not linear, so linear test equations do not show it). A support displaced by b(Y) itself errs
by terms that are odd in ΔW, whose mean is zero.

Cost, in increments. Itô: 3 for scalar and diagonal noise (one call with v = 1 gives every b^i at once), 2m + 2 for
commutative noise (linear in v: Σ_k b^k I_jk is one call, and no d × m matrix is stored). Stratonovich: 3. Additive
noise: 1, it is `euler-maruyama`. 'Diagonal' as in Kloeden & Platen: m = d, and b^i has component i alone, a function of
y_i alone.

Not for: general noise, which is refused (`milstein-symmetric` takes it), and so is noise that is diagonal as a matrix
while entry i depends on other components (its columns do not commute); large m in Itô form, where `milstein-symmetric`
has the same order for 3 increments and a correction.
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, zeros
from sgdsde.schemes import euler_maruyama, milstein_symmetric
from sgdsde.schemes._scheme import Scheme

__all__ = ["SCHEME"]


@kernel(STEP)
def apart(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """Itô; component i sees one Brownian motion: number i (diagonal) or number 0 (scalar)."""
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    v = matrix(work, 3 * d * n, m, n)
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
            v[j, b] = 0.5 * (dW[j, b] * dW[j, b] - h[b]) / root[b]
    for i in range(d):
        j = i if m > 1 else 0
        for b in range(n):
            support[i, b] = x[i, b] + g[i, b] * root[b]
            y[i, b] -= g[i, b] * v[j, b]
    increment(g, support, t, no_time, v, p, data, tail)  # b(Υ) I / √h
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + g[i, b]


@kernel(STEP)
def mixed(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """Itô; commuting columns: one support Υ^j for each, and row j of I / √h as the noise there."""
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    v = matrix(work, 3 * d * n, m, n)
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
            v[k, b] = 0.5 * (total[b] * dW[k, b] - h[b]) / root[b]
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
                v[k, b] = 0.5 * (dW[j, b] * dW[k, b] - (h[b] if k == j else 0.0)) / root[b]
        increment(g, support, t, no_time, v, p, data, tail)  # Σ_k b^k(Υ^j) I_jk / √h
        for i in range(d):
            for b in range(n):
                y[i, b] += g[i, b]
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


KINDS = ("additive", "scalar", "diagonal", "commutative")

SCHEME = Scheme(
    "milstein",
    {
        ("additive", "ito"): euler_maruyama.step,
        ("scalar", "ito"): apart,
        ("diagonal", "ito"): apart,
        ("commutative", "ito"): mixed,
        ("additive", "stratonovich"): euler_maruyama.step,
        ("scalar", "stratonovich"): milstein_symmetric.stratonovich,
        ("diagonal", "stratonovich"): milstein_symmetric.stratonovich,
        ("commutative", "stratonovich"): milstein_symmetric.stratonovich,
    },
    calculus=("ito", "stratonovich"),
    strong=dict.fromkeys(KINDS, 1.0),
    weak=dict.fromkeys(KINDS, 1.0),
    work=lambda d, m: (0, 3 * d + m + 3),
    evaluations="3; Itô commutative 2m + 2; additive 1",
    ode_order=1,
    reference="Kloeden & Platen 1992, (11.1.3), (11.1.7)",
    summary="derivative-free, for noise without Lévy areas",
    extra={
        "general": "columns that do not commute need Lévy areas, without which its order is 0.5; use "
        "'milstein-symmetric', or declare noise='commutative' if the columns commute (noise_structure measures it)"
    },
)
