"""The bits of a path depend on the equation, the method, the step, the seed and its number, and on nothing else."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (its BLAS is the one that kernels call: loaded before a limit is set)
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import sgdsde as sg

WEIGHTS = np.random.default_rng(1).normal(size=(40, 40)) / 8
LARGE = np.random.default_rng(2).normal(size=(400, 400)) / 20


def drift_two(t, y, a):
    return (a * np.sin(y[1] + t), np.exp(-y[0] * y[0]) - 0.3 * y[1])


def noise_two(t, y, a):
    return ((0.5 + 0.1 * np.sin(y[0]), 0.2 * np.cos(y[1] - t), 0.1), (0.1 * y[0], 0.3, 0.2 * np.tanh(y[0] * y[1])))


def through_blas(t, y, w):
    return np.dot(w, y) - np.dot(w.T, np.dot(w, y))


def even_noise(t, y, w):
    return 0.1 * w[0, :40]


def through_large_products(t, y, w):
    return np.dot(w, w)[0, :40] - y


def explosive(t, y):
    return (y[0] * y[0] * y[0] - y[1], y[0])


def unit_noise(t, y):
    return (1.0, 0.5)


TWO = sg.SDE(drift_two, noise_two, dim=2, args=(0.7,))
PRODUCTS = sg.SDE(through_large_products, even_noise, dim=40, noise="scalar", args=(LARGE,))
BLAS = sg.SDE(through_blas, even_noise, dim=40, noise="scalar", args=(WEIGHTS,))
EXPLOSIVE = sg.SDE(explosive, unit_noise, dim=2, noise="additive")
SQUARE = {"square": lambda t, y, *args: (t, y[0] * y[0])}

sizes = st.sampled_from([1, 2, 4, 8, 32, 64, 256])
how = st.fixed_dictionaries({
    "block_size": st.none() | sizes,
    "chunk_steps": st.none() | st.integers(1, 80),
    "threads": st.sampled_from([1, 2, 3]),
})  # fmt: skip


def bits(array):
    return np.asarray(array).view(np.int64)


def same(a, b):
    return np.array_equal(bits(a), bits(b))


def run(sde, y0, n_paths, dt, **more):
    return sg.solve(sde, (0, 1), y0, n_paths=n_paths, dt=dt, observe=SQUARE, **{"rng": 17, "t_eval": 5, **more})


@settings(max_examples=40)
@given(
    n_paths=st.integers(1, 150),
    dt=st.sampled_from([1 / 3, 0.3, 0.013, 1 / 200]),
    method=st.sampled_from(["euler-maruyama", "milstein-symmetric"]),
    how=how,
)
def test_blocks_chunks_and_threads(n_paths, dt, method, how):
    one = run(TWO, [0.3, -0.2], n_paths, dt, method=method, block_size=1, chunk_steps=1, threads=1)
    other = run(TWO, [0.3, -0.2], n_paths, dt, method=method, **how)
    assert same(one.values, other.values)
    stats = run(TWO, [0.3, -0.2], n_paths, dt, method=method, keep="stats", **how)
    for what in ("y", "square"):
        assert same(one.mean(what), stats.mean(what)) and same(one.var(what), stats.var(what))


@settings(max_examples=15)
@given(n_paths=st.integers(2, 60), dt=st.sampled_from([0.05, 0.013]), how=how)
@pytest.mark.filterwarnings("ignore::sgdsde.DivergenceWarning")
def test_also_where_paths_are_stopped(n_paths, dt, how):
    one = run(EXPLOSIVE, [0.8, 0.0], n_paths, dt, block_size=1, chunk_steps=1, threads=1, t_eval="steps")
    other = run(EXPLOSIVE, [0.8, 0.0], n_paths, dt, t_eval="steps", **how)
    assert same(one.values, other.values) and same(one.t_stopped, other.t_stopped)
    assert np.array_equal(one.path_status, other.path_status)


@settings(max_examples=15)
@given(data=st.data(), n_paths=st.integers(1, 60), how=how)
def test_times_to_save(data, n_paths, how):
    """What is saved between steps changes no grid state, whatever it is."""
    plain = run(TWO, [0.3, -0.2], n_paths, 0.07, t_eval="steps")
    extra = data.draw(st.lists(st.floats(0, 1), max_size=20))
    times = np.unique(np.concatenate([plain.t, extra]))
    more = run(TWO, [0.3, -0.2], n_paths, 0.07, t_eval=times, **how)
    assert same(more.y[:, np.isin(times, plain.t)], plain.y)


@settings(max_examples=15)
@given(data=st.data(), n_paths=st.integers(1, 100), how=how)
def test_which_other_paths_run(data, n_paths, how):
    whole = run(TWO, [0.3, -0.2], n_paths, 0.07)
    more = run(TWO, [0.3, -0.2], n_paths + 37, 0.07)
    assert same(more.y[:n_paths], whole.y)
    index = data.draw(st.lists(st.integers(0, n_paths - 1), min_size=1, max_size=20, unique=True))
    assert same(run(TWO, [0.3, -0.2], n_paths, 0.07, path_index=index, **how).values, whole.values[index])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("sde", "n_paths", "dt"), [(BLAS, 12, 0.05), (PRODUCTS, 2, 0.5)])
def test_threads_of_blas(sde, n_paths, dt, threads):
    """Products in the user's functions, 40 x 40 and so large (400 x 400) that two threads round differently."""
    with threadpool_limits(1, user_api="blas"):
        one = run(sde, np.linspace(-1, 1, 40), n_paths, dt, threads=1, block_size=1)
    with threadpool_limits(2, user_api="blas"):
        assert same(run(sde, np.linspace(-1, 1, 40), n_paths, dt, threads=threads).values, one.values)


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import test_bits
sol = test_bits.run(test_bits.TWO, [0.3, -0.2], 50, 0.013)
print(sol.values.tobytes().hex()[:4000])
"""


def test_another_process():
    """Nothing of a run lives in the process: other threads of numba and BLAS, another hash seed, the same bits."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment |= {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", CHILD, os.path.dirname(__file__)]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert there.stdout.strip() == run(TWO, [0.3, -0.2], 50, 0.013).values.tobytes().hex()[:4000]
