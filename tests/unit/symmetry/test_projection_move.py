"""`OrbitProjection.move`: the point of an orbit with given charges, by closed form, there and back, or refused."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError

RNG = np.random.default_rng(5)
DEEP = sg.models.DeepLinear([3, 4, 2])
CHAINS = sg.models.Product(width=3, depth=3)
UNITS = [DEEP.generator(np.diag(np.eye(4)[i])) for i in range(3)]
FULL = RNG.standard_normal((4, 4))
CASES = [
    (DEEP, DEEP.symmetries()["B=I"]),
    (DEEP, DEEP.generator(FULL + FULL.T)),
    (DEEP, UNITS),
    (CHAINS, CHAINS.symmetries()),
]


def problem_of(model):
    X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((7, 2))
    data = (X, Y) if model is DEEP else (X[:, 0], Y[:, 0])
    return sg.SGD(model, *data, learning_rate=0.1)


def test_move_has_the_closed_form_of_a_rescaling():
    projection = sg.OrbitProjection(sg.rescaling(4))
    theta = RNG.standard_normal((50, 4)) * 10.0 ** RNG.uniform(-2, 2, (50, 1))
    goal = RNG.standard_normal(50) * 10.0 ** RNG.uniform(-3, 3, 50)
    moved = projection.move(theta, goal)
    a, b = np.square(theta[:, :2]).sum(axis=1), np.square(theta[:, 2:]).sum(axis=1)
    z = np.where(goal > 0, (goal + np.hypot(goal, 2 * np.sqrt(a * b))) / (2 * a), 0.0)
    z = np.where(goal > 0, z, 2 * b / (np.hypot(goal, 2 * np.sqrt(a * b)) - goal))  # e^{2λ}
    factor = np.sqrt(z)[:, None]
    assert moved == pytest.approx(np.hstack([theta[:, :2] * factor, theta[:, 2:] / factor]), rel=1e-9)


def test_move_there_and_back_is_no_move():
    for model, generators in CASES:  # a unique point of the orbit for commuting generators
        projection = sg.OrbitProjection(generators, problem_of(model))
        theta = np.random.default_rng(4).standard_normal((3, model.dim))
        charges = np.stack([c(theta) for c in projection.charges], axis=-1)
        there = projection.move(theta, charges + 0.7)
        assert np.abs(there - theta).max() > 0.01
        assert projection.move(there, charges) == pytest.approx(theta, rel=1e-11, abs=1e-12)


def test_move_takes_units_that_are_zero():
    theta = np.array([1.0, 0.0, 2.0, 0.5, 0.0, -1.0])
    two = sg.models.Product(width=3)
    projection = sg.OrbitProjection([two.symmetries()[f"W1/W2[{i}]"] for i in range(3)])
    moved = projection.move(theta, [1.0, 0.0, 2.0])
    assert np.stack([c(moved) for c in projection.charges]) == pytest.approx([1.0, 0.0, 2.0], rel=1e-14)
    with pytest.raises(ArgumentError, match="found on the orbit"):
        projection.move(theta, [1.0, 0.5, 2.0])


@pytest.mark.parametrize("goal", [0.0, -1.0])
def test_move_says_what_it_cannot_reach(goal):
    with pytest.raises(ArgumentError, match="charges .* found on the orbit"):
        sg.OrbitProjection(sg.scaling(3)).move([1.0, 2.0, 3.0], goal)


def test_move_checks_its_arguments():
    projection = sg.OrbitProjection(CHAINS.symmetries(), problem_of(CHAINS))
    assert len(projection.charges) == 6  # of eight: the sum of the units is the whole
    with pytest.raises(ShapeError, match=r"theta must have shape \(\.\.\., 9\)"):
        projection.move(np.ones(4), np.zeros(6))
    with pytest.raises(ShapeError, match="charges must have a shape"):
        projection.move(np.ones((2, 9)), np.zeros(5))
