"""Errors of time averages: autoregressive series, whose autocorrelation time is known; what the errors cover."""

import numpy as np
import pytest
from scipy.signal import lfilter

import sgdsde as sg
from sgdsde.comparison.averages import autocorrelation_time, batch_means


def autoregressive(phi, n_paths, n, seed=0):
    z = np.random.default_rng(seed).standard_normal((n_paths, n))
    z[:, 0] /= np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], z, axis=1)


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_the_autocorrelation_time_of_an_autoregressive_series(phi):
    """τ = (1 + φ)/(1 - φ)."""
    found = autocorrelation_time(autoregressive(phi, 8, 20_000))
    assert found == pytest.approx((1 + phi) / (1 - phi), rel=0.1)


@pytest.mark.parametrize(("n_paths", "n"), [(1, 40_000), (10, 4000), (100, 400)])
@pytest.mark.parametrize("phi", [0.0, 0.9])
def test_the_error_is_the_spread_of_the_mean(phi, n_paths, n):
    """Over 200 sets the mean square of z = mean/stderr is 1, up to what batches leave; naive errors would give τ."""
    z, reliable = [], 0
    for seed in range(200):
        average = batch_means(autoregressive(phi, n_paths, n, seed))
        assert average.n_batches >= 20
        reliable += average.reliable
        z.append(average.mean / average.stderr)
    assert reliable > 190
    square = np.mean(np.square(z))
    assert 0.6 < square < 1.7  # its own error is √(2/200) = 0.1; joined batches that hang together add up to 0.2
    naive = autoregressive(0.9, n_paths, n).std() / np.sqrt(n_paths * n)
    assert phi == 0.0 or average.stderr > 3 * naive


def test_a_series_too_short_says_so():
    average = batch_means(autoregressive(0.99, 1, 300))
    assert not average.reliable
    assert batch_means([1.0, 2.0, 3.0]).n_batches == 3 and not batch_means([1.0, 2.0, 3.0]).reliable


def test_constants_and_shapes():
    average = batch_means(np.full((3, 50), 7.0))
    assert average.mean == 7.0 and average.stderr == 0.0 and np.isnan(average.tau)
    for wrong in (np.zeros((2, 2, 2)), 3.0, []):
        with pytest.raises(sg.ShapeError, match="series must have shape"):
            batch_means(wrong)
    with pytest.raises(sg.ArgumentError, match="series must be finite"):
        batch_means([1.0, np.nan])
