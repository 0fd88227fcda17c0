"""Simplified weak Euler: the sign of ΔW in place of ΔW.

    ΔŴ = √h sign(ΔW), so ±√h with probability ½ each
    Y' = Y + a(t, Y)·h + b(t, Y)·ΔŴ                                                        Kloeden & Platen (14.1.2)

Weak order 1.0, as Euler-Maruyama: ΔŴ has the first three moments of ΔW, and no more is needed. It has no strong order:
E ΔŴ ΔW = √(2/π) h, so a part 1 − 2/π of the noise is another one and paths do not converge. As ΔŴ is a function of ΔW,
`solve(dW=…)` and common random numbers work as everywhere. One increment.

What it is for: the noise is bounded, so a state leaves a set that it must stay in only where a h + b√h does, and the
expectation over n steps is a finite sum over 2^(mn) outcomes, which is how its moments are tested.

Not for: paths, and laws of single times with few steps: the law of Y is discrete.
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["SCHEME", "step"]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    v = matrix(work, d * n, m, n)
    for j in range(m):
        for b in range(n):
            v[j, b] = math.copysign(math.sqrt(h[b]), dW[j, b])
    increment(y, x, t, h, v, p, data, rest(work, (d + m) * n))
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


SCHEME = Scheme(
    "weak-euler",
    step,
    calculus=("ito",),
    strong=dict.fromkeys(NOISE_KINDS, 0.0),
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    work=lambda d, m: (0, d + m),
    evaluations="1",
    ode_order=1,
    reference="Kloeden & Platen 1992, (14.1.2)",
    summary="two-point noise: bounded steps, laws and no paths",
)
