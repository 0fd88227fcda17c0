"""Modified losses by differences and all shuffles; second moments by enumeration; norms of scale-invariant weights."""

from itertools import permutations, product

import numpy as np
import pytest

from sgdsde._errors import ArgumentError
from sgdsde.models import DeepLinear, LinearRegression
from sgdsde.sgd import SGD
from sgdsde.symmetry import Charge
from sgdsde.theory import (
    angular_update,
    equilibrium_norm,
    modified_gradient,
    modified_loss,
    norm_at,
    second_moment,
    shuffled_loss,
    slow_potential,
    stationary_variance,
)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 2)), rng.standard_normal((6, 2))
    return SGD(DeepLinear([2, 2, 2]), X, Y, learning_rate=0.1, batch_size=2, gamma=0.05, sampling="without replacement")


def differences(f, theta, step=1e-5):
    return np.array([(f(theta + e) - f(theta - e)) / (2 * step) for e in step * np.eye(theta.size)])


def test_modified_gradient_is_that_of_the_loss(problem):
    theta = problem.model.init(rng=1)
    np.testing.assert_allclose(
        modified_gradient(problem, theta), differences(lambda x: modified_loss(problem, x), theta), atol=1e-7
    )
    g = problem.gradient(theta) + 0.1 * theta
    assert modified_loss(problem, theta) - 0.025 * g @ g == pytest.approx(problem.loss(theta) + 0.05 * theta @ theta)


def test_order_two_adds_the_discrete_terms_of_a_charge(problem):
    theta = problem.model.init(rng=2)
    A = problem.model.symmetries()["B=I"]
    g = problem.gradient(theta)
    rate = -2 * A.apply(theta) @ modified_gradient(problem, theta)
    eta, gamma, C = 0.1, 0.05, A.quadratic(theta)
    # with η/4 and L_γ: exactly the terms of a step of SGD. T/4 = η/4S would halve them here
    assert rate + 4 * gamma * C == pytest.approx(eta * g @ A.apply(g) - 4 * eta * gamma**2 * C, rel=1e-9)


def test_the_slow_potential_falls_at_the_rate_of_the_charge(problem):
    theta = problem.model.init(rng=3)
    A = problem.model.generator([[1.0, 0.3], [0.3, -2.0]])
    slope = (slow_potential(problem, A.exp(1e-5, theta)) - slow_potential(problem, A.exp(-1e-5, theta))) / 2e-5
    assert slope == pytest.approx(-Charge(A).rate(problem, theta), rel=1e-6)


@pytest.mark.parametrize("S", [1, 2])
def test_shuffled_epochs_descend_the_shuffled_loss(S):
    x, y = np.array([1.0, -0.5, 2.0, 0.3]), np.array([0.7, 1.0, -0.4, 0.2])
    errors = []
    for eta in (0.02, 0.01):
        problem = SGD(LinearRegression(1, biases=False), x[:, None], y, learning_rate=eta, gamma=0.1, batch_size=S)
        ends = []
        for order in permutations(range(4)):
            theta = 1.5
            for batch in np.split(np.array(order), 4 // S):
                theta -= eta * (np.mean(2 * x[batch] * (x[batch] * theta - y[batch])) + 0.2 * theta)
            ends.append(theta)

        def flow(f, eta=eta, problem=problem):  # of a quadratic over one epoch, from its derivatives
            first = [float(differences(lambda t: f(problem, t), np.array([t]), 1e-3)[0]) for t in (1.5, 0.5)]
            return 1.5 + first[0] / (first[0] - first[1]) * np.expm1(-(first[0] - first[1]) * (4 // S) * eta)

        errors.append(np.mean(ends) - flow(shuffled_loss))
        assert abs(np.mean(ends) - flow(modified_loss)) > 5 * abs(errors[-1])  # without the noise of batches
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.1)  # O(η³) over one epoch; O(η²) without the modification
    with pytest.raises(ArgumentError, match="at least 2 samples"):
        shuffled_loss(SGD(LinearRegression(1, biases=False), [[1.0]], [1.0], learning_rate=0.1), [1.0])


def test_second_moments_by_enumeration_of_batches():
    a, eta, gamma = np.array([0.2, 1.0, 2.4]), 0.15, 0.05
    settings = {"curvature": a.mean(), "variance": a.var(), "gamma": gamma}
    steps = [(1 - eta * (np.mean(b) + 2 * gamma)) ** 2 for b in product(a, repeat=2)]
    assert second_moment("sgd", 3, eta, batch_size=2, **settings) == pytest.approx(np.mean(steps) ** 3, rel=1e-13)
    l, r = 3, np.sqrt(5)
    small = [(1 - eta / l * ((1 + r) / 2 * i + (1 - r) / 2 * j + 2 * gamma)) ** 2 for i, j in product(a, repeat=2)]
    assert second_moment("svag", 2, eta, splits=l, **settings) == pytest.approx(np.mean(small) ** 6, rel=1e-13)
    limit = second_moment("sde", 2, eta, **settings)
    assert second_moment("svag", 2, eta, splits=10**6, **settings) == pytest.approx(limit, rel=1e-6)


def test_weak_orders_one_and_two():
    errors = {}
    for dynamics in ("sde", "sde-2"):
        errors[dynamics] = [
            abs(second_moment(dynamics, 2 / e, e, 1.0, 0.5) - second_moment("sgd", 2 / e, e, 1.0, 0.5))
            for e in (0.2, 0.1, 0.05, 0.025)
        ]
    np.testing.assert_allclose(errors["sde"], [6.7e-3, 3.5e-3, 1.8e-3, 9.1e-4], rtol=0.02)
    np.testing.assert_allclose(errors["sde-2"], [6.9e-4, 1.4e-4, 3.3e-5, 7.9e-6], rtol=0.04)


def test_the_second_order_is_worse_for_a_stationary_variance():
    eta, lam, s2 = 0.1, 1.3, 0.7
    variance = 0.0
    for _ in range(2000):
        variance = (1 - eta * lam) ** 2 * variance + eta**2 * s2
    exact = stationary_variance("sgd", eta, lam, s2)
    assert exact == pytest.approx(variance, rel=1e-12)
    off = {d: abs(stationary_variance(d, eta, lam, s2) - exact) for d in ("sde", "sde-2", "exact")}
    assert off["exact"] < 0.1 * off["sde"] < 0.1 * off["sde-2"]


def test_norms_of_scale_invariant_weights():
    sigma2, tau, gamma = 0.01, 9.0, 0.1
    t, h = np.linspace(0, 5, 50), 1e-4
    for g in (0.0, gamma):
        f = [norm_at(t[1:] + o, 0.7, tau, sigma2, g) ** 2 for o in (-h, 0, h)]
        np.testing.assert_allclose((f[2] - f[0]) / (2 * h), -4 * g * f[1] + 2 * sigma2 * tau / f[1], rtol=1e-7)
    end = equilibrium_norm(tau, 0.02, 1, gamma)
    assert norm_at(1e3, 0.7, tau, sigma2, gamma) == pytest.approx(end, rel=1e-12)
    # the discrete fixed point: noise and mean gradient at right angles to θ
    eta, S, gradient = 0.02, 2, 3.0
    size = equilibrium_norm(tau, eta, S, gamma, gradient=gradient) ** 2
    assert (1 - 2 * eta * gamma) ** 2 * size + eta**2 * (tau / S + gradient) / size == pytest.approx(size, rel=1e-13)


def test_the_angle_of_a_step_at_rest():
    eta, gamma = 0.3, 0.2
    theta = np.array([2.0, 0.0])
    length = np.sqrt(1 - (1 - 2 * eta * gamma) ** 2) * 2.0  # ĝ at right angles that restores the norm
    after = (1 - 2 * eta * gamma) * theta + [0.0, length]
    assert np.linalg.norm(after) == pytest.approx(2.0, rel=1e-14)
    assert np.arctan2(*after[::-1]) == pytest.approx(angular_update(eta, gamma, exact=True), rel=1e-13)
    assert angular_update(1e-3, 1e-3, exact=True) == pytest.approx(angular_update(1e-3, 1e-3), rel=1e-5)
    with pytest.raises(ArgumentError, match="gamma must satisfy"):
        angular_update(1.0, 0.5)


def test_steps_of_sgd_are_whole_and_hessians_symmetric():
    from sgdsde import ArgumentError
    from sgdsde.theory import gd_limit, second_moment

    for n in (-3, 2.5):
        with pytest.raises(ArgumentError, match="n_steps must be numbers of steps"):
            second_moment("sgd", n, 0.1, 1.0, 1.0)
    with pytest.raises(ArgumentError, match="hessian must be symmetric"):
        gd_limit([[1.0, 2.0], [0.0, 1.0]])
