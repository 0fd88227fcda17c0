"""2γC = σ²Tr[ΣA]: the charge runs to its noise equilibrium from both sides, and stays.

Two starts on one orbit θ → e^{λA}θ, one above and one below the equilibrium. In the late half, the time average of 2γC
over that of σ²ρTr[ΣA] is 1 + η∇LᵀA∇L-term + O(ηγ): the gradient term is measured too, and with it the balance is exact
for discrete SGD up to ΔC/time. Controls: γ doubled; weight decay read as PyTorch's λ (γ halved).
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
    X, Y = teacher_student(dims, settings["samples"], label_noise=1.0, seed=seed)
    model = sg.models.DeepLinear(dims)
    problem = sg.SGD(model, X, Y, learning_rate=eta, batch_size=1, gamma=gamma)
    A = model.symmetries()["B=I"]
    law = sg.ChargeLaw(A, problem)
    middle = model.init(rng=seed)
    sides, checks, ratios = {}, [], {}
    for side, lam in (("below", -settings["lambda"]), ("above", settings["lambda"])):
        theta0 = A.exp(lam, middle)
        solution = problem.run(
            theta0, n_steps=round(settings["time"] / eta), n_paths=settings["paths"], rng=seed, t_eval=81, track=law
        )
        report = law.report(solution, size=False)
        late = report.t.size // 2
        # sums over the late half, per path
        noise = report.noise[:, -1] - report.noise[:, late]
        gradient = report.gradient[:, -1] - report.gradient[:, late]
        decay = report.decay[:, -1] - report.decay[:, late]
        change = report.delta[:, -1] - report.delta[:, late]
        ratio = -decay / noise
        ratios[side] = means(ratio)
        sides[side] = (report, sg.Charge(A)(theta0), float(ratio.mean()))
        balance = means(-(decay + gradient - change) / noise)
        checks.append(statistical(f"{side}: exact balance (decay - gradient + ΔC) / noise", *_against(balance, 1.0)))
        expected = 1.0 + float(np.mean(gradient / noise))
        checks.append(bounded(f"{side}: 2γC / σ²Tr[ΣA], time average", ratios[side][0], expected, 0.1 * abs(expected)))
        for word, factor in (("γ doubled", 2.0), ("γ halved", 0.5)):
            wrong = means(-factor * ratio * -1.0)
            checks.append(bounded(f"{side}: {word}", wrong[0], expected, 0.1 * abs(expected), control=True))
    a, b = ratios["below"], ratios["above"]
    checks.append(statistical("both sides agree", a[0], b[0], float(np.hypot(a[1], b[1])) + 0.01))
    first = {side: float(np.mean(report.delta[:, -1])) for side, (report, _, _) in sides.items()}
    rises = bool(first["below"] > 0 > first["above"])
    checks.append(Check("C rises from below and falls from above", float(rises), 1.0, 0.0, rises, how="signs"))
    return checks, {"sides": sides}


def _against(measured: tuple[float, float], predicted: float) -> tuple[float, float, float]:
    return measured[0], predicted, measured[1]


def draw(figure: Any, data: dict[str, Any]) -> None:
    ax = figure.subplots()
    for (side, (report, start, ratio)), colour in zip(data["sides"].items(), ("#0072B2", "#D55E00")):
        charge = start + report.delta
        mean, error = charge.mean(0), charge.std(0, ddof=1) / np.sqrt(len(charge))
        ax.fill_between(report.t, mean - error, mean + error, color=colour, alpha=0.3, lw=0)
        ax.plot(report.t, mean, color=colour, label=f"C from {side}; late 2γC/σ²Tr[ΣA] = {ratio:.3f}")
    ax.set_xlabel("t = Σ η")
    ax.set_ylabel("C, mean ± standard error over paths")
    ax.legend()


CLAIM = Claim(
    name="fixed-point",
    statement="the charge runs to 2γC = σ²Tr[ΣA] from both sides of its orbit",
    source="Ziyin et al. 2024, arXiv 2402.07193, Theorem 4.3 and Eq. (9); reply to reviewers: 2γC = σ²Tr[ΣA]",
    quick={"dims": [4, 3, 2], "samples": 64, "eta": 0.005, "gamma": 0.05, "paths": 32, "time": 60.0, "lambda": 0.3},
    full={"dims": [4, 3, 2], "samples": 128, "eta": 0.002, "gamma": 0.05, "paths": 64, "time": 120.0, "lambda": 0.4},
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="The time averages could balance at another ratio, as they would were the law 4γC = σ²Tr[ΣA] or γ "
    "that of PyTorch; the sides could end apart.",
    holds="Time averages of discrete SGD at any η, with the terms η∇LᵀA∇L and ηγ that the SDE does not have; the "
    "plain ratio is 1 up to O(η).",
    fails_where="Without decay there is no such ratio: 2γC is zero, and the equilibrium is Tr[ΣA] = 0.",
    caption="C of two starts on one orbit.",
)
