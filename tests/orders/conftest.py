"""Vetted problems for order tests: globally Lipschitz, noise large enough to be seen, m ≠ d too, in both calculi.

Each kind of noise has problems `make(calculus) -> Problem`. Where an exact solution exists it is a function of
the path; additive and general noise are measured against a finer grid.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sgdsde.equation import SDE

ITO, STRATONOVICH = "ito", "stratonovich"


@dataclass
class Problem:
    name: str
    sde: Any
    y0: list
    exact: Any = None


# turning: dZ = α Z dt + Σ_j β_j Z dW_j in the complex plane, d = 2; the columns commute and mix the components


def turning_drift(t, y, alpha, beta):
    return alpha[0] * y[0] - alpha[1] * y[1], alpha[1] * y[0] + alpha[0] * y[1]


def turning_one(t, y, alpha, beta):
    return beta[0, 0] * y[0] - beta[0, 1] * y[1], beta[0, 1] * y[0] + beta[0, 0] * y[1]


def turning_three(t, y, alpha, beta):
    return (
        (
            beta[0, 0] * y[0] - beta[0, 1] * y[1],
            beta[1, 0] * y[0] - beta[1, 1] * y[1],
            beta[2, 0] * y[0] - beta[2, 1] * y[1],
        ),
        (
            beta[0, 1] * y[0] + beta[0, 0] * y[1],
            beta[1, 1] * y[0] + beta[1, 0] * y[1],
            beta[2, 1] * y[0] + beta[2, 0] * y[1],
        ),
    )


ALPHA = np.array([-0.4, 0.9])
BETA = np.array([[0.3, 0.5], [-0.3, 0.4], [0.3, -0.4]])


def turning(calculus, m):
    beta = BETA[:m]
    complex_beta = beta @ [1, 1j]

    def exact(t, W):
        rate = ALPHA @ [1, 1j] - (0.5 * (complex_beta**2).sum() if calculus == ITO else 0.0)
        z = (1.0 + 0.5j) * np.exp(rate * t[-1] + W[:, -1] @ complex_beta)
        return np.stack([z.real, z.imag], axis=1)

    noise, diffusion = ("scalar", turning_one) if m == 1 else ("commutative", turning_three)
    sde = SDE(turning_drift, diffusion, dim=2, noise=noise, calculus=calculus, args=(ALPHA, beta))
    return Problem(f"turning, d=2, m={m}", sde, [1.0, 0.5], exact)


# hyperbolic sine of a Brownian motion with drift: X_i = sinh(c_i + μ_i t + Σ_j σ_ij W_j), d = 3, nonlinear


def sinh_drift(t, y, mu, half):
    """Stratonovich drift √(1+y²) μ, and ½ Σ_j σ_ij² y more in Itô form: `half` holds the ½ Σ_j σ_ij² or zeros."""
    return (
        mu[0] * np.sqrt(1 + y[0] * y[0]) + half[0] * y[0],
        mu[1] * np.sqrt(1 + y[1] * y[1]) + half[1] * y[1],
        mu[2] * np.sqrt(1 + y[2] * y[2]) + half[2] * y[2],
    )


def sinh_diagonal(t, y, mu, half):
    return 0.6 * np.sqrt(1 + y[0] * y[0]), 0.4 * np.sqrt(1 + y[1] * y[1]), -0.5 * np.sqrt(1 + y[2] * y[2])


def sinh_two(t, y, mu, half):
    a, b, c = np.sqrt(1 + y[0] * y[0]), np.sqrt(1 + y[1] * y[1]), np.sqrt(1 + y[2] * y[2])
    return (0.4 * a, 0.3 * a), (-0.5 * b, 0.2 * b), (0.2 * c, 0.5 * c)


MU = np.array([0.3, -0.2, 0.1])
Y0 = np.array([0.2, -0.4, 0.6])


def sinh(calculus, diagonal):
    sigma = np.diag([0.6, 0.4, -0.5]) if diagonal else np.array([[0.4, 0.3], [-0.5, 0.2], [0.2, 0.5]])
    half = 0.5 * (sigma**2).sum(axis=1) * (calculus == ITO)

    def exact(t, W):
        return np.sinh(np.arcsinh(Y0) + MU * t[-1] + W[:, -1] @ sigma.T)

    noise, diffusion = ("diagonal", sinh_diagonal) if diagonal else ("commutative", sinh_two)
    sde = SDE(sinh_drift, diffusion, dim=3, noise=noise, calculus=calculus, args=(MU, half))
    return Problem(f"sinh, d=3, m={sigma.shape[1]}", sde, list(Y0), exact)


# additive noise that depends on time, d = 2, m = 3


def additive_drift(t, y):
    return 2.0 * np.sin(y[1]) - y[0], 2.0 * np.cos(y[0] + t) - 0.5 * y[1]


def additive_diffusion(t, y):
    s = 1.0 + 0.5 * np.sin(2 * t)
    return (0.8 * s, 0.3, -0.5 * s), (-0.4, 0.9 * s, 0.6)


def additive(calculus):
    sde = SDE(additive_drift, additive_diffusion, dim=2, noise="additive", calculus=calculus)
    return Problem("additive, d=2, m=3", sde, [0.5, -0.5])


# noise whose columns do not commute


def tall_drift(t, y):
    return -0.5 * y[0], 0.3 * np.sin(y[0]) - 0.5 * y[1], 0.2 * np.sin(y[1])


def tall_diffusion(t, y):
    return (1.0 + 0.2 * np.cos(y[1]), 0.0), (0.0, 0.8), (0.3 * np.sin(y[1]), y[0])


def wide_drift(t, y):
    return 0.5 * np.sin(y[1]) - 0.3 * y[0], -0.5 * y[1]


def wide_diffusion(t, y):
    return (0.8, 0.6 * np.sin(y[1]), 0.2), (0.5 * y[0], 0.0, 0.6 * np.cos(y[0]))


def tall(calculus):
    sde = SDE(tall_drift, tall_diffusion, dim=3, noise="general", calculus=calculus)
    return Problem("non-commuting, d=3, m=2", sde, [0.5, -0.5, 0.0])


def wide(calculus):
    sde = SDE(wide_drift, wide_diffusion, dim=2, noise="general", calculus=calculus)
    return Problem("non-commuting, d=2, m=3", sde, [0.5, 1.0])


PROBLEMS = {
    "additive": [additive],
    "scalar": [lambda calculus: turning(calculus, 1)],
    "diagonal": [lambda calculus: sinh(calculus, True)],
    "commutative": [lambda calculus: turning(calculus, 3), lambda calculus: sinh(calculus, False)],
    "general": [tall, wide],
}


@pytest.fixture(scope="session")
def problems():
    return SimpleNamespace(by_noise=PROBLEMS)
