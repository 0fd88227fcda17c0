"""The two-sample Kolmogorov-Smirnov distance against enumeration and against SciPy."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from sgdsde import ArgumentError, ShapeError
from sgdsde.comparison import ks_two_sample


def distance(a, b):
    """sup |F_a - F_b|, by its definition."""
    at = np.concatenate([a, b])
    return max(abs(np.mean(a <= x) - np.mean(b <= x)) for x in at)


@pytest.mark.parametrize("n, m", [(1, 1), (2, 3), (4, 4), (3, 5)])
def test_p_is_the_share_of_all_orders(n, m):
    # Under one continuous law every choice of n ranks out of n + m is equally likely: all of them are tried.
    ranks = np.arange(n + m)
    found = []
    for chosen in combinations(ranks, n):
        a, b = ranks[list(chosen)].astype(float), np.delete(ranks, chosen).astype(float)
        statistic, p = ks_two_sample(a, b)
        assert statistic == pytest.approx(distance(a, b), abs=1e-15)
        found.append((float(statistic), float(p)))
    values = np.array(found)
    for statistic, p in found:
        assert p == pytest.approx(np.mean(values[:, 0] >= statistic - 1e-12), abs=1e-13)


@pytest.mark.parametrize("n, m, shift", [(8, 8, 0.0), (40, 31, 0.5), (300, 200, 0.1)])
def test_many_at_once_equal_scipy_one_by_one(n, m, shift):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(n, 3, 2)), rng.normal(size=(m, 3, 2)) + shift
    statistic, p = ks_two_sample(a, b)
    assert statistic.shape == p.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            other = ks_2samp(a[:, i, j], b[:, i, j], method="exact")
            assert statistic[i, j] == pytest.approx(other.statistic, abs=1e-14)
            assert p[i, j] == pytest.approx(other.pvalue, rel=1e-9, abs=1e-15)


def test_large_samples_use_the_limit_law():
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=2000), rng.normal(size=1500) + 0.03
    statistic, p = ks_two_sample(a, b)
    exact = ks_2samp(a, b, method="exact")
    assert statistic == pytest.approx(exact.statistic, abs=1e-14)
    assert 0.02 < exact.pvalue < 0.9 and p == pytest.approx(exact.pvalue, rel=0.1)


def test_ties_are_one_step():
    statistic, _ = ks_two_sample([1.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    assert statistic == pytest.approx(1 / 3)
    assert ks_two_sample([1.0, 1.0], [1.0, 1.0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "a, b, error", [([[1.0]], [1.0], ShapeError), ([], [1.0], ShapeError), ([np.nan], [1.0], ArgumentError)]
)
def test_what_cannot_be_compared_is_refused(a, b, error):
    with pytest.raises(error):
        ks_two_sample(a, b)
