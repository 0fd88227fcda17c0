"""What is said of a law of the data is what many of its samples say."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.datasets import GaussianTeacher
from sgdsde.models import DeepLinear, DiagonalLinear, Population, Product, uw_gauss

TEACHER = GaussianTeacher([[1.0, 0.5, -0.3], [0.2, -1.0, 0.4]], [1.0, 0.5, 2.0], 0.3)
CASES = {
    "one pair": (Product(), uw_gauss(1.0, 0.5)),
    "two units": (Product(2, 2, scale=0.5), uw_gauss(0.7, 0.4)),
    "diagonal": (DiagonalLinear(1, 3), uw_gauss(0.7, 0.4)),
    "matrices": (DeepLinear([3, 2, 2]), TEACHER),
}


@pytest.mark.parametrize("name", CASES)
def test_a_law_is_what_many_of_its_samples_are(name):
    model, law = CASES[name]
    numbers = {"learning_rate": 0.02, "batch_size": 3, "gamma": 0.01}
    exact = sg.SGD(model, law, **numbers)
    theta = exact.model.init(1) + 0.3
    found = exact.validity(theta)
    X, Y = law.draw(40_000, 7)
    many = sg.SGD(model, X, Y, **numbers).validity(theta)
    for what in ("gradient_power", "noise_power", "hessian_trace", "sharpness"):
        assert getattr(found, what) == pytest.approx(getattr(many, what), rel=0.12), what
    assert found.kurtosis == pytest.approx(many.kurtosis, rel=0.4) and found.kurtosis > 1
    assert set(found.charges) == set(many.charges)
    for key, one in found.charges.items():
        size = abs(one.noise) + abs(one.decay)
        assert one.noise == pytest.approx(many.charges[key].noise, abs=0.2 * size)
        assert one.discrete == pytest.approx(many.charges[key].discrete, rel=0.3, abs=0.05 * size)
    assert np.isnan(found.largest_share) and "estimated from fresh samples" in repr(found)
    assert "nan" not in repr(found)


@pytest.mark.parametrize("name", ["one pair", "two units", "diagonal"])
def test_the_hessian_of_a_law_is_the_derivative_of_its_gradient(name):
    model, law = CASES[name]
    problem = sg.SGD(model, law, learning_rate=0.1)
    theta, h = problem.model.init(2) + 0.2, 1e-5
    units = np.eye(theta.size)
    H = np.array([problem.model.hessian_vector(theta, e, problem.samples) for e in units])
    wanted = np.array([(problem.gradient(theta + h * e) - problem.gradient(theta - h * e)) / (2 * h) for e in units])
    assert pytest.approx(wanted, rel=1e-6, abs=1e-8) == H
    assert problem.model.hessian_trace(theta, problem.samples) == pytest.approx(np.trace(H), rel=1e-12)
    with pytest.raises(sg.ModelError, match="c must be None for a law of the data"):
        problem.model.hessian_vector(theta, theta, problem.samples, [1.0])


def test_moments_alone_have_no_kurtosis_and_no_draws():
    law = Population(1.0, 0.5, 2.0, 1.0, 2.25, 1.0)
    found = sg.SGD(Product(), law, learning_rate=0.1).validity([1.0, 0.5])
    assert np.isnan(found.kurtosis) and "unknown" in repr(found) and found.noise_power > 0
    assert sg.SGD(Product(), Population(0, 0, 1, 0, 0, 1), learning_rate=0.1).validity([1.0, 0.5]).sharpness == 0.0
    with pytest.raises(sg.ModelError, match="draw needs a sampler"):
        law.draw(3)


def test_draws_are_of_the_law():
    law = uw_gauss(0.7, 0.4)
    x, y = law.draw(200_000, 3)
    for value, wanted in ((x * x, law.beta1), (x * y, law.beta2), (y * y, law.y2)):
        assert abs(value.mean() - wanted) < 5 * value.std() / np.sqrt(x.size)
    assert np.array_equal(law.draw(10, 3), np.array(law.draw(30, 3))[:, :10])


@pytest.mark.parametrize("replacement", [True, False])
def test_label_noise_has_the_kurtosis_of_fresh_labels(replacement):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    model = DeepLinear([2, 1])
    problem = sg.SGD(model, X, Y, learning_rate=0.1, batch_size=3, label_noise=0.3, replacement=replacement)
    theta = np.array([0.4, -0.7])
    i, eps = rng.integers(0, 6, 400_000), 0.3 * rng.standard_normal(400_000)
    g = 2 * (X[i] @ theta - Y[i] - eps)[:, None] * X[i]  # of one sample with fresh noise in its label
    squares = np.square(g - problem.gradient(theta)).sum(axis=1)
    found = problem.validity(theta)
    assert found.kurtosis == pytest.approx((squares**2).mean() / squares.mean() ** 2, rel=0.1)
    assert np.isnan(found.largest_share) and "estimated from fresh samples" in repr(found)
