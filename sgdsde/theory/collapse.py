"""Whether v = uw falls to 0 for good: under discrete SGD, and under its SDE. The two can disagree altogether.

Near the origin of ℓ = (uwx - y)² a step of SGD multiplies u + w by 1 - 2ηγ + 2ηm̂, m̂ the batch mean of xy. So, per unit
of time t = η·step,

    d(ln v)/dt → (2/η) E ln|1 - 2ηγ + 2ηm̂|        (SGD),            4(β₂ - γ - Tα₃)        (its SDE),

and v collapses where this is negative. The SDE has a transition at T_c = (β₂ - γ)/α₃. It says so of SGD only where a
single gradient is mostly noise, β₂² ≪ α₃: for x, ε ~ N(0, 1), y = x + ε the exponent of SGD is positive for every η,
while T_c = 1/3.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import dawsn, gammaln

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models import Population
from sgdsde.theory._table import panels

__all__ = ["critical_learning_rate", "sde_exponent", "sgd_exponent", "sgd_exponent_gauss"]

MOST = 2_000_000
"""Different batches that are enumerated, at most."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
FAR, TERMS = 12.0, 14
"""E ln|μ + Z| by its series in 1/μ² for μ >= FAR: the terms shrink to rounding before they grow."""


def sde_exponent(population: Population, T: float, gamma: float = 0.0) -> float:
    """4(β₂ - γ - Tα₃), the rate of ln v near 0 under the SDE (K = 2).

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> round(sde_exponent(uw_gauss(1.0, 1.0), 0.4), 12)
    -0.8
    """
    T, gamma = _check.number("T", T, least=0.0), _check.number("gamma", gamma, least=0.0)
    if not isinstance(population, Population):
        raise ArgumentError(
            f"population must be a Population, such as models.uw_gauss(), got {_check.show(population)}"
        )
    return 4.0 * (population.beta2 - gamma - T * population.alpha3)


def sgd_exponent(X: Any, Y: Any, learning_rate: float, batch_size: int = 1, gamma: float = 0.0) -> float:
    """(2/η) E ln|1 - 2ηγ + 2ηm̂| over all batches with replacement, by enumeration.

    Parameters
    ----------
    X, Y : array_like of shape (N,)
        Samples, equally likely.
    learning_rate, gamma : float
    batch_size : int
        S; up to 2 000 000 different batches of products xy are enumerated.

    Returns
    -------
    float
        -inf where a batch brings u + w to exactly 0.

    Examples
    --------
    >>> x, e = [0.5, 0.5, 1.5, 1.5], [1.0, -1.0, 1.0, -1.0]
    >>> y = [0.2 * a + b for a, b in zip(x, e)]
    >>> sgd_exponent(x, y, 0.21) > 0 > sgd_exponent(x, y, 0.23)
    True
    """
    x, y = _check.array("X", X, ("N",)), _check.array("Y", Y, ("N",))
    if x.size != y.size or x.size == 0:
        raise ArgumentError(f"X and Y must hold one number each for the same samples, got {x.size} and {y.size}")
    eta, gamma = _check.positive("learning_rate", learning_rate), _check.number("gamma", gamma, least=0.0)
    S = _check.count("batch_size", batch_size)
    values, counts = np.unique(x * y, return_counts=True)
    if comb(values.size + S - 1, S) > MOST:
        raise ArgumentError(
            f"batch_size must leave at most {MOST} different batches, got {S} for {values.size} products"
        )
    total: np.ndarray = np.zeros(1)
    weight: np.ndarray = np.ones(1)
    for _ in range(S):
        total, place = np.unique(np.add.outer(total, values).ravel(), return_inverse=True)
        weight = np.bincount(place.ravel(), np.multiply.outer(weight, counts / x.size).ravel())
    with np.errstate(divide="ignore"):
        return float(2.0 / eta * (weight @ np.log(np.abs(1.0 - 2 * eta * gamma + 2 * eta * total / S))))


def sgd_exponent_gauss(k: float, s: float, learning_rate: float, batch_size: int = 1, gamma: float = 0.0) -> float:
    """(2/η) E ln|1 - 2ηγ + 2ηm̂| for x ~ N(0, 1), y = kx + sε, by quadrature to about 1e-12.

    Given R = Σx², m̂ is normal with mean kR/S and deviation s√R/S, and with Dawson's function D

        E ln|μ + Z| = -(γ_E + ln 2)/2 + 2∫_0^{μ/√2} D(x) dx;

    what is left is one integral over the law of √R, which is chi with S degrees of freedom.

    Examples
    --------
    >>> sgd_exponent_gauss(1.0, 1.0, 0.4) > 0 > 4 * (1 - 0.4 * 3)  # the SDE says collapse
    True
    """
    k, s = _check.number("k", k), _check.number("s", s, least=0.0)
    eta, gamma = _check.positive("learning_rate", learning_rate), _check.number("gamma", gamma, least=0.0)
    S = _check.count("batch_size", batch_size)

    def integrand(r: np.ndarray) -> np.ndarray:
        log_p = (S - 1) * np.log(r) - 0.5 * r * r - (0.5 * S - 1) * np.log(2) - gammaln(0.5 * S)
        centre, spread = 1 - 2 * eta * gamma + 2 * eta * k * r * r / S, 2 * eta * s * r / S
        return np.exp(log_p) * mean_log(centre, spread)

    edges = np.linspace(max(0.0, np.sqrt(S) - 13.0), np.sqrt(S) + 13.0, 81)
    return float(2.0 / eta * panels(integrand, edges[:-1], edges[1:]).sum())


def mean_log(centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """E ln|centre + spread·Z|, Z ~ N(0, 1)."""
    size, spread = np.broadcast_arrays(np.abs(centre), spread)
    far = spread * FAR <= size
    e = (spread[far] / size[far]) ** 2
    series = np.zeros_like(e)
    for n in range(TERMS, 0, -1):  # -Σ (2n - 1)!! eⁿ/(2n)
        series = e * (2 * n - 1) * (1 / (2 * n) + series)
    out = np.empty(size.shape)
    out[far] = np.log(size[far]) - series
    x = size[~far] / spread[~far] / np.sqrt(2)
    integral = x * (dawsn(0.5 * x[:, None] * (NODES + 1)) @ WEIGHTS)
    out[~far] = np.log(spread[~far]) - 0.5 * (np.euler_gamma + np.log(2)) + integral
    return out


def critical_learning_rate(exponent: Callable[[float], float], least: float = 1e-4, most: float = 1e2) -> float:
    """The smallest η in [least, most] at which an exponent changes sign; inf where it keeps it.

    Parameters
    ----------
    exponent : callable
        η ↦ exponent, such as ``lambda eta: sgd_exponent_gauss(0.1, 1.0, eta)``.
    least, most : float
        Searched at 40 points a decade.

    Examples
    --------
    >>> round(critical_learning_rate(lambda eta: sgd_exponent_gauss(0.1, 1.0, eta)), 3)
    0.092
    """
    least, most = _check.positive("least", least), _check.positive("most", most)
    if not callable(exponent):
        raise ArgumentError(f"exponent must be a function of the learning rate, got {_check.show(exponent)}")
    if not most > least:
        raise ArgumentError(f"most must be above least, got {most:g} <= {least:g}")
    before, at = least, exponent(least)
    for eta in np.geomspace(least, most, int(40 * np.log10(most / least)) + 2)[1:]:
        value = exponent(float(eta))
        if value * at < 0:
            if not np.isfinite(value):
                return float(eta)
            return float(brentq(exponent, before, float(eta), xtol=1e-14))
        before, at = float(eta), value
    return np.inf
