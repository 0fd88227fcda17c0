"""Equations travel: to another process with lambdas and closures in them, without compiled code."""

import pickle
import subprocess
import sys
import weakref

import numba
import numpy as np
import pytest

from sgdsde import SDE, to_ito
from sgdsde.equation import python_increment

LOOKUP = {"rate": 2.0}


def value(equation):
    """The increment at one state."""
    k = equation.kernels()
    d, m = equation.dim, equation.noise_dim
    out = np.empty((d, 2))
    x, t, h, v = np.full((d, 2), 1.5), np.zeros(2), np.ones(2), np.ones((m, 2))
    k.increment(out, x, t, h, v, k.p, k.data, np.empty(k.work[0] + 2 * k.work[1]))
    return out


def equations():
    scale = np.array([2.0, 3.0])
    compiled = numba.njit(lambda t, y, a: (y[0] * a[0], y[1]))
    options = {"dim": 2, "noise": "diagonal", "args": (np.array([2.0, 1.0]),)}
    yield SDE(lambda t, y, a: scale * y * a[0], compiled, **options)
    yield SDE(lambda t, y, a: (LOOKUP["rate"] * a[0], y[1]), compiled, **options)
    yield to_ito(SDE(compiled, lambda t, y, a: (y[0], scale[1]), calculus="stratonovich", **options))


@pytest.mark.filterwarnings("ignore:drift <lambda> cannot be compiled:RuntimeWarning")
def test_round_trip_bound_or_not(monkeypatch):
    for problem in equations():
        bound = problem.bind(0.25, [1.0, 2.0])
        expected = value(bound)
        content, again = pickle.dumps(bound), pickle.loads(pickle.dumps(problem))
        monkeypatch.setattr(python_increment, "_registered", weakref.WeakValueDictionary())  # as in another process
        np.testing.assert_array_equal(value(pickle.loads(content)), expected)
        assert repr(again) == repr(problem)
        np.testing.assert_array_equal(value(again.bind(0.25, [1.0, 2.0])), expected)


def test_it_carries_no_compiled_state():
    bound = next(equations()).bind(0.0, [1.0, 2.0])
    before = len(pickle.dumps(bound))
    bound.kernels(correction=True)
    assert len(pickle.dumps(bound)) <= before + 100


SCRIPT = """
import concurrent.futures, multiprocessing, os
import numpy as np
from sgdsde import SDE

shift = 0.5

def drift(t, y, a):
    return (a * y[0] + shift,)

def make(rate):
    return SDE(drift, lambda t, y, a: (rate * y[0],), 1, "diagonal", args=(2.0,)).bind(0.0, [1.0])

def increment(equation):
    k = equation.kernels()
    out = np.empty((1, 1))
    k.increment(out, np.full((1, 1), 1.5), np.zeros(1), np.ones(1), np.full((1, 1), 10.0), k.p, k.data, np.empty(0))
    return out.item(), os.getpid()

if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        value, process = pool.submit(increment, make(3.0)).result()
    print(value, process != os.getpid())
"""


def test_functions_of_a_script_are_compiled_in_a_spawned_process(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["48.5", "True"], done.stderr
