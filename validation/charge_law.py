"""dC = (-4γC + 2σ²Tr[ΣA])dt with no noise of its own, for the SDE; and the exact law of each discrete dynamics.

Two linear layers, finitely many samples with label noise, C of B = I. Discrete SGD and Euler-Maruyama have an exact
one-step mean, which splits the change of C into noise term, gradient term and decay; what is left is a martingale, and
for SGD every single step obeys C' = (1-2ηγ)²C + η²ĝᵀAĝ to rounding. At a fixed time the martingale of C is of order
η^{3/2} for SGD, where a general observable has η^{1/2}, and of order h^{1/2} for Euler-Maruyama on one SDE (fixed σ²):
it is an error of the scheme, not of the law. The gap of the continuous law shrinks with the step.

Controls: half the noise term (4γC = σ²Tr would be the fixed point); a matrix A that is no symmetry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation.claim import Check, Claim, bounded, means, statistical
from validation.data import teacher_student


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    dims, eta, gamma = settings["dims"], settings["eta"], settings["gamma"]
    X, Y = teacher_student(dims, settings["samples"], label_noise=0.5, seed=seed)
    model = sg.models.DeepLinear(dims)
    charge = sg.Charge(model.symmetries()["B=I"])
    theta0 = model.init(rng=seed)
    n_paths, time = settings["paths"], settings["time"]
    checks, reports, spread = [], {}, {}
    base = sg.SGD(model, X, Y, learning_rate=eta, batch_size=1, gamma=gamma)
    base_law = sg.ChargeLaw(charge, base)
    for label, rate in (("η", eta), ("η/4", eta / 4)):
        problem = sg.SGD(model, X, Y, learning_rate=rate, batch_size=1, gamma=gamma)
        law = sg.ChargeLaw(charge, problem)
        common = {"n_paths": n_paths, "t_eval": 41, "track": law}
        base_common = {**common, "track": base_law}
        runs = {
            "sgd": problem.run(theta0, n_steps=round(time / rate), rng=seed, **common),
            "euler-maruyama": sg.solve(base.sde(), (0, time), theta0, dt=rate, rng=seed + 1, **base_common),
        }
        for name, solution in runs.items():
            report = (law if name == "sgd" else base_law).report(solution)
            reports[name, label] = report
            mean, error = means(report.remainder[:, -1])
            checks.append(statistical(f"{name}, {label}: ΔC - its exact mean", mean, 0.0, error))
            spread[name, label] = float(report.remainder[:, -1].std(ddof=1))
            gap = means(report.gap[:, -1] - report.remainder[:, -1])  # its mean, without the scatter of the paths
            spread[name, label, "gap"] = abs(gap[0])
        report = reports["sgd", label]
        worst = float(np.max(report.abs_cross[:, -1] / report.rounding[:, -1]))
        checks.append(bounded(f"sgd, {label}: pathwise law, Σ|cross| / rounding", worst, 0.0, 1.0))
        halved, error = means(report.remainder[:, -1] + 0.5 * report.noise[:, -1])
        checks.append(statistical(f"sgd, {label}: half the noise term", halved, 0.0, error, control=True))
    # std of C's martingale at fixed time: η^{3/2} for SGD, so a factor 8 from η to η/4; Euler-Maruyama has h^{1/2}: 2.
    for name, power in (("sgd", 1.5), ("euler-maruyama", 0.5)):
        slope = np.log(spread[name, "η"] / spread[name, "η/4"]) / np.log(4)
        # std of log of a sample std is about 1/sqrt(2(n-1)) for each of the two levels
        error = np.sqrt(2 / (2 * (n_paths - 1))) / np.log(4)
        checks.append(statistical(f"{name}: charge noise ~ step^p, p", float(slope), power, float(error) + 0.05))
    for name in ("sgd", "euler-maruyama"):
        ratio = spread[name, "η/4", "gap"] / spread[name, "η", "gap"]
        # η∇LᵀA∇L is of order η with the gradient itself, and of order η² with the part of it that the noise feeds
        checks.append(bounded(f"{name}: gap of the continuous law, ratio from η to η/4", ratio, 5 / 32, 5 / 32))
    wrong = sg.Generator.diagonal(np.r_[np.ones(dims[0] * dims[1]), np.zeros(dims[1] * dims[2])], name="W1 alone")
    law = sg.ChargeLaw(sg.Charge(wrong), problem)
    report = law.report(problem.run(theta0, n_steps=200, n_paths=4, rng=seed, t_eval=2, track=law), size=False)
    worst = float(np.max(report.abs_cross[:, -1] / report.rounding[:, -1]))
    checks.append(bounded("sgd: pathwise law of a matrix that is no symmetry", worst, 0.0, 1.0, control=True))
    return checks, {"reports": reports}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, ("sgd", "euler-maruyama")):
        for label, colour in (("η", "#0072B2"), ("η/4", "#D55E00")):
            report = data["reports"][name, label]
            ax.plot(report.t, report.delta.mean(0), color=colour, label=f"ΔC, step {label}")
            ax.plot(report.t, report.predicted.mean(0), "--", color=colour, label="sum of exact one-step means")
            ax.plot(report.t, report.continuous.mean(0), ":", color=colour, label="continuous law")
        ax.set_title(name)
        ax.set_xlabel("t = Σ step")
    axes[0].set_ylabel("change of C, mean over paths")
    axes[0].legend(fontsize=8)


CLAIM = Claim(
    name="charge-law",
    statement="C obeys its law with no noise of its own; SGD and Euler-Maruyama follow their exact means",
    source="Ziyin et al. 2024, arXiv 2402.07193, Eq. (9) as 2γC = σ²Tr[ΣA]; the discrete law is derived in the docs",
    quick={"dims": [4, 3, 2], "samples": 64, "eta": 0.01, "gamma": 0.05, "paths": 200, "time": 2.0},
    full={"dims": [8, 5, 3], "samples": 256, "eta": 0.008, "gamma": 0.05, "paths": 400, "time": 4.0},
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="ΔC could differ from the sum of its one-step means by more than chance; one step of SGD could move "
    "C along θᵀAĝ; the noise term could be half as large.",
    holds="Symmetric generators of each sample's loss. The exact means hold at any step and batch, the law of the "
    "SDE up to a gap of order η.",
    fails_where="Matrices that are no symmetry: θᵀAĝ does not vanish. The law of the SDE alone, at large η far from "
    "the valley, where η∇LᵀA∇L is as large as the noise.",
    caption="Mean change of C, the sum of its exact one-step means and the law of the SDE, for two steps.",
)
