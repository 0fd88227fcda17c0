"""SRI2: Rößler's method of strong order 1.0 for Itô equations with any noise, without derivatives.

    H⁰   = Y + a h
    H^k± = Y + a h ± Σ_l b^l I_(l,k) / √h                       I_(l,k) = ∫∫ dW^l(u) dW^k(s), u < s; k = 1 .. m
    Y'   = Y + ½[a + a(t+h, H⁰)] h + Σ_k b^k ΔW^k + ½√h Σ_k [b^k(t+h, H^k+) − b^k(t+h, H^k−)]        Rößler 2010, SRI2

a, b: Itô drift and columns at (t, Y). Strong and weak order 1.0 for every kind of noise. General noise needs the
iterated integrals; where columns commute their symmetric part ½(ΔW^l ΔW^k − h δ_lk) does, and no area is drawn. With no
noise it is Heun's method, of order 2: of the methods of strong order 1.0 for Itô equations, the one for small noise.

Cost: 2 drifts and 3m + 1 noises, for Σ_l b^l I_(l,k) is one increment with v = column k of I; scalar and diagonal noise
3 noises (all columns at once by v = 1), additive noise 1. For general noise the m² integrals besides.

Not for: large m with general noise (3m + 1 noises, m² integrals: `milstein-symmetric` keeps charges at order 1.0 for 3
increments); Stratonovich equations (`srs2`).
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde.schemes import _srk_general
from sgdsde.schemes._aux import iterated
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme
from sgdsde.schemes._srk_general import FROM_AUX, ITO

__all__ = ["SCHEME", "additive", "general"]


@kernel(STEP)
def general(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _srk_general.columns(increment, x, t, h, dW, aux, work, p, data, FROM_AUX)


@kernel(STEP)
def commutative(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _srk_general.columns(increment, x, t, h, dW, aux, work, p, data, ITO)


@kernel(STEP)
def apart(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _srk_general.apart(increment, x, t, h, dW, work, p, data, ITO)


@kernel(STEP)
def additive(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _srk_general.additive(increment, x, t, h, dW, work, p, data)


SCHEME = Scheme(
    "sri2",
    {
        ("additive", "ito"): additive,
        ("additive", "stratonovich"): additive,
        ("scalar", "ito"): apart,
        ("diagonal", "ito"): apart,
        ("commutative", "ito"): commutative,
        ("general", "ito"): general,
    },
    calculus=("ito",),
    strong=dict.fromkeys(NOISE_KINDS, 1.0),
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    aux={
        ("additive", "ito"): None,
        ("additive", "stratonovich"): None,
        ("scalar", "ito"): None,
        ("diagonal", "ito"): None,
        ("commutative", "ito"): None,
        ("general", "ito"): iterated("ito"),
    },
    work=_srk_general.work,
    evaluations="2 drifts, 3m + 1 noises; scalar and diagonal 3 noises, additive 1",
    ode_order=2,
    reference="Rößler 2010, SIAM J. Numer. Anal. 48, 922, SRI2",
    summary="strong order 1.0 for any noise, without derivatives",
)
