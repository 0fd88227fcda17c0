"""A run that was killed goes on to the same bits; another run, or a damaged file, is refused with the reason."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import TRACK
from sgdsde._jit import kernel_uncached
from sgdsde.run.checkpoint import Checkpoint
from sgdsde.run.watching import Watcher

START = [0.3, -0.2]
RUN = dict(dt=0.01, n_paths=40, rng=3, t_eval=[0.105, 0.5, 1.0], block_size=8, chunk_steps=10, threads=2)


class Stop(Exception):
    pass


def stop_at(fraction):
    def progress(done):
        if done > fraction:
            raise Stop

    return progress


def broken_off(eq, file, *, at=0.4, sde=None, **changes):
    """Start a run that fails half way and leaves its checkpoint."""
    run = {**RUN, "checkpoint": file, "checkpoint_every": 1e-9, **changes}
    with pytest.raises(Stop):
        sg.solve(sde or eq.mixed, (0, 1), START, progress=stop_at(at), **run)
    with np.load(file) as content:
        return json.loads(str(content["header"]))


@pytest.mark.parametrize("keep", ["all", "final", "stats"])
def test_a_run_goes_on_to_the_same_bits(eq, tmp_path, keep):
    changes = {"keep": keep, "t_eval": None} if keep == "final" else {"keep": keep}
    changes |= {"save_noise": True, "observe": {"f": lambda t, y, a, b: y[0]}}
    header = broken_off(eq, tmp_path / "file", at=0.7, **changes)
    with np.load(tmp_path / "file") as file:
        done = file["done-done"]
    assert done.any() and not done.all() and header["steps"]
    whole = sg.solve(eq.mixed, (0, 1), START, **{**RUN, **changes})
    fractions = []
    rest = sg.solve(
        eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", progress=fractions.append, **{**RUN, **changes}
    )
    assert rest.success and fractions[0] > 0.3
    assert eq.same(rest.mean(), whole.mean()) and eq.same(rest.var("f"), whole.var("f")) and eq.same(rest.dW, whole.dW)
    if keep != "stats":
        assert eq.same(rest.values, whole.values)
    # The file now holds the whole run: nothing is left to do.
    again = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", **{**RUN, **changes})
    assert eq.same(again.mean(), whole.mean()) and [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.filterwarnings("ignore::sgdsde.DivergenceWarning")
def test_paths_that_were_stopped_before_stay_dated(eq, tmp_path):
    y0 = np.linspace(-2, 2, 40)[:, None]
    run = {**RUN, "t_eval": "steps"}
    with pytest.raises(Stop):
        sg.solve(
            eq.cubic, (0, 1), y0, checkpoint=tmp_path / "file", checkpoint_every=1e-9, progress=stop_at(0.7), **run
        )
    with np.load(tmp_path / "file") as file:
        assert file["done-first_bad"].any()
    rest = sg.solve(eq.cubic, (0, 1), y0, checkpoint=tmp_path / "file", **run)
    whole = sg.solve(eq.cubic, (0, 1), y0, **run)
    assert eq.same(rest.t_stopped, whole.t_stopped) and eq.same(rest.y, whole.y) and whole.n_diverged
    assert np.array_equal(rest.path_status, whole.path_status)


SCRIPT = """
import pathlib, sys, time
import sgdsde as sg

def drift(t, y): return (-y[0] + y[1], -y[0] * y[1])
def diffusion(t, y): return ((0.1, y[0]), (0.2, 0.1))
sde = sg.SDE(drift, diffusion, dim=2)
run = dict(dt=0.01, n_paths=64, rng=8, t_eval=7, block_size=8, chunk_steps=10)

if __name__ == "__main__":
    def hang(done):
        if done > 0.5:
            pathlib.Path("half").touch()
            time.sleep(600)
    sg.solve(sde, (0, 1), [1.0, 0.5], checkpoint="file", checkpoint_every=1e-9, progress=hang, **run)
"""


def test_a_killed_process_goes_on_in_another_one(eq, tmp_path, monkeypatch):
    (tmp_path / "a_killed_run.py").write_text(SCRIPT)
    monkeypatch.syspath_prepend(str(tmp_path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen([sys.executable, "a_killed_run.py"], cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "half").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    module = importlib.import_module("a_killed_run")
    with np.load(tmp_path / "file") as file:
        assert not file["done-done"].all()
    fractions = []
    rest = sg.solve(
        module.sde, (0, 1), [1.0, 0.5], checkpoint=tmp_path / "file", progress=fractions.append, **module.run
    )
    assert fractions[0] > 0.3
    assert eq.same(rest.y, sg.solve(module.sde, (0, 1), [1.0, 0.5], **module.run).y)


class Weighted:
    name = "weighted"

    def __init__(self, weight):
        self.weight = weight

    def __track__(self, equation, scheme):
        return Watcher(add_weight, np.array([self.weight]), np.zeros(0), 1)


@kernel_uncached(TRACK)
def add_weight(acc, x0, x1, t, h, p, data, work):
    for b in range(acc.shape[1]):
        acc[0, b] += p[0]


def test_a_tracker_with_other_numbers_is_another_run(eq, tmp_path):
    broken_off(eq, tmp_path / "file", track=Weighted(1.0))
    with pytest.raises(sg.ArgumentError, match="belongs to another run: watched was"):
        sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", track=Weighted(2.0), **RUN)
    rest = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", track=Weighted(1.0), **RUN)
    assert np.all(rest.tracked["weighted"][:, -1] == 100)


def another_drift(t, y, a, b):
    return (a * np.sin(y[1] + t), b * np.cos(y[0]) - 0.31 * y[1])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"rng": 4}, r"seed was 3, now it is 4"),
        ({"n_paths": 41}, r"n_paths was 40, now it is 41"),
        ({"block_size": 16}, r"block_size was 8, now it is 16"),
        ({"dt": 0.02}, r"dt was 0.01, now it is 0.02"),
        ({"t_eval": 5}, "t_eval was"),
        ({"keep": "stats"}, "keep was 'all', now it is 'stats'"),
        ({"method": "milstein-symmetric"}, "method was 'euler-maruyama', now it is 'milstein-symmetric'"),
        ({"args": (0.7, -0.41)}, "numbers was"),
        ({"save_noise": True}, "save_noise was False, now it is True"),
        ({"observe": {"f": lambda t, y, a, b: y[0]}}, "observe was"),
        ({"track": Weighted(2.0)}, "track was"),
        ({"path_index": range(40)}, "path_index was 'all'"),
        ({"dW": np.zeros((40, 100, 3))}, "dW was None"),
        ({"y0": [0.3, -0.1]}, "y0 was"),
        ({"t_span": (0, 2)}, "t_span was"),
        ({"sde": "drift"}, "functions was"),
    ],
)
def test_another_run_is_refused_with_what_differs(eq, tmp_path, change, word):
    broken_off(eq, tmp_path / "file")
    before = (tmp_path / "file").read_bytes()
    run = {**RUN, **change}
    sde, span, y0 = eq.mixed, run.pop("t_span", (0, 1)), run.pop("y0", START)
    if run.pop("sde", None):
        another_drift.__name__ = another_drift.__qualname__ = "drift_two"
        sde = sde.replace(drift=another_drift)
    with pytest.raises(
        sg.ArgumentError, match=rf"belongs to another run: {word}.*delete the file or give another name"
    ):
        sg.solve(sde, span, y0, checkpoint=tmp_path / "file", **run)
    assert (tmp_path / "file").read_bytes() == before


def test_the_number_of_threads_may_change(eq, tmp_path):
    run = {**RUN, "block_size": None, "n_paths": 300}
    broken_off(eq, tmp_path / "file", **{**run, "threads": 1})
    rest = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", **{**run, "threads": 2})
    assert eq.same(rest.y, sg.solve(eq.mixed, (0, 1), START, **run).y)


def test_a_run_without_a_seed_goes_on_with_the_one_it_drew(eq, tmp_path):
    header = broken_off(eq, tmp_path / "file", rng=None)
    rest = sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", **{**RUN, "rng": None})
    assert rest.seed == header["settings"]["seed"]
    assert eq.same(rest.y, sg.solve(eq.mixed, (0, 1), START, **{**RUN, "rng": rest.seed}).y)


class InPython:
    """Cannot be compiled: its kernel reads a number that means something in this process alone."""

    def __call__(self, t, y, a, b):
        return (a * np.sin(y[1] + t), b * np.cos(y[0]) - 0.3 * y[1])


@pytest.mark.filterwarnings("ignore:.*runs in Python:RuntimeWarning")
def test_functions_that_run_in_python_go_on_too(eq, tmp_path):
    run = {"dt": 0.1, "n_paths": 8, "block_size": 2, "chunk_steps": 2, "observe": {"f": InPython()}}
    broken_off(eq, tmp_path / "file", sde=eq.mixed.replace(drift=InPython()), **run)
    rest = sg.solve(eq.mixed.replace(drift=InPython()), (0, 1), START, checkpoint=tmp_path / "file", **{**RUN, **run})
    whole = sg.solve(eq.mixed.replace(drift=InPython()), (0, 1), START, **{**RUN, **run})
    assert eq.same(rest.values, whole.values)
    with pytest.raises(sg.ArgumentError, match="belongs to another run: numbers was"):
        sg.solve(
            eq.mixed.replace(drift=InPython()), (0, 1), START, checkpoint=tmp_path / "file", args=(0.7, -0.5),
            **{**RUN, **run},
        )  # fmt: skip


@pytest.mark.parametrize("damage", ["cut", "bytes", "text", "empty", "npz", "pickle"])
def test_a_damaged_file_is_refused(eq, tmp_path, damage):
    file = tmp_path / "file"
    broken_off(eq, file)
    whole = file.read_bytes()
    if damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif damage == "bytes":  # in the middle of an array: the archive's own checksum notices
        at = len(whole) // 3
        file.write_bytes(whole[:at] + bytes(255 - b for b in whole[at : at + 64]) + whole[at + 64 :])
    elif damage == "npz":
        with open(file, "wb") as out:
            np.savez(out, x=np.zeros(3))
    elif damage == "pickle":
        with open(file, "wb") as out:
            np.savez(out, header=np.array([object], dtype=object))
    else:
        file.write_bytes(b"" if damage == "empty" else b"not a checkpoint at all")
    with pytest.raises(
        sg.ArgumentError, match="file' is not a checkpoint of sgdsde, or it is damaged .*delete the file"
    ):
        sg.solve(eq.mixed, (0, 1), START, checkpoint=file, **RUN)


def test_names_that_cannot_be_used(eq, tmp_path):
    for bad in (tmp_path, tmp_path / "no" / "file"):
        with pytest.raises(sg.ArgumentError, match="checkpoint must name a file in a folder that exists"):
            sg.solve(eq.mixed, (0, 1), START, checkpoint=bad, **RUN)
    with pytest.raises(sg.ArgumentError, match="checkpoint must be the path of a file, got 3"):
        sg.solve(eq.mixed, (0, 1), START, checkpoint=3, **RUN)
    with pytest.raises(sg.ArgumentError, match="checkpoint_every must be positive"):
        sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", checkpoint_every=0, **RUN)


def test_a_file_is_replaced_as_a_whole(eq, tmp_path, monkeypatch):
    broken_off(eq, tmp_path / "file")
    before = (tmp_path / "file").read_bytes()

    def full(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="disk full"):
        sg.solve(eq.mixed, (0, 1), START, checkpoint=tmp_path / "file", **RUN)
    assert (tmp_path / "file").read_bytes() == before
    assert Checkpoint(tmp_path / "file", 1.0).block_size == 8


class Pull:
    """A drift, or a projection, that holds a number."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, t, y):
        return [-self.rate * y[0]]


def test_what_objects_hold_belongs_to_the_run(tmp_path):
    """Another number in a callable, another generator of a projection: another run."""

    def noise(t, y):
        return (0.1,)

    file = tmp_path / "held"
    with pytest.warns(RuntimeWarning, match="cannot be compiled"):
        for rate in (1.0, 2.0):
            sde = sg.SDE(Pull(rate), noise, dim=1, noise="additive")
            if rate == 1.0:
                sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0, checkpoint=file)
                sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0, checkpoint=file)
            else:
                with pytest.raises(sg.ArgumentError, match="belongs to another run: functions"):
                    sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0, checkpoint=file)
    X = np.random.default_rng(0).normal(size=(6, 3))
    problem = sg.SGD(sg.models.DeepLinear([3, 2, 2]), X, X[:, :2], learning_rate=0.01)
    model, theta = problem.model, problem.model.init(rng=0)
    first, second = (sg.OrbitProjection(model.generator(np.diag(d)), problem) for d in ([1.0, 0.0], [0.0, 1.0]))
    run = dict(dt=0.01, rng=0, checkpoint=tmp_path / "projected")
    one = sg.solve(problem.sde(), (0, 0.1), theta, project=first, **run).y
    again = sg.OrbitProjection(model.generator(np.diag([1.0, 0.0])), problem)
    assert np.array_equal(sg.solve(problem.sde(), (0, 0.1), theta, project=again, **run).y, one)
    for other in (second, sg.OrbitProjection(model.generator(np.diag([1.0, 0.0])), problem, rate="average")):
        with pytest.raises(sg.ArgumentError, match="belongs to another run: functions"):
            sg.solve(problem.sde(), (0, 0.1), theta, project=other, **run)
