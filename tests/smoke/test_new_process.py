"""A new process compiles nothing that an earlier one has compiled, and runs where nothing can be kept.

How long it takes is printed by `benchmarks/new_process.py`; a test would measure the machine.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sgdsde

COUNT = """
import gc, json
from numba.core.dispatcher import Dispatcher
found = {}
for one in gc.get_objects():
    if isinstance(one, Dispatcher) and (one.py_func.__module__ or "").split(".")[0] == "sgdsde":
        hits, misses = found.get(one.py_func.__module__, (0, 0))
        stats = one.stats
        found[one.py_func.__module__] = hits + sum(stats.cache_hits.values()), misses + sum(stats.cache_misses.values())
print(json.dumps({name: counts for name, counts in found.items() if any(counts)}))
"""

EULER = "METHODS = {'ito': ['euler-maruyama']}\n"
ALL = "METHODS = {'ito': ['euler-maruyama', 'milstein'], 'stratonovich': ['heun', 'milstein']}\n"
EQUATION = """
import sgdsde as sg

def drift(t, y):
    return (-y[0],)

def diffusion(t, y):
    return (0.5 * y[0],)

for calculus, names in METHODS.items():
    sde = sg.SDE(drift, diffusion, dim=1, noise="scalar", calculus=calculus)
    for name in names:
        sol = sg.solve(sde, (0, 1), [1.0], method=name, dt=0.25, n_paths=3, rng=0, keep="stats", t_eval=[0.3, 1])
        sol.mean()
"""

NETWORK = """
import numpy as np, sgdsde as sg

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 4, 2))
problem = sg.SGD(sg.models.DeepLinear([2, 2, 2]), X, Y, learning_rate=0.01, batch_size=2, gamma=0.1)
theta = problem.model.init(rng=0)
law = sg.ChargeLaw(sg.Charge(problem.model.symmetries()["B=I"]), problem)
law.report(sg.solve(problem.sde(), (0, 0.1), theta, method="milstein-symmetric", n_paths=2, rng=0, track=law))
law.report(problem.run(theta, n_steps=10, n_paths=2, rng=0, track=law))
"""


def new_process(code, environment, folder):
    """Run `code` from a file in a new process."""
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """An environment with a cache of its own, which starts as a copy of the one that these tests use.

    Where NUMBA_CACHE_DIR is not set, compiled code lies beside the modules, and the first process warms that.
    """
    here = [str(Path(sgdsde.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(here)}
    if "NUMBA_CACHE_DIR" in environment:
        own = tmp_path_factory.mktemp("cache") / "kernels"
        if Path(environment["NUMBA_CACHE_DIR"]).is_dir():
            shutil.copytree(environment["NUMBA_CACHE_DIR"], own, ignore=shutil.ignore_patterns("*.tmp*"))
        environment["NUMBA_CACHE_DIR"] = str(own)
    return environment


def compiled(counts, *rooms):
    """Modules of these rooms in which something was compiled rather than read."""
    return {name: misses for name, (_, misses) in counts.items() if misses and name.split(".")[1] in rooms}


@pytest.mark.parametrize("code", [ALL + EQUATION, NETWORK], ids=["equation", "network"])
def test_the_second_process_reads_every_kernel(cache, tmp_path, code):
    """Warmed by a first process, the second compiles the user's own functions and nothing else."""
    counts = json.loads([new_process(code + COUNT, cache, tmp_path) for _ in range(2)][1].stdout)
    assert compiled(counts, "random", "schemes", "run", "models", "sgd", "symmetry", "algebra") == {}
    if code == NETWORK:
        assert compiled(counts, "equation") == {}
    read = {name for name, (hits, _) in counts.items() if hits}
    assert {"sgdsde.random.normal", "sgdsde.run.engine"} <= read  # the count sees what it should
    assert ("sgdsde.models.deep_linear_kernels" if code == NETWORK else "sgdsde.schemes.milstein") in read


def test_the_count_sees_what_is_compiled(cache, tmp_path):
    """The control: from an empty cache a kernel is compiled."""
    environment = {**cache, "NUMBA_CACHE_DIR": str(tmp_path / "empty")}
    counts = json.loads(new_process("import sgdsde.schemes.heun\n" + COUNT, environment, tmp_path).stdout)
    assert compiled(counts, "schemes") == {"sgdsde.schemes.heun": 1}


def test_import_compiles_nothing_and_loads_nothing_optional(cache, tmp_path):
    code = "import sgdsde, sys; print(*sys.modules)\n"
    loaded = set(new_process(code, cache, tmp_path).stdout.split())
    assert not loaded & {"numba", "matplotlib", "torch", "jax", "sklearn"}
    # and what is optional stays out of a run
    loaded = set(new_process(NETWORK + "import sys; print(*sys.modules)", cache, tmp_path).stdout.split())
    assert "sgdsde.run.engine" in loaded and not loaded & {"matplotlib", "torch", "jax", "sklearn"}


def test_where_no_cache_can_be_written_it_solves_and_warns_once(tmp_path):
    """Every place that numba tries lies below a regular file, which stops even the superuser."""
    package = tmp_path / "sgdsde"
    shutil.copytree(Path(sgdsde.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(one for one in package.rglob("*") if one.is_dir())]:
        (folder / "__pycache__").touch()
    blocker = tmp_path / "file"
    blocker.touch()
    below = str(blocker / "below")
    places = {name: below for name in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "IPYTHONDIR")}
    environment = {**os.environ, **places, "PYTHONPATH": str(tmp_path), "NUMBA_OPT": "0"}  # compiles faster
    done = new_process(EULER + EQUATION + "print(sg.__file__, sol.mean()[-1, 0], sep='\\n')", environment, tmp_path)
    where, mean = done.stdout.split()
    assert Path(where).parent == package and 0.0 < float(mean) < 2.0
    warned = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert len(warned) == 1 and "RuntimeWarning" in warned[0] and "NUMBA_CACHE_DIR" in warned[0], done.stderr
