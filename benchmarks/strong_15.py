"""What a step of the methods for additive and diagonal noise costs, in steps of Euler-Maruyama.

    python benchmarks/strong_15.py [--repeat 9]

Medians of ratios of interleaved runs, CPU time, one thread. The equations are functions of a user. `dense`: ten
components, drift W tanh(y), diagonal noise or a 10 × 3 noise that depends on time. `light`: two components, drift and
noise cost about the same. `cubic`: a few products, so that what is measured is normal numbers and sums of stages.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numpy as np

import sgdsde as sg

D = 10
W = np.random.default_rng(0).normal(size=(D, D)) / 10
B = np.random.default_rng(1).normal(size=(D, 3)) / 3


def dense(t, y, W, B):
    out = np.empty(D)
    for i in range(D):
        out[i] = -y[i]
        for j in range(D):
            out[i] += W[i, j] * math.tanh(y[j])
    return out


def diagonal(t, y, W, B):
    out = np.empty(D)
    for i in range(D):
        out[i] = 0.3 * math.sqrt(1.0 + y[i] * y[i])
    return out


def of_time(t, y, W, B):
    out = np.empty((D, 3))
    for i in range(D):
        for j in range(3):
            out[i, j] = B[i, j] * (1.0 + 0.5 * math.sin(2.0 * t))
    return out


def light_drift(t, y):
    return math.sin(y[1]) - y[0], math.sin(y[0]) - y[1]


def light_diagonal(t, y):
    return 0.5 / (1.0 + math.exp(-y[0])), 0.5 / (1.0 + math.exp(-y[1]))


def light_of_time(t, y):
    return 0.3 * math.exp(-t), 0.3 / (1.0 + math.exp(-t))


def cubic(t, y):
    return y[1] - y[0] * y[0] * y[0], -y[0] - y[1]


def linear(t, y):
    return 0.3 * y[0], 0.2 * y[1]


def constant(t, y):
    return 0.3, 0.2


EQUATIONS = {
    "dense, additive": (dense, of_time, "additive", D, (W, B)),
    "dense, diagonal": (dense, diagonal, "diagonal", D, (W, B)),
    "light, additive": (light_drift, light_of_time, "additive", 2, ()),
    "light, diagonal": (light_drift, light_diagonal, "diagonal", 2, ()),
    "cubic, additive": (cubic, constant, "additive", 2, ()),
    "cubic, diagonal": (cubic, linear, "diagonal", 2, ()),
}
METHODS = {
    "additive": ("sea", "shark", "sra1", "sra2", "sra3"),
    "diagonal": ("milstein", "sri2", "sriw1", "sriw2"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    for label, (drift, diffusion, noise, d, args) in EQUATIONS.items():
        sde = sg.SDE(drift, diffusion, dim=d, noise=noise, args=args)
        n_paths = 256 if d == D else 4096

        def run(method, sde=sde, d=d, n_paths=n_paths) -> float:
            options = {"dt": 0.01, "n_paths": n_paths, "rng": 1, "keep": "final", "threads": 1}
            begin = time.process_time()
            sg.solve(sde, (0, 5), np.linspace(0.2, 1.0, d), method=method, **options)
            return time.process_time() - begin

        names = METHODS[noise]
        for name in ("euler-maruyama", *names):
            run(name)
        ratios: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(repeat):
            for name in names:
                before, own, after = run("euler-maruyama"), run(name), run("euler-maruyama")
                ratios[name].append(2 * own / (before + after))
        for name in names:
            evaluations = sg.methods[name].evaluations
            print(f"{label:16} {name:10} {statistics.median(ratios[name]):6.2f}   ({evaluations}, by its page)")


if __name__ == "__main__":
    main()
