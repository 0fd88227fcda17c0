"""SRA3: Rößler's method of strong order 1.5 for additive noise whose drift has order 3.

    u   = ½ΔW + H                                                     u_k = I_(k,0)/h, H the space-time area
    H₂  = Y + a(t, Y) h
    H₃  = Y + ¼[a(t, Y) + a(t+h, H₂)] h + b(t+h) u + ½ b(t) u
    Y'  = Y + [⅙ a(t, Y) + ⅙ a(t+h, H₂) + ⅔ a(t+½h, H₃)] h + b(t+h)(ΔW − u) + b(t) u                 Rößler 2010, SRA3

Strong order 1.5 and weak order 2.0, for any number of Brownian motions, also when b depends on time. With no noise it
has order 3, which is what it is for: small noise. Additive noise is taken from either calculus.

Cost: 6 increments, of which 3 are drifts alone and 3 are noises alone. As many normal numbers again as ΔW has, for H.

Not for: noise that depends on the state, which is refused (`sriw2`, `milstein`); noise that is not small, where `sra2`
and `shark` err no more and cost less.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde.schemes import _sra
from sgdsde.schemes._aux import space_time
from sgdsde.schemes._scheme import Scheme

__all__ = ["SCHEME", "TABLEAU", "step"]

TABLEAU = _sra.SRA(
    A=((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1 / 4, 1 / 4, 0.0)),
    B=((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 1 / 2, 0.0)),
    alpha=(1 / 6, 1 / 6, 2 / 3),
    c0=(0.0, 1.0, 1 / 2),
    c1=(1.0, 0.0, 0.0),
    beta1=(1.0, 0.0, 0.0),
    beta2=(-1.0, 1.0, 0.0),
)


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _sra.advance(TABLEAU, increment, x, t, h, dW, aux, work, p, data)


SCHEME = Scheme(
    "sra3",
    step,
    calculus=("ito", "stratonovich"),
    strong={"additive": 1.5},
    weak={"additive": 2.0},
    aux=space_time(),
    work=_sra.work(TABLEAU),
    evaluations="3 drifts, 3 noises",
    ode_order=3,
    reference="Rößler 2010, SIAM J. Numer. Anal. 48, 922, SRA3",
    summary="strong order 1.5 for additive noise, order 3 without",
)
