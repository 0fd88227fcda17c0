"""Where the stationary law of two factors (K = 2, the model uw) changes its shape as T = η/S grows.

L. Ziyin, H. Li, M. Ueda, arXiv:2308.06671, Sec. 4.3. With β₂' = β₂ - γ the critical points of the density solve

    7α₁T v² + (β₁ - 10α₂T) v - (β₂' - 3α₃T) = 0,

and near 0 the density is v^{β₂'/(2α₃T) - 3/2}: infinite there from T_c/3 on, not integrable from T_c on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models import Population

__all__ = ["Regimes", "critical_noise", "interior_mode", "regimes"]


@dataclass(frozen=True)
class Regimes:
    """Values of T at which the law of v = uw changes, on the branch where v has the sign of E xy.

    Attributes
    ----------
    diverges : float
        T_c/3: from here on the density is infinite at 0, which is then the most likely v.
    loses_mode : float
        From here on no maximum is left but the one at 0: `diverges` where the maximum moves into 0, T* where it meets
        a minimum (between the two the density has both), T_c where it lasts to the end.
    collapses : float
        T_c: from here on v → 0.
    discriminant : float
        T*, the smallest T at which the two critical points meet, wherever they are; inf where they never do. For x ~
        N(0, 1), y = kx + sε it is (4k + √42 s)/(4(21s² - 8k²)), and never for 8k² >= 21s².
    """

    diverges: float
    loses_mode: float
    collapses: float
    discriminant: float


def critical_noise(
    population: Population,
    gamma: float = 0.0,
    depth: float = 2,
    *,
    order: int = 1,
    batch_size: int = 1,
    scale: float = 1.0,
) -> float:
    """T_c: the T = η/S from which on v → 0 under the SDE of SGD.

    Parameters
    ----------
    population : Population
    gamma : float
    depth : int or inf
        K, the number of factors.
    order : {1, 2}
        2 for the modified equation of second order, K = 2 only.
    batch_size : int
        S, which counts in order 2 alone.
    scale : float
        Of the loss.

    Returns
    -------
    float
        (|β₂| - γ)/α₃ for K = 2 (0 if negative; of order 2: (|β₂| - γ)/(α₃ + S(|β₂| - γ)²)). For other K there is no
        such threshold: inf where a density exists for every T (K = 1; K > 2 without weight decay), 0 where for none.

    Notes
    -----
    The exponent of v at 0 is 4(β₂ - γ - Tα₃). The paper prints the second order for S = 1 alone (its Eq. (54), from a
    modified loss with T where η stands).

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> critical_noise(uw_gauss(1.0, 1.0))
    0.3333333333333333
    >>> critical_noise(uw_gauss(1.0, 1.0), order=2, batch_size=4)
    0.14285714285714285
    """
    if not isinstance(population, Population):
        raise ArgumentError(f"population must be a Population, got {_check.show(population)}")
    gamma, s = _check.number("gamma", gamma, least=0.0), _check.positive("scale", scale)
    depth = np.inf if depth == np.inf else _check.count("depth", depth)
    order, batch_size = _check.count("order", order, most=2), _check.count("batch_size", batch_size)
    if order == 2 and depth != 2:
        raise ArgumentError(f"order must be 1 unless depth is 2, got {order} with depth={depth:g}")
    pull = s * abs(population.beta2) - gamma
    if depth == 1:
        return np.inf
    if depth > 2:
        return np.inf if gamma == 0 and pull > 0 else 0.0
    noise = s * s * population.alpha3 + (batch_size * pull * pull if order == 2 else 0.0)
    return 0.0 if pull <= 0 else (pull / noise if noise > 0 else np.inf)


def interior_mode(population: Population, T: float, gamma: float = 0.0) -> float:
    """The maximum inside v > 0 of the law of uw (E xy > 0), in closed form; NaN where there is none.

    v̂ = [-(β₁ - 10α₂T) + √((β₁ - 10α₂T)² + 28α₁T(β₂ - γ - 3α₃T))]/(14α₁T).

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> round(interior_mode(uw_gauss(1.0, 1.0), 0.05), 4)
    0.8864
    """
    T, gamma = _check.positive("T", T), _check.number("gamma", gamma, least=0.0)
    a, b = 7 * population.alpha1 * T, population.beta1 - 10 * population.alpha2 * T
    c = population.beta2 - gamma - 3 * population.alpha3 * T
    if a == 0.0:
        return c / b if c > 0 else np.nan
    root = b * b + 4 * a * c
    if root < 0:
        return np.nan
    # the larger root; without cancellation where b > 0
    v = 2 * c / (b + np.sqrt(root)) if b > 0 else (np.sqrt(root) - b) / (2 * a)
    return float(v) if v > 0 else np.nan


def regimes(population: Population, gamma: float = 0.0) -> Regimes:
    """The thresholds of `Regimes` for data and weight decay γ.

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> regimes(uw_gauss(1.0, 1.0))  # doctest: +ELLIPSIS
    Regimes(diverges=0.111..., loses_mode=0.2015..., collapses=0.333..., discriminant=0.2015...)
    """
    T_c = critical_noise(population, gamma)
    a1, a2, a3 = (
        population.alpha1,
        abs(population.alpha2) * np.sign(population.alpha2 * population.beta2),
        population.alpha3,
    )
    b1, b2 = population.beta1, abs(population.beta2) - gamma
    # (β₁ - 10α₂T)² + 28α₁T(β₂' - 3α₃T) = 0
    roots = np.roots([100 * a2 * a2 - 84 * a1 * a3, 28 * a1 * b2 - 20 * a2 * b1, b1 * b1])
    real = [float(r.real) for r in roots if abs(r.imag) <= 1e-12 * abs(r) and r.real > 0]
    meet = min(real, default=np.inf)
    if b1 >= 10 * a2 * T_c / 3:  # at T_c/3 the larger root is 0
        loses = T_c / 3
    else:
        loses = min(T_c, max(meet, T_c / 3))
    return Regimes(T_c / 3, loses, T_c, meet)
