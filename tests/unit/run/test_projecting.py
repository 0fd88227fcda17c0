"""`project=`: the state is put where it must be after every step, also at times between steps, and nowhere else."""

import numpy as np
import pytest
from numba import njit

import sgdsde as sg
from sgdsde._abi import PROJECT
from sgdsde._errors import NOT_CONVERGED
from sgdsde._jit import kernel_uncached
from sgdsde.run.watching import Watcher


def decay(t, y):
    return (0.05 - y[0],)


def root(t, y):
    return (np.sqrt(y[0]),)


def positive(t, y):
    return (max(y[0], 0.0),)


ROOT = sg.SDE(decay, root, dim=1, noise="scalar")


def test_a_state_that_must_not_be_negative():
    """M12: √y of a negative number is NaN; reflected or cut, every path goes on."""
    run = dict(dt=1 / 32, n_paths=30, rng=4, t_eval="steps", save_noise=True)
    with pytest.warns(sg.DivergenceWarning):
        sg.solve(ROOT, (0, 2), [0.02], **run)
    sol = sg.solve(ROOT, (0, 2), [0.02], project=positive, **run)
    assert sol.success and sol.y.min() == 0.0
    y = np.full(30, 0.02)
    for k in range(64):
        y = np.maximum(y + (0.05 - y) / 32 + np.sqrt(y) * sol.dW[:, k, 0], 0.0)
        np.testing.assert_allclose(sol.y[:, k + 1, 0], y, rtol=0, atol=1e-14)


@pytest.mark.parametrize("how", [{"block_size": 1}, {"block_size": 8, "chunk_steps": 5}, {"threads": 2}])
def test_bits_do_not_depend_on_the_company(how, eq):
    run = dict(dt=1 / 32, n_paths=30, rng=4, t_eval=50, project=positive)
    assert eq.same(sg.solve(ROOT, (0, 2), [0.02], **run).y, sg.solve(ROOT, (0, 2), [0.02], **how, **run).y)


def test_states_between_steps_are_projected_too():
    sol = sg.solve(ROOT, (0, 2), [0.02], dt=1 / 8, n_paths=50, rng=4, t_eval=[0.1, 0.33, 1.9], project=positive)
    assert sol.success and (sol.y == 0.0).sum() > 10 and sol.y.min() == 0.0


def test_it_sees_the_time_at_the_end_of_the_step_and_the_arguments(eq):
    def clock(t, y, a):
        return (t + a,)

    for dt in (0.25, 0.3):
        sol = sg.solve(eq.gbm, (0, 1), [1.0], dt=dt, rng=0, t_eval="steps", project=clock)
        np.testing.assert_allclose(sol.y[1:, 0], sol.t[1:] + 1.0, rtol=1e-15)
    sol = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.25, rng=0, project=clock, step_size=lambda t, y, a: 0.3)
    assert sol.y[-1, 0] == 2.0


class Wall:
    """Cuts y at `top` as a PROJECT kernel; fails where y is above `end`."""

    def __init__(self, top, end):
        self.numbers = np.array([top, end])

    def __project__(self, equation, scheme):
        assert equation.dim == 1 and scheme.name == "euler-maruyama"
        return Watcher(wall, self.numbers, np.zeros(0), 0, (3, 1))


@kernel_uncached(PROJECT)
def wall(x, x0, t, h, status, p, data, work):
    for i in range(3 + x.shape[1]):
        work[i] = np.nan
    for b in range(x.shape[1]):
        if x[0, b] > p[1]:
            status[b] = 2
        x[0, b] = min(x[0, b], p[0]) if x0[0, b] <= p[0] else x[0, b]


def test_a_projection_of_ones_own_may_fail_for_a_path(eq):
    run = dict(dt=1 / 64, n_paths=40, rng=1, t_eval="steps")
    free = sg.solve(eq.wiener, (0, 1), [0.0], **run)
    sol = sg.solve(eq.wiener, (0, 1), [0.0], project=Wall(0.1, 9.0), **run)
    assert sol.success and sol.y.max() == 0.1 and free.y.max() > 0.5
    with pytest.warns(sg.DivergenceWarning, match="an implicit step or a projection did not converge"):
        sol = sg.solve(eq.wiener, (0, 1), [0.0], project=Wall(9.0, 0.5), **run)
    failed = (free.y[:, :, 0] > 0.5).any(axis=1)
    assert 5 < failed.sum() < 35 and np.array_equal(sol.path_status == NOT_CONVERGED, failed)
    assert eq.same(sol.y[~failed], free.y[~failed])


def test_functions_in_python_and_compiled_ones(eq):
    run = dict(dt=1 / 32, n_paths=5, rng=4)
    wanted = sg.solve(ROOT, (0, 2), [0.02], project=positive, **run).y
    assert eq.same(sg.solve(ROOT, (0, 2), [0.02], project=njit(positive), **run).y, wanted)

    class Cut:
        def __call__(self, t, y):
            return [max(y[0], 0.0)]

    with pytest.warns(RuntimeWarning, match="project.*cannot be compiled"):
        assert eq.same(sg.solve(ROOT, (0, 2), [0.02], project=Cut(), **run).y, wanted)


@pytest.mark.parametrize(
    ("project", "error", "match"),
    [
        (lambda t, y: (1.0, 2.0), sg.ShapeError, "project must return the state, 1 numbers, got 2"),
        (3.0, sg.ArgumentError, r"project must be a function f\(t, y, \*args\) -> y or a projection, got 3.0"),
        (lambda t, y: "a", sg.SgdsdeError, "project"),
    ],
)
def test_what_is_no_projection(project, error, match):
    with pytest.raises(error, match=match):
        sg.solve(ROOT, (0, 1), [0.5], dt=0.1, rng=0, project=project)
