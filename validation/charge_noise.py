"""A charge has no noise of its own: what is left of it is an error of the step, and each dynamics has its own power.

SGD at fixed time: the scatter of ΔC about its exact one-step means is of order η^{3/2}, while an observable that is no
charge, an entry of UW, scatters as η^{1/2}. The SDE at fixed σ², step h: the scatter of ΔC - ∫G_A dt is of order
h^{1/2} for Euler-Maruyama, with the size of its formula √(8σ⁴th·Tr[(ΣA)²]); h for `milstein-symmetric`, which needs
no Lévy areas for it; and none for the implicit midpoint rule, where ΔC = h·G_A(θ_mid) in every step.

Controls: the powers exchanged; Euler-Maruyama's steps by the identity of the midpoint rule. Limit: a quadratic form
that is no charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, bounded, statistical
from validation.data import teacher_student


def power(steps: Sequence[float], scatter: Sequence[float], n_paths: int) -> tuple[float, float]:
    """Slope of ln scatter on ln step, and its standard error from that of each standard deviation."""
    x = np.log(steps) - np.mean(np.log(steps))
    error = np.sqrt(1 / (2 * (n_paths - 1)) / float(x @ x))
    return float(x @ np.log(scatter) / (x @ x)), float(error)


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    dims, n_paths, time = [3, 2, 2], settings["paths"], settings["time"]
    model = sg.models.DeepLinear(dims)
    data = teacher_student(dims, 64, label_noise=1.0, seed=seed)
    fitted = np.linalg.lstsq(*data, rcond=None)[0].T
    A = model.symmetries()["B=I"]
    start = linear.theta_of(*linear.two_layers_weighted(fitted, np.eye(3), np.eye(2)))
    checks, lines = [], {}

    def entry(states: np.ndarray) -> np.ndarray:
        w, u = linear.split(states, dims)
        return (u @ w)[..., 0, 0]

    def judge(name: str, steps: Sequence[float], scatter: Sequence[float], expected: float, wrong: float) -> None:
        found, error = power(steps, scatter, n_paths)
        lines[name] = np.array(steps), np.array(scatter), found
        checks.append(statistical(f"{name}: power of the step", found, expected, error + settings["bias"]))
        other = f"{name}: power {wrong:g}"
        checks.append(statistical(other, found, wrong, error + settings["bias"], control=True))

    scatter, entries = [], []
    for eta in settings["eta"]:
        problem = sg.SGD(model, *data, learning_rate=eta)
        law = sg.ChargeLaw(A, problem)
        found = problem.run(start, round(time / eta), n_paths, rng=seed, t_eval=2, track=law)
        scatter.append(float(law.report(found, size=False).remainder[:, -1].std(ddof=1)))
        entries.append(float(entry(found.y[:, -1]).std(ddof=1)))
    judge("SGD, the charge", settings["eta"], scatter, 1.5, 0.5)
    judge("SGD, an entry of UW", settings["eta"], entries, 0.5, 1.5)

    problem = sg.SGD(model, *data, learning_rate=settings["σ²"] * 2)
    law = sg.ChargeLaw(A, problem)
    for method, expected, wrong in (("euler-maruyama", 0.5, 1.0), ("milstein-symmetric", 1.0, 0.5)):
        scatter = []
        for h in settings["h"]:
            options = {"method": method, "dt": h, "n_paths": n_paths, "rng": seed, "t_eval": 9, "track": law}
            report = law.report(sg.solve(problem.sde(), (0, time), start, **options), size=method == "euler-maruyama")
            scatter.append(float(report.gap[:, -1].std(ddof=1)))
            if method == "euler-maruyama":
                formula = float(report.remainder_size[-1])
                name = f"euler-maruyama, h={h:g}: scatter over its formula"
                checks.append(bounded(name, float(report.remainder[:, -1].std(ddof=1)) / formula, 1.0, 0.25))
        judge(f"{method}, the charge", settings["h"], scatter, expected, wrong)

    for method in ("implicit-midpoint", "euler-maruyama"):
        h = settings["h"][1]
        found = sg.solve(problem.sde(), (0, 40 * h), start, method=method, dt=h, n_paths=2, rng=seed, t_eval="steps")
        middle = 0.5 * (found.y[:, 1:] + found.y[:, :-1])
        charge = sg.Charge(A)
        off = np.abs(np.diff(charge(found.y), axis=1) - h * charge.rate(problem, middle)).max()
        size = float(off / np.sum(start**2))
        name = f"{method}: |ΔC - h·G_A(θ_mid)| / ‖θ‖², the worst step"
        checks.append(bounded(name, size, 0.0, 1e-10, control=method == "euler-maruyama"))

    other = sg.Generator.diagonal(np.r_[np.ones(6), np.zeros(4)], name="W alone")
    values = []
    for h in settings["h"]:
        found = sg.solve(problem.sde(), (0, time), start, method="milstein-symmetric", dt=h, n_paths=n_paths, rng=seed)
        values.append(float(sg.Charge(other)(found.y[:, -1]).std(ddof=1)))
    slope, error = power(settings["h"], values, n_paths)
    name = "milstein-symmetric, ‖W‖², which is no charge: power of the step"
    checks.append(statistical(name, slope, 1.0, error + settings["bias"], limit=True))
    lines["milstein-symmetric, ‖W‖²"] = np.array(settings["h"]), np.array(values), slope
    return checks, {"lines": lines}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2)
    for k, (name, (steps, scatter, slope)) in enumerate(data["lines"].items()):
        ax = axes[0] if name.startswith("SGD") else axes[1]
        ax.loglog(steps, scatter, "o", color=f"C{k}", label=f"{name}: {slope:.2f}")
        middle = np.exp(np.mean(np.log(scatter)))
        ax.loglog(steps, middle * (steps / np.exp(np.mean(np.log(steps)))) ** slope, color=f"C{k}", lw=1)
    axes[0].set(xlabel="η", ylabel="standard deviation over paths", title="SGD, fixed time")
    axes[1].set(xlabel="h", title="the SDE, fixed σ² and time")
    for ax in axes:
        ax.legend(title="power of the step")


CLAIM = Claim(
    name="charge-noise",
    statement="a charge has no noise of its own: it scatters as η^{3/2} under SGD, and as much as the integrator "
    "errs under the SDE",
    source="Ziyin et al. 2024, arXiv 2402.07193, Eq. (9) and reply to reviewers (no martingale part); powers "
    "derived in the docs",
    quick={
        **{"eta": [0.012, 0.006, 0.003, 0.0015], "σ²": 0.005, "h": [0.016, 0.008, 0.004, 0.002]},
        **{"paths": 150, "time": 2.0, "bias": 0.03},
    },
    full={
        **{"eta": [0.008, 0.004, 0.002, 0.001, 0.0005], "σ²": 0.005, "h": [0.016, 0.008, 0.004, 0.002, 0.001]},
        **{"paths": 500, "time": 2.0, "bias": 0.03},
    },
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="The charge could scatter as η^{1/2} like any other function of θ; with an integrator it could keep "
    "a noise that small steps do not take away.",
    holds="Every symmetry of each sample's loss; SGD with any sampling; of integrators the implicit midpoint rule, "
    "and others up to their own error.",
    fails_where="Functions of θ that are no charges. Paths of Euler-Maruyama at a finite step, whose noise in C is "
    "an error of the scheme of order h^{1/2}, not one of the law.",
    caption="Scatter over paths against the step, with fitted powers.",
)
