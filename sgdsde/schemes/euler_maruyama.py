"""Euler-Maruyama: the simplest method, and the one whose step with h = η has SGD's mean and covariance.

    Y' = Y + a(t, Y)·h + b(t, Y)·ΔW                                                        Kloeden & Platen (10.2.4)

a, b: Itô drift and noise coefficient at the start of the step; ΔW ~ N(0, h I_m). Strong order 0.5, 1.0 when the noise
is additive; weak order 1.0. One evaluation of the increment. Additive noise has one law in both calculi: it is taken
from either, and the other methods use this page for it.

Not for: strong accuracy with multiplicative noise (`milstein`, `milstein-symmetric`), or coefficients that grow faster
than linearly, where it explodes with positive probability however small h is. A charge θᵀAθ that moves without noise in
the exact dynamics gets a martingale of size O(√h) from it: the fluctuation of ΔWᵀbᵀA b ΔW about its mean.
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
    increment(y, x, t, h, dW, p, data, rest(work, d * n))
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


SCHEME = Scheme(
    "euler-maruyama",
    step,
    calculus=("ito",),
    strong={kind: 1.0 if kind == "additive" else 0.5 for kind in NOISE_KINDS},
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    work=lambda d, m: (0, d),
    evaluations="1",
    ode_order=1,
    reference="Kloeden & Platen 1992, (10.2.4)",
    summary="one increment a step; SGD's Gaussian twin at h = η",
)
