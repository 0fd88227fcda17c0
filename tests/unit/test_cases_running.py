"""Memory and compile time: situations that broke other packages (rows M1, M2, M9, M18), measured in fresh processes."""

import os
import subprocess
import sys

import numba.core.event
import numpy as np
import pytest

import sgdsde as sg

MEMORY = """
import gc, os
import numpy as np
import sgdsde as sg

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 2**10

def drift(t, y): return (-y[0],)
def diffusion(t, y): return (0.5,)
sde = sg.SDE(drift, diffusion, dim=1, noise="additive")
def run(n, **more): return sg.solve(sde, (0, 1), [1.0], dt=0.25, n_paths=n, rng=0, **more)
run(1000, keep="stats"); run(1000)
"""
linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads the memory of a process from /proc")


def child(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", MEMORY + code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return [float(word) for word in run.stdout.split()]


@linux
def test_m1_the_mean_of_a_million_paths_takes_no_memory_to_speak_of():
    """The peak grows by less than 50 MB; keeping the paths would take 16 MB a time and number."""
    grown, mean, count = child(
        "before = peak(); sol = run(10**6, keep='stats')\nprint(peak() - before, sol.mean()[-1, 0], sol.count()[-1, 0])"
    )
    assert grown < 50 and count == 10**6
    assert abs(mean - 0.75**4) < 5e-3 * 0.5


@linux
def test_m2_memory_stays_flat_over_many_calls():
    """20 calls of 50 000 paths, kept and thrown away, and with functions made anew each time."""
    first, last = child(
        "def once(k):\n"
        "    run(50_000)\n"
        "    a = float(k)\n"
        "    sg.solve(sg.SDE(lambda t, y, a: (-a * y[0],), diffusion_a, dim=1, noise='additive', args=(a,)),\n"
        "             (0, 1), [1.0], dt=0.25, n_paths=1000, rng=0, observe=lambda t, y, a: y[0])\n"
        "def diffusion_a(t, y, a): return (a,)\n"
        "for k in range(4): once(k)\n"
        "first = resident()\n"
        "for k in range(16): once(k)\n"
        "print(first, resident())"
    )
    assert last - first < 3, (first, last)


@pytest.fixture
def compilations():
    """Every compilation of numba's while the test runs."""
    with numba.core.event.install_recorder("numba:compile") as recorder:
        yield recorder.buffer


def drift(t, y, a, w):
    return (-a * y[0] + w[0], y[0] - w[1] * y[1])


def diffusion(t, y, a, w):
    return ((0.1, a), (y[0], 0.2))


def test_m9_new_numbers_compile_nothing(compilations):
    sde = sg.SDE(drift, diffusion, dim=2, args=(1.0, np.ones(2)))
    observe = {"sum": lambda t, y, a, w: y[0] + y[1]}
    run = dict(dt=0.1, n_paths=10, rng=0, observe=observe)
    for method in ("euler-maruyama", "milstein-symmetric"):
        sg.solve(sde, (0, 1), [1.0, 0.0], method=method, **run)
    assert compilations, "the recorder sees compilations"
    compilations.clear()
    for change in (
        {"dt": 0.013},
        {"rng": 12},
        {"n_paths": None},
        {"n_paths": 777},
        {"t_eval": [0.1, 0.123, 0.9]},
        {"t_eval": "steps"},
        {"args": (2.5, np.array([3.0, -1.0]))},
        {"args": (2.5, np.arange(5.0))},
        {"keep": "stats"},
        {"save_noise": True},
        {"path_index": [3, 1]},
        {"threads": 1, "block_size": 4, "chunk_steps": 3},
        {"dW": np.zeros((10, 10, 2))},
        {"method": "milstein-symmetric"},
        {"observe": None},
        {"observe": {"sum": lambda t, y, a, w: y[0] + y[1]}},
    ):
        sg.solve(sde, (0, 1), [0.5, 0.1], **{**run, **change})
    sg.solve(sde.replace(args=(9.0, np.zeros(2))), (-1, 5), np.ones((10, 2)), **run)
    sg.solve(sg.SDE(drift, diffusion, dim=2, args=(1.0, np.ones(2))), (0, 1), [1.0, 0.0], **run)
    assert not compilations, [event[1].data["dispatcher"] for event in compilations]


def test_m18_statistics_come_with_their_errors():
    """Mean, variance and standard error over paths; the error halves with four times the paths."""
    sde = sg.SDE(lambda t, y: (0.0,), lambda t, y: (1.0,), dim=1, noise="additive")
    few, many = (sg.solve(sde, (0, 1), [0.0], dt=0.5, n_paths=n, rng=0, keep="stats") for n in (2_500, 10_000))
    for sol in (few, many):
        assert abs(sol.mean()[-1, 0]) < 5 * sol.stderr()[-1, 0]
        np.testing.assert_allclose(sol.stderr(), np.sqrt(sol.var() / sol.n_paths), rtol=1e-14)
    assert few.stderr()[-1, 0] / many.stderr()[-1, 0] == pytest.approx(2.0, rel=0.1)
