"""Implicit midpoint: it keeps every quadratic invariant, and gives a charge its own rate and no noise at all.

    Y' = Y + ã(t+h/2, Ȳ) h + b(t+h/2, Ȳ) ΔŴ,   Ȳ = ½(Y + Y')             Milstein, Repin & Tretyakov 2002, (4.5)

ã = a − c is the Stratonovich drift: of an Itô equation c = ½Σ_j (b^j·∇)b^j, the CORRECTION kernel, is subtracted at the
same midpoint. ΔŴ is ΔW with every normal number ξ = ΔW/√h clipped to |ξ| <= √(2k·max(ln 1/h, 3)), k = 4, inside the
step alone: an implicit step driven by unbounded noise need have no solution. E(ξ − ξ̂)² <= h^k, so k = 2 would keep the
orders; but then the few numbers that are clipped make up most of the strong error at small h. The floor of 3 (h > 0.05)
is ours: without it the bound would vanish at h = 1 and clip every number; beyond √24 lies one normal in a million.
Every clipped number is counted. Additive noise is not clipped: it moves the solution, and not whether there is one.

What it keeps. Y'ᵀAY' − YᵀAY = 2ȲᵀA(Y' − Y) for any symmetric A. If every b^j is tangent, xᵀA b^j(x) = 0, the noise
drops out whatever ΔŴ is, and for the charge C = θᵀAθ of a symmetry of SGD's losses, with Tr[ΣA] from −2ȲᵀAc,

    C' − C = h (−4γC + 2σ²ρ Tr[ΣA]) at Ȳ

exactly, up to rounding of C. Strong order 1.0 when the columns commute, 0.5 for general noise (no
areas); weak order 1.0; without noise it is the midpoint rule, of order 2. Coefficients are taken at t + h/2.

Cost: the equation is solved to rounding by an accelerated fixed point, without derivatives: 6 to 12 iterations, more
where the noise moves the state by a large part of itself in one step; each is an increment and, in Itô form, a
correction. Stiff steps go on with Newton's method by differences up to d = 128. A step that finds no solution stops its
path with the status "an implicit step did not converge".

Not for: speed where no invariant matters (`heun`, `milstein-symmetric` cost two or three increments); large steps with
large noise, or noise that grows faster than linearly, where the equation of a step may have no solution, or several,
and paths are lost (uw-gauss at T = 0.1 and h = 0.01: a fifth of them by t = 40).
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.schemes._implicit import implicit_work, solve
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME"]

K = 4
LEAST = 3.0


@inline
def _advance(increment, correction, x, t, h, dW, status, work, p, data, ito, clip):
    d, n = x.shape
    m = dW.shape[0]
    change, v = matrix(work, 0, d, n), matrix(work, d * n, m, n)
    middle = vector(work, (d + m) * n, n)
    tail = rest(work, (d + m + 1) * n)
    for b in range(n):
        middle[b] = t[b] + 0.5 * h[b]
    for b in range(n):
        bound = math.sqrt(2 * K * max(-math.log(h[b]), LEAST) * h[b]) if clip else math.inf
        for j in range(m):
            v[j, b] = min(max(dW[j, b], -bound), bound)
            if v[j, b] != dW[j, b]:
                status[n + b] += 1
    solve(increment, correction, change, x, 0.5, middle, h, v, ito, status, tail, p, data)
    for i in range(d):
        for b in range(n):
            x[i, b] += change[i, b]


@kernel(STEP)
def ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _advance(increment, correction, x, t, h, dW, status, work, p, data, True, True)


@kernel(STEP)
def stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _advance(increment, correction, x, t, h, dW, status, work, p, data, False, True)


@kernel(STEP)
def additive(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _advance(increment, correction, x, t, h, dW, status, work, p, data, False, False)


SCHEME = Scheme(
    "implicit-midpoint",
    {
        ("general", "ito"): ito,
        ("general", "stratonovich"): stratonovich,
        ("additive", "ito"): additive,
        ("additive", "stratonovich"): additive,
    },
    calculus=("ito", "stratonovich"),
    strong={kind: 0.5 if kind == "general" else 1.0 for kind in NOISE_KINDS},
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    needs=("correction",),
    needs_where={("general", "stratonovich"): (), ("additive", "ito"): (), ("additive", "stratonovich"): ()},
    work=lambda d, m: (0, d + m + 1 + implicit_work(d)),
    evaluations="6 to 12, in Itô form each with a correction",
    ode_order=2,
    reference="Milstein, Repin & Tretyakov 2002, SIAM J. Numer. Anal. 40, 1583",
    summary="keeps quadratic invariants; a charge follows its own rate without noise",
)
