"""Milstein's method for general noise against sdeint's SRI2: CPU time of a step, one thread, interleaved medians.

    python benchmarks/general_noise.py [--size 10] [--dt 1e-3] [--paths 64] [--repeat 5]

dX = −X dt + G(X) dW, G(x) = Σ_k x_k B_k dense, d = m = size. Both methods have strong order 1.0 with iterated
integrals I. Ours draws them to the error h^{3/2} that this order needs. sdeint (GPL-3, not a dependency) draws a fixed
number of terms, 5 by default: `Ikpw` is Fourier's series, which needs about 3/(2π²h) terms for that error; `Iwik` has
Wiktorsson's tail, which needs √(5m/(12π²h)). The rows with `n=` take as many; the other two are cheaper and
less accurate than ours. One path for sdeint, which has no ensembles; ours per path of an ensemble, and alone.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import sgdsde as sg


def drift(t, y, B, D):
    return -y


def diffusion(t, y, B, D):
    """Σ_k y_k B_k with B_k (d, m): one long inner loop, which vectorises."""
    n, d, m = B.shape
    G, rows = np.zeros(d * m), B.reshape(n, d * m)
    for k in range(n):
        for r in range(d * m):
            G[r] += rows[k, r] * y[k]
    return G.reshape(d, m)


def derivative(t, y, B, D):
    """∂G_ij/∂y_k = B_kij as (d, m, d), which a linear G keeps."""
    return D


def ours(B: np.ndarray, dt: float, n_steps: int, n_paths: int, derivative: Callable | None) -> Callable[[], float]:
    """Of a long run less a short one: what a call of `solve` takes before its first step is not the step's."""
    d, D = len(B), np.ascontiguousarray(np.moveaxis(B, 0, 2))
    sde = sg.SDE(drift, diffusion, dim=d, noise="general", args=(B, D), derivative=derivative)
    options = {"method": "milstein", "dt": dt, "n_paths": n_paths, "rng": 1, "keep": "final", "threads": 1}

    def run() -> float:
        seconds = []
        for steps in (10, 10 + n_steps):
            begin = time.process_time()
            sg.solve(sde, (0, steps * dt), np.ones(d), **options)
            seconds.append(time.process_time() - begin)
        return (seconds[1] - seconds[0]) / (n_steps * n_paths)

    return run


def theirs(B: np.ndarray, dt: float, n_steps: int, integrals: str, terms: int) -> Callable[[], float]:
    import sdeint

    d, C = len(B), np.ascontiguousarray(np.moveaxis(B, 0, 2))
    times, start = dt * np.arange(n_steps + 1), np.ones(d)
    method = partial(getattr(sdeint, integrals), n=terms)

    def run() -> float:
        begin = time.process_time()
        sdeint.itoSRI2(lambda y, t: -y, lambda y, t: C @ y, start, times, Imethod=method)
        return (time.process_time() - begin) / n_steps

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--paths", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args()
    d, h = chosen.size, chosen.dt
    B = 0.3 / d * np.random.default_rng(0).normal(size=(d, d, d))
    fourier, wiktorsson = math.ceil(3 / (2 * math.pi**2 * h)), math.ceil(math.sqrt(5 * d / (12 * math.pi**2 * h)))
    runs = {
        "derivative-free": ours(B, h, 500, chosen.paths, None),
        "derivative-free, one path": ours(B, h, 10000, 1, None),
        "derivative": ours(B, h, 500, chosen.paths, derivative),
        "derivative, one path": ours(B, h, 10000, 1, derivative),
    }
    try:
        runs["sdeint SRI2, Ikpw n=5"] = theirs(B, h, 200, "Ikpw", 5)
        runs[f"sdeint SRI2, Ikpw n={fourier}"] = theirs(B, h, 50, "Ikpw", fourier)
        runs["sdeint SRI2, Iwik n=5"] = theirs(B, h, 50, "Iwik", 5)
        runs[f"sdeint SRI2, Iwik n={wiktorsson}"] = theirs(B, h, 50, "Iwik", wiktorsson)
    except ImportError:
        print("sdeint is not installed: no comparison")
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(chosen.repeat):
        for name, run in runs.items():
            seconds[name].append(run())
    median = {name: statistics.median(found) for name, found in seconds.items()}
    print(f"{'one step, d = m = ' + str(d):30} {'µs':>8}   {'/ derivative-free':>17} {'/ derivative':>13}")
    for name, value in median.items():
        free, exact = value / median["derivative-free"], value / median["derivative"]
        print(f"{name:30} {1e6 * value:8.2f}   {free:17.1f} {exact:13.1f}")


if __name__ == "__main__":
    main()
