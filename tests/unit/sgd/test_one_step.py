"""Exact one-step laws of SGD and of Euler-Maruyama, by enumeration through the package's own kernels (A4, A5)."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from sgdsde.models.naming import charged

EPS = np.finfo(float).eps


@pytest.fixture
def t(tools):
    return SimpleNamespace(**tools)


def charge(A, states):
    return A.quadratic(states)


SAMPLING = [(2, True), (3, True), (2, False), (3, False), (5, False)]


@pytest.mark.parametrize(("size", "replacement"), SAMPLING)
def test_the_mean_charge_over_all_batches_is_the_exact_law(make_problem, model, t, size, replacement):
    problem = make_problem(model, batch_size=size, replacement=replacement)
    theta = np.random.default_rng(1).standard_normal(model.dim)
    eta, gamma = problem.learning_rate, problem.gamma
    states = t.batch_steps(problem, theta, t.all_batches(problem))
    sigma, mean = problem.covariance(theta), problem.gradient(theta)
    for A in charged(model.symmetries()).values():
        C = A.quadratic(theta)
        wanted = (-4 * eta * gamma + 4 * eta**2 * gamma**2) * C
        wanted += eta**2 * (problem.rho * A.trace(sigma) / size + A.quadratic(mean))
        scale = A.norm * ((theta @ theta) + eta**2 * np.trace(sigma) + eta**2 * mean @ mean)
        assert abs((charge(A, states) - C).mean() - wanted) <= 1e-13 * scale


@pytest.mark.parametrize(("size", "replacement"), SAMPLING)
def test_mean_and_covariance_of_the_batch_gradient(make_problem, model, t, size, replacement):
    problem = make_problem(model, batch_size=size, replacement=replacement)
    theta = np.random.default_rng(1).standard_normal(model.dim)
    eta = problem.learning_rate
    states = t.batch_steps(problem, theta, t.all_batches(problem))
    steps = ((1 - 2 * eta * problem.gamma) * theta - states) / eta
    sigma, mean = problem.covariance(theta), problem.gradient(theta)
    scale = np.abs(mean).max() + np.sqrt(np.abs(sigma).max())
    assert np.abs(steps.mean(axis=0) - mean).max() <= 1e-12 * scale + 1e-13 * np.abs(theta).max() / eta
    spread = np.cov(steps.T, bias=True)
    assert np.abs(spread - problem.rho * sigma / size).max() <= 1e-11 * scale**2
    assert problem.noise_scale == pytest.approx(eta / (2 * size) * (1 if replacement else (5 - size) / 4))


def test_the_charge_of_every_single_batch_is_exact(make_problem, model, t):
    problem = make_problem(model, batch_size=2)
    theta = np.random.default_rng(2).standard_normal(model.dim)
    g = problem.per_sample_gradients(theta)
    batches = t.all_batches(problem)
    eta, decay = problem.learning_rate, 1 - 2 * problem.learning_rate * problem.gamma
    for A in charged(model.symmetries()).values():
        found = charge(A, t.batch_steps(problem, theta, batches))
        for value, batch in zip(found, batches):
            hat = g[list(batch)].mean(axis=0)
            wanted = decay**2 * A.quadratic(theta) + eta**2 * A.quadratic(hat)
            scale = A.norm * (np.linalg.norm(theta) + eta * np.linalg.norm(hat)) ** 2
            assert abs(value - wanted) <= 64 * model.dim * EPS * scale


def test_euler_maruyama_over_all_sign_vectors_has_the_mean_of_sgd(make_problem, model, t):
    """Property 12 and 14: 2^N sign vectors stand for N(0, h I) in every quadratic mean."""
    problem = make_problem(model, batch_size=2)
    theta = np.random.default_rng(3).standard_normal(model.dim)
    h, gamma = problem.learning_rate, problem.gamma
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=problem.n_samples)))
    sigma, mean = problem.covariance(theta), problem.gradient(theta)
    states = t.sde_steps(problem, theta, h, np.sqrt(h) * signs, "per-sample")
    discrete = t.batch_steps(problem, theta, t.all_batches(problem))
    for A in charged(model.symmetries()).values():
        C, scale = A.quadratic(theta), A.norm * (theta @ theta + h**2 * (mean @ mean) + h * np.trace(sigma))
        wanted = (1 - 2 * gamma * h) ** 2 * C + h**2 * A.quadratic(mean) + 2 * problem.sigma2 * h * A.trace(sigma)
        assert abs(charge(A, states).mean() - wanted) <= 1e-13 * scale
        assert abs(charge(A, states).mean() - charge(A, discrete).mean()) <= 1e-13 * scale
    spread = np.cov(states.T, bias=True)
    assert np.abs(spread - 2 * problem.noise_scale * h * sigma).max() <= 1e-12 * np.abs(sigma).max()


def test_a_step_along_the_start_is_weight_decay_alone(make_problem, model, t):
    """Property 8: 2Aθ·Δθ = -4γhC, for SGD and for Euler-Maruyama with each exact factor."""
    problem = make_problem(model, batch_size=2)
    theta = np.random.default_rng(4).standard_normal(model.dim)
    h = problem.learning_rate
    rng = np.random.default_rng(5)
    moves = [t.batch_steps(problem, theta, t.all_batches(problem)) - theta]
    for factor in (*model.factors, "gram"):
        m = problem.sde(factor).bind(0.0, theta).noise_dim
        moves.append(t.sde_steps(problem, theta, h, rng.standard_normal((6, m)), factor) - theta)
    for A in charged(model.symmetries()).values():
        for move in moves:
            found = 2 * move @ A.apply(theta)
            wanted = -4 * problem.gamma * h * A.quadratic(theta)
            scale = A.norm * np.linalg.norm(theta) * (np.abs(move).max() + h * problem.gamma * np.linalg.norm(theta))
            assert np.abs(found - wanted).max() <= 200 * model.dim * EPS * scale


def test_uw_keeps_its_charge_up_to_the_square_of_the_step(make_problem, t):
    """Property 28: C' = C((1 - 2ηγ)² - ĉ²), ĉ = η·∂ℓ̂/∂(uw)."""
    from sgdsde.models import Product

    problem = make_problem(Product(), batch_size=2)
    u, w = 1.3, -0.4
    x, y = problem.X.ravel(), problem.Y.ravel()
    eta, gamma = problem.learning_rate, problem.gamma
    batches = t.all_batches(problem)
    states = t.batch_steps(problem, np.array([u, w]), batches)
    slope = 2 * (u * w * x - y) * x
    for (u1, w1), batch in zip(states, batches):
        c = eta * slope[list(batch)].mean()
        wanted = (u**2 - w**2) * ((1 - 2 * eta * gamma) ** 2 - c**2)
        assert abs(u1**2 - w1**2 - wanted) <= 16 * EPS * (u**2 + w**2) * (1 + c**2)
