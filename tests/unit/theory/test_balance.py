"""Two layers at equilibrium: against charges of the real network, other formulas in print, and the motion of Q."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models import DeepLinear
from sgdsde.sgd import SGD
from sgdsde.symmetry import Charge
from sgdsde.theory import (
    LinearTask,
    balance_decay,
    balance_residual,
    noise_matrices,
    relaxation_rates,
    two_layer_equilibrium,
    weight_decay_minimum,
)


def symmetric(h):
    for i in range(h):
        for j in range(i + 1):
            B = np.zeros((h, h))
            B[i, j] = B[j, i] = 1.0
            yield B


@pytest.mark.parametrize("gamma, scale", [(0.0, 1.0), (0.01, 1.0), (0.02, 0.5)])
def test_every_charge_of_the_network_is_at_rest(task_of, samples_of, gamma, scale):
    task = task_of(1, scale=scale)
    X, Y = samples_of(task)
    model = DeepLinear([3, 2, 2], scale=scale)
    problem = SGD(model, X, Y, learning_rate=0.05, batch_size=2, gamma=gamma)
    product = (1 - gamma) * task.V
    K = noise_matrices(X, Y, product, scale)
    layers = two_layer_equilibrium(K, product, gamma=gamma, sigma2=problem.noise_scale)
    for B in symmetric(2):
        charge = Charge(model.generator(B))
        terms = 2 * problem.noise_scale * np.trace(problem.covariance(layers.theta))
        assert abs(charge.rate(problem, layers.theta)) < 1e-12 * terms
    assert np.trace(problem.covariance(layers.theta)) == pytest.approx(layers.noise_trace, rel=1e-12)
    potential = 2 * gamma * sum(layers.norms) + problem.noise_scale * layers.noise_trace
    assert layers.potential == pytest.approx(potential, rel=1e-12)
    np.testing.assert_allclose(layers.W2 @ layers.W1, product, rtol=0, atol=1e-13)
    assert balance_residual(layers.W1, layers.W2, *K, gamma, problem.noise_scale)[1] < 1e-13


def test_noise_matrices_of_a_task(task_of, samples_of, gauss_points):
    task = task_of(2, scale=2.0)
    for one, two in zip(task.noise_matrices(), noise_matrices(*samples_of(task), task.V, 2.0)):
        np.testing.assert_allclose(one, two, atol=1e-12 * np.abs(one).max())
    assert np.allclose(LinearTask.from_samples(*samples_of(task)).V, task.V)
    # off V the law of x counts: normal numbers have E x⁴ = 3
    task = task_of(3, d_x=2, d_y=2)
    x, e = (gauss_points(2) @ np.linalg.cholesky(S).T for S in (task.Sigma_x, task.Sigma_eps))
    X, E = np.repeat(x, len(e), axis=0), np.tile(e, (len(x), 1))
    product = task.V + [[0.3, -0.2], [0.1, 0.5]]
    for one, two in zip(task.noise_matrices(product), noise_matrices(X, X @ task.V.T + E, product)):
        np.testing.assert_allclose(one, two, atol=1e-12 * np.abs(one).max())


def test_the_printed_balance_needs_covariances_over_their_traces(task_of):
    task = task_of(4)
    layers = two_layer_equilibrium(task)

    def off(S_x, S_eps):
        return balance_residual(layers.W1, layers.W2, S_x, S_eps)[1]

    assert off(task.Sigma_x / task.power, task.Sigma_eps / task.noise) < 1e-13
    assert off(task.Sigma_x, task.Sigma_eps) > 0.1
    louder = two_layer_equilibrium(LinearTask(task.V, task.Sigma_x, 100 * task.Sigma_eps))
    np.testing.assert_allclose(louder.W1, layers.W1, atol=1e-12)  # scaling ε changes nothing


def test_closed_form_without_weight_decay(task_of):
    task = task_of(5)
    layers = two_layer_equilibrium(task)
    a, b = task.noise, task.power
    roots = []
    for S in (task.Sigma_eps, task.Sigma_x):
        e, Q = np.linalg.eigh(S)
        roots.append(((Q * np.sqrt(e)) @ Q.T, (Q / np.sqrt(e)) @ Q.T))
    P, S, Rt = np.linalg.svd(roots[0][0] @ task.V @ roots[1][0], full_matrices=False)
    np.testing.assert_allclose(
        layers.W2 @ layers.W2.T, np.sqrt(a / b) * roots[0][1] @ (P * S) @ P.T @ roots[0][1], atol=1e-12
    )
    np.testing.assert_allclose(
        layers.W1.T @ layers.W1, np.sqrt(b / a) * roots[1][1] @ (Rt.T * S) @ Rt @ roots[1][1], atol=1e-12
    )
    assert layers.noise_trace == pytest.approx(8 * np.sqrt(a * b) * S.sum(), rel=1e-12)


def test_isotropic_covariances_align_and_balance_by_dimension(task_of):
    V = task_of(6).V
    layers = two_layer_equilibrium(LinearTask(V, 2.0 * np.eye(3), 0.3 * np.eye(2)))
    np.testing.assert_allclose(2 * layers.W1 @ layers.W1.T, 3 * layers.W2.T @ layers.W2, atol=1e-12)
    np.testing.assert_allclose(layers.alignment(), np.eye(2), atol=1e-12)
    assert np.abs(two_layer_equilibrium(task_of(6)).alignment() - np.eye(2)).max() > 1e-3


def test_strong_weight_decay_is_plain_balance(task_of):
    task = task_of(7)
    for gamma, least, most in ((1e6, 0.0, 1e-5), (1e-9, 0.1, np.inf)):
        layers = two_layer_equilibrium(task, gamma=gamma, sigma2=0.01)
        Q = layers.W2.T @ layers.W2 - layers.W1 @ layers.W1.T
        assert least <= np.linalg.norm(Q) < most
    np.testing.assert_allclose(layers.W1, two_layer_equilibrium(task).W1, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_rates_are_the_derivative_of_the_motion_of_q(task_of, gamma):
    layers = two_layer_equilibrium(task_of(8), gamma=gamma, sigma2=0.1)

    def both(B):
        U, W = layers.W2 @ (np.eye(2) + B), np.linalg.inv(np.eye(2) + B) @ layers.W1
        Q = U.T @ U - W @ W.T
        return Q, -4 * gamma * Q + 0.8 * (W @ layers.K_x @ W.T - U.T @ layers.K_eps @ U)

    pairs = [np.subtract(both(1e-5 * B), both(-1e-5 * B)) / 2e-5 for B in symmetric(2)]
    place = np.tril_indices(2)
    Q, dQ = (np.array([pair[k][place] for pair in pairs]).T for k in (0, 1))
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(-dQ @ np.linalg.inv(Q)).real), relaxation_rates(layers), rtol=1e-7
    )


def test_isotropic_decay_is_the_same_for_all_of_q():
    task = LinearTask(np.diag([3.0, 2.0, 0.5]), 2.0 * np.eye(3), 0.7 * np.eye(3))
    layers = two_layer_equilibrium(task, gamma=0.1, sigma2=0.01)
    np.testing.assert_allclose(relaxation_rates(layers), balance_decay(3, 2.0, 0.7, 0.01, 0.1), rtol=1e-12)


def test_gradient_descent_with_weight_decay_stops_where_the_gradient_is_zero(task_of, samples_of):
    task, gamma = task_of(9, scale=0.5), 0.08
    layers = weight_decay_minimum(task, gamma, hidden=2)
    problem = SGD(DeepLinear([3, 2, 2], scale=0.5), *samples_of(task), learning_rate=0.1, gamma=gamma)
    np.testing.assert_allclose(problem.gradient(layers.theta) + 2 * gamma * layers.theta, 0.0, atol=1e-12)
    np.testing.assert_allclose(layers.W2.T @ layers.W2, layers.W1 @ layers.W1.T, atol=1e-13)
    # global: a step from it in any direction goes up
    rng = np.random.default_rng(0)
    near = layers.theta + 0.1 * rng.standard_normal((200, layers.theta.size))
    values = problem.loss(near) + gamma * np.sum(near**2, axis=1)
    assert values.min() > problem.loss(layers.theta) + gamma * layers.theta @ layers.theta
    # large enough weight decay leaves nothing
    assert not np.any(weight_decay_minimum(task, 50.0).theta)


def test_refusals(task_of):
    task = task_of(10)
    with pytest.raises(ArgumentError, match="hidden must be at least 2"):
        two_layer_equilibrium(task, hidden=1)
    with pytest.raises(ArgumentError, match="must be positive definite, got eigenvalues from 0 to 0"):
        two_layer_equilibrium(LinearTask(task.V, task.Sigma_x, np.zeros((2, 2))))
    with pytest.raises(ArgumentError, match="rotation must have orthonormal"):
        two_layer_equilibrium(task, rotation=2 * np.eye(2))
    with pytest.raises(ArgumentError, match="product must be given"):
        two_layer_equilibrium(task.noise_matrices())
    with pytest.raises(ArgumentError, match="as many hidden units"):
        relaxation_rates(two_layer_equilibrium(task, hidden=4))
    with pytest.raises(ArgumentError, match="Sigma_x must be symmetric"):
        LinearTask([[1.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]], [[1.0]])
    with pytest.raises(ArgumentError, match="positive semidefinite, got the eigenvalue -1"):
        LinearTask([[1.0]], [[-1.0]], [[1.0]])
    with pytest.raises(ShapeError, match="Sigma_eps must have shape"):
        LinearTask([[1.0]], [[1.0]], np.eye(2))
