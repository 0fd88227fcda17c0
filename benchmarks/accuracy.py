"""Accuracy against time of every method on three problems, as the tables and the figure of docs/accuracy.md.

    python benchmarks/accuracy.py [--paths 400] [--repeat 5] [--figure docs/_static/accuracy.svg] [problems ...]

Strong errors are root mean squares over paths at t = 1, all methods on the same Brownian paths, in the calculus they
take (`to_stratonovich`). A step's cost is the CPU time of 256 paths on one thread, the median of interleaved runs, in
steps of Euler-Maruyama. "Time to 1e-3" is what a path with that error costs by the fitted line, in the same unit.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sgdsde as sg

LEVELS = (8, 16, 32, 64, 128)
GOAL = 1e-3


def additive_drift(t, y):
    return 2.0 * np.sin(y[1]) - y[0], 2.0 * np.cos(y[0] + t) - 0.5 * y[1]


def additive_noise(t, y):
    s = 1.0 + 0.5 * np.sin(2 * t)
    return (0.8 * s, 0.3, -0.5 * s), (-0.4, 0.9 * s, 0.6)


def sinh_drift(t, y):
    a, b, c = np.sqrt(1 + y[0] * y[0]), np.sqrt(1 + y[1] * y[1]), np.sqrt(1 + y[2] * y[2])
    return 0.3 * a + 0.18 * y[0], -0.2 * b + 0.08 * y[1], 0.1 * c + 0.125 * y[2]


def sinh_noise(t, y):
    return 0.6 * np.sqrt(1 + y[0] * y[0]), 0.4 * np.sqrt(1 + y[1] * y[1]), -0.5 * np.sqrt(1 + y[2] * y[2])


def sinh_exact(t, W):
    """X_i = sinh(arsinh x_i + μ_i t + σ_i W_i)."""
    return np.sinh(np.arcsinh(SINH_START) + np.array([0.3, -0.2, 0.1]) * t[-1] + W[:, -1] * [0.6, 0.4, -0.5])


def general_drift(t, y):
    return -0.5 * y[0], 0.3 * np.sin(y[0]) - 0.5 * y[1], 0.2 * np.sin(y[1])


def general_noise(t, y):
    return (1.0 + 0.2 * np.cos(y[1]), 0.0), (0.0, 0.8), (0.3 * np.sin(y[1]), y[0])


SINH_START = [0.2, -0.4, 0.6]
PROBLEMS: dict[str, tuple[sg.SDE, list[float], Any]] = {
    "additive": (sg.SDE(additive_drift, additive_noise, dim=2, noise="additive"), [0.5, -0.5], "sra1"),
    "diagonal": (sg.SDE(sinh_drift, sinh_noise, dim=3, noise="diagonal"), SINH_START, sinh_exact),
    "general": (sg.SDE(general_drift, general_noise, dim=3), [0.5, -0.5, 0.0], "milstein"),
}


def problem_for(name: str, method: str) -> sg.SDE | None:
    """The equation in the calculus that the method takes; None where it takes no such noise, or has no strong order."""
    sde, scheme = PROBLEMS[name][0], sg.methods[method]
    if scheme.strong.get(name, 0.0) == 0.0:
        return None
    return sde if name == "additive" or "ito" in scheme.calculus else sg.to_stratonovich(sde)


def costs(name: str, repeat: int) -> dict[str, float]:
    """CPU seconds of a step of one path, by method."""
    start, runs = PROBLEMS[name][1], {}
    for method in sg.methods:
        sde = problem_for(name, method)
        if sde is not None:
            runs[method] = _timed(sde, start, method)
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {method: [] for method in runs}
    for _ in range(repeat):
        for method, run in runs.items():
            begin = time.process_time()
            run()
            seconds[method].append(time.process_time() - begin)
    return {method: statistics.median(found) / (256 * 256) for method, found in seconds.items()}


def _timed(sde: sg.SDE, start: list[float], method: str) -> Callable[[], Any]:
    return lambda: sg.solve(sde, (0, 1), start, method=method, dt=1 / 256, n_paths=256, rng=0, keep="final", threads=1)


def errors(name: str, method: str, n_paths: int) -> tuple[np.ndarray, np.ndarray]:
    """(dt, root mean square error) of the levels."""
    sde = problem_for(name, method)
    _, start, reference = PROBLEMS[name]
    refine = 1 if callable(reference) else 16
    result = sg.strong_order(
        sde, start, (0, 1), method, n_paths=n_paths, n_steps=LEVELS, rng=1, reference=reference, refine=refine
    )
    return result.dts, result.errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--figure", default=None)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    options = parser.parse_args()
    curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    for name in options.problems:
        cost = costs(name, options.repeat)
        unit = cost["euler-maruyama"]
        rows, curves[name] = [], {}
        for method, seconds in cost.items():
            dt, error = errors(name, method, options.paths)
            slope, shift = np.polyfit(np.log(dt[-3:]), np.log(error[-3:]), 1)
            steps = np.exp((shift - np.log(GOAL)) / slope)  # error = e^shift dt^slope
            rows.append((seconds / unit * steps, method, slope, error[2], seconds / unit))
            curves[name][method] = seconds / unit / dt, error
        print(f"\n### {name}\n")
        print(f"| method | measured order | error at h = 1/32 | cost of a step | time to {GOAL:g} |")
        print("|---|---|---|---|---|")
        for total, method, slope, error, ratio in sorted(rows):
            print(f"| `{method}` | {slope:.2f} | {error:.2g} | {ratio:.2f} | {total:,.0f} |")
    if options.figure:
        draw(curves, options.figure)


def draw(curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]], file: str) -> None:
    """Error against time, a panel for each problem."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "sgdsde"  # the same file for the same numbers
    fig, axes = plt.subplots(1, len(curves), figsize=(4.6 * len(curves), 4.6), constrained_layout=True)
    names = sorted({method for panel in curves.values() for method in panel})
    style = {
        name: (f"C{i % 10}", "osD^v<>"[i // 10 % 7], ["-", "--", ":"][i // 10 % 3]) for i, name in enumerate(names)
    }
    for ax, (name, panel) in zip(np.atleast_1d(axes), curves.items()):
        for method, (work, error) in panel.items():
            colour, marker, line = style[method]
            ax.loglog(work, error, line, color=colour, marker=marker, ms=3, lw=1, label=method)
        ax.set(title=f"{name} noise", xlabel="time of a path (steps of Euler-Maruyama)")
        ax.legend(fontsize=6, frameon=False)
    np.atleast_1d(axes)[0].set_ylabel("root mean square error at t = 1")
    fig.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
