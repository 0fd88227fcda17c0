"""Deep linear networks: the noise of the real network, pairs, what is inactive, weight decay."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models import DeepLinear
from sgdsde.sgd import SGD
from sgdsde.symmetry import Charge
from sgdsde.theory import (
    active_norms,
    deep_linear_equilibrium,
    layer_noise,
    orbit_equilibrium,
    pair_residuals,
    two_layer_equilibrium,
)


def moved(weights, seed, size=0.5):
    """Another point of the orbit."""
    rng, weights = np.random.default_rng(seed), [W.copy() for W in weights]
    for i in range(len(weights) - 1):
        g = np.eye(len(weights[i])) + size * rng.uniform(-1, 1, (len(weights[i]),) * 2)
        weights[i], weights[i + 1] = g @ weights[i], weights[i + 1] @ np.linalg.inv(g)
    return weights


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_the_noise_of_the_real_network_is_shared_by_the_layers(task_of, samples_of, depth):
    task = task_of(1, scale=0.5)
    deep = deep_linear_equilibrium(task, depth, hidden=3)
    model = DeepLinear([3, *[3] * (depth - 1), 2], scale=0.5)
    problem = SGD(model, *samples_of(task), learning_rate=0.1)
    traces = [np.trace(problem.covariance(deep.theta, f"W{i}")) for i in range(1, depth + 1)]
    np.testing.assert_allclose(traces, deep.noise, rtol=1e-11)
    np.testing.assert_allclose(layer_noise(task, moved(deep.weights, 0)), [
        np.trace(problem.covariance(np.concatenate([W.ravel() for W in moved(deep.weights, 0)]), f"W{i}"))
        for i in range(1, depth + 1)
    ], rtol=1e-11)  # fmt: skip
    for layer in range(1, depth):
        rate = Charge(model.generator(np.diag([1.0, 2.0, -1.0]), layer)).rate(problem, deep.theta)
        assert abs(rate) < 1e-11 * sum(traces)


def test_first_and_last_layers_are_special(task_of):
    task = task_of(2, d_x=4, d_y=3, rank=2)
    deep = deep_linear_equilibrium(task, 5)
    first, *inner, last = deep.weights
    for W in inner:
        np.testing.assert_allclose(np.linalg.svd(W, compute_uv=False), np.sqrt(deep.kappa), rtol=1e-12)
    assert np.trace(first @ task.Sigma_x @ first.T) / task.power == pytest.approx(deep.kappa, rel=1e-12)
    assert np.trace(last.T @ task.Sigma_eps @ last) / task.noise == pytest.approx(deep.kappa, rel=1e-12)
    np.testing.assert_allclose(np.linalg.multi_dot(deep.weights[::-1]), task.V, atol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.03])
def test_sweeps_reach_the_minimum_on_the_orbit(task_of, gamma):
    task = task_of(3)
    deep = deep_linear_equilibrium(task, 4)
    found = orbit_equilibrium(task, moved(deep.weights, 1), gamma=gamma, sigma2=0.1)
    if gamma == 0.0:
        np.testing.assert_allclose(found.norms, deep.norms, rtol=1e-9)
        assert found.potential == pytest.approx(0.1 * deep.potential, rel=1e-12)
    for residual, ratio in pair_residuals(task, found.weights, gamma=gamma, sigma2=0.1):
        assert ratio < 1e-12 and residual.shape == (2, 2)
    for seed in range(5):  # a minimum
        near = moved(found.weights, seed, 1e-3)
        F = 2 * gamma * sum(np.sum(W**2) for W in near) + 0.1 * layer_noise(task, near).sum()
        assert F > found.potential
    np.testing.assert_allclose(np.linalg.multi_dot(found.weights[::-1]), task.V, atol=1e-11)


def test_two_layers_with_weight_decay_are_those_of_balance(task_of):
    task = task_of(4)
    found = orbit_equilibrium(task, deep_linear_equilibrium(task, 2).weights, gamma=0.1, sigma2=0.02)
    wanted = two_layer_equilibrium(task, gamma=0.1, sigma2=0.02)
    np.testing.assert_allclose(found.norms, wanted.norms, rtol=1e-12)
    assert found.potential == pytest.approx(wanted.potential, rel=1e-12)


def test_inactive_directions_are_set_apart_and_decay_removes_them(task_of):
    task = task_of(5)
    deep = deep_linear_equilibrium(task, 3, hidden=4)
    weights = [W.copy() for W in deep.weights]
    weights[1][3, 3], weights[1][2, 3] = 5.0, 1.0  # not fed, not seen
    active, rest = active_norms(weights)
    np.testing.assert_allclose(active, deep.norms, rtol=1e-12)
    np.testing.assert_allclose(rest, [0.0, 26.0, 0.0], atol=1e-12)
    with pytest.raises(ArgumentError, match="positive definite"):
        orbit_equilibrium(task, weights)
    weights[1][0, 2] = 2.0  # seen, not fed
    weights[1][2, 1] = 1.0  # fed, not seen
    found = orbit_equilibrium(task, weights, gamma=1e-3, sigma2=0.1)
    assert active_norms(found.weights)[1].max() < 1e-12
    np.testing.assert_allclose(found.norms, orbit_equilibrium(
        task, deep_linear_equilibrium(task, 3).weights, gamma=1e-3, sigma2=0.1).norms, rtol=1e-9)  # fmt: skip


def test_refusals(task_of):
    task = task_of(6)
    with pytest.raises(ArgumentError, match="hidden must be at least 2"):
        deep_linear_equilibrium(task, 3, hidden=[2, 1])
    with pytest.raises(ArgumentError, match="hidden must hold 2 widths"):
        deep_linear_equilibrium(task, 3, hidden=[2])
    with pytest.raises(ArgumentError, match=r"rotations\[1\] must have orthonormal"):
        deep_linear_equilibrium(task, 3, rotations=[np.eye(2), np.ones((2, 2))])
    with pytest.raises(ShapeError, match="weights must map 3 inputs to 2 outputs"):
        layer_noise(task, [np.eye(3), np.eye(3)])
