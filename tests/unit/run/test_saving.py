"""What is saved when: times between steps, the grid left alone, ends, observers that see the time they asked for."""

import numpy as np
import pytest

import sgdsde as sg


def test_times_between_steps_change_nothing_on_the_grid(eq):
    grid = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, n_paths=37, rng=5, t_eval="steps")
    rng = np.random.default_rng(0)
    extra = np.unique(np.concatenate([grid.t, rng.uniform(0, 1, 40)]))
    both = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, n_paths=37, rng=5, t_eval=extra)
    assert both.y.shape == (37, 51, 2)
    assert eq.same(both.y[:, np.isin(extra, grid.t)], grid.y)
    assert not eq.same(both.y[:, 1], both.y[:, 0])


def test_a_first_time_in_a_step_does_not_depend_on_the_other_times(eq):
    alone = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, n_paths=5, rng=5, t_eval=[0.42])
    among = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, n_paths=5, rng=5, t_eval=[0.2, 0.42, 0.45, 0.71])
    assert eq.same(alone.y[:, 0], among.y[:, 1])


def test_values_between_steps_have_the_law_of_brownian_motion(eq):
    # y = W exactly. Sample covariance against min(s, t), 5.5 sigma on 78 entries: false alarm 3e-6 before the seed is
    # fixed, and the two components against 0.
    times = np.array([0.03, 0.05, 0.1, 0.17, 0.19, 0.95])
    n = 40_000
    w = sg.solve(eq.pair, (0, 1), [0.0, 0.0], dt=0.1, n_paths=n, rng=11, t_eval=times).y
    flat = np.moveaxis(w, 2, 1).reshape(n, 12)
    expected = np.kron(np.eye(2), np.minimum.outer(times, times))
    sample = flat.T @ flat / n
    error = np.sqrt((np.outer(expected.diagonal(), expected.diagonal()) + expected**2) / n)
    assert np.abs((sample - expected) / error).max() < 5.5


def test_a_value_between_steps_is_one_step_of_its_own_from_the_grid_state(eq):
    # With additive unit noise and a drift the side value is y_k + f(t_k, y_k) s + W(s): recover W(s), use it by hand.
    sde = sg.SDE(lambda t, y: (np.cos(3 * t) - y[0],), lambda t, y: (1.0,), dim=1, noise="additive")
    sol = sg.solve(sde, (0, 1), [0.5], dt=0.25, n_paths=3, rng=2, t_eval=[0.25, 0.35, 0.5], save_noise=True)
    w = sg.solve(eq.wiener, (0, 1), [0.0], dt=0.25, n_paths=3, rng=2, t_eval=[0.25, 0.35])
    y, side = sol.y[:, 0, 0], sol.y[:, 1, 0]
    np.testing.assert_allclose(side, y + (np.cos(0.75) - y) * 0.1 + (w.y[:, 1, 0] - w.y[:, 0, 0]), rtol=1e-12)


def test_a_step_length_that_does_not_divide(eq):
    """W14: Var W(1) = 1 at dt = 0.3, in 4 steps, the last of 0.1. 40 000 paths, 5 sigma of the variance: 3.5 %."""
    sol = sg.solve(eq.wiener, (0, 1), [0.0], dt=0.3, n_paths=40_000, rng=1, save_noise=True)
    assert sol.n_steps == 4 and sol.t[-1] == 1.0
    assert abs(sol.var()[-1, 0] - 1.0) < 5 * np.sqrt(2 / 40_000)
    of_steps = sol.dW[:, :, 0].var(axis=0)
    np.testing.assert_allclose(of_steps, [0.3, 0.3, 0.3, 0.1], rtol=5 * np.sqrt(2 / 40_000))


@pytest.mark.parametrize(("t1", "dt", "n"), [(0.9, 0.03, 30), (2.1, 0.3, 7), (1.8, 0.06, 30)])
def test_a_step_length_that_divides_up_to_rounding(eq, t1, dt, n):
    """W14: exact numbers of steps."""
    assert sg.solve(eq.wiener, (0, t1), [0.0], dt=dt, rng=1, save_noise=True).dW.shape == (n, 1)


def test_ends(eq):
    """W10: saving only the end still has t and y0 right; times increase strictly; the start is y0 where it is saved."""
    run = dict(dt=0.1, n_paths=4, rng=3)
    start = np.arange(8.0).reshape(4, 2)
    both = sg.solve(eq.mixed, (0, 1), start, **run)
    final = sg.solve(eq.mixed, (0, 1), start, keep="final", **run)
    every = sg.solve(eq.mixed, (0, 1), start, t_eval="steps", **run)
    assert both.t.tolist() == [0, 1] and final.t.tolist() == [1] and np.all(np.diff(every.t) > 0)
    assert eq.same(both.y[:, 0], start) and eq.same(every.y[:, 0], start) and np.array_equal(final.y0, start)
    assert eq.same(both.y[:, 1], final.y[:, 0]) and eq.same(both.y[:, 1], every.y[:, -1])
    assert len({row.tobytes() for row in final.y[:, 0]}) == 4


def test_one_path_has_no_axis_for_paths(eq):
    one = sg.solve(
        eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, rng=7, t_eval=5, save_noise=True, observe=lambda t, y, a, b: y
    )
    axis = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, rng=7, t_eval=5, save_noise=True, n_paths=1)
    assert one.y.shape == (5, 2) and axis.y.shape == (1, 5, 2) and eq.same(one.y, axis.y[0])
    assert one.dW.shape == (10, 3) and axis.dW.shape == (1, 10, 3)
    assert one.observed["<lambda>"].shape == (5, 2) and one.y0.shape == (2,)
    assert one.mean().shape == (5, 2) and eq.same(one.mean(), one.y) and np.isnan(one.stderr()).all()


def test_a_far_origin(eq):
    """Steps of 1e-7 at t = 1e9, where clock times are 1.2e-7 apart: the path of the same noise at t = 0."""
    far = sg.solve(eq.gbm, (1e9, 1e9 + 2.0**-13), [1.0], dt=2.0**-23, rng=4)
    near = sg.solve(eq.gbm, (0, 2.0**-13), [1.0], dt=2.0**-23, rng=4)
    assert far.n_steps == 1024 and eq.same(far.y, near.y)


def test_steps_up_to_each_time(eq):
    sol = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.3, rng=0, t_eval=[0, 0.3, 0.5, 1.0])
    assert sol.steps.tolist() == [0, 1, 1, 4]


def test_observers_see_exactly_the_times_that_are_saved(eq):
    times = np.array([0.0, 0.1, 0.12345, 0.3, 0.7, 0.999, 1.0])
    sol = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.3, n_paths=3, rng=0, t_eval=times, observe={"t": lambda t, y, a: t})
    assert np.array_equal(sol.observed["t"][..., 0], np.broadcast_to(times, (3, 7)))
