"""SGD's noise makes the charge of uw decay; isotropic noise of constant size lets it diffuse.

uw-label, L = ½(uw - y)² with label noise s: C = u² - w², and the law of balance reads dC = -(T s² + 4γ)C dt pathwise,
T = η/S. With dθ = -∇L dt + ς dW instead, E C stays (γ = 0) and d E[C²]/dt = 4ς²E‖θ‖²: C diffuses along the valley.
Control: each prediction tried on the other dynamics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation.claim import Check, Claim, bounded, means, statistical


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    s, eta, time = settings["label_noise"], settings["eta"], settings["time"]
    model = sg.models.Product(scale=0.5)
    problem = sg.SGD(model, sg.models.uw_label(1.0, s), None, learning_rate=eta, batch_size=1)
    theta0 = np.array([2.0, 0.5])
    charge = sg.Charge(model.symmetries()["W1/W2"])
    start = float(charge(theta0))
    size = settings["isotropic"]
    noises = {
        "SGD": problem.sde(),
        "isotropic": problem.sde(factor=np.eye(2) * size / np.sqrt(2 * problem.noise_scale)),
    }
    C, second = {}, {}
    for name, sde in noises.items():
        solution = sg.solve(sde, (0, time), theta0, dt=settings["dt"], n_paths=settings["paths"], rng=seed, t_eval=101)
        C[name] = charge(solution.y)
        second[name] = np.trapezoid(np.sum(solution.y**2, axis=-1).mean(0), solution.t)
        t = solution.t
    decayed = start * np.exp(-eta * s * s * time)
    allowed = 0.05 * abs(start)
    checks = []
    for name, control in (("SGD", False), ("isotropic", True)):
        mean, _ = means(C[name][:, -1])
        checks.append(bounded(f"{name} noise: E C(t) = C(0)e^(-T s² t)", mean, decayed, allowed, control=control))
    # the mean of C' = C(1 - ĉ²) in a step of size h also has the gradient term h²∇LᵀA∇L, which is -h²c̄²C: O(h) in all
    spread = C["isotropic"][:, -1]
    mean, error = means(spread)
    checks.append(statistical("isotropic noise: E C(t) = C(0)", mean, start, error + 0.02 * abs(start)))
    mean, error = means(C["SGD"][:, -1])
    checks.append(statistical("SGD noise: E C(t) = C(0)", mean, start, error + 0.02 * abs(start), control=True))
    predicted = 4 * size**2 * second["isotropic"]
    variance = float(spread.var(ddof=1))
    kurtosis = float(np.mean((spread - spread.mean()) ** 4) / variance**2)
    error = predicted * np.sqrt((kurtosis - 1) / spread.size) + 0.03 * predicted
    checks.append(statistical("isotropic noise: Var C = ∫4ς²E‖θ‖²dt", variance, predicted, error))
    checks.append(
        statistical("SGD noise: Var C the same", float(C["SGD"][:, -1].var()), predicted, error, control=True)
    )
    return checks, {"t": t, "C": C, "law": start * np.exp(-eta * s * s * t)}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (name, C) in zip(axes, data["C"].items()):
        ax.plot(data["t"], C[:40].T, color="#999999", lw=0.5)
        ax.plot(data["t"], C.mean(0), color="#0072B2", label="mean over paths")
        ax.plot(data["t"], data["law"], "--", color="#D55E00", label="C(0) exp(-T s² t)")
        ax.set_title(f"{name} noise")
        ax.set_xlabel("t")
    axes[0].set_ylabel("C = u² - w²")
    axes[0].legend()


CLAIM = Claim(
    name="isotropic-noise",
    statement="SGD's noise makes the charge decay to balance; isotropic noise makes it diffuse",
    source="Ziyin, Li & Ueda 2023, arXiv 2308.06671, Theorem 3.1 and Figure 1",
    quick={"label_noise": 1.0, "eta": 0.1, "dt": 0.01, "time": 15.0, "isotropic": 0.2, "paths": 4000},
    full={"label_noise": 1.0, "eta": 0.1, "dt": 0.002, "time": 15.0, "isotropic": 0.2, "paths": 20000},
    run=run,
    draw=draw,
    paper="Ziyin, Li & Ueda 2023, law of balance",
    could_fail="Isotropic noise could take C to balance as well, and the effect be one of noise as such; or C could "
    "spread under the noise of SGD.",
    holds="uw with label noise: E C decays under the covariance of SGD; with noise of one size in all directions E "
    "C stays and Var C grows as the integral of 4ς²E‖θ‖².",
    fails_where="Any noise whose covariance has a part along Aθ: a Langevin sampler, or noise added to SGD.",
    caption="C of single paths in grey.",
)
