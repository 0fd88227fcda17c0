"""One orbit has one equilibrium, known from one of its points, and the charge comes to it from both sides.

θ → e^{λA}θ keeps every sample's loss. From any point of the orbit follow λ*, C* = C(e^{λ*A}θ) and the whole approach,
dC/dt = G_A(e^{λA}θ), dC/dλ = 2‖Aθ‖²: an ordinary equation in λ, without a run. Starts below and above on one orbit of
UW = V, with SGD and with the SDE, without and with weight decay: C(t) is held against that curve, the late C against
C*, and the sign of the drift against the side at every state looked at.

Controls: C* of half the noise (the law read as 4γC = σ²Tr[ΣA]) and of γ halved (PyTorch's decay taken for γ); isotropic
noise. Limit: data without label noise, where the two sides stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, at_most, bounded
from validation.run_and_catch import Terms


def approach(problem: sg.SGD, theta: np.ndarray, t: np.ndarray, noise: float = 1.0) -> np.ndarray:
    """C(t) along the orbit: λ' = G_A/2‖Aθ‖², by fine Euler steps; `noise` is a factor on σ² to be wrong by."""
    at = Terms(problem, theta)
    lam, C, fine = 0.0, np.empty(t.size), 400
    for k in range(t.size):
        up, down = np.exp(2 * lam), np.exp(-2 * lam)
        C[k] = at.a * up - at.b * down
        if k + 1 == t.size:
            break
        h = (t[k + 1] - t[k]) / fine
        for _ in range(fine):
            up, down = np.exp(2 * lam), np.exp(-2 * lam)
            drift = -4 * at.gamma * (at.a * up - at.b * down) + 2 * noise * at.sigma2 * (at.p * down - at.m * up)
            lam += h * drift / (2 * (at.a * up + at.b * down))
    return C


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    dims, eta, n_paths = [5, 2, 2], settings["eta"], settings["paths"]
    V = linear.orthogonal(2, 100 + seed) @ np.diag([1.0, 0.6]) @ linear.orthogonal(5, 200 + seed)[:2]
    Sigma_x, Sigma_eps = np.diag(np.geomspace(2.0, 0.5, 5)), np.eye(2)
    model = sg.models.DeepLinear(dims)
    A = model.symmetries()["B=I"]
    charge = sg.Charge(A)
    checks, panels = [], {}
    for gamma in settings["gamma"]:
        problem = sg.SGD(model, *linear.every_pair(V, Sigma_x, Sigma_eps, seed), learning_rate=eta, gamma=gamma)
        M_x, M_eps = (
            gamma * np.eye(len(S)) + 2 * problem.sigma2 * trace * S
            for S, trace in ((Sigma_x, np.trace(Sigma_eps)), (Sigma_eps, np.trace(Sigma_x)))
        )
        middle = linear.theta_of(*linear.two_layers_weighted(V, M_x, M_eps))
        starts = {"below": A.exp(-settings["lambda"], middle), "above": A.exp(settings["lambda"], middle)}
        ends = {side: sg.noise_equilibrium(problem, theta0, A) for side, theta0 in starts.items()}
        aim, kappa = ends["below"].charge, ends["below"].relaxation_rate
        told = f"γ={gamma:g}"
        off = abs(ends["above"].charge / aim - 1)
        checks.append(at_most(f"{told}: C* from below and from above, relative difference", off, 1e-9))
        time = settings["lifetimes"] / kappa
        n_steps, options = round(time / eta), {"n_paths": n_paths, "t_eval": 61}
        far = abs(charge(starts["above"]) - aim)
        panels[told] = {"aim": aim, "runs": {}}
        for side, theta0 in starts.items():
            runs = {
                "SGD": problem.run(theta0, n_steps, rng=seed, **options),
                "SDE": sg.solve(
                    problem.sde(), (0, n_steps * eta), theta0, method="milstein-symmetric", rng=seed, **options
                ),
            }
            for name, found in runs.items():
                C = charge(found.y)
                curve = approach(problem, theta0, found.t)
                panels[told]["runs"][name, side] = found.t, C, curve
                who = f"{told}, {name} from {side}"
                off = float(np.sqrt(np.mean((C.mean(axis=0) - curve) ** 2)) / far)
                checks.append(bounded(f"{who}: C(t) against the orbit's own curve, rms", off, 0.0, 0.05))
                late = float(C[:, 45:].mean())
                checks.append(bounded(f"{who}: late C", late, aim, 0.07 * abs(aim)))
                looked = found.y[: settings["looked at"], ::6].reshape(-1, model.dim)
                wrong = 0
                for x in looked:
                    at = sg.noise_equilibrium(problem, x, A)
                    wrong += np.sign(at.rate_at_start) != np.sign(at.charge - at.charge_at_start)
                checks.append(at_most(f"{who}: states with the drift away from C*", wrong, 0))
                if gamma > 0 and name == "SGD":
                    at = Terms(problem, theta0)
                    for words, value in (
                        ("half the noise", at.equilibrium(noise=0.5)),
                        ("γ halved", at.equilibrium(decay=0.5)),
                    ):
                        value = float(value)
                        checks.append(
                            bounded(f"{who}: late C, C* of {words}", late, value, 0.07 * abs(value), control=True)
                        )
                    half = approach(problem, theta0, found.t, noise=0.5)
                    off = float(np.sqrt(np.mean((C.mean(axis=0) - half) ** 2)) / far)
                    checks.append(
                        bounded(f"{who}: C(t) against the curve of half the noise", off, 0.0, 0.05, control=True)
                    )

    size = 0.02 / np.sqrt(2 * problem.noise_scale)
    silent = sg.SGD(model, *linear.every_pair(V, Sigma_x, 1e-12 * Sigma_eps, seed), learning_rate=eta)
    for words, kind in (("isotropic noise", {"control": True}), ("no label noise", {"limit": True})):
        last = {}
        for side, theta0 in starts.items():
            if words == "isotropic noise":
                sde = problem.replace(gamma=0.0).sde(factor=size * np.eye(model.dim))
                found = sg.solve(sde, (0, n_steps * eta), theta0, dt=2 * eta, rng=seed, **options)
            else:
                found = silent.run(theta0, n_steps, rng=seed, **options)
            last[side] = float(charge(found.y[:, -1]).mean())
        apart = (last["above"] - last["below"]) / (charge(starts["above"]) - charge(starts["below"]))
        checks.append(at_most(f"{words}, γ=0: distance of the sides, end over start", float(apart), 0.05, **kind))
    return checks, {"panels": panels}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = np.atleast_1d(figure.subplots(1, len(data["panels"]), sharey=True))
    for ax, (title, panel) in zip(axes, data["panels"].items()):
        for (name, side), (t, C, curve) in panel["runs"].items():
            colour = "#0072B2" if name == "SGD" else "#009E73"
            mean, error = C.mean(0), C.std(0, ddof=1) / np.sqrt(len(C))
            ax.fill_between(t, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.3, lw=0)
            ax.plot(t, mean, color=colour, label=name if side == "above" else None)
            label = "the orbit's curve" if (name, side) == ("SDE", "above") else None
            ax.plot(t, curve, "--", color="#D55E00", lw=1.2, label=label)
        ax.axhline(panel["aim"], color="#999999", ls=":", label="C*")
        ax.set(title=title, xlabel="t")
    axes[0].set_ylabel("C, mean over paths ± 2 standard errors")
    axes[0].legend()


CLAIM = Claim(
    name="equilibrium-both-sides",
    statement="an orbit has one noise equilibrium, and the charge comes to it from both sides along a curve known "
    "beforehand",
    source="Ziyin et al. 2024, arXiv 2402.07193, Theorem 4.3 (existence, uniqueness, monotone drift, any γ ≥ 0)",
    quick={"eta": 0.004, "gamma": [0.0, 0.006], "lambda": 0.3, "lifetimes": 8.0, "paths": 8, "looked at": 2},
    full={"eta": 0.002, "gamma": [0.0, 0.006], "lambda": 0.3, "lifetimes": 8.0, "paths": 16, "looked at": 6},
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="The two sides could end at different charges, or at one that the starting point does not tell; the "
    "drift could point away from C*; the approach could take another time.",
    holds="Symmetric generators of each sample's loss, γ ≥ 0, where noise or decay pushes on both sides; SGD and "
    "its SDE, up to O(η).",
    fails_where="Data without noise on UW = V: both sides rest where they are. Isotropic noise. Where noise pushes "
    "to one side alone and γ = 0, as for scale invariance, there is no finite equilibrium.",
    caption="C from below and above one orbit. The dashed curve follows from the starting point, without a run.",
)
