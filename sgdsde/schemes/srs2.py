"""SRS2: Rößler's method of strong order 1.0 for Stratonovich equations with any noise, without derivatives.

    H⁰   = Y + a h
    H^k± = Y + a h ± Σ_l b^l J_(l,k) / √h                      J_(l,k) = ∫∫ ∘dW^l(u) ∘dW^k(s), u < s; k = 1 .. m
    Y'   = Y + ½[a + a(t+h, H⁰)] h + Σ_k b^k ΔW^k + ½√h Σ_k [b^k(t+h, H^k+) − b^k(t+h, H^k−)]        Rößler 2010, SRS2

a, b: Stratonovich drift and columns at (t, Y). Strong and weak order 1.0 for every kind of noise. General noise needs
the iterated integrals; where columns commute their symmetric part ½ΔW^l ΔW^k does, and no area is drawn. With no noise
it is Heun's method, of order 2. A drift in the support costs the order of a one-sided difference (`milstein`), for
E J_kk = h/2; here the even terms of both sides cancel, and order 1.0 is measured for noise that is not linear, too.

Cost: 2 drifts and 3m + 1 noises, for Σ_l b^l J_(l,k) is one increment with v = column k of J; commutative noise 2m + 1
noises, for there it is ½ΔW^k Σ_l b^l ΔW^l; scalar and diagonal noise 3 noises (all columns at once by v = 1), additive
noise 1. For general noise the m² integrals besides.

Not for: large m with general noise (3m + 1 noises, m² integrals: `milstein-symmetric` keeps charges at order 1.0 for 3
increments); Itô equations (`sri2`); noise without areas, where `heun` has order 1.0 for two increments.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde.schemes import _srk_general, sri2
from sgdsde.schemes._aux import iterated
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme
from sgdsde.schemes._srk_general import STRATONOVICH

__all__ = ["SCHEME"]


@kernel(STEP)
def commutative(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _srk_general.columns(increment, x, t, h, dW, aux, work, p, data, STRATONOVICH)


@kernel(STEP)
def apart(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _srk_general.apart(increment, x, t, h, dW, work, p, data, STRATONOVICH)


SCHEME = Scheme(
    "srs2",
    {
        ("additive", "stratonovich"): sri2.additive,
        ("additive", "ito"): sri2.additive,
        ("scalar", "stratonovich"): apart,
        ("diagonal", "stratonovich"): apart,
        ("commutative", "stratonovich"): commutative,
        ("general", "stratonovich"): sri2.general,
    },
    calculus=("stratonovich",),
    strong=dict.fromkeys(NOISE_KINDS, 1.0),
    weak=dict.fromkeys(NOISE_KINDS, 1.0),
    aux={
        ("additive", "stratonovich"): None,
        ("additive", "ito"): None,
        ("scalar", "stratonovich"): None,
        ("diagonal", "stratonovich"): None,
        ("commutative", "stratonovich"): None,
        ("general", "stratonovich"): iterated("stratonovich"),
    },
    work=_srk_general.work,
    evaluations="2 drifts, 3m + 1 noises; commutative 2m + 1 noises, scalar and diagonal 3, additive 1",
    ode_order=2,
    reference="Rößler 2010, SIAM J. Numer. Anal. 48, 922, SRS2",
    summary="strong order 1.0 for any noise, without derivatives",
)
