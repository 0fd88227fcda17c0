"""Approximations of Lévy areas as rows of traits: how good each is, what it costs, what it adds for the cut-off terms.

All of them are one series over a unit step, w = ΔW/√h, cut after p terms (P. E. Kloeden, E. Platen, "Numerical solution
of stochastic differential equations", Springer 1992, section 5.8). With independent X_k, Y_k ~ N(0, I_m), k = 1, 2, …,
the path on [0, 1] is

    W(u) = u w + Σ_k [X_k (1 − cos 2πku) + Y_k sin 2πku] / (√2 π k)
    H    = ∫ (W(u) − u w) du = Σ_k X_k/k / (√2 π)                          space-time area
    A_ij = ½ ∫ (W_i dW_j − W_j dW_i) = (1/2π) Σ_k (1/k) (Y_ki X_kj − Y_kj X_ki) + H_i w_j − w_i H_j

and what stands for the terms k > p tells the methods apart, ψ₁ being the trigamma function, Σ_{k>p} 1/k² = ψ₁(p + 1):

    fourier     nothing (Kloeden, Platen & Wright 1992)
    milstein    Σ_{k>p} X_k/k = √ψ₁ M, M ~ N(0, I_m): exact in H, the rest is left out (Milstein 1988)
    wiktorsson  2πA gets √(2ψ₁) [G + (v wᵀ − w vᵀ)/(1 + √(1 + |w|²))], v = G w, G antisymmetric, N(0, 1) above its
                diagonal: the law of the tail for p → ∞ (M. Wiktorsson, Ann. Appl. Probab. 11 (2001) 470)
    mrongowius-roessler   M as in milstein, and √(2ψ₁) G (J. Mrongowius, A. Rößler, Stoch. Anal. Appl. 40 (2022) 397)

The bound is for the root mean square error of any A_ij, over the best coupling with the exact areas given ΔW.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from sgdsde._jit import kernel
from sgdsde.random.philox import EXACT, exact

__all__ = ["METHODS", "SLOT_BITS", "LevyMethod", "choose", "trigamma"]

SLOT_BITS = 24
"""A step has 2**24 numbers of its own; what would need more terms than fit is cut there."""
_SLOT = 1 << SLOT_BITS


class LevyMethod(NamedTuple):
    """Traits of one approximation.

    Attributes
    ----------
    coefficient, root : float
        The error is at most coefficient · m**root · h · p**(−1/power).
    power : float
        The number of terms grows like (1/error)**power.
    vector, pairs : float
        1 where the tail takes a normal number for each component (M), and one for each pair (G).
    spread : float
        1 where the tail depends on w beyond H (Wiktorsson's square root).
    """

    coefficient: float
    root: float
    power: float
    vector: float
    pairs: float
    spread: float

    def bound(self, h: float, m: int, terms: int) -> float:
        """Bound of the root mean square error of one area over a step h, with `terms` terms."""
        return self.coefficient * m**self.root * h * terms ** (-1 / self.power)

    def numbers(self, m: int, terms: int) -> int:
        """Normal numbers of one step."""
        return 2 * m * terms + int(self.vector) * m + int(self.pairs) * (m * (m - 1) // 2)


METHODS: dict[str, LevyMethod] = {
    "fourier": LevyMethod(math.sqrt(1.5) / math.pi, 0.0, 2.0, 0.0, 0.0, 0.0),
    "milstein": LevyMethod(math.sqrt(0.5) / math.pi, 0.0, 2.0, 1.0, 0.0, 0.0),
    "wiktorsson": LevyMethod(math.sqrt(5 / 12) / math.pi, 0.5, 1.0, 0.0, 1.0, 1.0),
    "mrongowius-roessler": LevyMethod(math.sqrt(1 / 12) / math.pi, 0.5, 1.0, 1.0, 1.0, 0.0),
}

TABLE = tuple(tuple(method) for method in METHODS.values())
N_METHODS = len(TABLE)


@kernel(types.float64(types.float64), **EXACT)
def trigamma(x):
    """ψ₁(x) = Σ_{k≥0} 1/(x + k)², x > 0, to rounding: the recurrence up to 16, then the asymptotic series."""
    total = 0.0
    while x < 16.0:
        total += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66 - y * (691 / 2730))))))
    return total + (1.0 + 0.5 / x + series) / x


@exact
def _terms(row, h, m, error):
    """How many terms method number `row` needs, at least 1, at most what the numbers of a step suffice for."""
    coefficient, root, power, _, _, _ = TABLE[row]
    ratio = coefficient * h / error
    if root > 0.0:
        ratio *= np.sqrt(np.float64(m))
    wanted = 1.0
    for _ in range(np.int64(power)):
        wanted *= ratio
    most = (_SLOT - m * (m + 1) // 2) // (2 * m)
    return np.int64(min(max(np.ceil(wanted), 1.0), np.float64(max(most, 1))))


@kernel(types.UniTuple(types.int64, 2)(types.int64, types.float64, types.int64, types.float64), **EXACT)
def choose(method, h, m, error):
    """(number of the method, terms) for an error: of `method`, or the one of fewest numbers if it is negative."""
    if method >= 0:
        return np.int64(method), _terms(method, h, m, error)
    best, best_terms, best_cost = 0, 1, np.inf
    for row in range(N_METHODS):
        terms = _terms(row, h, m, error)
        _, _, _, vector, pairs, _ = TABLE[row]
        cost = 2.0 * m * terms + vector * m + pairs * (m * (m - 1) // 2)
        if cost <= best_cost:
            best, best_terms, best_cost = row, terms, cost
    return np.int64(best), np.int64(best_terms)
