"""Radial activations a = f(‖z‖)z of a vector z: f and its first two derivatives in τ = ‖z‖².

    squared   ‖z‖²               σ(z) = ‖z‖² z
    tanh      tanh‖z‖/‖z‖        σ(z) = tanh‖z‖ · z/‖z‖
    sigmoid   1/(1 + e^{-‖z‖})   σ(z) = z/(1 + e^{-‖z‖})

With φ(τ) = f(√τ) the Jacobian is φ + 2φ' z zᵀ. The first two are smooth; that of sigmoid has a continuous Jacobian, and
second derivatives without a limit at z = 0, where they are taken to be zero.
"""

from __future__ import annotations

import math

import numba

from sgdsde._jit import OPTIONS
from sgdsde.models.elementary import logistic, tanh

__all__ = ["RADIAL", "profile"]

RADIAL = {"squared": 0, "tanh": 1, "sigmoid": 2}
"""Numbers by which the kernels know them."""

SQUARED, TANH = 0, 1
NEAR = 0.25
"""Below this τ the series of tanh‖z‖/‖z‖, above it the formula, of which φ'' loses less than two digits to rounding."""
TERMS = 18
TINY = 1e-90
"""‖z‖ below which sigmoid has no second derivatives."""


def _series() -> list[float]:
    """t_k of tanh x = Σ t_k x^{2k+1}, by tanh' = 1 - tanh²."""
    t = [1.0]
    for k in range(1, TERMS):
        t.append(-sum(t[i] * t[k - 1 - i] for i in range(k)) / (2 * k + 1))
    return t


ZEROTH = tuple(_series())
FIRST = tuple(k * t for k, t in enumerate(_series()))[1:]
SECOND = tuple(k * (k - 1) * t for k, t in enumerate(_series()))[2:]

inline = numba.njit(**{**OPTIONS, "forceinline": True})


@inline
def _horner(coefficients, x):
    total = 0.0
    for k in range(len(coefficients) - 1, -1, -1):
        total = total * x + coefficients[k]
    return total


@inline
def profile(kind, tau):
    """φ, φ' and φ'' at τ."""
    if kind == SQUARED:
        return tau, 1.0, 0.0
    s = math.sqrt(tau)
    if kind == TANH:
        if tau < NEAR:
            return _horner(ZEROTH, tau), _horner(FIRST, tau), _horner(SECOND, tau)
        t = tanh(s)
        flat = 1.0 - t * t
        g = flat * s - t
        return t / s, g / (2.0 * s * tau), -(2.0 * tau * t * flat + 3.0 * g) / (4.0 * s * tau * tau)
    p = logistic(s)
    if s < TINY:
        return p, 0.0, 0.0
    slope = p * logistic(-s)
    return p, slope / (2.0 * s), (slope * (1.0 - 2.0 * p) * s - slope) / (4.0 * s * tau)
