"""Milstein's method, for every kind of noise: with Lévy areas where the columns of the noise do not commute.

    Y' = Y + a h + Σ_j b^j ΔW^j + Σ_jk (b^j·∇)b^k I_(j,k),    I_(j,k) = ∫∫ dW^j(u) dW^k(s), u < s    (10.3.3) of
Kloeden & Platen (1992); in Stratonovich form a is its drift and J_(j,k) = I_(j,k) + ½h δ_jk stands for I. Where
`SDE(derivative=...)` is given this is one evaluation of the increment. Elsewhere derivatives are differences.

Itô, (11.1.7):

    Υ^j = Y + b^j √h
    Y'  = Y + a h + Σ_j b^j ΔW^j + h^{-1/2} Σ_jk [b^k(t, Υ^j) − b^k(t, Y)] I_(j,k)

Stratonovich, with b(y; v) = Σ_j b^j(t, y) v_j and the areas A_jk = ½(J_(j,k) − J_(k,j)):

    Y'  = Y + a h + b(Y; ΔW) + ½[b(Y + b(Y; ΔW); ΔW) − b(Y; ΔW)] + h^{-1/2} Σ_jk [b^k(t, Υ^j) − b^k(t, Y)] A_jk

General noise takes I or J from the areas of the step, which err by h^{3/2} or less. Columns that commute, (b^j·∇)b^k =
(b^k·∇)b^j, see the symmetric part alone, I_(j,k) = ½(ΔW^j ΔW^k − h δ_jk), or ½ΔW^j ΔW^k and no A: scalar, diagonal and
commutative noise. Strong and weak order 1.0 in both calculi.

Why two supports. A difference over b^j √h errs by ½h^{1/2} (b^j·b^j·∇∇)b^k I_(j,k), and a drift in the support (the
book's Υ^j = Y + a h + b^j √h) by h^{1/2} (a·∇)b^k I_(j,k). In Itô form both have mean zero and cost nothing, with or
without the drift; so have they where A stands for I, whose mean given ΔW is zero. With J they have not: E J_(j,j) =
h/2 biases every step by O(h^{3/2}) and the strong order falls to 0.5 (without the drift only when b is not linear, so
linear test equations do not show it). A support displaced by b(Y; ΔW) itself errs by terms that are odd in ΔW, whose
mean is zero: the symmetric part goes that way.

Cost, in evaluations. General: m + 1 of G and one of the drift, Stratonovich m + 2, and m² integrals. All b^j come from
one evaluation of an SDE's diffusion (from m increments of other equations: 2m + 1, 2m + 2), and linear in v,
Σ_k b^k(Υ^j) I_(j,k) is one. Itô: 3 for scalar and diagonal noise (one call with v = 1 gives every b^i at once), 2m + 1
for commutative noise; Stratonovich: 3 for all of these. Additive noise: 1, it is `euler-maruyama`. With the derivative:
one of f, G and ∂G.
'Diagonal' as in Kloeden & Platen: m = d, and b^i has component i alone, a function of y_i alone.

Not for: noise that is diagonal as a matrix while entry i depends on other components, declared diagonal (its columns do
not commute: declare it general); large m, where m² integrals a step cost more than they are worth and
`milstein-symmetric` has weak order 1.0 as well, strong order 1.0 if the columns commute, for 3 increments.
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, zeros
from sgdsde.schemes import _milstein_general, euler_maruyama, milstein_symmetric
from sgdsde.schemes._aux import iterated
from sgdsde.schemes._scheme import NOISE_KINDS, Aux, Scheme

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
    for j in range(m):
        for b in range(n):
            total[b] += dW[j, b]
    for k in range(m):
        for b in range(n):
            v[k, b] = dW[k, b] - 0.5 * (total[b] * dW[k, b] - h[b]) / root[b]
    increment(y, x, t, h, v, p, data, tail)  # a h + Σ_k b^k(Y) (ΔW^k − Σ_j I_jk / √h)
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


SYMMETRIC = ("scalar", "diagonal", "commutative")
"""Kinds whose columns commute: no areas."""

STEPS = {
    ("general", "ito"): _milstein_general.ito,
    ("general", "stratonovich"): _milstein_general.stratonovich,
    ("scalar", "ito"): apart,
    ("diagonal", "ito"): apart,
    ("commutative", "ito"): mixed,
}
NEEDS: dict[tuple[str, str], tuple[str, ...]] = {}
AREAS: dict[tuple[str, str], Aux | None] = {}
for calculus in ("ito", "stratonovich"):
    STEPS[("additive", calculus)] = euler_maruyama.step
    STEPS[("general+derivative", calculus)] = _milstein_general.general_derivative
    NEEDS[("general", calculus)] = ("columns",)
    AREAS[("general", calculus)] = iterated(calculus)
    NEEDS[("general+derivative", calculus)] = NEEDS[("additive", calculus)] = ()
    AREAS[("additive", calculus)] = None
    for kind in SYMMETRIC:
        STEPS.setdefault((kind, calculus), milstein_symmetric.stratonovich)
        STEPS[(f"{kind}+derivative", calculus)] = _milstein_general.symmetric_derivative[calculus]
        AREAS[(kind, calculus)] = None
        NEEDS[(kind, calculus)] = NEEDS[(f"{kind}+derivative", calculus)] = ()
    STEPS[("diagonal+derivative", calculus)] = _milstein_general.diagonal_derivative[calculus]

SCHEME = Scheme(
    "milstein",
    STEPS,
    calculus=("ito", "stratonovich"),
    strong=dict.fromkeys(NOISE_KINDS, 1.0),
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    needs_where=NEEDS,
    aux=AREAS,
    work=lambda d, m: (0, 4 * d + 2 * m + 3),
    evaluations="m + 1, Stratonovich m + 2; commutative 2m + 1 or 3; scalar, diagonal 3; additive, with a derivative 1",
    ode_order=1,
    reference="Kloeden & Platen 1992, (10.3.3), (11.1.3), (11.1.7)",
    summary="any noise, with Lévy areas where columns do not commute; one evaluation with a derivative",
)
