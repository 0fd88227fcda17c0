"""The SDE of v = Σ_i Π_k u_i^(k) alone, for balanced chains: one equation for a whole diagonal linear network.

With K factors, width d, all |u_i^(k)| equal, ℓ = (vx - y)² and T = η/S, writing m = 2 - 2/K, c = K d^{2/K - 1},

    dv = [-2c|v|^m (β₁v - β₂) + 2(1 - 1/K)c² v|v|^{2m-2} T q(v) - 2γK v] dt + 2c|v|^m √(T q(v)) dW        (Itô)

q(v) = α₁v² - 2α₂v + α₃ (see `Population`). L. Ziyin, H. Li, M. Ueda, arXiv:2308.06671, Eq. (92), where the depth is
D = K - 1. All chains share one W, because all gradients are along ∇v. Read as Stratonovich, the term with q in the
drift is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.equation import SDE
from sgdsde.models import Population

__all__ = ["Coefficients", "reduced_sde"]

CALCULI = ("ito", "stratonovich")


@dataclass(frozen=True)
class Coefficients:
    """The numbers of the reduced equation.

    Attributes
    ----------
    c, m, ratio : float
        c and m as above; `ratio` = 1 - 1/K, and 0 for the Stratonovich reading.
    T : float
        η/S.
    decay : float
        γK.
    beta1, beta2, alpha1, alpha2, alpha3 : float
        Moments of the data; β times the scale of the loss, α times its square.
    """

    c: float
    m: float
    ratio: float
    T: float
    decay: float
    beta1: float
    beta2: float
    alpha1: float
    alpha2: float
    alpha3: float

    @classmethod
    def of(
        cls,
        population: Population,
        T: float,
        depth: float,
        width: int,
        gamma: float,
        calculus: str = "ito",
        scale: float = 1.0,
    ) -> Coefficients:
        """Checked, from the arguments of `reduced_sde`."""
        K, d = _check.count("depth", depth), _check.count("width", width)
        T, gamma = _check.positive("T", T), _check.number("gamma", gamma, least=0.0)
        _check.choice("calculus", calculus, CALCULI)
        ratio = 1.0 - 1.0 / K if calculus == "ito" else 0.0
        return cls(K * d ** (2.0 / K - 1.0), 2.0 - 2.0 / K, ratio, T, gamma * K, *_moments(population, scale))

    @classmethod
    def deep(cls, population: Population, noise: float, gamma: float) -> Coefficients:
        """The limit K → ∞ at fixed noise = KT/d, in the time 2ct."""
        noise, gamma = _check.positive("noise", noise), _check.number("gamma", gamma, least=0.0)
        return cls(0.5, 2.0, 1.0, 2.0 * noise, 0.5 * gamma, *_moments(population, 1.0))

    @property
    def args(self) -> tuple[float, ...]:
        """In the order of the functions below."""
        moments = (self.beta1, self.beta2, self.alpha1, self.alpha2, self.alpha3)
        return (self.c, self.m, self.ratio, self.T, self.decay, *moments)


def _moments(law: Population, scale: float) -> tuple[float, ...]:
    if not isinstance(law, Population):
        raise ArgumentError(f"population must be a Population, got {_check.show(law)}")
    if law.beta1 == 0:
        raise ModelError("the reduced equation needs E x² > 0, got beta1 = 0: without inputs v does not move")
    if law.alpha1 == 0 and law.alpha3 == 0:
        raise ModelError("the reduced equation needs gradient noise, got alpha1 = alpha3 = 0: q(v) is zero everywhere")
    s = _check.positive("scale", scale)
    return s * law.beta1, s * law.beta2, s * s * law.alpha1, s * s * law.alpha2, s * s * law.alpha3


def reduced_sde(
    population: Population,
    T: float,
    depth: int = 2,
    width: int = 1,
    gamma: float = 0.0,
    *,
    coordinate: str = "value",
    branch: int = 1,
    calculus: str = "ito",
    scale: float = 1.0,
) -> SDE:
    """The reduced equation as an `SDE` of one component.

    Parameters
    ----------
    population : Population
        Moments of the data.
    T : float
        η/S, twice `problem.noise_scale`.
    depth : int
        K, the number of factors, as in `Product` (D + 1 in the paper).
    width : int
        d, the number of chains.
    gamma : float
        Weight decay γ.
    coordinate : {'value', 'log'}
        The unknown: v, or z = ln(±v), whose noise grows no faster than √q and in which v keeps its sign.
    branch : {1, -1}
        Sign of v for `coordinate="log"`.
    calculus : {'ito', 'stratonovich'}
        How the noise of the *whole* network is read; the SDE of SGD is Itô's.
    scale : float
        Multiplies the loss, as in `Product`.

    Returns
    -------
    SDE
        With scalar noise, and the derivative of its diffusion.

    Raises
    ------
    ArgumentError, ModelError
        An argument out of range; `coordinate="log"` with the Stratonovich reading; data without inputs or noise.

    Notes
    -----
    For `coordinate="value"` plain Euler-Maruyama explodes where the SDE does not, the noise growing like |v|^{m+1};
    take "log" with short steps, or the whole network (`Product`) with `step_size="auto"`.

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> from sgdsde.theory import reduced_sde
    >>> sde = reduced_sde(uw_gauss(1.0, 1.0), T=0.1)
    >>> float(sde.drift(0.0, [0.5], *sde.args)[0]), float(sde.diffusion(0.0, [0.5], *sde.args)[0])  # 2 + 0.3, 2√.15
    (1.3, 0.7745966692414834)
    """
    numbers = Coefficients.of(population, T, depth, width, gamma, calculus, scale)
    if _check.choice("coordinate", coordinate, ("value", "log")) == "value":
        return SDE(drift, diffusion, 1, "scalar", calculus, numbers.args, "reduced", derivative)
    if calculus != "ito":
        raise ArgumentError("coordinate='log' is written for calculus='ito'; take coordinate='value'")
    if branch not in (1, -1):
        raise ArgumentError(f"branch must be 1 or -1, got {_check.show(branch)}")
    return SDE(log_drift, log_diffusion, 1, "scalar", "ito", (float(branch), *numbers.args), "reduced")


def drift(t, y, c, m, ratio, T, decay, b1, b2, a1, a2, a3):
    v = y[0]
    size = np.abs(v)
    q = (a1 * v - 2.0 * a2) * v + a3
    pull = -2.0 * c * size**m * (b1 * v - b2) - 2.0 * decay * v
    return (pull + (2.0 * ratio * c * c * T * q * v * size ** (2.0 * m - 2.0) if ratio > 0.0 else 0.0),)


def diffusion(t, y, c, m, ratio, T, decay, b1, b2, a1, a2, a3):
    v = y[0]
    return (2.0 * c * np.abs(v) ** m * np.sqrt(T * np.maximum((a1 * v - 2.0 * a2) * v + a3, 0.0)),)


def derivative(t, y, c, m, ratio, T, decay, b1, b2, a1, a2, a3):
    v = y[0]
    size = np.abs(v)
    root = np.sqrt(np.maximum((a1 * v - 2.0 * a2) * v + a3, 0.0))
    slope = (a1 * v - a2) / root if root > 0.0 else np.sqrt(a1)
    outer = m * size ** (m - 1.0) * np.copysign(root, v) if m > 0.0 else 0.0
    return ((2.0 * c * np.sqrt(T) * (outer + size**m * slope),),)


def log_drift(t, y, sign, c, m, ratio, T, decay, b1, b2, a1, a2, a3):
    v = sign * np.exp(y[0])
    moved = (v,)
    f = drift(t, moved, c, m, ratio, T, decay, b1, b2, a1, a2, a3)[0] / v
    g = diffusion(t, moved, c, m, ratio, T, decay, b1, b2, a1, a2, a3)[0] / v
    return (f - 0.5 * g * g,)


def log_diffusion(t, y, sign, c, m, ratio, T, decay, b1, b2, a1, a2, a3):
    v = sign * np.exp(y[0])
    return (diffusion(t, (v,), c, m, ratio, T, decay, b1, b2, a1, a2, a3)[0] / v,)
