"""Milstein with the symmetric part of the double integrals only: any noise, any m, no Lévy areas.

    Y' = Y + a h + b(Y; ΔW) + ½[b(Y + b(Y; ΔW); ΔW) − b(Y; ΔW)] − c h        Itô
    Y' = Y + a h + b(Y; ΔW) + ½[b(Y + b(Y; ΔW); ΔW) − b(Y; ΔW)]              Stratonovich

b(y; v) = Σ_j b^j(t, y) v_j, c = ½Σ_j (b^j·∇)b^j (the CORRECTION kernel), all at the start of the step. The bracket is a
forward difference for (b·∇)b with v frozen, which is Σ_jk (b^j·∇)b^k ΔW^j ΔW^k: Kloeden & Platen (10.3.3) with I_(j,k)
replaced by its symmetric part ½(ΔW^j ΔW^k − h δ_jk). What the difference adds, ¼(b·b·∇∇)b and higher, is odd in ΔW and
O(h^{3/2}), so it costs no order. Strong order 1.0 when the columns commute (scalar, diagonal, commutative, additive
noise), 0.5 for general noise, as no method that sees increments alone can do better; weak order 1.0.

What it keeps at m = N: if every b^j is tangent to a quadratic charge C = YᵀAY (YᵀA b^j(Y) = 0 everywhere, as for the
per-sample gradients of a symmetric loss), the error of C has strong order 1.0 whatever the areas do. Let b₀ = b(Y; ΔW)
and b₁ = b(Y + b₀; ΔW): (Y + b₀)ᵀA b₁ = 0 gives YᵀA b₁ = −b₀ᵀA b₁, so the noise enters C' − C as
−b₀ᵀA b₁ + ¼(b₀ + b₁)ᵀA(b₀ + b₁) = ¼(b₁ − b₀)ᵀA(b₁ − b₀), which is O(h²) against O(h) for Euler-Maruyama, and the drift
of C comes from −2h YᵀA c.

Cost: 3 increments, for the support needs b alone and an increment is the sum a h + b, and in the Itô form one
correction: a closed form where the model has one (SGD noise: (σ²/2)∇TrΣ, five to eight increments for `DeepLinear`), 3m
increments by column differences elsewhere. Additive noise: `euler-maruyama`, one increment. Replacing c by an estimate
from one sample would bring back the fluctuation that it removes.

Not for: strong order 1.0 in Y with general noise.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, zeros
from sgdsde.schemes import euler_maruyama
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME"]


@inline
def _advance(increment, correction, x, t, h, dW, work, p, data, ito):
    d, n = x.shape
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    no_time = zeros(work, 3 * d * n, n)
    tail = rest(work, (3 * d + 1) * n)
    increment(y, x, t, h, dW, p, data, tail)  # a h + b
    increment(g, x, t, no_time, dW, p, data, tail)  # b
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b] + g[i, b]
            y[i, b] -= 0.5 * g[i, b]
    increment(g, support, t, no_time, dW, p, data, tail)  # b at the support, the same ΔW
    for i in range(d):
        for b in range(n):
            y[i, b] += 0.5 * g[i, b]
    if ito:
        correction(g, x, t, p, data, tail)
        for i in range(d):
            for b in range(n):
                y[i, b] -= h[b] * g[i, b]
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


@kernel(STEP)
def ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _advance(increment, correction, x, t, h, dW, work, p, data, True)


@kernel(STEP)
def stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _advance(increment, correction, x, t, h, dW, work, p, data, False)


SCHEME = Scheme(
    "milstein-symmetric",
    {
        ("general", "ito"): ito,
        ("general", "stratonovich"): stratonovich,
        ("additive", "ito"): euler_maruyama.step,
        ("additive", "stratonovich"): euler_maruyama.step,
    },
    calculus=("ito", "stratonovich"),
    strong={kind: 0.5 if kind == "general" else 1.0 for kind in NOISE_KINDS},
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    needs=("correction",),
    needs_where={("general", "stratonovich"): (), ("additive", "ito"): ()},
    work=lambda d, m: (0, 3 * d + 1),
    evaluations="3 and in Itô form a correction; additive 1",
    ode_order=1,
    reference="Kloeden & Platen 1992, (10.3.3), symmetric part",
    summary="any noise without Lévy areas; charges of order 1.0 at every m",
)
