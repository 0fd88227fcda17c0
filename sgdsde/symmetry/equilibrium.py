"""The noise equilibrium: the point of an orbit e^{λA}θ at which gradient noise and weight decay balance.

In A's eigenbasis (eigenvalues μ_k, variances of the gradient Σ_kk) the drift of the charge along the orbit is

    G(λ) = Σ_k [ 2σ²ρ μ_k Σ_kk e^{-2λμ_k} - 4γ μ_k θ_k² e^{2λμ_k} ] = U(λ) - D(λ),

where U gathers the positive terms and D the negative ones. U falls and D grows with λ, so log U - log D falls with a
slope between -4 max|μ| and -4 min|μ|: its value at 0 brackets the only root from both sides, and both logarithms are
evaluated by log-sum-exp, so that nothing overflows. For eigenvalues ±1 the bracket is a point, the closed form
e^{4λ*} = (2γb + σ²p)/(2γa + σ²m).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra import Generator
from sgdsde.symmetry.charges import Charge, as_generator, as_problem, eigen_moments

__all__ = ["NoiseEquilibrium", "noise_equilibrium"]

EPS = float(np.finfo(float).eps)
ZERO = 256.0
"""A term counts as zero below this many roundings of what it was computed from."""


@dataclass(frozen=True, eq=False)
class NoiseEquilibrium:
    """Where the charge comes to rest on one orbit."""

    lam: float
    """λ*: e^{λ*A}θ is the equilibrium. ±inf when the charge runs away, NaN when degenerate."""
    charge: float
    """C* = C(e^{λ*A}θ); its limit along the orbit when λ* is infinite, NaN when degenerate."""
    status: str
    """'finite', 'plus-infinity', 'minus-infinity', or 'degenerate' (the rate is zero all along the orbit)."""
    theta: np.ndarray | None = field(repr=False)
    """e^{λ*A}θ of shape (d,); None unless finite."""
    charge_at_start: float
    rate_at_start: float
    """dC/dt = -4γC + 2σ²ρTr[ΣA]; it has the sign of C* - C."""
    relaxation_rate: float
    """κ at the equilibrium, the rate at which C approaches C*; NaN unless finite."""


def noise_equilibrium(problem: Any, theta: Any, generator: Any) -> NoiseEquilibrium:
    """λ* with 2γC = σ²ρ Tr[ΣA] at e^{λ*A}θ: the fixed point of the charge on the orbit of θ.

    Parameters
    ----------
    problem : SGD
        Needs γ >= 0.
    theta : array_like of shape (d,)
    generator : Generator, Charge or (d, d) array_like
        Symmetric A that keeps every sample's loss.

    Returns
    -------
    NoiseEquilibrium
        `.lam .charge .theta .status`. A finite root exists if and only if something pushes C up (noise with μ > 0 or
        decay with μ < 0) and something pushes it down; it is unique. With γ = 0 and noise on one side alone λ* = ±inf.

    Raises
    ------
    ArgumentError
        γ < 0 (the rate is not monotone then), A not symmetric, θ not one state.

    Notes
    -----
    What counts as zero: θ_k in the eigenbasis below 256 eps Σ_j|Q_jk||θ_j|, and Σ_kk below (256 eps Σ_j|Q_jk|
    rms(g_j))², which is the rounding of the change of basis and of a variance about the mean (nothing but 0 for θ_k
    where A is diagonal); μ_k below 256 eps ‖A‖. So samples that all agree give no noise, and not 1e-33 of it.

    Costs two passes over the per-sample gradients. λ* is exact to about 1e-15 (1 + |λ*|) for the given variances.
    """
    a = as_generator(generator)
    charge = Charge(a)
    x = _check.array("theta", theta, (a.dim,))
    gamma, noise = float(as_problem(problem).gamma), float(problem.noise_scale)
    if gamma < 0:
        raise ArgumentError(
            f"gamma must be at least 0 for a noise equilibrium (the rate is not monotone below), got {gamma:g}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        mu, size, var = _spectrum(problem, a, x)
        largest = a.norm * max(float(np.square(size).sum()), float(var.sum()))
    if not np.isfinite(largest):
        raise ArgumentError(
            "theta and generator must be of a size at which the charge and the variances of the gradient are finite, "
            f"got max|θ| = {np.abs(x).max():.3g} and ‖A‖ = {a.norm:.3g}"
        )
    with np.errstate(divide="ignore"):
        orbit = _Orbit(mu, np.log(4 * gamma * np.abs(mu)) + 2 * np.log(size), np.log(2 * noise * np.abs(mu) * var))
    lam, status = orbit.root()
    rate = float(2 * noise * (mu @ var) - 4 * gamma * charge(x))
    end, at, kappa = np.nan, None, np.nan
    if status == "finite":
        at, end, kappa = a.exp(lam, x), _charge_on(mu, size, lam), orbit.relaxation(lam, size, gamma)
    elif status != "degenerate":
        sign = 1.0 if status == "plus-infinity" else -1.0
        end = sign * np.inf if np.any(size[sign * mu > 0] > 0) else 0.0
    return NoiseEquilibrium(lam, end, status, at, charge(x), rate, kappa)


def _spectrum(problem: Any, a: Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, |θ_k| and Σ_kk of the components that move, with rounding set to zero."""
    mu = a.eigenvalues
    size = np.abs(a.to_eigenbasis(x))
    size = np.where(size > ZERO * EPS * a.mixed(x), size, 0.0)
    _, var = eigen_moments(problem, a, x)
    raw_mean, raw_var = problem.gradient_moments(x)
    rms = np.sqrt(raw_mean**2 + raw_var)
    var = np.where(var > (ZERO * EPS * a.mixed(rms)) ** 2, var, 0.0)
    moving = np.abs(mu) > ZERO * EPS * a.norm
    return mu[moving], size[moving], var[moving]


class _Orbit:
    """G(λ) = U(λ) - D(λ) as two sums of exponentials, from the logarithms of their terms at λ = 0."""

    def __init__(self, mu: np.ndarray, log_decay: np.ndarray, log_noise: np.ndarray) -> None:
        self.mu, self.log_noise = mu, log_noise
        speed = np.abs(mu)
        self.up = np.where(mu > 0, log_noise, log_decay), -2 * speed
        self.down = np.where(mu > 0, log_decay, log_noise), 2 * speed

    @staticmethod
    def _log_sum(terms: tuple[np.ndarray, np.ndarray], lam: float) -> float:
        return float(logsumexp(terms[0] + lam * terms[1])) if terms[0].size else -np.inf

    def slope(self, lam: float) -> float:
        """log U - log D."""
        return self._log_sum(self.up, lam) - self._log_sum(self.down, lam)

    def root(self) -> tuple[float, str]:
        up, down = self._log_sum(self.up, 0.0), self._log_sum(self.down, 0.0)
        if np.isneginf(up) and np.isneginf(down):
            return np.nan, "degenerate"
        if np.isneginf(down):
            return np.inf, "plus-infinity"
        if np.isneginf(up):
            return -np.inf, "minus-infinity"
        used = np.isfinite(self.up[0]) | np.isfinite(self.down[0])
        speed = np.abs(self.mu[used])
        ends = sorted((up - down) / (4 * s) for s in (speed.min(), speed.max()))
        low, high = ends[0], ends[1]
        if self.slope(low) <= 0:
            return float(low), "finite"
        if self.slope(high) >= 0:
            return float(high), "finite"
        return float(brentq(self.slope, low, high, xtol=4 * EPS, rtol=4 * EPS)), "finite"

    def relaxation(self, lam: float, size: np.ndarray, gamma: float) -> float:
        """4γ + Σ 2σ²ρμ²Σ_kk e^{-2λμ} / Σ μ²θ² e^{2λμ}."""
        with np.errstate(divide="ignore"):
            spread = logsumexp(self.log_noise + np.log(np.abs(self.mu)) - 2 * lam * self.mu)
            speed = logsumexp(2 * np.log(size * np.abs(self.mu)) + 2 * lam * self.mu)
        return 4 * gamma + float(np.exp(spread - speed)) if np.isfinite(speed) else np.nan


def _charge_on(mu: np.ndarray, size: np.ndarray, lam: float) -> float:
    """Σ μ_k θ_k² e^{2λμ_k} without overflow in between."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(mu)) + 2 * np.log(size) + 2 * lam * mu
    total, sign = logsumexp(logs, b=np.sign(mu), return_sign=True) if mu.size else (-np.inf, 1.0)
    return float(sign * np.exp(total))
