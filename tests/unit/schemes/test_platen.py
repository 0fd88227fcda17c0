"""Platen's method: its formula in NumPy, and its laws by enumerating every outcome of the noise."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from sgdsde import SDE, solve
from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import NOISE_KINDS, platen
from sgdsde.schemes.platen import SCHEME, fill_signs

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]


def pairs(m):
    return m * (m - 1) // 2


def draw(lab, d, m, n, size=1.0):
    """A block as the lab draws it, with ± size·h in the rows of aux."""
    x, t, h, dW = lab.draw(d, m, n)
    signs = np.random.default_rng([d, m, n]).choice([-1.0, 1.0], size=(pairs(m), n))
    return x, t, h, dW, size * signs * h


def hat(dW, h):
    return np.sqrt(3 * h) * np.sign(dW) * (np.abs(dW) > norm.ppf(5 / 6) * np.sqrt(h))


def formula(a, b, y, t, h, dW, aux):
    """Word for word from the docstring; b(t, y)[:, j] is b^j."""
    m = dW.size
    V = -h * np.eye(m)
    for j in range(m):
        for r in range(j):
            V[r, j] = aux[j * (j - 1) // 2 + r] if aux.size else 0.0
            V[j, r] = -V[r, j]
    w, root = hat(dW, h), np.sqrt(h)
    a0, b0 = a(t, y), b(t, y)
    total = y + 0.5 * (a0 + a(t + h, y + a0 * h + b0 @ w)) * h
    for j in range(m):
        up, down = (b(t + h, y + a0 * h + s * b0[:, j] * root)[:, j] for s in (1, -1))
        total = total + 0.25 * (up + down + 2 * b0[:, j]) * w[j]
        total = total + 0.25 * (up - down) * (w[j] ** 2 + V[j, j]) / root
        for r in range(m):
            if r != j:
                up, down = (b(t, y + s * b0[:, r] * root)[:, j] for s in (1, -1))
                total = total + 0.25 * (up + down - 2 * b0[:, j]) * w[j]
                total = total + 0.25 * (up - down) * (w[j] * w[r] + V[r, j]) / root
    return total


def numpy_step(lab, x, t, h, dW, aux, p, diagonal=False):
    def drift(s, y):
        return lab.drift(s, y, p)

    def noise(s, y):
        return lab.columns(s, y, p, dW.shape[0], diagonal)

    steps = [formula(drift, noise, x[:, k], t[k], h[k], dW[:, k], aux[:, k]) for k in range(x.shape[1])]
    return np.stack(steps, axis=1)


@pytest.mark.parametrize(
    "noise, size",
    [(noise, s) for noise in ("general", "commutative", "scalar") for s in SIZES if noise != "scalar" or s[1] == 1],
)
def test_formula(lab, noise, size):
    d, m, _ = size
    x, t, h, dW, aux = draw(lab, *size)
    aux = aux if noise == "general" else aux[:0]
    got = lab.take(SCHEME.kernel(noise, "ito"), lab.mixed, x, t, h, dW, lab.p, SCHEME.work(d, m)[1], aux=aux)
    np.testing.assert_allclose(got, numpy_step(lab, x, t, h, dW, aux, lab.p), rtol=0, atol=2e-14)


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_formula_for_diagonal_noise(lab, d, n):
    """Five increments give what the whole formula gives, the U terms being zero whatever V is."""
    x, t, h, dW, aux = draw(lab, d, d, n)
    got = lab.take(SCHEME.kernel("diagonal", "ito"), lab.apart, x, t, h, dW, lab.p, SCHEME.work(d, d)[1])
    np.testing.assert_allclose(got, numpy_step(lab, x, t, h, dW, aux, lab.p, diagonal=True), rtol=0, atol=2e-14)


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("size", SIZES)
def test_formula_for_additive_noise(lab, size, calculus):
    d, m, n = size
    p = np.array([1.0, 0.7, 0.0, 0.4])  # of the lab: noise free of the state, not of time
    x, t, h, dW, aux = draw(lab, *size)
    got = lab.take(SCHEME.kernel("additive", calculus), lab.mixed, x, t, h, dW, p, SCHEME.work(d, m)[1])
    whole = numpy_step(lab, x, t, h, dW, aux, p)
    np.testing.assert_allclose(got, whole, rtol=0, atol=2e-14)
    for k in range(n):
        first, noise = lab.drift(t[k], x[:, k], p), [lab.columns(s, x[:, k], p, m) for s in (t[k], t[k] + h[k])]
        support = x[:, k] + first * h[k] + noise[0] @ hat(dW[:, k], h[k])
        drift = 0.5 * (first + lab.drift(t[k] + h[k], support, p)) * h[k]
        wanted = x[:, k] + drift + 0.5 * (noise[0] + noise[1]) @ hat(dW[:, k], h[k])
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=2e-14)


def test_without_noise_it_is_heun_for_every_kind(lab):
    p = np.array([1.0, 0.0, 1.3, 0.4])
    x, t, h, dW, aux = draw(lab, 3, 3, 8)
    euler = np.stack([x[:, k] + h[k] * lab.drift(t[k], x[:, k], p) for k in range(8)], axis=1)
    ends = np.stack([lab.drift(t[k] + h[k], euler[:, k], p) for k in range(8)], axis=1)
    for noise in NOISE_KINDS:
        if noise != "scalar":
            increment = lab.apart if noise == "diagonal" else lab.mixed
            made = aux if noise == "general" else aux[:0]
            got = lab.take(SCHEME.kernel(noise, "ito"), increment, x, t, h, dW, p, SCHEME.work(3, 3)[1], aux=made)
            np.testing.assert_allclose(got, 0.5 * (x + euler + h * ends), rtol=0, atol=1e-14)
    assert SCHEME.ode_order == 2


# The noise


def test_the_three_points_have_their_probabilities_and_are_monotone():
    assert abs(norm.cdf(platen.BORDER) - 5 / 6) < 1e-15
    grid = np.linspace(-3, 3, 6001)
    for h in (1.0, 0.3):
        values = np.array([platen.three_points(z * np.sqrt(h), h) for z in grid])
        np.testing.assert_allclose(values, hat(grid * np.sqrt(h), h), rtol=1e-15)
        assert np.all(np.diff(values) >= 0) and len(set(values)) == 3


def moment(k, values, weights):
    return sum(w * v**k for v, w in zip(values, weights))


def test_three_points_have_the_moments_of_the_normal_law_up_to_the_fifth():
    squares = [Fraction(3), Fraction(0)]  # of ΔŴ/√h
    weights = [Fraction(1, 3), Fraction(2, 3)]
    assert [moment(k, squares, weights) for k in (1, 2)] == [1, 3]  # E ΔŴ², E ΔŴ⁴; odd ones are zero
    assert moment(3, squares, weights) == 9 != 15


def test_signs_are_fair_independent_and_addressed():
    m, n = 18, 256  # 153 rows: two calls of the generator
    path, key = np.arange(n, dtype=np.uint64), np.uint64(7)
    h, none = np.linspace(0.1, 0.2, n), np.zeros(0)

    def fill(step, part=slice(None)):
        who = path[part]
        aux = np.empty((pairs(m), who.size))
        fill_signs(aux, np.zeros((m, who.size)), h[part].copy(), who, step, key, none, none, none)
        return aux / h[part]

    steps = np.stack([fill(k) for k in range(40)])
    assert set(np.unique(steps)) == {-1.0, 1.0}
    np.testing.assert_array_equal(fill(11, slice(100, 117)), steps[11][:, 100:117])
    flat = steps.transpose(1, 0, 2).reshape(pairs(m), -1)  # (row, draws)
    draws = flat.shape[1]
    assert np.abs(flat.mean(axis=1)).max() < 5 / np.sqrt(draws)
    products = flat @ flat.T / draws - np.eye(pairs(m))
    assert np.abs(products).max() < 6 / np.sqrt(draws)  # 11 628 pairs
    assert abs((steps[1:] * steps[:-1]).mean()) < 5 / np.sqrt(steps[1:].size)
    assert abs((steps[..., 1:] * steps[..., :-1]).mean()) < 5 / np.sqrt(steps[..., 1:].size)


def test_no_row_of_aux_is_asked_for_but_by_general_noise():
    for kind in NOISE_KINDS:
        made = SCHEME.aux_for(kind, "ito")
        assert (made is not None and made.rows(3, 4) == 6 and made.brownian == "") is (kind == "general")
    assert SCHEME.aux_for("additive", "stratonovich") is None


# dX = (dW¹, dW², X¹ dW²): X³ is an iterated integral, E (X³)² = T²/2


@kernel_uncached(INCREMENT)
def area(out, x, t, h, v, p, data, work):
    for b in range(x.shape[1]):
        out[0, b] = v[0, b]
        out[1, b] = v[1, b]
        out[2, b] = x[0, b] * v[1, b]


@kernel_uncached(CORRECTION)
def none(out, x, t, p, data, work):
    out[:] = 0.0


def outcomes(h, size):
    """Every (ΔW¹, ΔW², V) of one step, with its probability."""
    points = [(-np.sqrt(3 * h), 1 / 6), (0.0, 2 / 3), (np.sqrt(3 * h), 1 / 6)]
    for (u, p), (v, q), s in itertools.product(points, points, (-size, size)):
        yield u, v, s, p * q / 2


def law_of_area(take, h, n_steps, size):
    """Moments of X after n steps, summed over all (3·3·2)^n outcomes."""
    x, weight = np.zeros((3, 1)), np.ones(1)
    table = np.array(list(outcomes(h, size))).T
    for _ in range(n_steps):
        many = x.shape[1]
        x = np.repeat(x, table.shape[1], axis=1)
        dW, aux, q = np.tile(table[:2], (1, many)), np.tile(table[2:3], (1, many)), np.tile(table[3], many)
        weight = np.repeat(weight, table.shape[1]) * q
        n = x.shape[1]
        step = SCHEME.kernel("general", "ito")
        x = take(step, area, x, np.zeros(n), np.full(n, h), dW, [0.0], SCHEME.work(3, 2)[1], made=none, aux=aux)
    assert abs(weight.sum() - 1) < 1e-14
    return x, weight


@pytest.mark.parametrize("n_steps", [1, 2, 3])
@pytest.mark.parametrize("h", [0.1, 0.7])
def test_second_moment_of_an_iterated_integral_is_exact_at_any_step(lab, h, n_steps):
    x, weight = law_of_area(lab.take, h, n_steps, h)
    T = n_steps * h
    assert weight @ x[2] ** 2 == pytest.approx(T**2 / 2, rel=1e-13)
    assert abs(weight @ x[2]) < 1e-15 and weight @ x[0] ** 2 == pytest.approx(T, rel=1e-13)
    assert weight @ (x[0] * x[1] * x[2]) == pytest.approx(T**2 / 2, rel=1e-13)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_two_point_variables_of_size_root_h_are_seen(lab, n_steps):
    """The mutant ±√h is wrong by (1 − h) h/4 a step however small h is; the mean does not show it."""
    h = 0.01
    x, weight = law_of_area(lab.take, h, n_steps, np.sqrt(h))
    T = n_steps * h
    assert weight @ x[2] ** 2 - T**2 / 2 == pytest.approx(n_steps * (1 - h) * h / 4, rel=1e-11)
    assert abs(weight @ x[2]) < 1e-15


# In a run


def drift(t, y):
    return -0.5 * y[0], 0.3 * np.sin(y[0])


def columns(t, y):
    return (0.8, 0.6 * np.sin(y[1]), 0.2), (0.5 * y[0], 0.0, 0.6)


def test_a_run_is_the_same_in_any_block_and_repeats_from_its_noise():
    sde = SDE(drift, columns, dim=2, noise="general")
    whole = solve(sde, (0, 1), [0.5, 1.0], method="platen", dt=0.1, n_paths=40, rng=3, save_noise=True)
    assert whole.success
    part = solve(sde, (0, 1), [0.5, 1.0], method="platen", dt=0.1, path_index=[7, 31], rng=3, block_size=1)
    np.testing.assert_array_equal(part.y, whole.y[[7, 31]])
    again = solve(sde, (0, 1), [0.5, 1.0], method="platen", dt=0.1, n_paths=40, rng=3, dW=whole.dW)
    np.testing.assert_array_equal(again.y, whole.y)
    other = solve(sde, (0, 1), [0.5, 1.0], method="platen", dt=0.1, n_paths=40, rng=4, dW=whole.dW)
    assert np.abs(other.y - whole.y).max() > 1e-3  # V belongs to the seed


def test_the_table_shows_that_paths_do_not_converge():
    from sgdsde.cli.methods import rows

    head, *body = rows()
    row = next(row for row in body if row[0] == "platen")
    assert {row[head.index(kind)] for kind in NOISE_KINDS} == {"- / 2"}
