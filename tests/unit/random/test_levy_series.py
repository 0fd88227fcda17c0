"""Lévy areas: the series against a path written out, tails against their laws, the compiled pass against NumPy."""

import numpy as np
import pytest
from scipy.special import polygamma

from sgdsde.random.levy_integrals import assemble_area, draw_coefficients, iterated_integrals, levy_area, levy_terms
from sgdsde.random.levy_kernels import fill_ito, fill_stratonovich, integrals_work
from sgdsde.random.levy_methods import METHODS, trigamma

NAMES = list(METHODS)


def path_of(w, X, Y, n):
    """The path on [0, 1] of the coefficients, at n + 1 times, as the documentation states it."""
    u, k = np.linspace(0, 1, n + 1)[:, None], np.arange(1, len(X) + 1)
    waves = (1 - np.cos(2 * np.pi * u * k)) / k @ X + np.sin(2 * np.pi * u * k) / k @ Y
    return u * w + waves / (np.sqrt(2) * np.pi)


@pytest.mark.parametrize("m", [2, 3, 5])
def test_area_is_the_area_of_the_path_of_the_coefficients_first_index_earlier(m):
    w = np.random.default_rng(m).standard_normal(m)
    coefficients = draw_coefficients(m, m, terms=4)
    path = path_of(w, coefficients.X, coefficients.Y, 4096)
    middle, step = (path[1:] + path[:-1]) / 2, np.diff(path, axis=0)
    J = middle.T @ step  # ∫ W_i ∘ dW_j by the midpoint rule, error 1/4096²
    A = assemble_area(w, coefficients, "fourier")
    np.testing.assert_allclose(A, (J - J.T) / 2, rtol=0, atol=2e-5)
    assert np.abs(A).max() > 1e-2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_compiled_pass_equals_the_formula(name, m):
    h, w = 0.05, np.random.default_rng(m).standard_normal(m)
    error = 1.001 * METHODS[name].bound(h, m, 200)
    assert levy_terms(h, m, method=name, error=error) == (name, 200)
    A = levy_area(np.sqrt(h) * w, h, rng=3, method=name, error=error, path_index=5, first_step=9)
    expected = h * assemble_area(w, draw_coefficients(3, m, 200, path=5, step=9), name)
    np.testing.assert_allclose(A, expected, rtol=0, atol=1e-15)
    assert (A == -A.T).all() and (np.abs(A[np.triu_indices(m, 1)]) > 0).all()


@pytest.mark.parametrize("m", [2, 3, 5])
def test_wiktorssons_tail_has_the_covariance_of_the_tail(m):
    # Given w the tail of 2πA is Σ (1/k)(Z_i X_j − Z_j X_i), Z = Y − √2 w; its covariance is ψ₁ times the E[...] below.
    rng, p = np.random.default_rng(m), 3
    w = rng.standard_normal(m)
    pairs = np.triu_indices(m, 1)
    none = np.zeros((p, m))
    zero = draw_coefficients(0, m, p)._replace(X=none, Y=none, M=np.zeros(m))
    units = np.eye(len(pairs[0]))
    tail = np.array([2 * np.pi * assemble_area(w, zero._replace(G=g), "wiktorsson")[pairs] for g in units])
    Z, one = np.eye(m) + 2 * np.outer(w, w), np.eye(m)
    i, j = pairs

    def product(a, b, c, d):
        return Z[np.ix_(a, b)] * one[np.ix_(c, d)]

    exact = product(i, i, j, j) - product(i, j, j, i) - product(j, i, i, j) + product(j, j, i, i)
    np.testing.assert_allclose(tail.T @ tail, polygamma(1, p + 1) * exact, rtol=0, atol=1e-13 * np.abs(exact).max())
    np.testing.assert_allclose(tail, tail.T, rtol=0, atol=1e-13)  # the symmetric root: the coupling of the bound


def test_milsteins_tail_is_what_the_series_leaves_of_the_space_time_area():
    # With M made of the terms that are left out and Y = 0 there, the area is that of the longer series.
    m, p, more = 3, 4, 40
    w, long = np.arange(1.0, m + 1), draw_coefficients(7, m, more)
    k = np.arange(p + 1, more + 1)[:, None]
    long.Y[p:] = 0
    M = (long.X[p:] / k).sum(axis=0) / np.sqrt(polygamma(1, p + 1))
    short = long._replace(X=long.X[:p], Y=long.Y[:p], M=M)
    expected = assemble_area(w, long, "fourier")
    for name in ("milstein", "mrongowius-roessler"):
        A = assemble_area(w, short._replace(G=np.zeros(3)), name)
        np.testing.assert_allclose(A, expected, rtol=0, atol=1e-13)


def test_trigamma():
    x = np.array([1.0, 2.0, 3.5, 15.9, 16.0, 100.0, 1e6])
    np.testing.assert_allclose([trigamma(v) for v in x], polygamma(1, x), rtol=1e-15)


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_identities(m, calculus):
    h, dW = np.array([0.1, 0.01, 0.3]), np.random.default_rng(m).standard_normal((4, 3, m))
    I = iterated_integrals(dW, h, rng=0, calculus=calculus)
    both = dW[..., :, None] * dW[..., None, :] - (calculus == "ito") * h[:, None, None] * np.eye(m)
    np.testing.assert_allclose(I + I.swapaxes(-1, -2), both, rtol=0, atol=4e-15)
    A = levy_area(dW, h, rng=0)
    assert (A == -A.swapaxes(-1, -2)).all()
    np.testing.assert_allclose((I - I.swapaxes(-1, -2)) / 2, A, rtol=0, atol=4e-15)


@pytest.mark.parametrize(("kernel", "calculus"), [(fill_ito, "ito"), (fill_stratonovich, "stratonovich")])
def test_aux_kernels_and_bits_whatever_the_block(kernel, calculus):
    rng, m, B = np.random.default_rng(0), 3, 9
    h = np.array([1e-2, 1e-2, 1e-4, 1e-4, 1e-4, 1e-2, 0.3, 1e-2, 1e-2])
    dW = np.sqrt(h) * rng.standard_normal((m, B))
    path = rng.permutation(B).astype(np.uint64)
    aux = np.full((m * m, B), np.nan)
    none = np.empty(0)
    fixed, per_path = integrals_work(m)
    kernel(aux, dW, h, path, 17, np.uint64(5), none, none, np.empty(fixed + per_path * B))
    for b in range(B):
        I = iterated_integrals(dW[:, b], h[b], rng=5, path_index=int(path[b]), first_step=17, calculus=calculus)
        assert np.array_equal(aux[:, b].reshape(m, m), I)
    h, dW = np.full(B, 1e-2), dW.copy()
    kernel(aux, dW, h, path, 17, np.uint64(5), none, none, np.empty(fixed + per_path * B))
    I = iterated_integrals(dW.T[:, None], 1e-2, rng=5, path_index=path, first_step=17, calculus=calculus)
    assert np.array_equal(aux.T.reshape(B, m, m), I[:, 0])


def test_side_branches_have_numbers_of_their_own():
    m, h, none = 2, np.full(1, 1e-2), np.empty(0)
    fixed, per_path = integrals_work(m)
    found = set()
    for rank in (0, 1, 2, 1023):
        for k in (0, 1, 2**27):
            aux = np.empty((m * m, 1))
            step = rank * 2**42 + k
            fill_ito(aux, np.zeros((m, 1)), h, np.zeros(1, np.uint64), step, np.uint64(5), none, none, np.empty(1000))
            found.add(aux[1, 0])
    assert len(found) == 12 and fixed + per_path <= 1000


@pytest.mark.parametrize(
    ("m", "h", "name", "counts"),
    [
        (2, 1e-1, "wiktorsson", (2, 1, 1, 1)),
        (2, 1e-2, "mrongowius-roessler", (16, 6, 3, 2)),
        (2, 1e-4, "mrongowius-roessler", (1520, 507, 30, 13)),
        (5, 1e-2, "mrongowius-roessler", (16, 6, 5, 3)),
        (10, 1e-1, "milstein", (2, 1, 3, 1)),
        (10, 1e-2, "mrongowius-roessler", (16, 6, 7, 3)),
        (10, 1e-3, "mrongowius-roessler", (152, 51, 21, 10)),
        (50, 1e-2, "milstein", (16, 6, 15, 7)),
        (50, 1e-3, "mrongowius-roessler", (152, 51, 46, 21)),
    ],
)
def test_terms_and_the_cheapest_method(m, h, name, counts):
    assert tuple(levy_terms(h, m, method=other)[1] for other in NAMES) == counts
    assert levy_terms(h, m)[0] == name
    cost = {other: METHODS[other].numbers(m, p) for other, p in zip(NAMES, counts)}
    assert cost[name] == min(cost.values())
    for other, p in zip(NAMES, counts):
        assert METHODS[other].bound(h, m, p) <= h**1.5 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("h", 0.0),
        ("h", [0.1, 0.1]),
        ("method", "kpw"),
        ("error", -1),
        ("error", 1e-12),
        ("calculus", "strato"),
        ("path_index", [1, 2]),
        ("first_step", 2**38),
        ("dW", np.zeros((1, 1, 1, 2))),
        ("dW", [np.nan, 0.0]),
    ],
)
def test_arguments(name, value):
    with pytest.raises(ValueError, match=name):
        iterated_integrals(**{"dW": [0.1, 0.2], "h": 0.1, "rng": 0, name: value})


def test_no_steps_and_no_paths():
    for shape in ((0, 3), (2, 0, 3), (0, 5, 3)):
        assert iterated_integrals(np.empty(shape), 0.1, rng=0).shape == (*shape, 3)


def test_pieces_of_steps_and_paths_are_parts_of_the_whole():
    dW = np.random.default_rng(0).standard_normal((70, 4, 3))
    h = np.array([0.1, 0.1, 0.2, 0.05])
    whole = levy_area(dW, h, rng=3)
    assert np.array_equal(
        levy_area(dW[66:, 1:3], h[1:3], rng=3, path_index=range(66, 70), first_step=1), whole[66:, 1:3]
    )
    assert np.array_equal(levy_area(dW[0, 0], 0.1, rng=3), whole[0, 0])
    assert not np.isin(whole[0][whole[0] != 0], whole[1:]).any()
