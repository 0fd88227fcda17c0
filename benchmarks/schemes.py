"""What a step of each method costs, in steps of Euler-Maruyama: medians of interleaved runs, CPU time, one thread.

    python benchmarks/schemes.py [--repeat 7]

Two equations. `functions`: uw-label as two Python functions, scalar noise, 512 paths; its Stratonovich methods take the
same functions as a Stratonovich equation. `network`: the SDE of SGD on a 30-10-10 network, 200 samples and as many
Brownian motions, 4 paths, where the correction is one tangent pass over all samples.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import sgdsde as sg


def drift(t, y):
    r = y[0] * y[1] - 1.0
    return -y[1] * r, -y[0] * r


def diffusion(t, y):
    return 0.1 * y[1], 0.1 * y[0]


def functions(method: str) -> Callable[[], None]:
    calculus = "ito" if "ito" in sg.methods[method].calculus else "stratonovich"
    sde = sg.SDE(drift, diffusion, dim=2, noise="scalar", calculus=calculus)
    return lambda: sg.solve(
        sde, (0, 5), [1.0, 0.5], method=method, dt=0.01, n_paths=512, rng=1, keep="final", threads=1
    )


def network(method: str) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 30)), rng.normal(size=(200, 10))
    problem = sg.SGD(sg.models.DeepLinear([30, 10, 10]), X / 6, Y, learning_rate=0.01)
    theta = problem.model.init(rng=0)
    return lambda: sg.solve(problem.sde(), (0, 0.5), theta, method=method, n_paths=4, rng=1, keep="final", threads=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    network_methods = ("euler-maruyama", "milstein-symmetric")
    for make, names in ((functions, tuple(sg.methods)), (network, network_methods)):
        runs = {name: make(name) for name in names}
        for run in runs.values():
            run()
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(repeat):
            for name, run in runs.items():
                begin = time.process_time()
                run()
                seconds[name].append(time.process_time() - begin)
        median = {name: statistics.median(found) for name, found in seconds.items()}
        for name in names:
            ratio = median[name] / median["euler-maruyama"]
            print(
                f"{make.__name__:10} {name:20} {ratio:6.2f}   ({sg.methods[name].evaluations} increments, by its page)"
            )


if __name__ == "__main__":
    main()
