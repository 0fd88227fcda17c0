"""What kernels are promised: addresses, times, lengths, scratch, and what becomes of a failure that they report.

The equation and the schemes here are recursions that write down what they are given.
"""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import AUX, INCREMENT, STEP
from sgdsde._errors import NOT_CONVERGED, OK
from sgdsde._jit import kernel_uncached
from sgdsde.equation._equation import Kernels
from sgdsde.run.grid import Grid, make_grid
from sgdsde.run.integrating import integrate
from sgdsde.schemes import Aux, Scheme


@kernel_uncached(INCREMENT)
def no_increment(out, x, t, h, v, p, data, work):
    out[:] = 0.0


@kernel_uncached(AUX)
def write_addresses(aux, dW, h, path, step, key, p, data, work):
    for b in range(aux.shape[1]):
        aux[0, b] = step
        aux[1, b] = path[b] + 1000.0 * key + 1e6 * h[b]


@kernel_uncached(STEP)
def take_aux(increment, correction, x, t, h, dW, aux, status, work, p, data):
    for b in range(x.shape[1]):
        x[0, b] = aux[0, b]
        x[1, b] = aux[1, b]


@kernel_uncached(STEP)
def take_times(increment, correction, x, t, h, dW, aux, status, work, p, data):
    for b in range(x.shape[1]):
        x[0, b] = t[b]
        x[1, b] = h[b]


@kernel_uncached(STEP)
def fail_sometimes(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """Counts steps in x[0]; path number x[1] fails at step 10 + x[1], as an implicit scheme would report it."""
    for b in range(x.shape[1]):
        x[0, b] += 1.0
        if x[0, b] == 10.0 + x[1, b] and x[1, b] > 0.0:
            status[b] = 2


@kernel_uncached(STEP)
def use_all_scratch(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    for i in range(5 + 3 * n):
        work[i] = np.nan
    for b in range(n):
        x[0, b] += 1.0


def scheme(step, aux=None, work=(0, 0)):
    aux = None if aux is None else Aux(aux, lambda d, m: 2)
    calculus = ("ito", "discrete")
    return Scheme("test", step, calculus, strong={"general": 1.0}, weak={}, aux=aux, work=lambda d, m: work)


class Recursion:
    dim, noise, block = 2, "general", None

    def __init__(self, calculus="discrete"):
        self.calculus, self.noise_dim = calculus, 0 if calculus == "discrete" else 1

    def kernels(self, *, correction=False):
        return Kernels(no_increment, None, np.zeros(0), np.zeros(0))


def run(scheme, n_steps=20, calculus="discrete", **more):
    grid = Grid(0.0, n_steps * 0.5, 0.5, 0.5, n_steps)
    more = {"n_paths": 7, "rng": 3, "t_eval": "steps", **more}
    return integrate(Recursion(calculus), scheme, grid, more.pop("y0", [0.0, 0.0]), problem="a recursion", **more)


@pytest.mark.parametrize("how", [{}, {"block_size": 1, "chunk_steps": 3}, {"block_size": 4, "threads": 2}])
def test_a_recursion_draws_by_step_path_and_key(how):
    y = run(scheme(take_aux, write_addresses), **how).y
    assert np.array_equal(y[:, 1:, 0], np.broadcast_to(np.arange(20.0), (7, 20)))
    expected = np.arange(7.0)[:, None] + 3000.0 + 0.5e6
    assert np.array_equal(y[:, 1:, 1], np.broadcast_to(expected, (7, 20)))
    index = run(scheme(take_aux, write_addresses), path_index=[5, 2**40], n_paths=None, **how).y
    assert index[:, 1, 1].tolist() == [5 + 503000, 2**40 + 503000]


def test_a_recursion_is_saved_on_its_steps():
    sol = run(scheme(take_aux, write_addresses), t_eval=[0.0, 0.6, 0.9, 10.0])
    assert sol.t.tolist() == [0, 0.5, 1.0, 10.0] and sol.steps.tolist() == [0, 1, 2, 20]
    assert sol.y[0, :, 0].tolist() == [0, 0, 1, 19] and sol.success
    with pytest.raises(sg.ArgumentError, match="dW cannot drive discrete SGD"):
        run(scheme(take_aux, write_addresses), dW=np.zeros((7, 20, 0)))


def test_draws_of_a_side_step_have_numbers_of_their_own():
    between = run(scheme(take_aux, write_addresses), calculus="ito", t_eval=[0.2, 0.3, 0.7, 1.0, 10.0])
    step = between.y[0, :, 0]
    grid = np.arange(20)
    assert len(set(step)) == 5 and not np.isin(step[:3], grid).any() and np.all(step > 0) and step.max() < 2.0**60
    np.testing.assert_allclose(between.y[0, :3, 1], 3000 + 1e6 * np.array([0.2, 0.3, 0.2]), rtol=1e-12)
    assert step[3:].tolist() == [1, 19]


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_times_and_lengths_of_steps(chunk):
    grid = make_grid(2.0, 3.0, 0.3)
    sol = integrate(
        Recursion("ito"), scheme(take_times), grid, [9.0, 9.0], problem="x", rng=0, t_eval="steps", chunk_steps=chunk
    )
    assert sol.y[1:, 0].tolist() == [2.0 + k * 0.3 for k in range(4)]
    np.testing.assert_allclose(sol.y[1:, 1], [0.3, 0.3, 0.3, 0.1], rtol=1e-14)


@pytest.mark.parametrize("how", [{}, {"block_size": 1}, {"chunk_steps": 1}, {"block_size": 4, "chunk_steps": 11}])
def test_a_step_that_reports_failure_ends_its_path_alone(how):
    y0 = np.zeros((7, 2))
    y0[[2, 5], 1] = [1.0, 4.0]  # fail at steps 11 and 14
    with pytest.warns(sg.DivergenceWarning, match="2 of 7 paths: an implicit step or a projection did not"):
        sol = run(scheme(fail_sometimes), y0=y0, **how)
    status = np.full(7, OK)
    status[[2, 5]] = NOT_CONVERGED
    assert np.array_equal(sol.path_status, status) and sol.n_diverged == 0
    assert sol.t_stopped[[2, 5]].tolist() == [11 * 0.5, 14 * 0.5]
    assert np.isnan(sol.y[2, 11:]).all() and np.array_equal(sol.y[2, :11, 0], np.arange(11))
    assert np.array_equal(sol.y[[0, 1, 3, 4, 6], :, 0], np.tile(np.arange(21.0), (5, 1)))


def test_scratch_is_as_large_as_declared():
    sol = run(scheme(use_all_scratch, work=(5, 3)), n_paths=9)
    assert np.all(sol.y[:, -1, 0] == 20)


def test_a_run_of_many_steps_and_one_of_none_left():
    sol = run(scheme(take_times), n_steps=100_000, t_eval=None)
    assert sol.y[0, -1, 0] == 99_999 * 0.5 and sol.n_steps == 100_000
    assert run(scheme(take_times), n_steps=1).y.shape == (7, 2, 2)


def test_a_solution_can_be_pickled(eq):
    sol = sg.solve(eq.gbm, (0, 1), [1.0], dt=0.25, rng=9, n_paths=4)
    again = pickle.loads(pickle.dumps(sol))
    assert eq.same(again.y, sol.y) and repr(again) == repr(sol)
