"""Brownian: the distribution of what it answers.

Seeds are fixed; each gate is at 5 standard errors or p = 5e-7 (false alarm <= 1e-6 each).
"""

import numpy as np
import pytest
from scipy import stats

from sgdsde.random import Brownian

N = 20_000
T = 1.7


def z(sample, exact):
    return (sample.mean(axis=0) - exact) / (sample.std(axis=0) / np.sqrt(len(sample)))


@pytest.fixture(scope="module")
def brownian():
    return Brownian(2, (0, T), rng=11, levels=2, n_paths=N, error=0.02 * T / 4)


def test_covariance_is_the_smaller_time(brownian):
    t = np.array([0.1, 0.33, T / 2, 0.9, 0.9001, 1.6])
    W = brownian(t)
    products = W[:, :, None, 0] * W[:, None, :, 0]
    assert (np.abs(z(products, np.minimum.outer(t, t))) < 5).all()
    assert (np.abs(z(W[:, :, None, 0] * W[:, None, :, 1], 0.0)) < 5).all()
    for k in range(t.size):
        assert stats.kstest(W[:, k, 1], stats.norm(scale=np.sqrt(t[k])).cdf).pvalue > 5e-7


def test_bridges(brownian):
    # The path refined at any time: W(s) given W(a), W(b) is a bridge, with variance (s − a)(b − s)/(b − a).
    for a, s, b in ((0.05, 0.7, T), (0.2, 0.21, 0.9), (0.5, 1.1, 1.3)):
        W = brownian([a, s, b])[:, :, 0]
        bridge = W[:, 1] - W[:, 0] - (s - a) / (b - a) * (W[:, 2] - W[:, 0])
        assert abs(z(bridge**2, (s - a) * (b - s) / (b - a))) < 5
        assert abs(z(bridge * (W[:, 2] - W[:, 0]), 0.0)) < 5
        assert abs(z(bridge * W[:, 0], 0.0)) < 5


@pytest.mark.parametrize(("a", "b"), [(0.0, T), (T / 4, T / 2), (0.3, 1.234)])
def test_space_time_area(brownian, a, b):
    dW, H = brownian.increments(a, b), brownian.space_time_area(a, b)
    assert (np.abs(z(H**2, (b - a) / 12)) < 5).all()
    assert (np.abs(z(dW**2, b - a)) < 5).all()
    assert (np.abs(z(H[:, :, None] * dW[:, None, :], 0.0)) < 5).all()
    assert abs(z(H[:, 0] * H[:, 1], 0.0)) < 5
    assert stats.kstest(H[:, 0], stats.norm(scale=np.sqrt((b - a) / 12)).cdf).pvalue > 5e-7
    assert abs(z(H[:, 0] * brownian(T / 4)[:, 0], covariance(a, b, T / 4))) < 5


def covariance(a, b, t):
    """Cov(H over [a, b], W(t)) = (1/h) ∫_a^b min(u, t) du − (Cov(W(a), W(t)) + Cov(W(b), W(t)))/2."""
    u = a + (b - a) * (np.arange(100_000) + 0.5) / 100_000
    return np.minimum(u, t).mean() - 0.5 * (min(a, t) + min(b, t))


@pytest.mark.parametrize("n", [4, 2, 1])
def test_areas_have_the_law_of_levy_areas_on_every_grid(brownian, n):
    h = T / n
    dW, I, H = brownian.grid(n)[:, 0], brownian.iterated(n)[:, 0], brownian.space_time(n)[:, 0]
    A = (I[:, 0, 1] - I[:, 1, 0]) / 2
    assert stats.kstest(A, lambda x: 2 / np.pi * np.arctan(np.exp(np.pi * x / h))).pvalue > 5e-7
    assert abs(z(A**2, h**2 / 4)) < 5
    assert abs(z(A**4, 5 * h**4 / 16)) < 5
    r, s = (dW**2).sum(axis=1), (H**2).sum(axis=1)
    excess = A**2 - (h**2 + h * r) / 12
    assert abs(z(excess, 0.0)) < 5 and abs(z(excess * r, 0.0)) < 5
    # given W and H: mean H_1 W_2 − W_1 H_2, variance h²/20 + (h/5)(H_1² + H_2²)
    rest = A - (H[:, 0] * dW[:, 1] - dW[:, 0] * H[:, 1])
    left = rest**2 - h**2 / 20 - h / 5 * s
    for test in (np.ones(N), s, r):
        assert abs(z(rest * test, 0.0)) < 5
        assert abs(z(left * test, 0.0)) < 5
    assert abs(z(rest * dW[:, 0] * H[:, 1], 0.0)) < 5


def test_areas_of_different_cells_and_paths_are_uncorrelated(brownian):
    I = brownian.iterated(4)
    A = (I[..., 0, 1] - I[..., 1, 0]) / 2
    assert abs(z(A[:, 0] * A[:, 1], 0.0)) < 5
    assert abs(z(A[:-1, 0] * A[1:, 0], 0.0)) < 5


def test_errors_of_the_finest_areas_follow_the_wish():
    # error and levels: the tail is there in variance, so the second moment is right even at one term.
    b = Brownian(2, (0, T), rng=12, levels=0, n_paths=N, error=T)
    assert b.terms == 1
    I = b.iterated(1)[:, 0]
    assert abs(z(I[:, 0, 1] ** 2, T**2 / 2)) < 5
