"""Vetted problems for order tests: Lipschitz, noise large enough to be seen, m ≠ d too, with time, in both calculi.

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


# hyperbolic sine of a Brownian motion with drift, nonlinear, the noise fading: d = 3,
# X_i = sinh(c_i + μ_i sin t + s_i Σ_j σ_ij W_j), s_i = 1/(1 + r_i t); r = 0 makes the noise constant in time


def sinh_drift(t, y, mu, half, rate):
    """√(1+y²) (μ cos t + s'/s (asinh y − c − μ sin t)), and ½ s² Σ_j σ_ij² y in Itô form: `half` has ½Σσ² or zeros."""
    out = np.zeros(3)
    for i in range(3):
        fade = 1 / (1 + rate[i] * t)
        pull = -rate[i] * fade * (np.arcsinh(y[i]) - rate[3 + i] - mu[i] * np.sin(t))
        out[i] = np.sqrt(1 + y[i] * y[i]) * (mu[i] * np.cos(t) + pull) + half[i] * fade * fade * y[i]
    return out


def sinh_noise(t, y, i, rate):
    return np.sqrt(1 + y[i] * y[i]) / (1 + rate[i] * t)


def sinh_diagonal(t, y, mu, half, rate):
    return 0.6 * sinh_noise(t, y, 0, rate), 0.4 * sinh_noise(t, y, 1, rate), -0.5 * sinh_noise(t, y, 2, rate)


def sinh_one(t, y, mu, half, rate):
    return 0.4 * sinh_noise(t, y, 0, rate), -0.5 * sinh_noise(t, y, 1, rate), 0.6 * sinh_noise(t, y, 2, rate)


def sinh_two(t, y, mu, half, rate):
    a, b, c = sinh_noise(t, y, 0, rate), sinh_noise(t, y, 1, rate), sinh_noise(t, y, 2, rate)
    return (0.4 * a, 0.3 * a), (-0.5 * b, 0.2 * b), (0.2 * c, 0.5 * c)


MU = np.array([0.3, -0.2, 0.1])
Y0 = np.array([0.2, -0.4, 0.6])
SINH = {
    "scalar": (sinh_one, np.array([[0.4], [-0.5], [0.6]])),
    "diagonal": (sinh_diagonal, np.diag([0.6, 0.4, -0.5])),
    "commutative": (sinh_two, np.array([[0.4, 0.3], [-0.5, 0.2], [0.2, 0.5]])),
}


def sinh(calculus, noise, rate=(0.0, 0.0, 0.0), mu=MU):
    diffusion, sigma = SINH[noise]
    half = 0.5 * (sigma**2).sum(axis=1) * (calculus == ITO)
    start = np.arcsinh(Y0)

    def exact(t, W):
        return np.sinh(start + mu * np.sin(t[-1]) + W[:, -1] @ sigma.T / (1 + np.array(rate) * t[-1]))

    args = (np.array(mu), half, np.concatenate([rate, start]))
    sde = SDE(sinh_drift, diffusion, dim=3, noise=noise, calculus=calculus, args=args)
    return Problem(f"sinh, d=3, m={sigma.shape[1]}", sde, list(Y0), exact)


def fading(calculus, noise):
    return sinh(calculus, noise, rate=(0.5, 1.0, 0.3))


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
    return 0.5 * np.sin(y[1] + t) - 0.3 * y[0], -0.5 * y[1]


def wide_diffusion(t, y):
    s = 1.0 + 0.4 * np.sin(2 * t)
    return (0.8, 0.6 * s * np.sin(y[1]), 0.2), (0.5 * s * y[0], 0.0, 0.6 * np.cos(y[0]))


def tall(calculus):
    sde = SDE(tall_drift, tall_diffusion, dim=3, noise="general", calculus=calculus)
    return Problem("non-commuting, d=3, m=2", sde, [0.5, -0.5, 0.0])


def wide(calculus):
    sde = SDE(wide_drift, wide_diffusion, dim=2, noise="general", calculus=calculus)
    return Problem("non-commuting, d=2, m=3", sde, [0.5, 1.0])


# for methods that want a linear drift


def line_drift(t, y, A, shift):
    return A @ y + shift


def bend_diagonal(t, y, A, shift):
    s = 1.0 + 0.4 * np.sin(2 * t)
    return 0.6 * s * np.sin(y[0]), 0.5 * np.cos(y[1])


def line_additive(t, y, A, shift):
    s = 1.0 + 0.5 * np.sin(2 * t)
    return (0.8 * s, 0.3, -0.5 * s), (-0.4, 0.9 * s, 0.6)


def line_wide(t, y, A, shift):
    s = 1.0 + 0.4 * np.sin(2 * t)
    return (0.8, 0.6 * s * np.sin(y[1]), 0.2), (0.5 * s * y[0], 0.0, 0.6 * np.cos(y[0]))


LINE = {"additive": line_additive, "diagonal": bend_diagonal, "general": line_wide}


def line(calculus, noise):
    A, shift = np.array([[-1.0, 0.8], [-0.6, -0.3]]), np.array([0.2, -0.1])
    sde = SDE(line_drift, LINE[noise], dim=2, noise=noise, calculus=calculus, args=(A, shift))
    return Problem(f"linear drift, {noise} noise", sde, [0.5, 1.0])


PROBLEMS = {
    "additive": [additive],
    "scalar": [lambda calculus: turning(calculus, 1), lambda calculus: fading(calculus, "scalar")],
    "diagonal": [lambda calculus: sinh(calculus, "diagonal"), lambda calculus: fading(calculus, "diagonal")],
    "commutative": [lambda calculus: turning(calculus, 3), lambda calculus: fading(calculus, "commutative")],
    "general": [tall, wide],
}
LINEAR = {
    "additive": lambda calculus: line(calculus, "additive"),
    "scalar": lambda calculus: turning(calculus, 1),
    "diagonal": lambda calculus: line(calculus, "diagonal"),
    "commutative": lambda calculus: turning(calculus, 3),
    "general": lambda calculus: line(calculus, "general"),
}


@pytest.fixture(scope="session")
def problems():
    """Problems by kind of noise, and one of each kind whose drift is linear."""
    return SimpleNamespace(by_noise=PROBLEMS, linear=LINEAR)
