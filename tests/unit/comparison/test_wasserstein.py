"""The Wasserstein-1 distance against SciPy, and its errors against what many samples show."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from sgdsde import ArgumentError, ShapeError, compare
from sgdsde.comparison import wasserstein_two_sample


@pytest.mark.parametrize("n, m", [(1, 1), (5, 5), (40, 31), (2, 300)])
def test_many_at_once_equal_scipy_one_by_one(n, m):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(n, 3, 2)).round(1), rng.normal(size=(m, 3, 2)).round(1) + 0.3  # ties too
    found = wasserstein_two_sample(a, b)
    assert all(part.shape == (3, 2) for part in found)
    for i in range(3):
        for j in range(2):
            assert found.distance[i, j] == pytest.approx(wasserstein_distance(a[:, i, j], b[:, i, j]), abs=1e-14)
    assert np.isnan(found.stderr).all() == (min(n, m) == 1)


def replications(shift, scale, share, *, paired, n=60, m=90, times=3000):
    """Many pairs of samples side by side: a normal, b = shift + scale·normal, correlated by `share` when paired."""
    rng = np.random.default_rng(4)
    a = rng.normal(size=(n, times))
    z = rng.normal(size=(n if paired else m, times))
    b = shift + scale * (share * a + np.sqrt(1 - share**2) * z if paired else z)
    return wasserstein_two_sample(a, b, paired=paired)


@pytest.mark.parametrize("paired, share", [(False, 0.0), (True, 0.9), (True, 0.0)])
@pytest.mark.parametrize("shift, scale", [(1.5, 1.0), (0.3, 3.0), (1.5, 3.0)])
def test_the_error_is_the_spread_of_the_distance(shift, scale, paired, share):
    found = replications(shift, scale, share, paired=paired)
    assert np.sqrt((found.stderr**2).mean()) == pytest.approx(found.distance.std(), rel=0.08)


@pytest.mark.parametrize("paired, share", [(False, 0.0), (True, 0.9), (True, 0.0)])
def test_chance_is_the_mean_under_one_law(paired, share):
    found = replications(0.0, 1.0, share, paired=paired)
    assert found.chance.mean() == pytest.approx(found.distance.mean(), rel=0.05)


def test_sharing_noise_makes_both_errors_smaller():
    loose, tight = (replications(0.1, 1.0, share, paired=True) for share in (0.0, 0.99))
    assert tight.stderr.mean() < 0.3 * loose.stderr.mean() and tight.chance.mean() < 0.5 * loose.chance.mean()


def test_a_shift_of_pairs_is_known_exactly():
    a = np.random.default_rng(0).normal(size=50)
    found = wasserstein_two_sample(a, a + 2.0, paired=True)
    assert found.distance == pytest.approx(2.0) and found.stderr == pytest.approx(0.0, abs=1e-12)
    same = wasserstein_two_sample(a, a, paired=True)
    assert (same.distance, same.stderr, same.chance) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("a, b, paired, error", [
    ([[1.0]], [1.0], False, ShapeError),
    ([], [1.0], False, ShapeError),
    ([np.nan], [1.0], False, ArgumentError),
    ([1.0, 2.0], [1.0], True, ArgumentError),
])  # fmt: skip
def test_what_cannot_be_compared_is_refused(a, b, paired, error):
    with pytest.raises(error):
        wasserstein_two_sample(a, b, paired=paired)


@pytest.mark.parametrize("paired", [False, True])
def test_compare_has_the_distance_beside_its_errors(solution, normal, paired):
    x, y = normal(1, 30, 3, 2), 2.0 * normal(2, 30, 3, 2)
    x[4, 2:] = np.nan
    result = compare(solution(x, seed=1), solution(y, seed=1 if paired else 2), skip_diverged=True)
    for k in range(3):
        ok = np.isfinite(x[:, k, 0])
        found = wasserstein_two_sample(x[ok, k], y[ok, k] if paired else y[:, k], paired=paired)
        assert np.array_equal(result.wasserstein[k], found.distance)
        assert np.array_equal(result.wasserstein_stderr[k], found.stderr)
        assert np.array_equal(result.wasserstein_chance[k], found.chance)
    line = result.table(1).splitlines()
    assert "W1" in line[0] and f"{result.wasserstein[0, 1]:.3g}" in line[1].split()
