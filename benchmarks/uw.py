"""uw-label by Euler-Maruyama: ns per path and step against a hand-written C loop, a plain numba loop and diffrax.

    python benchmarks/uw.py [--repeat 7]

dθ = -(w, u)·(uw - 1) dt + 0.1 (w, u) dW, θ0 = (1, 0.5), h = 0.01, 1000 steps, 20 000 paths. Ours: two plain Python
functions through `sgdsde.solve`, every check on. C: `uw_reference.c`, compiled here by the system (xoshiro,
a polynomial Box-Muller, -ffast-math -march=native). All runs interleave; the medians and their ratios are printed. One
path is measured on 10⁶ steps against a loop that a numba user would write (np.random.normal inside).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

import sgdsde as sg

PATHS, STEPS, H, SIGMA = 20_000, 1000, 0.01, 0.1
LONG = 1_000_000


def drift(t, y, target):
    r = y[0] * y[1] - target
    return -y[1] * r, -y[0] * r


def diffusion(t, y, target):
    return SIGMA * y[1], SIGMA * y[0]


SDE = sg.SDE(drift, diffusion, dim=2, noise="scalar", args=(1.0,))
START = [1.0, 0.5]


def ours(threads: int) -> Callable[[], float]:
    def run() -> float:
        begin = time.perf_counter()
        sg.solve(SDE, (0, STEPS * H), START, dt=H, n_paths=PATHS, rng=1, keep="final", threads=threads)
        return (time.perf_counter() - begin) / (PATHS * STEPS) * 1e9

    return run


def one_path() -> float:
    begin = time.perf_counter()
    sg.solve(SDE, (0, LONG * H), START, dt=H, rng=1)
    return (time.perf_counter() - begin) / LONG * 1e9


@numba.njit
def plain_loop(u: float, w: float, h: float, n: int) -> float:
    root = np.sqrt(h)
    for _ in range(n):
        dW = root * np.random.normal(0.0, 1.0)  # noqa: NPY002 (what a numba user writes)
        r = u * w - 1.0
        u, w = u - w * r * h + SIGMA * w * dW, w - u * r * h + SIGMA * u * dW
    return u * w


def plain() -> float:
    begin = time.perf_counter()
    plain_loop(1.0, 0.5, H, LONG)
    return (time.perf_counter() - begin) / LONG * 1e9


def c_reference(folder: str) -> Callable[[], float] | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    program = str(Path(folder) / "uw_reference")
    source = str(Path(__file__).with_name("uw_reference.c"))
    subprocess.run([compiler, "-O3", "-march=native", "-ffast-math", source, "-lm", "-o", program], check=True)

    def run() -> float:
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        return min(float(ns) for ns in re.findall(r"limit ([\d.]+) ns", text))

    return run


def diffrax_float64() -> Callable[[], float] | None:
    try:
        import diffrax
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)

    def f(t, y, args):
        r = y[0] * y[1] - 1.0
        return jnp.stack([-y[1] * r, -y[0] * r])

    def g(t, y, args):
        return SIGMA * jnp.stack([y[1], y[0]])[:, None]

    def one(key):
        path = diffrax.UnsafeBrownianPath(shape=(1,), key=key)
        terms = diffrax.MultiTerm(diffrax.ODETerm(f), diffrax.ControlTerm(g, path))
        solution = diffrax.diffeqsolve(
            terms, diffrax.Euler(), 0.0, STEPS * H, H, jnp.array(START), max_steps=None,
            adjoint=diffrax.ForwardMode(), saveat=diffrax.SaveAt(t1=True),
        )  # fmt: skip
        return solution.ys

    paths = PATHS // 10
    run_all = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(0), paths)
    run_all(keys).block_until_ready()

    def run() -> float:
        begin = time.perf_counter()
        run_all(keys).block_until_ready()
        return (time.perf_counter() - begin) / (paths * STEPS) * 1e9

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as folder:
        entries = {
            "sgdsde, 1 thread": ours(1),
            "sgdsde, 2 threads": ours(2),
            "C reference": c_reference(folder),
            "diffrax float64": diffrax_float64(),
            "sgdsde, one path": one_path,
            "plain numba loop": plain,
        }
        runs = {name: run for name, run in entries.items() if run is not None}
        for run in runs.values():
            run()
        rounds = [{name: run() for name, run in runs.items()} for _ in range(repeat)]
    print(f"median of {repeat} interleaved runs, ns per path and step")
    for name in runs:
        print(f"  {name:<20} {np.median([r[name] for r in rounds]):8.2f}")
    for name in entries.keys() - runs.keys():
        print(f"  {name:<20}  not installed")
    bars = [
        ("sgdsde, 1 thread", "C reference", "bar <= 4, aim 2"),
        ("diffrax float64", "sgdsde, 1 thread", "bar >= 5"),
        ("sgdsde, 1 thread", "sgdsde, 2 threads", "bar >= 1.6"),
        ("sgdsde, one path", "plain numba loop", "bar <= 8"),
    ]
    for a, b, bar in bars:
        if a in runs and b in runs:
            print(f"  {a} / {b}: {np.median([r[a] / r[b] for r in rounds]):.2f}  ({bar})")


if __name__ == "__main__":
    main()
