"""Seeds and ensembles: situations that broke other packages (rows S1 to S16), each with the right outcome here."""

import random

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.random import RNG_VERSION


def no_drift(t, y):
    return (0.0,)


def unit(t, y):
    return (1.0,)


WIENER = sg.SDE(no_drift, unit, dim=1, noise="additive")
PAIR = sg.SDE(lambda t, y: (0.0, 0.0), lambda t, y: ((1.0, 0.0), (0.0, 1.0)), dim=2)


def ends(sde=WIENER, y0=(0.0,), *, n_paths=100, rng=1, dt=0.25, **more):
    return sg.solve(sde, (0, 1), y0, dt=dt, n_paths=n_paths, rng=rng, keep="final", **more).y[:, 0]


def test_s1_one_seed_gives_an_ensemble_of_different_paths():
    assert len(np.unique(ends())) == 100


def test_s2_s5_s14_many_paths_on_any_number_of_threads_are_different_and_in_order():
    one = ends(n_paths=100_000, threads=1)
    assert len(np.unique(one)) == 100_000
    for threads in (2, 4):
        assert np.array_equal(one, ends(n_paths=100_000, threads=threads))


def test_s3_one_noise_object_is_never_shared_by_paths():
    with pytest.raises(sg.ShapeError, match="dW must have shape"):
        ends(dW=np.zeros((4, 1)))  # the increments of one path for 100
    assert len(np.unique(ends(rng=np.random.default_rng(3), threads=2))) == 100


def test_s4_the_noise_that_comes_back_is_that_of_each_path():
    sol = sg.solve(WIENER, (0, 1), [0.0], dt=0.25, n_paths=50, rng=1, t_eval="steps", save_noise=True)
    assert len(np.unique(sol.dW[:, 0, 0])) == 50
    for y, dW in zip(sol.y[..., 0], sol.dW[..., 0]):
        by_hand = [0.0]
        for increment in dW:
            by_hand.append(by_hand[-1] + increment)
        assert np.array_equal(y, by_hand)


def test_s6_one_line_repeats_a_run():
    sol = sg.solve(WIENER, (0, 1), [0.0], dt=0.25, n_paths=8)
    assert np.array_equal(sol.y, sg.solve(WIENER, (0, 1), [0.0], dt=0.25, n_paths=8, rng=sol.seed).y)


def test_s7_one_path_of_an_ensemble_alone():
    whole = ends(n_paths=1000)
    assert np.array_equal(ends(n_paths=None, path_index=[731])[0], whole[731])
    assert sg.solve(WIENER, (0, 1), [0.0], dt=0.25, rng=1, path_index=731).y[-1] == whole[731]


@pytest.mark.parametrize(
    ("noise", "returns"),
    [
        ("scalar", (1.0,)),
        ("scalar", ((1.0,),)),
        ("diagonal", (1.0,)),
        ("general", ((1.0,),)),
        ("commutative", ((1.0,),)),
        ("additive", (1.0,)),
    ],
)
def test_s8_every_way_to_write_the_noise_has_the_same_increments(noise, returns):
    sde = sg.SDE(no_drift, lambda t, y: returns, dim=1, noise=noise)
    with_array = sg.SDE(lambda t, y: np.zeros(1), lambda t, y: np.array(returns), dim=1, noise=noise)
    reference = sg.solve(WIENER, (0, 1), [0.0], dt=0.25, n_paths=9, rng=1, save_noise=True)
    for form in (sde, with_array):
        sol = sg.solve(form, (0, 1), [0.0], dt=0.25, n_paths=9, rng=1, save_noise=True)
        assert np.array_equal(sol.dW, reference.dW) and np.array_equal(sol.y, reference.y)


def test_s9_s13_only_rng_counts_and_global_generators_are_left_alone(monkeypatch):
    np.random.seed(1)  # noqa: NPY002
    first = ends()
    np.random.seed(2)  # noqa: NPY002
    assert np.array_equal(first, ends()) and not np.array_equal(first, ends(rng=2))
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    ends(rng=None, t_eval=None)
    sg.solve(WIENER, (0, 1), [0.0], dt=0.25, n_paths=4, t_eval=[0.1, 0.9], method="milstein")
    assert before[0] == random.getstate()
    assert all(np.array_equal(a, b) for a, b in zip(before[1], np.random.get_state()))  # noqa: NPY002

    def touched(*args, **kwargs):
        raise AssertionError("a global generator was used")

    for name in ("normal", "standard_normal", "rand", "randn", "uniform", "random", "random_sample", "randint"):
        monkeypatch.setattr(np.random, name, touched)
    assert np.array_equal(first, ends()) and len(np.unique(ends(rng=None))) == 100


def test_s10_components_of_the_noise_are_independent():
    # Correlation of 10 000 pairs of increments: standard error 0.01; 5 of them, false alarm 6e-7.
    w = ends(PAIR, (0.0, 0.0), n_paths=10_000)
    assert abs(np.corrcoef(w.T)[0, 1]) < 0.05 and len(np.unique(w)) == 20_000


@pytest.mark.parametrize("shift", [1, -1, 0, 37])
def test_s12_neighbouring_seeds_share_nothing(shift):
    a, b = ends(n_paths=10_000, rng=0)[:, 0], ends(n_paths=10_000, rng=1)[:, 0]
    assert abs(np.corrcoef(a, np.roll(b, shift))[0, 1]) < 0.05 and not np.isin(a, b).any()


def test_s16_results_carry_the_version_of_their_random_numbers():
    """Pinned values stand in unit/run/test_golden.py."""
    assert sg.solve(WIENER, (0, 1), [0.0], dt=0.5).rng_version == RNG_VERSION == 1
