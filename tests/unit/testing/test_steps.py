"""Enumerations of one step: complete, of the right weights, and through the same kernels as a run."""

import math

import numpy as np
import pytest

from sgdsde import ArgumentError, ModelError
from sgdsde.models import Product, uw_gauss
from sgdsde.sgd import SGD
from sgdsde.testing import all_batches, all_signs, batch_steps, gauss_nodes, sde_steps


@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_batch_once(tools, size):
    drawn, subsets = (all_batches(tools["make"](batch_size=size, replacement=r)) for r in (True, False))
    assert drawn.shape == (4**size, size) and len(np.unique(drawn, axis=0)) == 4**size
    assert subsets.shape == (math.comb(4, size), size) and (np.diff(subsets, axis=1) > 0).all()
    assert len(np.unique(subsets, axis=0)) == len(subsets)


def test_too_much_is_refused_with_its_number(tools):
    with pytest.raises(ArgumentError, match="problem has 1000000 batches"):
        all_batches(tools["make"](n=10, batch_size=6))
    with pytest.raises(ArgumentError, match="m must be at most 12"):
        all_signs(13)
    with pytest.raises(ArgumentError, match="m must be at most 7"):
        gauss_nodes(8)
    with pytest.raises(ModelError, match="law of the data"):
        all_batches(SGD(Product(), uw_gauss(), learning_rate=0.1))


def test_nodes_have_the_moments_of_normal_numbers():
    signs = all_signs(3)
    assert np.array_equal(signs.T @ signs / 8, np.eye(3)) and not signs.mean(axis=0).any()
    nodes, weights = gauss_nodes(3)
    for powers, moment in [
        ((0, 0, 0), 1),
        ((2, 0, 0), 1),
        ((4, 0, 0), 3),
        ((2, 2, 0), 1),
        ((1, 3, 0), 0),
        ((5, 0, 0), 0),
    ]:
        assert weights @ np.prod(nodes ** np.array(powers), axis=1) == pytest.approx(moment, abs=1e-14)


def test_a_batch_step_is_the_step(case):
    problem, _, theta = case
    batches = np.array([[0, 0], [3, 1]])
    g = problem.per_sample_gradients(theta)[batches].mean(axis=1)
    eta = problem.learning_rate
    np.testing.assert_allclose(
        batch_steps(problem, theta, batches), (1 - 2 * eta * problem.gamma) * theta - eta * g, rtol=1e-13, atol=1e-13
    )
    for wrong in ([[0, 4]], [[0]], [[0, 0.5]], [[-1, 0]]):
        with pytest.raises(ArgumentError, match="batches must hold 2 of 4 indices"):
            batch_steps(problem, theta, wrong)


def test_sde_steps_are_those_of_euler_maruyama(case):
    problem, _, theta = case
    dW = 0.1 * np.random.default_rng(0).standard_normal((2, 2, 4))
    paths = sde_steps(problem, theta, dW, 0.05)
    assert paths.shape == (2, 3, 8) and (paths[:, 0] == theta).all()
    for k in range(2):
        x = paths[:, k]
        moved = -0.05 * (problem.gradient(x) + 2 * problem.gamma * x)
        moved += np.sqrt(2 * problem.sigma2) * np.array([problem.factor(a) @ b for a, b in zip(x, dW[:, k])])
        np.testing.assert_allclose(paths[:, k + 1] - x, moved, rtol=1e-11, atol=1e-13)
