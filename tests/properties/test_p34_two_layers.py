"""Two linear layers at rest: product, balance, any rotation of hidden units, and no lower potential on the orbit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sgdsde.theory import LinearTask, balance_residual, two_layer_equilibrium


@st.composite
def tasks(draw, square=False):
    """y = Vx + ε with covariances of condition below 100."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d_x, d_y = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rank = draw(st.integers(1, min(d_x, d_y)))

    def covariance(d):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        return (Q * np.exp(rng.uniform(-2.3, 2.3, d))) @ Q.T

    U, W = (np.linalg.qr(rng.standard_normal((d, rank)))[0] for d in (d_y, d_x))
    V = (U * rng.uniform(0.3, 3.0, rank)) @ W.T
    return LinearTask(V, covariance(d_x), covariance(d_y))


@settings(max_examples=40)
@given(tasks(), st.sampled_from([0.0, 1e-3, 0.1]), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_two_layers(task, gamma, wider, seed):
    rng, hidden, sigma2 = np.random.default_rng(seed), task.rank + wider, 0.01
    O = np.linalg.qr(rng.standard_normal((hidden, task.rank)))[0]
    layers = two_layer_equilibrium(task, gamma=gamma, sigma2=sigma2, hidden=hidden, rotation=O)
    condition = np.linalg.cond(task.Sigma_x) * np.linalg.cond(task.Sigma_eps)
    np.testing.assert_allclose(layers.W2 @ layers.W1, task.V, atol=1e-12 * condition)
    noise = task.noise_matrices()
    assert balance_residual(layers.W1, layers.W2, *noise, gamma, sigma2)[1] < 1e-12 * condition
    plain = two_layer_equilibrium(task, gamma=gamma, sigma2=sigma2)
    np.testing.assert_allclose(layers.W1, O @ plain.W1, atol=1e-12 * condition)

    def potential(W1, W2):
        return 2 * gamma * (np.sum(W1**2) + np.sum(W2**2)) + 4 * sigma2 * (
            np.trace(W1 @ noise[0] @ W1.T) + np.trace(W2.T @ noise[1] @ W2)
        )

    assert potential(layers.W1, layers.W2) == pytest.approx(layers.potential, rel=1e-12)
    for size in (1e-3, 0.3, 2.0):
        g = np.eye(hidden) + size * rng.uniform(-1, 1, (hidden, hidden))
        if np.linalg.cond(g) < 1e6:
            assert potential(g @ layers.W1, layers.W2 @ np.linalg.inv(g)) >= layers.potential * (1 - 1e-10)


@settings(max_examples=10)
@given(tasks(), st.sampled_from([0.0, 0.02]), st.integers(0, 2**32 - 1))
def test_minimising_over_the_orbit_finds_it(task, gamma, seed):
    r, sigma2 = task.rank, 0.01
    layers = two_layer_equilibrium(task, gamma=gamma, sigma2=sigma2)
    start = np.eye(r) + 0.2 * np.random.default_rng(seed).uniform(-1, 1, (r, r))
    K = [gamma * np.eye(len(N)) + 2 * sigma2 * N for N in task.noise_matrices()]
    A, B = layers.W1 @ K[0] @ layers.W1.T, layers.W2.T @ K[1] @ layers.W2

    def F(g):
        G = g.reshape(r, r)
        inverse = np.linalg.inv(G)
        value = 2 * np.trace(G @ A @ G.T) + 2 * np.trace(inverse.T @ B @ inverse)
        slope = 4 * G @ A - 4 * inverse.T @ B @ inverse @ inverse.T
        return value / layers.potential, slope.ravel() / layers.potential

    found = minimize(F, start.ravel(), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 2000})
    G = found.x.reshape(r, r)
    assert abs(found.fun - 1) < 1e-9
    # up to rotations of the hidden units: the metrics are those of the closed form
    np.testing.assert_allclose(
        layers.W1.T @ G.T @ G @ layers.W1, layers.W1.T @ layers.W1, atol=1e-8 * np.sum(layers.W1**2)
    )
