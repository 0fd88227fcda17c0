"""The data decide how the norms of two linear layers are shared: Tr Σ_ε·WΣ_xWᵀ = Tr Σ_x·UᵀΣ_εU at the end of SGD.

Σ_x = diag(φ, …, φ, 1, …, 1), Σ_ε = I, on data where the closed form is exact. Discrete SGD starts on UW = V with
UᵀU = WWᵀ and runs for `lifetimes` times the relaxation time; ‖U‖²/‖W‖² and Tr ∇²L late in the run are held against the
closed form, without and with weight decay, where γ + 2σ²aΣ_x and γ + 2σ²bΣ_ε take the place of aΣ_x and bΣ_ε on the
product UW of the moment. Gradient descent with weight decay goes to UᵀU = WWᵀ, from wherever it starts.

Controls: the covariances without their traces, as printed in the abstract; the traces the wrong way round; the result
of gradient descent; twice the γ in the formula. Limit: without label noise nothing is selected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, bounded


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    d, checks, curves = settings["d"], [], {}
    one = np.eye(d)
    V = linear.orthogonal(d, 100 + seed) @ np.diag(np.linspace(1.0, 0.5, d)) @ linear.orthogonal(d, 200 + seed)
    model, balanced = sg.models.DeepLinear([d, d, d]), linear.two_layers_weighted(V, one, one)
    for phi in settings["phi"]:
        Sigma_x = np.diag([phi] * (d // 2) + [1.0] * (d - d // 2))
        W, U = linear.two_layers(V, Sigma_x, one)
        curvature = float(linear.trace_hessian(W, U, Sigma_x))
        problem = sg.SGD(model, *linear.every_pair(V, Sigma_x, one, seed), learning_rate=settings["η·Tr H"] / curvature)
        kappa = sg.noise_equilibrium(problem, linear.theta_of(W, U), model.symmetries()["B=I"]).relaxation_rate
        n_steps = round(settings["lifetimes"] / (kappa * problem.learning_rate))

        def late(problem: sg.SGD, n_steps: int = n_steps, start: Any = balanced) -> tuple[Any, Any, np.ndarray]:
            run = problem.run(linear.theta_of(*start), n_steps, n_paths=settings["paths"], rng=seed, t_eval=61)
            w, u = linear.split(run.y, model.dims)
            ratios = ratio(w, u)
            return w[:, 41:], u[:, 41:], ratios

        w, u, ratios = late(problem)
        curves[phi] = np.linspace(0, settings["lifetimes"], 61), ratios, ratio(W, U)
        measured = float(ratios[:, 41:].mean())
        checks.append(near(f"φ={phi:g}: ‖U‖²/‖W‖²", measured, ratio(W, U)))
        mean_curvature = float(linear.trace_hessian(w, u, Sigma_x).mean())
        checks.append(near(f"φ={phi:g}: Tr ∇²L", mean_curvature, curvature))
        if phi != settings["controls at"]:
            continue
        a, b = float(d), float(np.trace(Sigma_x))
        wrong = {
            "WΣ_xWᵀ = UᵀΣ_εU, without traces": linear.two_layers_weighted(V, Sigma_x, one),
            "traces the wrong way round": linear.two_layers_weighted(V, b * Sigma_x, a * one),
            "UᵀU = WWᵀ, as gradient descent has it": balanced,
        }
        for name, layers in wrong.items():
            checks.append(near(f"φ={phi:g}: ‖U‖²/‖W‖², {name}", measured, ratio(*layers), control=True))
        gamma = 2 * problem.sigma2 * a * settings["γ / 2σ²a"]
        decayed = problem.replace(gamma=gamma)
        w, u, ratios = late(decayed)
        for factor, control in ((1.0, False), (settings["γ / 2σ²a, wrong"], True)):
            M_x, M_eps = (factor * gamma * one + 2 * problem.sigma2 * m for m in (a * Sigma_x, b * one))
            ends = [
                ratio(*linear.two_layers_weighted(end_u @ end_w, M_x, M_eps))
                for end_w, end_u in zip(w[:, -1], u[:, -1])
            ]
            told = f"φ={phi:g}, γ={gamma:.2g}: ‖U‖²/‖W‖²" + (f", γ {factor:g} times as large" if control else "")
            checks.append(near(told, float(ratios[:, 41:].mean()), float(np.mean(ends)), control=control))
        everything = {"batch_size": problem.n_samples, "replacement": False}
        descent = decayed.replace(learning_rate=0.2 / curvature, gamma=10 * gamma, **everything)
        n_descent = round(5.0 / (40 * gamma * descent.learning_rate))
        _, _, ratios = late(descent, n_descent, start=(W, U))
        checks.append(bounded("gradient descent with weight decay: ‖U‖²/‖W‖²", float(ratios[0, -1]), 1.0, 0.01))
        curves["descent"] = np.linspace(0, 1, 61), ratios, 1.0
        silent = sg.SGD(model, *linear.every_pair(V, Sigma_x, 1e-12 * one, seed), learning_rate=problem.learning_rate)
        _, _, ratios = late(silent)
        checks.append(near("no label noise: ‖U‖²/‖W‖²", float(ratios[:, 41:].mean()), ratio(W, U), limit=True))
    return checks, {"curves": curves, "V": V, "phi": settings["phi"]}


def ratio(w: np.ndarray, u: np.ndarray) -> Any:
    """‖U‖²/‖W‖² of each pair."""
    found = np.sum(u**2, axis=(-1, -2)) / np.sum(w**2, axis=(-1, -2))
    return float(found) if np.ndim(found) == 0 else found


def near(name: str, measured: float, predicted: float, **kind: bool) -> Check:
    return bounded(name, measured, predicted, 0.05 * predicted, **kind)


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2)
    curves, d = data["curves"], len(data["V"])
    for k, phi in enumerate(data["phi"]):
        t, ratios, predicted = curves[phi]
        axes[0].plot(t, ratios.mean(0), color=f"C{k}", label=f"φ = {phi:g}")
        axes[0].axhline(predicted, color=f"C{k}", ls=":", lw=1)
    axes[0].set(xlabel="time / relaxation time", ylabel="‖U‖²/‖W‖² of SGD; dotted: closed form")
    axes[0].legend()
    phis = np.geomspace(min(data["phi"]) / 1.5, 1.5 * max(data["phi"]), 41)
    lines = {"closed form": [], "without traces": []}
    for phi in phis:
        Sigma_x = np.diag([phi] * (d // 2) + [1.0] * (d - d // 2))
        lines["closed form"].append(ratio(*linear.two_layers(data["V"], Sigma_x, np.eye(d))))
        lines["without traces"].append(ratio(*linear.two_layers_weighted(data["V"], Sigma_x, np.eye(d))))
    for (name, values), style in zip(lines.items(), ("-", "--")):
        axes[1].loglog(phis, values, style, color="#D55E00", label=name)
    ends = [float(curves[phi][1][:, 41:].mean()) for phi in data["phi"]]
    axes[1].loglog(data["phi"], ends, "o", color="#0072B2", label="SGD")
    axes[1].axhline(1.0, color="#009E73", ls=":", label="gradient descent with weight decay")
    axes[1].set(xlabel="φ, variance of half the inputs", ylabel="‖U‖²/‖W‖²")
    axes[1].legend()


CLAIM = Claim(
    name="data-anisotropy",
    statement="the covariances of inputs and labels decide how SGD shares the norm between two linear layers",
    source="Ziyin et al. 2024, arXiv 2402.07193, matrix factorisation with label noise, norms against φ_x; closed "
    "form Tr Σ_ε·WΣ_xWᵀ = Tr Σ_x·UᵀΣ_εU derived in the docs",
    quick={
        **{"d": 4, "phi": [0.2, 1.0, 5.0], "controls at": 5.0, "η·Tr H": 0.1, "lifetimes": 15.0, "paths": 4},
        **{"γ / 2σ²a": 1.0, "γ / 2σ²a, wrong": 4.0},
    },
    full={
        **{"d": 6, "phi": [0.1, 0.3, 1.0, 3.0, 10.0], "controls at": 10.0, "η·Tr H": 0.1, "lifetimes": 20.0},
        **{"paths": 8, "γ / 2σ²a": 1.0, "γ / 2σ²a, wrong": 4.0},
    },
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="SGD could keep the ratio it starts with, as gradient descent without decay does, or go to 1 for "
    "every φ, as gradient descent with decay does; or to the ratio of the covariances without their traces.",
    holds="Two linear layers, any covariances, labels with noise of their own, small η·Tr H; with weight decay too, "
    "with the covariances γ + 2σ²aΣ_x and γ + 2σ²bΣ_ε and the product UW that decay leaves.",
    fails_where="Without label noise the gradients of all samples vanish on UW = V and every ratio is at rest. The "
    "printed form without traces holds for Tr Σ_x = Tr Σ_ε alone.",
    doubts="The abstract prints WΣ_xWᵀ = UᵀΣ_εU. Then more label noise would shift norm from U to W, but Σ(θ) and "
    "the equilibrium cannot depend on its size where there is no decay; with covariances over their traces both "
    "agree.",
    caption="Left: the ratio of the norms along SGD from UᵀU = WWᵀ. Right: late in the run against φ.",
)
