"""Heun: the trapezoidal predictor-corrector, for Stratonovich equations.

    Ȳ  = Y + a(t, Y)·h + b(t, Y)·ΔW
    Y' = Y + ½[a(t, Y) + a(t+h, Ȳ)]·h + ½[b(t, Y) + b(t+h, Ȳ)]·ΔW                      Rümelin 1982

a: Stratonovich drift. Averaging b over both ends gives ½Σ_jk (b_j·∇)b_k ΔW_j ΔW_k, the commutative Milstein term of
the Stratonovich calculus, so the strong order is 1.0 for scalar, diagonal, commutative and additive noise, and 0.5 for
general noise, where the Lévy areas are missing; weak order 1.0, 2.0 for additive noise. With no noise it is Heun's
method, of order 2. Two evaluations of the increment.

Not for: Itô equations (it would converge to the solution of another equation): convert with `to_stratonovich`. Only
additive noise is taken from either calculus. It does not keep quadratic invariants; a charge gets an error of O(h).
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME", "step"]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    y = matrix(work, 0, d, n)
    predicted = matrix(work, d * n, d, n)
    end = rest(work, 2 * d * n)[:n]
    tail = rest(work, (2 * d + 1) * n)
    increment(y, x, t, h, dW, p, data, tail)
    for b in range(n):
        end[b] = t[b] + h[b]
    for i in range(d):
        for b in range(n):
            predicted[i, b] = x[i, b] + y[i, b]
            x[i, b] += 0.5 * y[i, b]
    increment(y, predicted, end, h, dW, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += 0.5 * y[i, b]


SCHEME = Scheme(
    "heun",
    step,
    calculus=("stratonovich",),
    strong={kind: 0.5 if kind == "general" else 1.0 for kind in NOISE_KINDS},
    weak={kind: 2.0 if kind == "additive" else 1.0 for kind in NOISE_KINDS},
    work=lambda d, m: (0, 2 * d + 1),
    evaluations="2",
    ode_order=2,
    reference="Rümelin 1982, SIAM J. Numer. Anal. 19, 604",
    summary="the workhorse for Stratonovich equations; order 2 without noise",
)
