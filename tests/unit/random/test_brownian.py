"""Brownian: one path however it is asked. Identities to rounding; nothing here is statistical."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.random import Brownian, coarsen
from sgdsde.random.brownian_tree import level_range

T0, T1 = -1.0, 1.5


@pytest.fixture(params=[1, 2, 3])
def brownian(request):
    return Brownian(request.param, (T0, T1), rng=5, levels=6)


def close(a, b, atol=2e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def test_shapes(brownian):
    m = brownian.m
    assert brownian(0.3).shape == brownian.increments(0.1, 0.2).shape == brownian.space_time_area(0, 1).shape == (m,)
    assert brownian([[0.3, 0.1]]).shape == (1, 2, m)
    assert brownian.grid(12).shape == brownian.space_time(12).shape == (12, m)
    assert brownian.iterated(16).shape == (16, m, m)
    assert brownian.iterated_integrals(T0, T1).shape == (m, m)


@pytest.mark.parametrize("n", [1, 8, 64, 12, 100])
def test_grids_are_the_increments_between_their_times_to_the_bit(brownian, n):
    t = np.array([T0 + (T1 - T0) * k / n for k in range(n + 1)])
    assert np.array_equal(brownian.grid(n), brownian.increments(t[:-1], t[1:]))
    assert np.array_equal(brownian.space_time(n), brownian.space_time_area(t[:-1], t[1:]))


def test_increments_and_space_time_areas_add_up_over_any_times(brownian):
    rng = np.random.default_rng(0)
    for trial in range(50):
        a, b, c = np.sort(rng.uniform(T0, T1, 3) if trial % 2 else T0 + 2.5 * rng.choice(65, 3, replace=False) / 64)
        dW = brownian.increments([a, b, a], [b, c, c])
        H = brownian.space_time_area([a, b, a], [b, c, c])
        close(dW[0] + dW[1], dW[2])
        close(brownian(c) - brownian(a), dW[2])
        integral = (b - a) * (H[0] + dW[0] / 2) + (c - b) * (dW[0] + H[1] + dW[1] / 2)
        close(integral, (c - a) * (H[2] + dW[2] / 2))


def test_space_time_area_is_the_integral_of_the_path():
    b = Brownian(2, (0, 2), rng=1)
    dW, n = b.grid(2**14), 2**14
    W = np.cumsum(dW, axis=0)
    bridge = W - np.outer(np.arange(1, n + 1) / n, W[-1])
    error = np.sqrt(2.0 * 2 / n / n / 12)  # of the sum: n independent areas N(0, h/12), h = 2/n, over n
    close(b.space_time_area(0, 2), bridge.mean(axis=0), atol=5 * error)


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("paths", [{}, {"n_paths": 3}])
def test_chen_across_levels(calculus, paths):
    b = Brownian(3, (T0, T1), rng=5, levels=6, **paths)
    fine = (b.grid(64), b.iterated(64, calculus=calculus), b.space_time(64))
    for factor in (1, 2, 8, 64):
        n = 64 // factor
        dW, I, H = coarsen(*fine, factor=factor)
        close(dW, b.grid(n))
        close(I, b.iterated(n, calculus=calculus))
        close(H, b.space_time(n))
    step = (T1 - T0) / 8
    dW, I = b.grid(8), b.iterated(8, calculus=calculus)
    correction = step * np.eye(3) * (calculus == "ito")
    close(I + I.swapaxes(-1, -2), dW[..., :, None] * dW[..., None, :] - correction)


def test_iterated_integrals_of_any_cells_join():
    b = Brownian(3, (T0, T1), rng=5, levels=6)
    for a, c, e in ((0, 1, 2), (3, 10, 41), (0, 63, 64), (5, 6, 13)):
        a, c, e = (T0 + k * b.dt for k in (a, c, e))
        first, second = b.iterated_integrals(a, c), b.iterated_integrals(c, e)
        whole = first + second + np.outer(b.increments(a, c), b.increments(c, e))
        close(b.iterated_integrals(a, e), whole)
    close(b.iterated_integrals(T0 + 5 * b.dt, T0 + 6 * b.dt), b.iterated(64)[5])


def test_pieces_that_fit_into_memory_change_nothing(monkeypatch):
    b = Brownian(2, (0, 1), rng=5, levels=6, n_paths=2)
    wanted = {n: b.iterated(n) for n in (1, 4, 32)}
    inner = b.iterated_integrals(3 / 64, 50 / 64)
    for most in (1, 8 * 5, 8 * 16, 8 * 24):  # cells at once: 1, 5, 16, 24
        monkeypatch.setattr("sgdsde.random.brownian.AREAS_AT_ONCE", most)
        for n, I in wanted.items():
            close(b.iterated(n), I, atol=1e-15)
        close(b.iterated_integrals(3 / 64, 50 / 64), inner, atol=1e-15)


def test_the_order_of_questions_does_not_matter():
    times = np.random.default_rng(1).uniform(T0, T1, 20)
    one = Brownian(2, (T0, T1), rng=5, levels=6)
    answers = [one(t) for t in times]
    other = pickle.loads(pickle.dumps(Brownian(2, (T0, T1), rng=5, levels=6)))
    _ = other.iterated(8), other.grid(7)
    for k in np.random.default_rng(2).permutation(20):
        assert np.array_equal(other(times[k]), answers[k])
    assert np.array_equal(one(times), answers)
    assert np.array_equal(one.iterated(8), other.iterated(8))


def test_more_levels_refine_the_same_path_and_a_range_of_a_level_is_a_part_of_it():
    coarse, deep = (Brownian(2, (T0, T1), rng=5, levels=k) for k in (3, 9))
    assert np.array_equal(coarse.grid(8), deep.grid(8)) and np.array_equal(coarse(0.123), deep(0.123))
    path = np.arange(3, dtype=np.uint64)
    whole = level_range(7, 0, 128, 2, 2.5, path, 5)
    for i0, i1 in ((0, 1), (127, 128), (17, 90), (63, 65)):
        for part, all_of_it in zip(level_range(7, i0, i1, 2, 2.5, path, 5), whole):
            assert np.array_equal(part, all_of_it[i0:i1])


def test_paths_are_the_same_in_any_company():
    many = Brownian(2, (0, 1), rng=5, levels=4, n_paths=4)
    some = Brownian(2, (0, 1), rng=5, levels=4, path_index=[3, 1])
    alone = Brownian(2, (0, 1), rng=5, levels=4, path_index=3)
    for ask in (lambda b: b.grid(12), lambda b: b.iterated(4), lambda b: b([0.3, 0.1]), lambda b: b.space_time(3)):
        assert np.array_equal(ask(some), ask(many)[[3, 1]]) and np.array_equal(ask(alone), ask(many)[3])
        assert not np.isin(ask(many)[0][ask(many)[0] != 0], ask(many)[1]).any()
    assert not np.array_equal(Brownian(2, (0, 1), rng=6).grid(2), Brownian(2, (0, 1), rng=5).grid(2))


def test_the_non_commutative_pair_is_exact_on_coarse_steps_and_a_transposed_area_is_not():
    # dX = (dW_1, dW_2, X_1 dW_2): Milstein's X_3 is Σ X_1 dW_2 + I_(1,2), over any steps the same number.
    b = Brownian(2, (0, 1), rng=3, levels=12)

    def third(n, transpose=False):
        dW, I = b.grid(n), b.iterated(n)
        x1 = np.cumsum(dW[:, 0]) - dW[:, 0]
        return (x1 * dW[:, 1]).sum() + I[:, *((1, 0) if transpose else (0, 1))].sum()

    fine = third(4096)
    dW = b.grid(4096)
    plain = ((np.cumsum(dW[:, 0]) - dW[:, 0]) * dW[:, 1]).sum()
    assert abs(plain - fine) < 5 * np.sqrt(1 / 4096 / 2)  # without areas: Σ of 4096 areas and half squares
    for n in (1, 4, 32, 256, 2048):
        assert abs(third(n) - fine) < 1e-12
        assert abs(third(n, transpose=True) - fine) > 1e-4


def test_a_run_takes_its_grid():
    sde = sg.SDE(lambda t, y: (0.0 * y[0], 0.0), lambda t, y: (1.0, 1.0), dim=2, noise="diagonal")
    b = Brownian(2, (0, 1), rng=3, n_paths=3)
    sol = sg.solve(sde, (0, 1), [0.0, 0.0], dt=1 / 64, n_paths=3, dW=b.grid(64), t_eval=[0, 0.25, 1])
    close(sol.y, b([0.0, 0.25, 1.0]))


def test_empty_intervals_and_rounding_of_the_ends():
    b = Brownian(2, (0.1, 0.7), rng=3, levels=4)
    assert (b.increments(0.3, 0.3) == 0).all() and (b.space_time_area(0.3, 0.3) == 0).all()
    t = 0.1 + np.arange(17) * 0.0375  # times that carry rounding
    close([b.iterated_integrals(s, e) for s, e in pairwise(t)], b.iterated(16), atol=1e-15)
    assert np.array_equal(b.increments(0.1, 0.7 + 1e-16), b.grid(1)[0])


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda b: b(2.0), "t must"),
        (lambda b: b.increments(0.5, 0.4), "t1"),
        (lambda b: b.increments([0.1, 0.2], [0.3, 0.4, 0.5]), "broadcast"),
        (lambda b: b.iterated(3), "n_steps"),
        (lambda b: b.iterated(32), "levels"),
        (lambda b: b.iterated_integrals(0.0, 0.3), "t1 must be a time of the finest grid"),
        (lambda b: b.iterated_integrals(0.5, 0.5), "after"),
        (lambda b: b.iterated(2, calculus="strato"), "calculus"),
        (lambda b: b.grid(0), "n_steps"),
        (lambda b: Brownian(0, (0, 1)), "m must"),
        (lambda b: Brownian(2, (1, 0)), "t_span"),
        (lambda b: Brownian(2, (0, 1), levels=31), "levels"),
        (lambda b: Brownian(2, (0, 1), n_paths=2, path_index=[1, 2]), "path_index"),
        (lambda b: Brownian(2, (0, 1), error=0), "error"),
        (lambda b: coarsen(b.grid(4), factor=3), "factor"),
        (lambda b: coarsen(b.grid(4), b.iterated(8)), "I must"),
        (lambda b: coarsen(b.grid(4), H=b.grid(8)), "H must"),
    ],
)
def test_arguments(ask, word):
    with pytest.raises(ValueError, match=word):
        ask(Brownian(2, (0, 1), rng=0, levels=4))


def test_an_independent_scheme_reads_the_integrals_the_same_way():
    # sdeint's SRI2 (first index earlier) is exact for the pair, fed with dW and I of coarse steps.
    sdeint = pytest.importorskip("sdeint")
    b = Brownian(2, (0, 1), rng=3, levels=8)
    fine, W = b.iterated(256)[:, 0, 1], b(np.arange(257) / 256)
    third = (W[:-1, 0] * b.grid(256)[:, 1] + fine).sum()

    def solve(I):
        def G(x, t):
            return np.array([[1.0, 0.0], [0.0, 1.0], [0.0, x[0]]])

        return sdeint.itoSRI2(lambda x, t: np.zeros(3), G, np.zeros(3), np.arange(17) / 16, dW=b.grid(16), I=I)[-1]

    close(solve(b.iterated(16)), [*W[-1], third], atol=1e-12)
    assert abs(solve(b.iterated(16).swapaxes(1, 2))[2] - third) > 1e-3
