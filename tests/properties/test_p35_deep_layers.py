"""Deep linear networks at rest: product, balance of pairs, equal noise, minimum on the orbit, two layers as before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sgdsde.theory import LinearTask, deep_linear_equilibrium, layer_noise, pair_residuals, two_layer_equilibrium


@st.composite
def tasks(draw, most=4):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d_x, d_y = draw(st.integers(1, most)), draw(st.integers(1, most))

    def covariance(d):
        M = rng.standard_normal((d, d))
        return M @ M.T / d + 0.2 * np.eye(d)

    rank = draw(st.integers(1, min(d_x, d_y)))
    return LinearTask(
        rng.standard_normal((d_y, rank)) @ rng.standard_normal((rank, d_x)), covariance(d_x), covariance(d_y)
    )


@settings(max_examples=40)
@given(tasks(), st.integers(2, 6), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_deep_layers(task, depth, wider, seed):
    rng, n = np.random.default_rng(seed), task.rank + wider
    rotations = [np.linalg.qr(rng.standard_normal((n, task.rank)))[0] for _ in range(depth - 1)]
    deep = deep_linear_equilibrium(task, depth, hidden=n, rotations=rotations)
    condition = np.linalg.cond(task.Sigma_x) * np.linalg.cond(task.Sigma_eps)
    product = deep.weights[0]
    for W in deep.weights[1:]:
        product = W @ product
    np.testing.assert_allclose(product, task.V, atol=1e-12 * condition * np.abs(task.V).max())
    assert max(ratio for _, ratio in pair_residuals(task, deep.weights)) < 1e-12 * condition
    np.testing.assert_allclose(layer_noise(task, deep.weights), deep.noise, rtol=1e-10)
    if depth == 2:
        layers = two_layer_equilibrium(task, hidden=n, rotation=rotations[0])
        for W, wanted in zip(deep.weights, (layers.W1, layers.W2)):
            np.testing.assert_allclose(W, wanted, atol=1e-11 * condition)


@settings(max_examples=5)
@given(tasks(3), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_minimising_over_the_orbit_finds_it(task, depth, seed):
    r = task.rank
    deep = deep_linear_equilibrium(task, depth)
    shape = (depth - 1, r, r)
    start = np.eye(r) + 0.1 * np.random.default_rng(seed).uniform(-1, 1, shape)

    def trace(g):
        left = [np.eye(task.V.shape[1]), *g.reshape(shape), np.eye(task.V.shape[0])]
        weights = [b @ W @ np.linalg.inv(a) for a, W, b in zip(left, deep.weights, left[1:])]
        return layer_noise(task, weights).sum() / deep.potential

    found = minimize(trace, start.ravel(), method="BFGS", options={"gtol": 1e-8})
    assert found.fun == pytest.approx(1.0, abs=1e-9)
