"""Paths that leave the finite numbers are stopped, dated, counted, and never averaged over."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import DIVERGED, OK


def reference(eq, dW, y0, h):
    """First step (counted from 1) after which each path is not finite by hand; 0 for none."""
    with np.errstate(all="ignore"):
        finite = np.array([np.isfinite(eq.by_hand(eq.cubic, 0.0, s, w, h)[:, 0]) for s, w in zip(y0, dW)])
    return np.where(finite.all(axis=1), 0, finite.argmin(axis=1))


@pytest.fixture(scope="module")
def run(eq):
    """40 paths of dY = Y³ dt + dW/3 at dt = 1/64: some blow up, at different steps; and a far tame copy of each."""
    y0 = np.linspace(-1.5, 1.5, 40)[:, None]
    keep = dict(dt=1 / 64, n_paths=40, rng=9, t_eval="steps", save_noise=True)
    with pytest.warns(sg.DivergenceWarning) as seen:
        sol = sg.solve(eq.cubic, (0, 3), y0, **keep)
    return sol, y0, keep, seen


def test_each_path_is_dated_by_its_first_step_that_is_not_finite(eq, run):
    """M19."""
    sol, y0, _, _ = run
    first = reference(eq, sol.dW, y0, 1 / 64)
    bad = first > 0
    assert 5 < bad.sum() < 35 and len(set(first[bad])) > 5
    assert np.array_equal(sol.path_status == DIVERGED, bad) and np.array_equal(sol.path_status == OK, ~bad)
    assert np.array_equal(sol.t_stopped[bad], first[bad] / 64) and np.isnan(sol.t_stopped[~bad]).all()
    assert sol.n_diverged == bad.sum() and not sol.success
    for path in range(40):
        alive = first[path] if bad[path] else 193
        assert np.isfinite(sol.y[path, :alive]).all() and np.isnan(sol.y[path, alive:]).all()


def test_other_paths_do_not_notice(eq, run):
    sol, y0, keep, _ = run
    good = np.flatnonzero(sol.path_status == OK)
    alone = sg.solve(eq.cubic, (0, 3), y0, path_index=good, **keep)
    assert alone.success and eq.same(alone.y, sol.y[good])
    for size, chunk in ((1, 7), (8, 100), (64, 1), (32, None)):
        with pytest.warns(sg.DivergenceWarning):
            again = sg.solve(eq.cubic, (0, 3), y0, block_size=size, chunk_steps=chunk, **keep)
        assert eq.same(again.y, sol.y) and eq.same(again.t_stopped, sol.t_stopped)


def test_one_warning_with_the_count_that_points_at_the_caller(run):
    sol, _, _, seen = run
    assert len(seen) == 1 and seen[0].filename == __file__
    first = np.nanmin(sol.t_stopped)
    text = f"{sol.n_diverged} of 40 paths left the finite numbers (the first at t = {first:g})"
    assert text in str(seen[0].message) and sol.message == text and text in repr(sol)


def test_means_are_nan_from_the_first_loss_unless_asked(eq, run):
    sol, y0, keep, _ = run
    t_first = np.nanmin(sol.t_stopped)
    before, after = sol.t < t_first, sol.t >= t_first
    for name in ("mean", "var", "std", "stderr"):
        value = getattr(sol, name)()
        assert not np.isnan(value[before]).any() and np.isnan(value[after]).all(), name
    skipped = sol.mean(skip_diverged=True)
    np.testing.assert_allclose(skipped, np.nanmean(sol.y, axis=0), rtol=1e-12, atol=1e-15)
    error = np.nanstd(sol.y[:, -1], axis=0, ddof=1) / np.sqrt(40 - sol.n_diverged)
    np.testing.assert_allclose(sol.stderr(skip_diverged=True)[-1], error, rtol=1e-12)
    assert sol.count()[-1, 0] == 40 - sol.n_diverged and sol.count()[0, 0] == 40
    with pytest.warns(sg.DivergenceWarning):
        stats = sg.solve(eq.cubic, (0, 3), y0, **{**keep, "save_noise": False, "keep": "stats"})
    assert eq.same(stats.mean(), sol.mean()) and eq.same(stats.mean(skip_diverged=True), skipped)


def test_a_start_far_out_stops_at_once(eq):
    """M19: x' = x³ with a large step: 1e100, 5e299, inf."""
    with pytest.warns(sg.DivergenceWarning, match="1 of 1 path left the finite numbers"):
        sol = sg.solve(eq.cubic, (0, 10), [1e100], dt=0.5, rng=0)
    assert sol.path_status.tolist() == [DIVERGED] and sol.t_stopped.tolist() == [1.0] and not sol.success
    assert np.isnan(sol.y[-1]).all() and sol.y[0, 0] == 1e100


def test_trackers_and_observers_of_a_path_stop_with_it(eq):
    with pytest.warns(sg.DivergenceWarning):
        sol = sg.solve(
            eq.cubic, (0, 3), [[1.5], [0.0]], dt=1 / 64, n_paths=2, rng=9, t_eval="steps", observe={"t": lambda t, y: t}
        )
    k = int(sol.t_stopped[0] * 64)
    assert np.isnan(sol.observed["t"][0, k:]).all() and np.array_equal(sol.observed["t"][0, :k, 0], sol.t[:k])
    assert sol.path_status[1] == DIVERGED or np.isfinite(sol.observed["t"][1]).all()
