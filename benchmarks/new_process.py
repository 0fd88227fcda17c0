"""Seconds that a new process needs before its first step, beyond a trivial cached function.

    python benchmarks/new_process.py [--repeat 7]

Each measurement is a process of its own, with the cache warm; the three kinds interleave. `trivial` imports numba and
NumPy and calls one cached function, which initialises the compiler: about half a second that any user of numba pays.
On top of it come

- `engine`: everything a run needs but the equation: modules of the package, the kernels of the engine, of the random
  numbers and of a scheme, read from the cache. Goal: at most 0.1 s beyond trivial.
- `network`: the SDE of SGD on a small network, made and taken one step. Nothing is compiled.
- `equation`: an SDE of two Python functions, compiled, and taken one step. Goal: at most 1 s beyond trivial.

CPU seconds are what the work costs, wall seconds what a person waits; on a busy machine they differ. Into each of the
three falls one full pass of the garbage collector over the objects of numba, 0.05 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import sgdsde

TRIVIAL = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import json
import numpy as np
from numba import njit, types

@njit(types.float64(types.float64), cache=True)
def trivial(x):
    return x + 1.0

trivial(1.0)
"""

ENGINE = """
from sgdsde.run.solving import solve
import sgdsde.run.engine, sgdsde.run.idle, sgdsde.schemes.euler_maruyama
"""

NETWORK = """
import sgdsde as sg
problem = sg.SGD(sg.models.DeepLinear([2, 2, 2]), np.eye(2), np.eye(2), learning_rate=0.01)
sg.solve(problem.sde(), (0, 0.01), 0.5 * np.ones(8), rng=0)
"""

EQUATION = """
import sgdsde as sg

def drift(t, y, a):
    return (-a * y[0],)

def diffusion(t, y, a):
    return (0.5 * y[0],)

sde = sg.SDE(drift, diffusion, dim=1, noise="scalar", args=(1.0,))
sg.solve(sde, (0, 0.01), [1.0], dt=0.01, rng=0)
"""

END = """
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""

KINDS = {"trivial": "", "engine": ENGINE, "network": NETWORK, "equation": EQUATION}
GOALS = {"engine": 0.1, "equation": 1.0}


def measure(folder: Path, kind: str) -> tuple[float, float]:
    """(wall, CPU) seconds of one new process, from its first line."""
    here = [str(Path(sgdsde.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(here), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run(
        [sys.executable, str(folder / f"{kind}.py")], env=environment, capture_output=True, text=True, check=True
    )
    wall, cpu = json.loads(done.stdout)
    return wall, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, code in KINDS.items():
            (folder / f"{kind}.py").write_text(TRIVIAL + code + END)
            measure(folder, kind)  # warms the cache
        found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
        for _ in range(repeat):
            for kind in KINDS:
                found[kind].append(measure(folder, kind))
    median = {kind: [statistics.median(column) for column in zip(*rows)] for kind, rows in found.items()}
    print(f"medians of {repeat} new processes, in seconds")
    print(f"{'':10} {'wall':>8} {'CPU':>8}   beyond trivial:  {'wall':>8} {'CPU':>8}")
    for kind, (wall, cpu) in median.items():
        goal = f"   (goal {GOALS[kind]:g})" if kind in GOALS else ""
        beyond = [now - then for now, then in zip((wall, cpu), median["trivial"])]
        print(f"{kind:10} {wall:8.3f} {cpu:8.3f} {'':17} {beyond[0]:8.3f} {beyond[1]:8.3f}{goal}")


if __name__ == "__main__":
    main()
