"""Warm-up: steps small enough for the start, then SGD's own noise flattens the loss until large steps are stable.

ℓ = ‖u(wᵀx) - u*(w*ᵀx) - ε‖², 30 inputs and outputs, Kaiming starts: ‖u‖² is far larger than ‖w‖² and Tr ∇²L in the
thousands. With η = 0.008 from the first step every run leaves the finite numbers. With η = 0.001 for 5000 steps the
noise equilibrium moves norm from u to w, Tr ∇²L falls, and η = 0.008 is stable from there; late in the run Tr ∇²L is
that of the equilibrium, 4√(d_y Tr Σ_x)·‖VΣ_x^{1/2}‖_* = 120, the flattest point of all with UW = V.

Controls: no warm-up; warm-up by gradient descent, which keeps ‖u‖² - ‖w‖² and with it the curvature. Limit: small label
noise, under which the equilibrium is too slow for the same schedule.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, at_least, at_most, bounded


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    d, n_paths = 30, settings["starts"]
    rng = np.random.default_rng(seed)
    V = np.outer(linear.orthogonal(d, seed)[0], linear.orthogonal(d, 50 + seed)[0])
    X = rng.standard_normal((settings["samples"], d))
    noise = rng.standard_normal(X.shape)
    Sigma_x = X.T @ X / len(X)
    flattest = 4 * np.sqrt(d * np.trace(Sigma_x)) * np.sqrt(np.trace(V @ Sigma_x @ V.T))  # V has rank 1
    model = sg.models.DeepLinear([d, 1, d])
    theta0 = np.concatenate(
        [rng.normal(0, np.sqrt(2 / d), (n_paths, d)), rng.normal(0, np.sqrt(2), (n_paths, d))], axis=1
    )
    low, high, switch = settings["η_min"], settings["η_max"], settings["switch"]
    steps = switch + settings["after"]

    def go(problem: sg.SGD, start: np.ndarray, n_steps: int, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.DivergenceWarning)
            return problem.run(start, n_steps, len(start), rng=seed, t_eval=101, **options)

    def curvature(states: np.ndarray) -> np.ndarray:
        w, u = linear.split(states, model.dims)
        return linear.trace_hessian(w, u, Sigma_x)

    checks, curves = [], {}
    for s in settings["label noise"]:
        schedule = sg.schedules.step(low, {switch: high})
        warm = sg.SGD(model, X, X @ V.T + s * noise, learning_rate=schedule)
        found = go(warm, theta0, steps)
        curves[f"warm-up, label noise {s:g}"] = found.t, curvature(found.y)
        alive = n_paths - found.n_diverged
        told = f"label noise {s:g}: starts of {n_paths} that survive"
        checks.append(at_least(f"{told}, with warm-up", alive, 0.9 * n_paths))
        late = curvature(found.y)[:, -25:].mean(axis=1)
        checks.append(bounded(f"label noise {s:g}: late Tr ∇²L", float(np.nanmean(late)), flattest, 0.05 * flattest))
        cold = go(warm.replace(learning_rate=high), theta0, 2000)
        checks.append(at_least(f"{told}, without warm-up", n_paths - cold.n_diverged, 0.9 * n_paths, control=True))

    before = curvature(theta0)
    checks.append(at_least("Tr ∇²L of the starts over the late one", float(before.min() / flattest), 10.0))

    # gradient descent for as much time as the warm-up takes, in steps that are stable at its curvature
    small = slice(0, 800)
    whole = sg.SGD(
        model, X[small], (X @ V.T + s * noise)[small], learning_rate=low / 8, batch_size=800, replacement=False
    )
    descent = go(whole, theta0[:2], settings["steps of descent"])
    charge = sg.Charge(model.symmetries()["B=I"])
    kept = float(np.abs(charge(descent.y[:, -1]) / charge(descent.y[:, 0]) - 1).max())
    checks.append(at_most("gradient descent: relative change of ‖u‖² - ‖w‖²", kept, 0.05))
    end = float(curvature(descent.y[:, -1]).mean())
    checks.append(bounded("Tr ∇²L after warm-up by gradient descent", end, flattest, 0.05 * flattest, control=True))
    curves["gradient descent"] = descent.t / descent.t[-1] * found.t[-1], curvature(descent.y)
    cold = go(warm.replace(learning_rate=high), descent.y[:, -1], 2000)
    checks.append(
        at_least("starts of 2 that survive η_max after gradient descent", 2 - cold.n_diverged, 1.8, control=True)
    )

    weak = sg.SGD(
        model, X, X @ V.T + settings["weak noise"] * noise, learning_rate=sg.schedules.step(low, {switch: high})
    )
    found = go(weak, theta0, steps)
    curves[f"warm-up, label noise {settings['weak noise']:g}"] = found.t, curvature(found.y)
    late = float(np.nanmean(curvature(found.y)[:, -25:]))
    name = f"label noise {settings['weak noise']:g}: late Tr ∇²L"
    checks.append(bounded(name, late, flattest, 0.05 * flattest, limit=True))
    return checks, {"curves": curves, "flattest": flattest, "switch": switch * low}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, len(data["curves"]), sharey=True)
    for k, (ax, (name, (t, values))) in enumerate(zip(axes, data["curves"].items())):
        ax.semilogy(t, values.T, color="#0072B2", lw=0.8)
        ax.axhline(data["flattest"], color="#D55E00", ls="--", label="flattest point")
        if name != "gradient descent":
            ax.axvline(data["switch"], color="#999999", lw=1, label="η = 0.001 → 0.008")
        ax.set(title=name, xlabel="t = Σ η" if name != "gradient descent" else "time, on another scale")
        if k == 0:
            ax.legend()
            ax.set_ylabel("Tr ∇²L, one line for each start")


CLAIM = Claim(
    name="warm-up",
    statement="after a warm-up SGD has flattened the loss by itself, and a large learning rate that destroyed every "
    "run is stable",
    source="Ziyin et al. 2024, arXiv 2402.07193, warm-up of a rank-1 factorisation (η_min 0.001, η_max 0.008, "
    "switch at 5000)",
    quick={
        **{"η_min": 0.001, "η_max": 0.008, "switch": 5000, "after": 15_000, "starts": 10, "samples": 10_000},
        **{"label noise": [1.0, 0.5], "weak noise": 0.05, "steps of descent": 1500},
    },
    full={
        **{"η_min": 0.001, "η_max": 0.008, "switch": 5000, "after": 60_000, "starts": 20, "samples": 10_000},
        **{"label noise": [1.0, 0.7, 0.5], "weak noise": 0.05, "steps of descent": 4000},
    },
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="Runs could survive without a warm-up, or die after it; the curvature could stay what it was, as "
    "under gradient descent.",
    holds="Label noise of standard deviation 0.5 and more, where 5000 steps are enough to relax; label noise of one "
    "size, where the equilibrium is the flattest point.",
    fails_where="Weak label noise: the charge relaxes at a rate proportional to its variance, and the switch comes "
    "too early for some starts.",
    caption="Tr ∇²L along single runs from Kaiming starts. A line that ends is a run that left the finite numbers.",
    size=(12.0, 4.0),
)
