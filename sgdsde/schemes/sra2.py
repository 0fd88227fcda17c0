"""SRA2: SRA1 with other times for the noise, one of its evaluations less.

    u   = ½ΔW + H                                                     u_k = I_(k,0)/h, H the space-time area
    H₂  = Y + ¾ a(t, Y) h + 3/2 b(t+⅓h) u
    Y'  = Y + [⅓ a(t, Y) + ⅔ a(t+¾h, H₂)] h + 3/2 b(t+⅓h) u + b(t+h)(ΔW − 3/2 u)                     Rößler 2010, SRA2

Strong order 1.5 and weak order 2.0, for any number of Brownian motions, also when b depends on time; where it does not,
this is SRA1. With no noise it is Ralston's method, of order 2. Additive noise is taken from either calculus.

Cost: 4 increments, of which 2 are drifts alone and 2 are noises alone. As many normal numbers again as ΔW has, for H.

Not for: noise that depends on the state, which is refused (`sriw1`, `milstein`). `shark` needs 3 increments.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde.schemes import _sra
from sgdsde.schemes._aux import space_time
from sgdsde.schemes._scheme import Scheme

__all__ = ["SCHEME", "TABLEAU", "step"]

TABLEAU = _sra.SRA(
    A=((0.0, 0.0), (3 / 4, 0.0)),
    B=((0.0, 0.0), (3 / 2, 0.0)),
    alpha=(1 / 3, 2 / 3),
    c0=(0.0, 3 / 4),
    c1=(1 / 3, 1.0),
    beta1=(0.0, 1.0),
    beta2=(3 / 2, -3 / 2),
)


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _sra.advance(TABLEAU, increment, x, t, h, dW, aux, work, p, data)


SCHEME = Scheme(
    "sra2",
    step,
    calculus=("ito", "stratonovich"),
    strong={"additive": 1.5},
    weak={"additive": 2.0},
    aux=space_time(),
    work=_sra.work(TABLEAU),
    evaluations="2 drifts, 2 noises",
    ode_order=2,
    reference="Rößler 2010, SIAM J. Numer. Anal. 48, 922, SRA2",
    summary="strong order 1.5 for additive noise, cheapest of its family",
)
