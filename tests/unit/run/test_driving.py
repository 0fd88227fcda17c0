"""`brownian=`: one path drives runs on any grid, with what a method needs beyond increments; steps of any lengths."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import STEP
from sgdsde._jit import kernel_uncached
from sgdsde.random import Brownian
from sgdsde.schemes import NOISE_KINDS, Aux, Scheme
from sgdsde.schemes._aux import iterated, space_time

START = [0.3, -0.2]


@kernel_uncached(STEP)
def add_aux(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """x[0] grows by Σ_r (r + 1) aux[r]."""
    for b in range(x.shape[1]):
        for r in range(aux.shape[0]):
            x[0, b] += (r + 1.0) * aux[r, b]


def scheme(aux):
    orders = dict.fromkeys(NOISE_KINDS, 1.0)
    return Scheme("own", add_aux, calculus=("ito",), strong=orders, weak=orders, aux=aux)


WANTED = {
    "space-time": (space_time(), lambda B, n: B.space_time(n)),
    "ito": (iterated("ito"), lambda B, n: B.iterated(n).reshape(*B.iterated(n).shape[:2], -1)),
    "stratonovich": (
        iterated("stratonovich"),
        lambda B, n: B.iterated(n, calculus="stratonovich").reshape(*B.iterated(n).shape[:2], -1),
    ),
}


@pytest.mark.parametrize("what", list(WANTED))
@pytest.mark.parametrize("how", [{}, {"block_size": 1, "chunk_steps": 3}, {"threads": 2, "block_size": 4}])
def test_methods_get_what_they_need_of_the_path(eq, what, how):
    aux, of = WANTED[what]
    B = Brownian(3, (0, 1), 7, levels=7, n_paths=11)
    run = dict(method=scheme(aux), dt=1 / 16, n_paths=11, t_eval="steps", brownian=B, **how)
    sol = sg.solve(eq.mixed, (0, 1), START, **run)
    rows = of(B, 16) @ np.arange(1.0, aux.rows(2, 3) + 1)
    wanted = START[0] + np.concatenate([np.zeros((11, 1)), rows.cumsum(axis=1)], axis=1)
    np.testing.assert_allclose(sol.y[:, :, 0], wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 12, 16, 64])
def test_the_increments_are_those_of_its_grids(eq, n):
    B = Brownian(3, (0, 1), 7, levels=4, n_paths=6)
    run = dict(dt=1 / n, n_paths=6, t_eval="steps", save_noise=True)
    sol = sg.solve(eq.mixed, (0, 1), START, brownian=B, **run)
    assert eq.same(sol.dW, B.grid(n)) and eq.same(sol.y, sg.solve(eq.mixed, (0, 1), START, dW=B.grid(n), **run).y)


def test_paths_are_found_by_number(eq):
    """S3: an object is never shared by chance."""
    B = Brownian(3, (0, 1), 7, n_paths=9)
    whole = sg.solve(eq.mixed, (0, 1), START, dt=0.1, n_paths=9, brownian=B).y
    some = sg.solve(eq.mixed, (0, 1), START, dt=0.1, n_paths=9, path_index=[5, 2], brownian=B).y
    assert eq.same(some, whole[[5, 2]])
    far = Brownian(3, (0, 1), 7, path_index=[5, 2])
    assert eq.same(sg.solve(eq.mixed, (0, 1), START, dt=0.1, path_index=[5, 2], brownian=far).y, some)
    one = sg.solve(eq.mixed, (0, 1), START, dt=0.1, brownian=Brownian(3, (0, 1), 7)).y
    assert eq.same(one, whole[0])


@pytest.mark.parametrize("how", [{"block_size": 1}, {"block_size": 4, "chunk_steps": 5}, {"threads": 2}])
def test_bits_do_not_depend_on_the_company(eq, how):
    """Areas of cells are joined one after the other, whatever block they are in."""
    B = Brownian(3, (0, 1), 7, levels=10, n_paths=11)
    run = dict(method=scheme(iterated("ito")), dt=1 / 8, n_paths=11, brownian=B)
    assert eq.same(sg.solve(eq.mixed, (0, 1), START, **run).y, sg.solve(eq.mixed, (0, 1), START, **run, **how).y)


def test_what_is_not_of_the_path_is_independent_of_it_and_repeats(eq):
    """A key of its own: without one, numbers of the steps would be those of the path's areas."""
    B = Brownian(3, (0, 1), 7, n_paths=4)
    own = scheme(Aux(space_time().kernel, rows=lambda d, m: m))
    first = sg.solve(eq.mixed, (0, 1), START, method=own, dt=0.25, n_paths=4, brownian=B)
    again = sg.solve(eq.mixed, (0, 1), START, method=own, dt=0.25, n_paths=4, brownian=B)
    assert eq.same(first.y, again.y) and first.seed == again.seed != B.seed
    other = sg.solve(eq.mixed, (0, 1), START, method=own, dt=0.25, n_paths=4, brownian=B, rng=1)
    assert other.seed == 1 and np.abs(other.y - first.y)[:, -1].max() > 1e-3


def test_another_process_drives_the_same(eq):
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    def drift(t, y):  # local: it travels by value
        return np.sin(y[1]), -y[1]

    def diffusion(t, y):
        return (0.5, 0.1 * y[0]), (0.2, 0.3)

    sde = sg.SDE(drift, diffusion, dim=2)
    B = Brownian(2, (0, 1), 7, n_paths=6)
    run = dict(dt=1 / 16, n_paths=6, brownian=B, block_size=2)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = sg.solve(sde, (0, 1), START, executor=pool, **run)
    assert eq.same(there.y, sg.solve(sde, (0, 1), START, **run).y)


REFUSED = [
    (dict(brownian=3), "brownian must be a sgdsde.Brownian, got 3"),
    (dict(brownian=Brownian(2, (0, 1), 0)), "brownian must have m = 3 components, got 2"),
    (dict(brownian=Brownian(3, (0, 2), 0)), r"brownian must live on t_span = \(0, 1\), got \(0, 2\)"),
    (dict(brownian=Brownian(3, (0, 1), 0), n_paths=2), "brownian has no path number 1"),
    (dict(brownian=Brownian(3, (0, 1), 0), dt=0.3), "dt must divide t1 - t0"),
    (dict(brownian=Brownian(3, (0, 1), 0), t_eval=4), "t_eval must lie on the grid"),
    (dict(brownian=Brownian(3, (0, 1), 0), dW=np.zeros((10, 3))), "dW and brownian exclude each other"),
    (dict(brownian=Brownian(3, (0, 1), 0), method=scheme(iterated("ito"))), "n_steps must divide 2"),
]


@pytest.mark.parametrize(("how", "match"), REFUSED)
def test_what_cannot_drive(eq, how, match):
    with pytest.raises(sg.ArgumentError, match=match):
        sg.solve(eq.mixed, (0, 1), START, **{"dt": 0.1, **how})


LENGTHS = [0.1, 0.3, 0.05, 0.15, 0.4]


def test_steps_of_any_lengths(eq):
    run = dict(dt=LENGTHS, n_paths=5, rng=3, t_eval="steps", save_noise=True)
    sol = sg.solve(eq.gbm, (0, 1), [1.0], **run)
    np.testing.assert_allclose(sol.t, [0, 0.1, 0.4, 0.45, 0.6, 1.0], atol=1e-15)
    for path in range(5):
        np.testing.assert_allclose(sol.y[path], eq.by_hand(eq.gbm, 0.0, [1.0], sol.dW[path], LENGTHS), rtol=1e-14)
    z = sol.dW / np.sqrt(LENGTHS)[:, None]
    np.testing.assert_allclose(z, sg.solve(eq.gbm, (0, 1), [1.0], **{**run, "dt": 0.2}).dW / np.sqrt(0.2), rtol=1e-14)
    for how in ({"block_size": 1}, {"chunk_steps": 2}):
        assert eq.same(sg.solve(eq.gbm, (0, 1), [1.0], **run, **how).y, sol.y)


def test_equal_lengths_are_one_length(eq):
    run = dict(n_paths=5, rng=3, t_eval=[0.0, 0.11, 0.5, 0.9, 1.0])
    equal, one = (sg.solve(eq.mixed, (0, 1), START, dt=dt, **run).y for dt in (np.full(8, 0.125), 0.125))
    assert eq.same(equal, one)


def test_times_are_those_of_the_steps(eq):
    def clock(t, y, a, b):
        return 1.0 + 0.0 * a, t

    def nothing(t, y, a, b):
        return 0.0, 0.0

    sde = sg.SDE(clock, nothing, dim=2, noise="additive", args=(0.0, 0.0))
    sol = sg.solve(sde, (2, 3), [2.0, 0.0], dt=LENGTHS, rng=0, t_eval=[2.05, 2.1, 2.42, 3.0])
    np.testing.assert_allclose(sol.y[:, 0], sol.t, rtol=1e-15)
    starts = 2 + np.array([0, 0.1, 0.4, 0.45, 0.6])
    np.testing.assert_allclose(sol.y[-1, 1], starts @ LENGTHS, rtol=1e-14)
    np.testing.assert_allclose(sol.y[2, 1], starts[0] * 0.1 + starts[1] * 0.3 + starts[2] * 0.02, rtol=1e-14)


@pytest.mark.parametrize(
    ("dt", "match"),
    [
        ([0.5, 0.4], r"dt must add up to t1 - t0 = 1, got 2 lengths of 0.9 in all"),
        ([1.5, -0.5], "dt must be positive, or a sequence of positive lengths"),
        ([], "dt must be positive, or a sequence of positive lengths"),
        ([[0.5], [0.5]], "dt must be positive, or a sequence of positive lengths"),
        ([1.0, 1e-18], "dt must hold lengths that move the time"),
    ],
)
def test_lengths_that_are_none(eq, dt, match):
    with pytest.raises(sg.ArgumentError, match=match):
        sg.solve(eq.gbm, (0, 1), [1.0], dt=dt, rng=0)
