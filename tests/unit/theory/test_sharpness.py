"""Tr H of linear networks against the model's own, at equilibrium, at its least; stability limits; warm-up."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from sgdsde._errors import ArgumentError, ModelError
from sgdsde.models import DeepLinear
from sgdsde.theory import (
    LinearTask,
    deep_linear_equilibrium,
    equilibrium_sharpness,
    gd_limit,
    hessian_trace,
    layer_noise,
    least_sharpness,
    sgd_limit,
    sgd_radius,
    sharpening,
    warm_up,
)


@pytest.mark.parametrize("dims", [[3, 2, 2], [3, 4, 2, 2]])
def test_the_trace_is_that_of_the_model_everywhere(dims):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    model = DeepLinear(dims, scale=0.5)
    theta = rng.standard_normal(model.dim)  # no minimum: residuals depend on x
    weights = [model.unflatten(theta)[name] for name in model.shapes]
    task = LinearTask.from_samples(X, Y, scale=0.5)
    assert hessian_trace(task, weights) == pytest.approx(model.hessian_trace(theta, model.samples(X, Y)), rel=1e-8)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_at_equilibrium(task_of, depth):
    task = task_of(1, scale=2.0)
    deep = deep_linear_equilibrium(task, depth)
    assert equilibrium_sharpness(task, depth) == pytest.approx(hessian_trace(task, deep.weights), rel=1e-12)
    if depth == 2:
        a, b = task.noise, task.power
        roots = [np.linalg.cholesky(S) for S in (task.Sigma_eps, task.Sigma_x)]
        P, S, _ = np.linalg.svd(roots[0].T @ task.V @ roots[1], full_matrices=False)
        pi = np.sum(np.linalg.solve(roots[0].T, P) ** 2, axis=0) @ S
        assert 2 * equilibrium_sharpness(task) / 4 == pytest.approx(
            2 * np.sqrt(b) * (2 / np.sqrt(a) * S.sum() + np.sqrt(a) * pi), rel=1e-12
        )


@pytest.mark.parametrize("depth", [2, 3])
def test_the_least_is_the_least(task_of, depth):
    task = task_of(2, d_x=2, d_y=2)
    start = deep_linear_equilibrium(task, depth).weights

    def trace(g):
        weights = [W.copy() for W in start]
        for i, M in enumerate(g.reshape(depth - 1, 2, 2)):
            weights[i], weights[i + 1] = M @ weights[i], np.linalg.solve(M.T, weights[i + 1].T).T
        return hessian_trace(task, weights)

    found = minimize(trace, np.tile(np.eye(2), (depth - 1, 1, 1)).ravel(), method="BFGS", options={"gtol": 1e-9})
    assert found.fun == pytest.approx(least_sharpness(task, depth), rel=1e-9)


def test_noise_with_a_direction_sharpens():
    def of(s1, s2):
        return LinearTask(np.eye(2), np.eye(2), np.diag([s1, s2]))

    balanced = [np.eye(2), np.eye(2)]
    assert equilibrium_sharpness(of(0.3, 0.3)) == pytest.approx(16.0, rel=1e-12)
    for s2 in (0.1, 1e-3, 1e-6):
        a, roots = 1 + s2, np.sqrt([1, s2])
        wanted = 2 * np.sqrt(2) * (2 * roots.sum() / np.sqrt(a) + np.sqrt(a) * np.sum(1 / roots))
        assert equilibrium_sharpness(of(1.0, s2)) == pytest.approx(wanted, rel=1e-12)
    assert wanted > 1000
    found = sharpening(of(1.0, 0.1), balanced)
    assert (found.verdict, found.now, found.least) == ("sharpens", 16.0, pytest.approx(16.0))
    assert sharpening(of(1.0, 1.0), balanced).verdict == "stays"
    assert sharpening(of(1.0, 0.1), [3 * np.eye(2), np.eye(2) / 3]).verdict == "flattens"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_rows_are_stable_below_two_over_d_plus_two(gauss_points, d):
    a = gauss_points(d)
    assert sgd_limit(a) == pytest.approx(2 / (d + 2), rel=1e-12)
    assert gd_limit(a.T @ a / len(a)) == pytest.approx(2.0, rel=1e-12)
    # S = 3: E (1/S² Σ…)
    assert sgd_limit(a, 3) == pytest.approx(2 / ((d + 1) / 3 + 1), rel=1e-12)


def test_the_limit_is_where_the_second_moment_starts_to_grow():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((5, 3))
    H = a[:, :, None] * a[:, None, :]
    pairs = [(H[i] + H[j]) / 2 for i in range(5) for j in range(5)]
    apart = [(H[i] + H[j]) / 2 for i in range(5) for j in range(i)]
    for batches, replacement in ((pairs, True), (apart, False)):
        limit = sgd_limit(H, 2, replacement=replacement)
        for eta in (0.5 * limit, limit, 1.5 * limit):
            steps = [np.eye(3) - eta * B for B in batches]
            radius = np.abs(np.linalg.eigvals(np.mean([np.kron(M, M) for M in steps], axis=0))).max()
            assert sgd_radius(H, eta, 2, replacement=replacement) == pytest.approx(radius, rel=1e-10)
            assert np.sign(np.round(radius - 1, 10)) == np.sign(eta - limit)
    # weights are repeated samples; what no sample sees does not count
    assert sgd_limit(H[[0, 1, 1]]) == pytest.approx(sgd_limit(H[:2], weights=[1 / 3, 2 / 3]), rel=1e-12)
    assert sgd_limit([[2.0, 0.0]]) == pytest.approx(0.5)
    assert sgd_limit([[0.0, 0.0]]) == gd_limit([[0.0]]) == np.inf
    with pytest.raises(ArgumentError, match="weights must be probabilities"):
        sgd_limit(H, weights=np.ones(5))
    with pytest.raises(ModelError, match="at most 45"):
        sgd_limit(np.ones((2, 50)))


@pytest.mark.parametrize("gamma", [0.0, 1e-4])
def test_warm_up_takes_the_time_of_the_charge(task_of, gamma):
    task = task_of(3, d_x=4, d_y=3, rank=1)
    flat = deep_linear_equilibrium(task, 2).weights
    weights, eta = [flat[0] / 4, 4 * flat[1]], 0.01
    found = warm_up(task, weights, eta, 3 * eta, batch_size=2, gamma=gamma)
    sigma2 = eta / 4

    def slope(t, lam):  # dC/dt of the charge over dC/dλ
        first, second = np.exp(-lam[0]) * weights[0], np.exp(lam[0]) * weights[1]
        n1, n2 = layer_noise(task, [first, second])
        p, m = np.sum(second**2), np.sum(first**2)
        return [(2 * sigma2 * (n2 - n1) - 4 * gamma * (p - m)) / (2 * (p + m))]

    large = 2 / (0.5 * (found.trace_now + found.trace_end))
    found = warm_up(task, weights, eta, large, batch_size=2, gamma=gamma)
    at = solve_ivp(slope, (0, found.steps * eta), [0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    trace = hessian_trace(task, [np.exp(-at) * weights[0], np.exp(at) * weights[1]])
    assert trace == pytest.approx(2 / large, rel=1e-7)
    assert (found.stable_now, found.stable_end) == (2 / found.trace_now, 2 / found.trace_end)
    assert warm_up(task, weights, eta, 1.99 / found.trace_now).steps == 0
    assert warm_up(task, weights, eta, 2.01 / found.trace_end, gamma=gamma).steps == np.inf
    with pytest.raises(ArgumentError, match="product V"):
        warm_up(task, [flat[0], 2 * flat[1]], 0.1, 0.2)
