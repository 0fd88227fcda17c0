"""The time grid: how many steps, the last one, and where the times to save fall."""

import numpy as np
import pytest

from sgdsde import ArgumentError
from sgdsde._errors import TooLargeError
from sgdsde.run.grid import make_grid, make_saves, time_span


@pytest.mark.parametrize(("t1", "dt", "n"), [(0.9, 0.03, 30), (2.1, 0.3, 7), (1.8, 0.06, 30), (1.0, 0.1, 10)])
def test_a_dt_that_divides_gives_that_many_equal_steps(t1, dt, n):
    grid = make_grid(0.0, t1, dt)
    assert grid.n_steps == n and grid.h == grid.h_last and abs(grid.h - dt) < 1e-15


@pytest.mark.parametrize(
    ("t0", "t1", "dt", "n"), [(0, 1, 0.3, 4), (0, 1, 0.7, 2), (0, 1, 5.0, 1), (1e9, 1e9 + 1, 0.3, 4)]
)
def test_a_dt_that_does_not_divide_makes_the_last_step_shorter(t0, t1, dt, n):
    grid = make_grid(t0, t1, dt)
    assert grid.n_steps == n and grid.h == dt and 0 < grid.h_last < dt
    assert (n - 1) * dt + grid.h_last == pytest.approx(t1 - t0, abs=1e-15)
    assert grid.time(n) == t1 and grid.time(0) == t0


def test_times_that_meet_grid_points_up_to_rounding_are_on_them():
    grid = make_grid(0.0, 1.0, 0.1)
    for wanted in (np.arange(11) * 0.1, np.cumsum([0.0] + [0.1] * 10), np.linspace(0, 1, 11), np.arange(11) / 10):
        saves = make_saves(grid, wanted, keep="all", on_grid=False)
        assert np.array_equal(saves.step, np.arange(11)) and not saves.offset.any()


def test_times_between_are_a_grid_point_and_an_offset():
    saves = make_saves(make_grid(0.0, 1.0, 0.3), [0.0, 0.05, 0.3, 0.65, 0.95, 1.0], keep="all", on_grid=False)
    assert saves.step.tolist() == [0, 0, 1, 2, 3, 4]
    np.testing.assert_allclose(saves.offset, [0, 0.05, 0, 0.05, 0.05, 0], atol=1e-15)


@pytest.mark.parametrize("dt", [1e-3, 1e-7, 3e-8])
def test_a_far_origin_does_not_move_the_ends(dt):
    # At t = 1e9 neighbouring numbers are 1.2e-7 apart.
    grid = make_grid(1e9, 1e9 + 1e-4 if dt < 1e-5 else 1e9 + 1, dt)
    saves = make_saves(grid, None, keep="all", on_grid=False)
    assert saves.step.tolist() == [0, grid.n_steps] and not saves.offset.any()
    assert 0 < grid.h_last <= grid.h
    many = make_saves(grid, 11, keep="all", on_grid=False)
    assert np.all(np.diff(many.step) >= 0) and np.all(many.offset >= 0) and np.all(many.offset < grid.h)
    reached = np.where(many.step == grid.n_steps, grid.t1 - grid.t0, many.step * grid.h + many.offset)
    np.testing.assert_allclose(reached, many.times - grid.t0, rtol=0, atol=min(dt / 4, 9e-7))


def test_discrete_times_move_to_the_nearest_step_and_meet():
    grid = make_grid(0.0, 0.5, 0.1)
    saves = make_saves(grid, [0.0, 0.11, 0.12, 0.26, 0.5], keep="all", on_grid=True)
    assert saves.step.tolist() == [0, 1, 3, 5]
    np.testing.assert_allclose(saves.times, [0, 0.1, 0.3, 0.5])
    short = make_saves(make_grid(0.0, 1.0, 0.3), None, keep="all", on_grid=True)  # the last step is shorter
    assert short.step.tolist() == [0, 4] and short.times.tolist() == [0, 1]


def test_reading_t_eval():
    grid = make_grid(0.0, 1.0, 0.25)
    read = lambda t_eval, keep="all": make_saves(grid, t_eval, keep=keep, on_grid=False).times.tolist()  # noqa: E731
    assert read(None) == [0, 1] and read(3) == [0, 0.5, 1] and read("steps") == [0, 0.25, 0.5, 0.75, 1]
    assert read(None, "final") == [1] and read((0.1,)) == [0.1]
    assert read([0.0, 1.0 + 1e-16]) == [0, 1]
    for bad in (1, 2.5, True, "every", [], [0.5, 0.2], [0.1, 0.1], [-0.1, 1], [0.5, 1.1], [0.5, np.nan], "ab"):
        with pytest.raises(ArgumentError, match="t_eval"):
            read(bad)
    for bad in (2.5, {0.5}, iter([0.5])):
        with pytest.raises(ArgumentError, match='t_eval must be None, "steps", how many times, or a sequence of times'):
            read(bad)
    with pytest.raises(ArgumentError, match='keep="final"'):
        read(3, "final")
    for many in (10**13, "steps"):
        with pytest.raises(TooLargeError, match="saving at"):
            make_saves(make_grid(0.0, 1.0, 1e-13), many, keep="all", on_grid=False)


def test_spans_go_forward():
    """M16."""
    for bad in ((1, 0), (1, 1)):
        with pytest.raises(ArgumentError, match=r"t_span must go forward in time, got \(1, "):
            time_span(bad)
    for bad in (3, (0, 1, 2), (0, np.inf), "01", None):
        with pytest.raises(ArgumentError, match="t_span"):
            time_span(bad)
    with pytest.raises(ArgumentError, match="at most 2"):
        make_grid(0.0, 1.0, 1e-300)
