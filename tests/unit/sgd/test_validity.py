"""Every number of `validity` against dense algebra, exact one-step means and differences along the orbit."""

import itertools

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import DeepLinear
from sgdsde.sgd.optimizers import HeavyBall


def hessian(problem, theta):
    e = 1e-5 * np.eye(theta.size)
    rows = [(problem.gradient(theta + u) - problem.gradient(theta - u)) / 2e-5 for u in e]
    return np.array(rows) + 2 * problem.gamma * np.eye(theta.size)


@pytest.mark.parametrize("size", [1, 3])
def test_the_numbers_are_what_they_are_called(make_problem, model, size):
    problem = make_problem(model, batch_size=size, replacement=size == 1)
    theta = np.random.default_rng(3).standard_normal(model.dim)
    found = problem.validity(theta)
    g, sigma = problem.gradient(theta), problem.covariance(theta)
    full = g + 2 * problem.gamma * theta
    assert found.gradient_power == pytest.approx(full @ full, rel=1e-12)
    assert found.noise_power == pytest.approx(problem.rho * np.trace(sigma) / size, rel=1e-10)
    values = np.linalg.eigvalsh(hessian(problem, theta))
    assert found.sharpness == pytest.approx(values[np.abs(values).argmax()], rel=2e-2)
    assert found.hessian_trace == pytest.approx(values.sum(), rel=1e-5, abs=1e-5 * np.abs(values).max())
    squares = np.square(problem.per_sample_gradients(theta) - g).sum(axis=1)
    assert found.kurtosis == pytest.approx((squares**2).mean() / squares.mean() ** 2)
    assert found.largest_share == pytest.approx(squares.max() / squares.sum())
    assert found.largest_learning_rate == pytest.approx(problem.learning_rate * found.noise_power / (full @ full))
    assert "SDE of SGD at this theta" in repr(found)


def test_noise_decay_and_discrete_terms_make_up_the_mean_of_a_step(make_problem, model, tools):
    """(E C' - C)/η over all batches = noise + decay + discrete."""
    problem = make_problem(model, batch_size=2)
    theta = np.random.default_rng(3).standard_normal(model.dim)
    states = tools["batch_steps"](problem, theta, list(itertools.product(range(5), repeat=2)))
    for name, one in problem.validity(theta).charges.items():
        A = model.symmetries()[name]
        rate = (A.quadratic(states).mean() - A.quadratic(theta)) / problem.learning_rate
        scale = abs(one.noise) + abs(one.decay) + abs(one.discrete) + A.norm * theta @ theta / problem.learning_rate
        assert abs(rate - one.noise - one.decay - one.discrete) < 1e-12 * scale
        assert one.ratio == pytest.approx(abs(one.discrete) / (abs(one.noise) + abs(one.decay)))


def test_kappa_is_how_fast_the_rate_falls_along_the_orbit(make_problem, model):
    problem = make_problem(model)
    theta = np.random.default_rng(3).standard_normal(model.dim)
    for name, one in problem.validity(theta).charges.items():
        A, e = model.symmetries()[name], 1e-4
        rates, charges = [], []
        for lam in (e, -e):
            x = A.exp(lam, theta)
            C = A.quadratic(x)
            rates.append(-4 * problem.gamma * C + 2 * problem.noise_scale * A.trace(problem.covariance(x)))
            charges.append(C)
        assert one.kappa == pytest.approx(-(rates[0] - rates[1]) / (charges[0] - charges[1]), rel=1e-5)
        assert one.steps == pytest.approx(1 / (problem.learning_rate * one.kappa))


def test_what_speaks_against_the_sde():
    x, y = np.array([1.0, 1.1, 0.9, 1.0]), np.array([1.0, 1.2, 0.8, 1.05])
    model, theta = DeepLinear([1, 1, 1]), np.array([1.02, 0.99])
    calm = sg.SGD(model, x, y, learning_rate=0.01)
    assert calm.validity(theta).warnings == () and "nothing speaks against" in repr(calm.validity(theta))
    wild = calm.replace(learning_rate=1.0).validity(theta)
    assert any("gradient descent itself is unstable" in text for text in wild.warnings)
    whole = calm.replace(batch_size=4, replacement=False).validity(theta)
    assert any("no noise, and charges move by" in text for text in whole.warnings) and whole.noise_power == 0.0
    falling = calm.validity(3 * theta)
    assert any("< 1: a step is mostly its mean" in text for text in falling.warnings)
    far = calm.validity(np.array([4.0, 1.0]))
    assert any("1 of 1 charges move by discrete terms" in text for text in far.warnings)
    x[0], y[0] = 30.0, 0.0
    many = sg.SGD(model, np.concatenate([x, np.ones(200)]), np.concatenate([y, np.ones(200)]), learning_rate=1e-6)
    assert any("a few samples make the noise" in text for text in many.validity(theta).warnings)


def test_momentum_counts_with_its_effective_rate(make_problem):
    plain = make_problem(learning_rate=0.03)
    theta = plain.model.init(rng=0)
    slow = plain.replace(learning_rate=0.003, optimizer=HeavyBall(0.9))
    assert slow.validity(theta).learning_rate == pytest.approx(0.03)
    assert slow.validity(theta).charges["B=I"].noise == pytest.approx(plain.validity(theta).charges["B=I"].noise)


def test_what_it_needs(make_problem):
    with pytest.raises(sg.ArgumentError, match="generators must map names to Generators"):
        make_problem().validity(np.ones(10), [3])
    assert make_problem().validity(np.ones(10), {}).charges == {}
    assert np.isnan(make_problem().validity(np.ones(10), {}).steps_to_equilibrium)
