"""What is observed at saved times and tracked along the path."""

import math

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import OBSERVE, TRACK
from sgdsde._jit import kernel_uncached
from sgdsde.equation.observing import compile_observer
from sgdsde.run.watching import Watcher

RUN = dict(dt=0.1, n_paths=5, rng=0, t_eval=[0, 0.37, 1])
START = [0.3, -0.2]


@kernel_uncached(TRACK)
def sums(acc, x0, x1, t, h, p, data, work):
    """Number of steps times p, Σ h, Σ t, Σ (x1 - x0), and the last state."""
    for b in range(acc.shape[1]):
        acc[0, b] += p[0]
        acc[1, b] += h[b]
        acc[2, b] += t[b]
        acc[3, b] += x1[0, b] - x0[0, b]
        acc[4, b] = x1[1, b]


@kernel_uncached(OBSERVE)
def shifted(out, x, t, p, data, work):
    for b in range(x.shape[1]):
        work[b] = p[0]
        out[0, b] = x[0, b] + work[b] + data[1]


class Sums:
    name = "sums"

    def __init__(self, weight=1.0):
        self.weight = weight

    def __track__(self, equation, scheme):
        assert equation.dim == 2 and scheme.name == "euler-maruyama"
        return Watcher(sums, np.array([self.weight]), np.zeros(0), 5)


class Shifted:
    def __observe__(self, equation):
        return Watcher(shifted, np.array([10.0]), np.array([0.0, 100.0]), 1, (0, 1))


class Norm:
    def __call__(self, t, y, a, b):
        return math.fsum(y * y)


def product(t, y, a, b):
    return y[0] * y[1]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (product, lambda t, y: y[0] * y[1]),
        (lambda t, y, a, b: (t, y[1], a), lambda t, y: (t, y[1], 0.7)),
        (lambda t, y, a, b: [b, 1], lambda t, y: (-0.4, 1)),
        (lambda t, y, a, b: np.array([y[0], 2.0 * y[1]]), lambda t, y: y * [1, 2]),
        (lambda t, y, a, b: y, lambda t, y: y),
        (lambda t, y, a, b: y[0] > 0.3, lambda t, y: float(y[0] > 0.3)),
        (lambda t, y, a, b: 3, lambda t, y: 3.0),
    ],
)
def test_plain_functions_are_evaluated_at_the_saved_states(eq, function, expected):
    sol = sg.solve(eq.mixed, (0, 1), START, observe={"f": function}, **RUN)
    values = [[np.atleast_1d(expected(t, y)) for t, y in zip(sol.t, path)] for path in sol.y]
    np.testing.assert_allclose(sol.observed["f"], values, rtol=1e-15)
    assert sol.mean("f").shape == (3, sol.observed["f"].shape[2])


def test_they_get_the_arguments_of_this_run_without_compiling_anew(eq):
    first = sg.solve(eq.mixed, (0, 1), START, observe={"a": lambda t, y, a, b: a}, **RUN)
    other = sg.solve(eq.mixed, (0, 1), START, observe={"a": lambda t, y, a, b: a}, args=(5.0, 6.0), **RUN)
    assert np.all(first.observed["a"] == 0.7) and np.all(other.observed["a"] == 5.0)


def test_a_changed_global_or_closure_is_noticed(eq):
    factor = 2.0

    def scaled(t, y, a, b):
        return factor * y[0]

    first = sg.solve(eq.mixed, (0, 1), START, observe=scaled, **RUN).observed["scaled"]
    factor = 4.0
    assert eq.same(sg.solve(eq.mixed, (0, 1), START, observe=scaled, **RUN).observed["scaled"], 2 * first)


def test_what_numba_cannot_compile_runs_in_python_after_one_warning(eq):
    with pytest.warns(RuntimeWarning, match=r"observe\['Norm'\] Norm cannot be compiled and runs in Python"):
        sol = sg.solve(eq.mixed, (0, 1), START, observe=Norm(), **RUN)
    np.testing.assert_allclose(sol.observed["Norm"][..., 0], (sol.y**2).sum(axis=2), rtol=1e-15)
    sg.solve(eq.mixed, (0, 1), START, observe=Norm(), threads=2, block_size=1, **RUN)  # and no second one


def test_large_states_reach_observers():
    d = 300  # beyond what is copied to the stack
    sde = sg.SDE(lambda t, y: np.zeros(300), lambda t, y: np.ones(300), dim=d, noise="scalar")
    sol = sg.solve(
        sde, (0, 1), np.arange(float(d)), dt=0.5, n_paths=3, rng=0, observe={"ends": lambda t, y: (y[0], y[-1])}
    )
    assert np.array_equal(sol.observed["ends"], sol.y[..., [0, -1]])
    assert compile_observer(lambda t, y: y[0], (), d, 1).work == (d, 0)


def test_objects_bring_their_own_kernel(eq):
    sol = sg.solve(eq.mixed, (0, 1), START, observe=[Shifted(), product], **RUN)
    assert np.array_equal(sol.observed["Shifted"][..., 0], sol.y[..., 0] + 110)
    assert list(sol.observed) == ["Shifted", "product"]


def test_trackers_add_up_along_the_path(eq):
    sol = sg.solve(eq.mixed, (0, 1), START, track=Sums(3.0), **RUN)
    count, length, times, moved, last = np.moveaxis(sol.tracked["sums"], 2, 0)
    assert sol.steps.tolist() == [0, 3, 10] and sol.tracked_steps.tolist() == [0, 3, 10]
    assert np.array_equal(count, np.broadcast_to([0.0, 9, 30], (5, 3)))
    np.testing.assert_allclose(length[0], [0, 0.3, 1], rtol=1e-14)
    np.testing.assert_allclose(times[0], [0, 0.3, 4.5], rtol=1e-14)
    np.testing.assert_allclose(moved[:, 2], sol.y[:, 2, 0] - 0.3, rtol=1e-12)
    assert np.array_equal(last[:, 2], sol.y[:, 2, 1])


def test_track_every_calls_on_every_kth_step(eq):
    sol = sg.solve(eq.mixed, (0, 1), START, track={"every": Sums()}, track_every=4, **{**RUN, "t_eval": "steps"})
    assert sol.tracked_steps.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
    assert np.array_equal(sol.tracked["every"][..., 0], np.broadcast_to(sol.tracked_steps, (5, 11)))
    np.testing.assert_allclose(sol.tracked["every"][0, -1, 2], 0 + 0.4 + 0.8, rtol=1e-14)


def test_watching_changes_no_path_and_does_not_depend_on_blocks(eq):
    run = {**RUN, "n_paths": 40}
    plain = sg.solve(eq.mixed, (0, 1), START, **run)
    watch = dict(observe=[product, Shifted()], track=Sums(), track_every=3)
    first = sg.solve(eq.mixed, (0, 1), START, **watch, **run)
    assert eq.same(first.y, plain.y)
    for size, chunk, threads in ((1, 1, 2), (8, 3, 1)):
        again = sg.solve(eq.mixed, (0, 1), START, block_size=size, chunk_steps=chunk, threads=threads, **watch, **run)
        assert eq.same(first.values, again.values)


def test_a_tracker_stops_with_its_path(eq):
    class Any(Sums):
        def __track__(self, equation, scheme):
            return Watcher(count, np.zeros(0), np.zeros(0), 1)

    @kernel_uncached(TRACK)
    def count(acc, x0, x1, t, h, p, data, work):
        for b in range(acc.shape[1]):
            acc[0, b] += 1.0 + 0.0 * x1[0, b]

    with pytest.warns(sg.DivergenceWarning):
        sol = sg.solve(
            eq.cubic, (0, 2), [[3.0], [0.0]], dt=0.1, n_paths=2, rng=1, t_eval="steps", track={"n": Any()}, threads=1
        )
    stop = round(sol.t_stopped[0] / 0.1)
    assert np.array_equal(sol.tracked["n"][0, :stop, 0], np.arange(stop)) and np.isnan(sol.tracked["n"][0, stop:]).all()
    assert np.array_equal(sol.tracked["n"][1, :, 0], np.arange(21))


def strict(t, y):
    if not np.isfinite(y[0]):
        raise ValueError("an observer saw a state that is not finite")
    return y[0]


class Strict:
    def __call__(self, t, y):
        return strict(t, y)


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning", "ignore::sgdsde.DivergenceWarning")
def test_functions_never_see_a_state_that_is_not_finite(eq):
    sol = sg.solve(eq.cubic, (0, 2), [3.0], dt=0.1, rng=1, t_eval="steps", observe=[strict, Strict()])
    assert sol.n_diverged and eq.same(sol.observed["strict"], sol.y) and eq.same(sol.observed["Strict"], sol.y)


@pytest.mark.parametrize(
    ("observe", "error", "match"),
    [
        (3, sg.ArgumentError, "observe.'int'. must be an object with __observe__ or a function"),
        ({"y": product}, sg.ArgumentError, "observe must not use the name 'y'"),
        ({1: product}, sg.ArgumentError, "observe must have text for names, got 1"),
        ([product, product], sg.ArgumentError, "two entries of one name"),
        ({str(i): product for i in range(5)}, sg.ArgumentError, "at most 4 entries, got 5"),
        ({"f": lambda t, y: y}, sg.ModelError, r"observe\['f'\] takes \(t, y\) .* args has 2 entries"),
        ({"f": lambda t, y, a, b: y[7]}, sg.ModelError, r"observe\['f'\] cannot be evaluated at t=0.*out of bounds"),
        ({"f": lambda t, y, a, b: np.eye(2)}, sg.ShapeError, r"observe\['f'\] must return a number or .* \(2, 2\)"),
        ({"f": lambda t, y, a, b: ()}, sg.ShapeError, r"observe\['f'\] must return a number or .* \(0,\)"),
        ({"f": lambda t, y, a, b: "x"}, sg.ModelError, r"observe\['f'\] returned 'x'"),
        ({"f": lambda t, y, a, b: 1j}, sg.ModelError, r"observe\['f'\] returned complex"),
        ({"f": lambda t, y, a, b: None}, sg.ModelError, r"observe\['f'\] returned None"),
    ],
)
def test_wrong_observers_are_refused_in_one_sentence(eq, observe, error, match):
    with pytest.raises(error, match=match):
        sg.solve(eq.mixed, (0, 1), START, observe=observe, **RUN)


def test_wrong_trackers_are_refused(eq):
    with pytest.raises(sg.ArgumentError, match="observe and track must have different names, got 'sums' in both"):
        sg.solve(eq.mixed, (0, 1), START, track=Sums(), observe={"sums": product}, **RUN)
    with pytest.raises(sg.ArgumentError, match="track.'product'. must be an object with __track__, got"):
        sg.solve(eq.mixed, (0, 1), START, track=product, **RUN)
    for bad in (0, 1.5, True):
        with pytest.raises(sg.ArgumentError, match="track_every"):
            sg.solve(eq.mixed, (0, 1), START, track=Sums(), track_every=bad, **RUN)


class Grows:
    """Returns more numbers later than at the start."""

    def __call__(self, t, y, a, b):
        return [1.0] * (1 if t == 0 else 2)


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_what_an_observer_raises_later_reaches_the_caller(eq, threads):
    with pytest.raises(sg.ShapeError, match=r"observe\['Grows'\] returned 2 numbers, and 1 at the start"):
        sg.solve(eq.mixed, (0, 1), START, observe=Grows(), threads=threads, block_size=1, **RUN)

    def late(t, y, a, b):
        if t > 0.5:
            raise KeyError("late")
        return y

    with pytest.raises(KeyError, match="late"):
        sg.solve(eq.mixed, (0, 1), START, observe=late, threads=threads, block_size=1, **RUN)
