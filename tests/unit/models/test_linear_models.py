"""Regressions: their optimum is the known one, and their Hessian the closed form."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError
from sgdsde.models import MLP, LinearRegression, LogisticRegression, SoftmaxRegression

rng = np.random.default_rng(2)
X = rng.standard_normal((40, 3))
ONES = np.column_stack([X, np.ones(40)])


def hessian(model, theta, samples):
    return np.array([model.hessian_vector(theta, v, samples) for v in np.eye(model.dim)])


def test_least_squares_has_the_normal_equations():
    Y = rng.standard_normal((40, 2))
    model = LinearRegression(3, 2, scale=0.5)
    samples = model.samples(X, Y)
    best = np.linalg.lstsq(ONES, Y, rcond=None)[0]
    theta = model.flatten(W1=best[:3].T, b1=best[3])
    assert np.abs(model.gradient(theta, samples)).max() <= 1e-13
    S = ONES.T @ ONES / 40
    H = hessian(model, theta, samples)
    order = [0, 1, 2, 6, 3, 4, 5, 7]  # (w, b) of the first output, then of the second
    assert H[np.ix_(order, order)] == pytest.approx(np.kron(np.eye(2), S), abs=1e-13)
    assert model.hessian_trace(theta, samples) == pytest.approx(2 * np.trace(S))


def test_logistic_and_softmax_regression_of_two_classes_are_one():
    labels = rng.integers(0, 2, 40)
    one, two = LogisticRegression(3), SoftmaxRegression(3, 2)
    w, b = rng.standard_normal((1, 3)), rng.standard_normal(1)
    a, z = one.samples(X, labels), two.samples(X, labels)
    theta = one.flatten(W1=w, b1=b)
    both = two.flatten(W1=np.vstack([-w / 2, w / 2]), b1=np.array([-b[0], b[0]]) / 2)
    assert one.losses(theta, a) == pytest.approx(two.losses(both, z), rel=1e-13)
    g, h = one.unflatten(one.gradient(theta, a)), two.unflatten(two.gradient(both, z))
    assert h["W1"][1] == pytest.approx(g["W1"][0], rel=1e-12) and h["W1"][0] == pytest.approx(-g["W1"][0], rel=1e-12)
    p = 1 / (1 + np.exp(-(X @ w[0] + b)))
    assert hessian(one, theta, a) == pytest.approx((ONES.T * (p * (1 - p))) @ ONES / 40, abs=1e-13)


def test_they_are_networks_without_a_hidden_layer():
    Y = rng.standard_normal(40)
    model, network = LinearRegression(3, biases=False, scale=0.5), MLP([3, 1], biases=False, scale=0.5)
    theta = rng.standard_normal(3)
    gradient = model.gradient(theta, model.samples(X, Y))
    assert gradient == pytest.approx(X.T @ (X @ theta - Y) / 40)
    assert np.array_equal(gradient, network.gradient(theta, network.samples(X, Y)))
    assert model.symmetries() == {}


def test_names_and_errors():
    assert repr(LinearRegression(3, biases=False)) == "LinearRegression(3, 1, biases=False)"
    assert repr(SoftmaxRegression(3, 4, scale=2.0)) == "SoftmaxRegression(3, 4, scale=2)"
    assert isinstance(LogisticRegression(2), MLP)
    with pytest.raises(ArgumentError, match="n_inputs must be at least 1"):
        LinearRegression(0)
    with pytest.raises(ArgumentError, match="n_outputs must be at least 2, got 1"):
        SoftmaxRegression(3, 1)
