"""SRA1: Rößler's method of strong order 1.5 for additive noise, two drifts.

    u   = ½ΔW + H                                                     u_k = I_(k,0)/h, H the space-time area
    H₂  = Y + ¾ a(t, Y) h + 3/2 b(t+h) u
    Y'  = Y + [⅓ a(t, Y) + ⅔ a(t+¾h, H₂)] h + b(t+h)(ΔW − u) + b(t) u                                Rößler 2010, SRA1

Strong order 1.5 and weak order 2.0, for any number of Brownian motions, also when b depends on time. With no noise it
is Ralston's method, of order 2. Additive noise has one law in both calculi: it is taken from either. A weight 1/2 for
3/2, which has been in circulation, fails αᵀB e = 1 and has order 1.0.

Cost: 5 increments, of which 2 are drifts alone and 3 are noises alone; functions of a user run alone where they are
asked alone, so that it is 2 of their drifts and 3 of their diffusions. As many normal numbers again as ΔW has, for H.

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
    c1=(1.0, 0.0),
    beta1=(1.0, 0.0),
    beta2=(-1.0, 1.0),
)


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _sra.advance(TABLEAU, increment, x, t, h, dW, aux, work, p, data)


SCHEME = Scheme(
    "sra1",
    step,
    calculus=("ito", "stratonovich"),
    strong={"additive": 1.5},
    weak={"additive": 2.0},
    aux=space_time(),
    work=_sra.work(TABLEAU),
    evaluations="2 drifts, 3 noises",
    ode_order=2,
    reference="Rößler 2010, SIAM J. Numer. Anal. 48, 922, SRA1",
    summary="strong order 1.5 for additive noise",
)
