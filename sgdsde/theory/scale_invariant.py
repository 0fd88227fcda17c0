"""Norms of scale-invariant weights, ℓ(cθ) = ℓ(θ): how they grow under SGD, where they stop, and how fast θ/‖θ‖ turns.

The generator is A = I, the charge ‖θ‖², and Tr Σ(θ) = Tr Σ(θ̂)/‖θ‖², so that with τ = Tr Σ(θ̂), θ̂ = θ/‖θ‖,

    d‖θ‖⁴/dt = 4σ²τ - 8γ‖θ‖⁴:   ‖θ‖⁴ → σ²τ/(2γ) = ητ/(4γS),   and ~ 4σ²τt without weight decay.

A step of SGD has exactly ‖θ'‖² = (1 - 2ηγ)²‖θ‖² + η²‖ĝ‖², because ĝ is at right angles to θ. At rest the angle of a
step is then arccos(1 - 2ηγ), √(4ηγ) for small ηγ, whatever the loss (with PyTorch's weight decay λ = 2γ, √(2ηλ)). The
frozen τ is an approximation: θ̂ fluctuates at an effective rate η/‖θ‖², which raises τ. The identity holds to rounding,
the frozen formula to 1 + O(√ηγ).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["angular_update", "equilibrium_norm", "norm_at"]


def norm_at(t: Any, norm: float, trace: float, sigma2: float, gamma: float = 0.0) -> np.ndarray:
    """‖θ‖(t) from ‖θ‖(0) = `norm` with Tr Σ(θ̂) = `trace` held, for times t of any shape.

    ‖θ‖⁴ = ‖θ₀‖⁴e^{-8γt} + 4σ²τ(1 - e^{-8γt})/(8γ), and ‖θ₀‖⁴ + 4σ²τt for γ = 0.

    Examples
    --------
    >>> norm_at([0.0, 15.0], 1.0, trace=1.0, sigma2=0.25)
    array([1., 2.])
    """
    t = _check.array("t", t)
    start = _check.positive("norm", norm) ** 4
    growth = 4.0 * _check.number("sigma2", sigma2, least=0.0) * _check.number("trace", trace, least=0.0)
    rate = 8.0 * _check.number("gamma", gamma, least=0.0)
    passed = -np.expm1(-rate * t) / rate if rate > 0 else t
    return (start * np.exp(-rate * t) + growth * passed) ** 0.25


def equilibrium_norm(
    trace: float, learning_rate: float, batch_size: int, gamma: float, *, gradient: float | None = None
) -> float:
    """The norm at which noise and weight decay balance, (ητ/(4γS))^{1/4}.

    Parameters
    ----------
    trace : float
        τ = Tr Σ(θ/‖θ‖).
    learning_rate, gamma : float
    batch_size : int
    gradient : float, optional
        ‖∇L(θ/‖θ‖)‖². With it the fixed point of a step of SGD, ‖θ‖⁴ = η(τ/S + ‖∇L‖²)/(4γ(1 - ηγ)), not of the SDE.

    Examples
    --------
    >>> round(equilibrium_norm(9.0, 0.01, 1, 0.1) ** 4, 12)
    0.225
    """
    tau, gamma = _check.number("trace", trace, least=0.0), _check.positive("gamma", gamma)
    eta, S = _check.positive("learning_rate", learning_rate), _check.count("batch_size", batch_size)
    if gradient is None:
        return float((eta * tau / (4.0 * gamma * S)) ** 0.25)
    total = tau / S + _check.number("gradient", gradient, least=0.0)
    if eta * gamma >= 1:
        raise ArgumentError(f"gamma must satisfy eta·gamma < 1, got {eta * gamma:g}")
    return float((eta * total / (4.0 * gamma * (1.0 - eta * gamma))) ** 0.25)


def angular_update(learning_rate: float, gamma: float, *, exact: bool = False) -> float:
    """The angle in radians by which θ/‖θ‖ turns in a step at rest: √(4ηγ), or arccos(1 - 2ηγ).

    Examples
    --------
    >>> angular_update(0.01, 0.01), round(angular_update(0.01, 0.01, exact=True), 9)
    (0.02, 0.020000333)
    """
    product = _check.positive("learning_rate", learning_rate) * _check.number("gamma", gamma, least=0.0)
    if product >= 0.5:
        raise ArgumentError(f"gamma must satisfy 2·eta·gamma < 1, got {2 * product:g}")
    return float(np.arccos(1.0 - 2.0 * product) if exact else np.sqrt(4.0 * product))
