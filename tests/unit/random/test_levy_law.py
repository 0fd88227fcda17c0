"""Lévy areas: the distribution, and the errors against the bounds.

Seeds are fixed; each gate is at 5 standard errors or p = 5e-7 (false alarm <= 1e-6 each).
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from sgdsde.random.levy_integrals import LevyCoefficients, assemble_area, iterated_integrals, levy_area
from sgdsde.random.levy_methods import METHODS

NAMES = list(METHODS)
N = 40_000
H = 0.7  # not 1, to see wrong powers of h


def increments(m, n=N, seed=0):
    return np.sqrt(H) * np.random.default_rng(seed).standard_normal((n, m))


def z(sample, exact):
    return (sample.mean() - exact) / (sample.std() / np.sqrt(sample.size))


@pytest.fixture(scope="module", params=[2, 5])
def areas(request):
    """dW (N, m) and A (N, m, m) at an error far below what N areas can see."""
    m = request.param
    dW = increments(m)
    return dW, levy_area(dW, H, rng=m, method="mrongowius-roessler", error=0.002 * H)


def test_sech_law_and_moments(areas):
    _, A = areas
    m = A.shape[-1]
    for i, j in ((0, 1), (m - 2, m - 1), (0, m - 1)):
        a = A[:, i, j]
        assert stats.kstest(a, lambda x: 2 / np.pi * np.arctan(np.exp(np.pi * x / H))).pvalue > 5e-7
        assert abs(z(a, 0.0)) < 5
        assert abs(z(a**2, H**2 / 4)) < 5
        assert abs(z(a**4, 5 * H**4 / 16)) < 5


def test_integrals_have_the_moments_of_iterated_integrals(areas):
    dW, A = areas
    m = dW.shape[1]
    I = A + 0.5 * dW[:, :, None] * dW[:, None, :] - 0.5 * H * np.eye(m)
    for i, j in ((0, 0), (0, 1), (1, 0)):
        assert abs(z(I[:, i, j] ** 2, H**2 / 2)) < 5
    assert abs(z(I[:, 0, 1] * I[:, 1, 0], 0.0)) < 5


def test_law_given_the_increment(areas):
    dW, A = areas
    a, r = A[:, 0, 1], dW[:, 0] ** 2 + dW[:, 1] ** 2
    excess = a**2 - (H**2 + H * r) / 12
    for test in (np.ones(N), r, r**2):
        assert abs(z(excess * test, 0.0)) < 5
    for x in (1.0, 4.0, 10.0):  # E exp(i x A / H) given dW
        y = x / 2
        phi = y / np.sinh(y) * np.exp(-r / (2 * H) * (y / np.tanh(y) - 1))
        for test in (np.ones(N), dW[:, 0] ** 2):
            assert abs(z((np.cos(x * a / H) - phi) * test, 0.0)) < 5
            assert abs(z(np.sin(x * a / H) * test, 0.0)) < 5


def test_areas_of_different_pairs_have_the_right_covariance():
    # E[A_01 A_02 | dW] = h dW_1 dW_2 / 12; A_01 and A_23 are uncorrelated but not independent.
    dW = increments(4)
    A = levy_area(dW, H, rng=8, method="mrongowius-roessler", error=0.002 * H)
    assert abs(z(A[:, 0, 1] * A[:, 0, 2] - H * dW[:, 1] * dW[:, 2] / 12, 0.0)) < 5
    assert abs(z(A[:, 0, 1] * A[:, 2, 3], 0.0)) < 5


@pytest.mark.parametrize("name", NAMES)
def test_second_moment_at_one_term(name):
    # What the cut-off costs in variance, exactly: nothing for the two of order 1.
    dW, traits = increments(3), METHODS[name]
    a = levy_area(dW, H, rng=9, method=name, error=1.001 * traits.bound(H, 3, 1))[:, 0, 1]
    r = (dW[:, 0] ** 2 + dW[:, 1] ** 2) / H
    kept = 6 / np.pi**2  # Σ_{k≤1} 1/k² over Σ 1/k²
    bridge = 1.0 if traits.pairs else kept
    chord = 1.0 if traits.vector or traits.spread else kept
    assert abs(z(a**2 - H**2 * (bridge + chord * r) / 12, 0.0)) < 5


def whitened(rest, Z, k):
    """Standard normal numbers (n, pairs) that the tails Σ_k (1/k)(Z_i X_j − Z_j X_i), i < j, are made of, given Z."""
    m = Z.shape[-1]
    i, j = np.triu_indices(m, 1)
    C, one = np.einsum("nki,nkj,k->nij", Z, Z, 1 / k**2), np.eye(m)

    def product(a, b, c, d):
        return C[:, a[:, None], b[None, :]] * one[c[:, None], d[None, :]]

    covariance = product(i, i, j, j) - product(i, j, j, i) - product(j, i, i, j) + product(j, j, i, i)
    values, vectors = np.linalg.eigh(covariance)
    return np.einsum("nab,nb,ncb,nc->na", vectors, values**-0.5, vectors, rest)


def coupled_errors(name, m, p, n, more=400):
    """A_p − A_(p + more) (n, pairs) for h = 1: the numbers of the tail are those that belong to the longer series.

    M is what X leaves; G whitens what Y leaves of the area of the bridge given X, or (Wiktorsson) of the area given Y.
    """
    rng, (i, j) = np.random.default_rng(m * 100 + p), np.triu_indices(m, 1)
    w, traits = rng.standard_normal((n, m)), METHODS[name]
    X, Y = rng.standard_normal((2, n, p + more, m))
    k = np.arange(p + 1, p + more + 1.0)
    M = np.einsum("nki,k->ni", X[:, p:], 1 / k) / np.sqrt(polygamma(1, p + 1))
    Z = Y[:, p:] - (np.sqrt(2) * w[:, None] if traits.spread else 0.0)
    S = np.einsum("nki,nkj,k->nij", Z, X[:, p:], 1 / k)
    rest = (S - S.swapaxes(1, 2))[:, i, j]
    G = whitened(rest, Z if traits.spread else X[:, p:], k)
    errors = np.empty((n, len(i)))
    for a in range(n):
        exact = assemble_area(w[a], LevyCoefficients(X[a], Y[a], M[a], G[a]), "fourier")
        A = assemble_area(w[a], LevyCoefficients(X[a, :p], Y[a, :p], M[a], G[a]), name)
        errors[a] = (A - exact)[i, j]
    return errors


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("m", "p"), [(2, 4), (2, 16), (3, 8), (5, 8)])
def test_error_is_below_the_bound_and_not_far(name, m, p):
    error = coupled_errors(name, m, p, n=1500) ** 2
    mean, stderr = error.mean(axis=0), error.std(axis=0) / np.sqrt(len(error))
    bound = METHODS[name].bound(1.0, m, p) ** 2
    assert (mean - 5 * stderr < bound).all()
    assert (mean > 0.03 * bound).all()  # rms 0.95, 0.95, 0.27, 0.47 of the bounds


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("name", ["fourier"])
def test_streamed_errors_fall_as_the_bound_says(name, m):
    # More terms go on from the leading ones, so for the bare series the difference is the error itself.
    dW, traits = increments(m, 4000), METHODS[name]
    fine = levy_area(dW, H, rng=4, method=name, error=traits.bound(H, m, 1000))
    for p in (1, 4, 16):
        A = levy_area(dW, H, rng=4, method=name, error=1.0001 * traits.bound(H, m, p))
        k = np.arange(p + 1, 1000.0)
        r = (dW[:, 0] ** 2 + dW[:, 1] ** 2) / H
        exact = (H / (2 * np.pi)) ** 2 * (k**-2).sum() * (2 + 2 * r)
        assert abs(z((A - fine)[:, 0, 1] ** 2 - exact, 0.0)) < 5
        assert exact.mean() < 1.1 * traits.bound(H, m, p) ** 2


def test_a_coarse_step_of_the_non_commutative_pair_needs_the_area_and_its_order():
    # dX = (dW_1, dW_2, X_1 dW_2): over one coarse step X_3 is I_(1,2) of the coarse step, by Chen from fine ones.
    n, h = 64, 1 / 64
    dW = np.sqrt(h) * np.random.default_rng(3).standard_normal((n, 2))
    I = iterated_integrals(dW, h, rng=1)
    x = np.zeros(3)
    for k in range(n):
        x += [dW[k, 0], dW[k, 1], x[0] * dW[k, 1] + I[k, 0, 1]]
    before = np.cumsum(dW, axis=0) - dW
    chen = I.sum(axis=0) + before.T @ dW
    assert abs(chen[0, 1] - x[2]) < 1e-14
    assert abs(chen[1, 0] - x[2]) > 1e-2
    np.testing.assert_allclose(chen + chen.T, np.outer(x[:2], x[:2]) - np.eye(2), rtol=0, atol=1e-13)
