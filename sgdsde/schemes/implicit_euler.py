"""Drift-implicit Euler: for drifts that are stiff, and for one-sided Lipschitz drifts of any growth.

    Y' = Y + a(t+h, Y') h + b(t, Y) ΔW                                                      Kloeden & Platen (12.2.2)

a, b: Itô drift and noise coefficient. Strong order 0.5, 1.0 when the noise is additive; weak order 1.0; without noise
it is the implicit Euler method, of order 1, A- and L-stable: a linear drift −λY divides by 1 + λh whatever h is. If
(x − y)ᵀ(a(x) − a(y)) <= K|x − y|² and Kh < 1, the step has one solution, for any ΔW, and with b globally Lipschitz
the order 0.5 is kept for drifts of polynomial growth: D. Higham, X. Mao, A. Stuart 2002, SIAM J. Numer. Anal. 40, 1041.

Cost: one increment for the noise, and the equation is solved to rounding without derivatives: 6 to 12 increments by an
accelerated fixed point where the step is not stiff; where it is, Newton's method with a Jacobian by differences, d + 3
or so more, for d up to 128. Beyond, d² numbers a path would be too many and the fixed point alone must do, in up to 400
iterations: enough for steps with hλ near 100. A step that finds no solution stops its path with the status "an
implicit step did not converge".

Not for: noise coefficients that grow faster than linearly, which the step takes explicitly (`tamed-euler`, or steps
that depend on the state); stationary fluctuations of stiff components, which it damps (additive noise σ on −λY gets the
variance σ²/(2λ + λ²h) in place of σ²/2λ; `ou-splitting` has it right); charges, which it does not keep.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._errors import OK
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector, zeros
from sgdsde.schemes._implicit import implicit_work, solve
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME", "step"]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    change, base = matrix(work, 0, d, n), matrix(work, d * n, d, n)
    end, no_time = vector(work, 2 * d * n, n), zeros(work, (2 * d + 1) * n, n)
    zeros(work, (2 * d + 2) * n, m * n)
    no_noise = matrix(work, (2 * d + 2) * n, m, n)
    tail = rest(work, (2 * d + 2 + m) * n)
    increment(base, x, t, no_time, dW, p, data, tail)
    for b in range(n):
        end[b] = t[b] + h[b]
    for i in range(d):
        for b in range(n):
            base[i, b] += x[i, b]
    solve(increment, correction, change, base, 1.0, end, h, no_noise, False, status, tail, p, data)
    for b in range(n):
        if status[b] == OK:
            for i in range(d):
                x[i, b] = base[i, b] + change[i, b]


SCHEME = Scheme(
    "implicit-euler",
    step,
    calculus=("ito",),
    strong={kind: 1.0 if kind == "additive" else 0.5 for kind in NOISE_KINDS},
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    work=lambda d, m: (0, 2 * d + m + 2 + implicit_work(d)),
    evaluations="7 to 13; stiff, d + 3 or so more",
    ode_order=1,
    reference="Kloeden & Platen 1992, (12.2.2)",
    summary="for stiff drifts; explicit in the noise",
)
