"""Rotations about three axes: dX = Σ_j s_j L_j X∘dW_j keeps |X|² exactly, and its columns do not commute.

What a step does to the charge |X|² is an order of its own: 1.0 for the step without areas, whose X has 0.5; 0.5 for
Euler-Maruyama.
"""

import numpy as np
import pytest

from sgdsde.comparison.order import strong_order
from sgdsde.equation import SDE, noise_structure

S = np.array([0.7, 0.6, 0.5])


def still(t, y):
    return 0.0 * y[0], 0.0, 0.0


def contraction(t, y):
    """½ Σ_j s_j² L_j² y: the Itô drift of the rotations."""
    a, b, c = 0.5 * 0.7**2, 0.5 * 0.6**2, 0.5 * 0.5**2
    return -(b + c) * y[0], -(a + c) * y[1], -(a + b) * y[2]


def rotations(t, y):
    return (0.0, 0.6 * y[2], -0.5 * y[1]), (-0.7 * y[2], 0.0, 0.5 * y[0]), (0.7 * y[1], -0.6 * y[0], 0.0)


def equation(calculus):
    return SDE(still if calculus == "stratonovich" else contraction, rotations, dim=3, calculus=calculus)


def charge(y):
    return (y**2).sum(axis=1)


Y0 = [0.6, 0.0, 0.8]
COST = {"n_paths": 1000, "n_steps": (16, 32, 64, 128, 256), "rng": 4, "sigmas": 5}


def test_the_columns_do_not_commute():
    assert not noise_structure(equation("ito"), Y0).commutative


@pytest.mark.parametrize(
    "method, calculus, order",
    [
        ("euler-maruyama", "ito", 0.5),
        ("milstein-symmetric", "ito", 1.0),
        ("milstein-symmetric", "stratonovich", 1.0),
        ("heun", "stratonovich", 1.0),
    ],
)
def test_order_of_the_charge(method, calculus, order):
    result = strong_order(
        equation(calculus), Y0, (0, 1), method, quantity=charge, reference=1.0, expected=order, **COST
    )
    assert result.verdict == "consistent", result.explain()


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_order_of_the_state_stays_one_half(calculus):
    cost = {**COST, "n_paths": 600, "n_steps": (8, 16, 32, 64, 128)}
    result = strong_order(equation(calculus), Y0, (0, 1), "milstein-symmetric", **cost)
    assert result.verdict == "consistent" and result.expected == 0.5, result.explain()
