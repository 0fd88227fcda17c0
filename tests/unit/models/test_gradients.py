"""Gradients against differences of losses written a second time, and the Python layer against the kernels."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models import DeepLinear
from sgdsde.models.deep_linear_passes import is_collapsed
from sgdsde.models.model import SAMPLES_AT_ONCE


def close(a, b, rel=1e-12):
    return np.abs(a - b).max() <= rel * max(np.abs(a).max(), np.abs(b).max())


def test_losses_are_those_of_the_formula(case):
    assert close(case.model.losses(case.theta, case.samples), case.loss_of(case.theta))
    assert close(case.model.loss(case.theta, case.samples), case.loss_of(case.theta).mean())


def test_single_gradients_are_differences_of_the_losses(case):
    g, _, _ = case.dense()
    assert close(g, case.difference(case.loss_of), 1e-7)


def test_the_weighted_pass_is_the_weighted_sum_of_single_gradients(case):
    c = case.rng.standard_normal(case.n)
    g, mean, _ = case.dense()
    scale = np.abs(c) @ np.abs(g)
    assert (np.abs(case.model.weighted_gradient(case.theta, c, case.samples) - c @ g) <= 1e-13 * scale.max()).all()
    assert (np.abs(case.model.gradient(case.theta, case.samples) - mean) <= 1e-13 * np.abs(g).max()).all()


def test_both_routes_of_the_deep_linear_pass_are_among_the_cases(make_case):
    cases = ([3, 3, 3], 2500, True), ([64, 10, 10], 1797, True), ([6, 1, 5], 1500, False), ([3, 2], 5, False)
    for dims, n, collapsed in cases:
        case = make_case(DeepLinear(dims), n)
        assert is_collapsed(case.samples.numbers, n) == collapsed


def test_values_for_many_states_are_those_of_each(case):
    thetas = case.rng.standard_normal((2, 3, case.model.dim))
    loss, gradient = case.model.loss(thetas, case.samples), case.model.gradient(thetas, case.samples)
    assert loss.shape == (2, 3) and gradient.shape == thetas.shape
    assert loss[1, 2] == pytest.approx(case.model.loss(thetas[1, 2], case.samples), rel=1e-14)
    assert gradient[0, 1] == pytest.approx(case.model.gradient(thetas[0, 1], case.samples), rel=1e-13)
    assert isinstance(case.model.loss(case.theta, case.samples), float)


def test_covariance_moments_and_factor_are_those_of_the_single_gradients(case):
    g, mean, G = case.dense()
    sigma = np.atleast_2d(np.cov(g.T, bias=True))
    model, theta, samples = case.model, case.theta, case.samples
    assert np.abs(model.covariance(theta, samples) - sigma).max() <= 1e-12 * (1e-300 + np.square(g).max())
    for name, at in model.places().items():
        assert np.array_equal(model.covariance(theta, samples, name).shape, sigma[at, at].shape)
        assert np.abs(model.covariance(theta, samples, name) - sigma[at, at]).max() <= 1e-12 * np.square(g).max()
    for name in model.factors:
        F = model.factor(theta, samples, name)
        assert np.abs(F @ F.T - sigma).max() <= 1e-12 * np.square(g).max()
    turn, _ = np.linalg.qr(case.rng.standard_normal((model.dim, model.dim)))
    found_mean, found_var = model.gradient_moments(theta, samples, transform=lambda rows: rows @ turn)
    assert np.abs(found_mean - mean @ turn).max() <= 1e-12 * np.abs(g).max()
    assert np.abs(found_var - (g @ turn).var(axis=0)).max() <= 1e-12 * np.square(g).max()
    plain_mean, plain_var = model.gradient_moments(theta, samples)
    assert np.abs(plain_mean - mean).max() <= 1e-12 * np.abs(g).max()
    assert np.abs(plain_var - g.var(axis=0)).max() <= 1e-12 * np.square(g).max()
    assert np.abs(G @ np.ones(case.n)).max() <= 1e-12 * np.abs(g).max() * np.sqrt(case.n)


def test_moments_stream_over_the_samples(make_case):
    case = make_case(DeepLinear([3, 2]), 3 * SAMPLES_AT_ONCE + 1)
    seen = []
    case.model.gradient_moments(case.theta, case.samples, transform=lambda rows: seen.append(len(rows)) or rows)
    assert max(seen) == SAMPLES_AT_ONCE and sum(seen) == case.n + 1  # and the mean, as one row


def test_theta_by_name(case):
    arrays = case.model.unflatten(case.theta)
    assert {k: a.shape for k, a in arrays.items()} == case.model.shapes
    assert np.array_equal(case.model.flatten(**arrays), case.theta)
    many = case.model.unflatten(np.stack([case.theta, 2 * case.theta]))
    assert np.array_equal(many["W1"][1], 2 * arrays["W1"])
    with pytest.raises(ArgumentError, match="named W1"):
        case.model.flatten(V=1.0)


def test_a_wrong_theta_is_refused(case):
    d = case.model.dim
    for wrong in (np.zeros(d + 1), np.zeros((2, d + 1)), 1.0 if d > 1 else np.zeros(2)):
        with pytest.raises(ShapeError, match="theta must have shape"):
            case.model.loss(wrong, case.samples)
    with pytest.raises(ShapeError, match="theta must have shape"):
        case.model.covariance(np.zeros((2, d)), case.samples)
    with pytest.raises(ArgumentError, match="block must be one of 'W1'"):
        case.model.covariance(case.theta, case.samples, "W0")
