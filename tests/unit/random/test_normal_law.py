"""Normals: the distribution. Seeds are fixed; each gate is at 5 standard errors or p = 5e-7 (false alarm <= 1e-6)."""

import math

import numpy as np
import pytest
from scipy import stats

from sgdsde.random.normal import fill_normals

GATE_P = 5e-7
N_CALLS, N_PATHS = 500, 1000


def draw(seed, *, first=0, rows=2 * N_CALLS, paths=N_PATHS, purpose=0):
    out = np.empty((rows, paths))
    fill_normals(out, first, np.arange(paths, dtype=np.uint64), purpose, np.uint64(seed))
    return out


@pytest.fixture(scope="module")
def z():
    """(1000, 1000): a million normals, row n is number n of 1000 paths."""
    return draw(20)


def z_score_of_correlation(a, b):
    """sqrt(n) times the mean of a b: standard normal for independent standard normal a, b."""
    return float(np.mean(a * b) * math.sqrt(a.size))


def test_kolmogorov_smirnov(z):
    assert stats.kstest(z.ravel(), "norm").pvalue > GATE_P


def test_moments_to_the_sixth(z):
    moment = {k: float(math.prod(range(1, k, 2))) if k % 2 == 0 else 0.0 for k in range(1, 13)}
    for k in range(1, 7):
        error = math.sqrt((moment[2 * k] - moment[k] ** 2) / z.size)
        assert abs(np.mean(z**k) - moment[k]) < 5 * error, k


@pytest.mark.parametrize("sigma", [2.0, 3.0, 4.0])
def test_tails(z, sigma):
    p = stats.norm.sf(sigma)
    for count in (np.sum(z > sigma), np.sum(z < -sigma)):
        tail = min(stats.binom.cdf(count, z.size, p), stats.binom.sf(count - 1, z.size, p))
        assert tail > GATE_P / 2


def test_the_two_numbers_of_a_call_are_independent(z):
    z0, z1 = z[0::2], z[1::2]
    assert abs(z_score_of_correlation(z0, z1)) < 5
    assert abs(z_score_of_correlation((z0**2 - 1) / math.sqrt(2), (z1**2 - 1) / math.sqrt(2))) < 5
    # angle against radius: the plane in 32 sectors and 8 rings of equal probability
    sector = np.floor((np.arctan2(z1, z0) / (2 * np.pi) % 1.0) * 32).astype(int)
    ring = np.minimum(np.floor(np.exp(-(z0**2 + z1**2) / 2) * 8).astype(int), 7)
    counts = np.bincount((sector * 8 + ring).ravel(), minlength=256)
    assert stats.chisquare(counts).pvalue > GATE_P


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 64])
def test_steps_are_uncorrelated(z, lag):
    assert abs(z_score_of_correlation(z[:-lag], z[lag:])) < 5


@pytest.mark.parametrize("lag", [1, 2, 3, 64])
def test_neighbouring_paths_are_uncorrelated(z, lag):
    assert abs(z_score_of_correlation(z[:, :-lag], z[:, lag:])) < 5


def test_neighbouring_seeds_share_nothing(z):
    other = draw(21)
    for shift in (0, 1, 2):  # seed s with path b + shift against seed s + 1 with path b
        assert abs(z_score_of_correlation(z[:, shift:], other[:, : N_PATHS - shift])) < 5
        assert abs(z_score_of_correlation(z[:, : N_PATHS - shift], other[:, shift:])) < 5
        assert abs(z_score_of_correlation(z[shift:], other[: 2 * N_CALLS - shift])) < 5
    assert not np.isin(z, other).any()


def test_purposes_share_nothing(z):
    other = draw(20, purpose=1)
    assert abs(z_score_of_correlation(z, other)) < 5
    assert not np.isin(z, other).any()


def test_a_hundred_thousand_paths_are_all_different():
    out = draw(0, rows=2, paths=100_000)
    assert np.unique(out[0]).size == np.unique(out[1]).size == 100_000
    assert np.unique(out).size == 200_000
