"""Whether SGD flattens or sharpens two linear layers depends on how the label noise lies to what is learnt.

One V, one Σ_x, one pair of sizes of the label noise, turned by an angle φ against the left singular vectors of V; one
start, balanced as gradient descent leaves it, on UW = V. The noise equilibrium tells Tr ∇²L for each φ: below that of
the start for some, above for others. SGD is held against it, in sign and value; gradient descent stays where it is.

Controls: the equilibrium with the noise turned to 90° - φ, and the least Tr ∇²L of all networks with that product.
Limit: label noise without a direction, which takes SGD to that least, whatever Σ_x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from sgdsde.theory import LinearTask, sharpening
from validation import _linear as linear
from validation.claim import Check, Claim, at_least, at_most, bounded

SIGMA_X = np.diag([4.0, 0.25])


def turned(degrees: float) -> np.ndarray:
    """Σ_ε, its large variance along the strong direction of V for 0°."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    R = np.array([[c, -s], [s, c]])
    return R @ np.diag([1.0, 0.15]) @ R.T


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    V = np.diag([1.6, 0.5])
    model = sg.models.DeepLinear([2, 2, 2])
    start = linear.two_layers_weighted(V, np.eye(2), np.eye(2), linear.orthogonal(2, seed))
    checks, curves, told = [], {}, {}
    fine = np.linspace(0, 90, 31)
    for phi in settings["φ"]:
        foretold = sharpening(LinearTask(V, SIGMA_X, turned(phi)), start)
        eta = settings["η·Tr H"] / foretold.now
        problem = sg.SGD(model, *linear.every_pair(V, SIGMA_X, turned(phi), seed), learning_rate=eta)
        kappa = sg.noise_equilibrium(problem, linear.theta_of(*start), model.symmetries()["B=I"]).relaxation_rate
        n_steps = round(settings["lifetimes"] / (kappa * eta))
        found = problem.run(linear.theta_of(*start), n_steps, n_paths=settings["paths"], rng=seed, t_eval=61)
        curvature = linear.trace_hessian(*linear.split(found.y, model.dims), SIGMA_X)
        late = float(curvature[:, 41:].mean())
        who = f"φ={phi:g}°"
        checks.append(bounded(f"{who}: late Tr ∇²L", late, foretold.equilibrium, 0.05 * foretold.equilibrium))
        sign = np.sign(foretold.equilibrium - foretold.now)
        checks.append(bounded(f"{who}: it {foretold.verdict}, sign", float(np.sign(late - foretold.now)), sign, 0.5))
        if phi in settings["controls at"]:
            other = sharpening(LinearTask(V, SIGMA_X, turned(90 - phi)), start).equilibrium
            checks.append(bounded(f"{who}: late Tr ∇²L, noise at 90° - φ", late, other, 0.05 * other, control=True))
            least = foretold.least
            checks.append(bounded(f"{who}: late Tr ∇²L, the least", late, least, 0.05 * least, control=True))
            whole = problem.replace(batch_size=problem.n_samples, replacement=False)
            still = whole.run(linear.theta_of(*start), n_steps, t_eval=61)
            end = float(linear.trace_hessian(*linear.split(still.y[-1], model.dims), SIGMA_X))
            checks.append(at_most(f"{who}: gradient descent, change of Tr ∇²L", abs(end / foretold.now - 1), 0.005))
        curves[phi] = np.linspace(0, settings["lifetimes"], 61), curvature.mean(axis=0)
        told[phi] = late
    flat = sharpening(LinearTask(V, SIGMA_X, np.eye(2)), start)
    even = sg.SGD(model, *linear.every_pair(V, SIGMA_X, np.eye(2), seed), learning_rate=settings["η·Tr H"] / flat.now)
    kappa = sg.noise_equilibrium(even, linear.theta_of(*start), model.symmetries()["B=I"]).relaxation_rate
    n_steps = round(settings["lifetimes"] / (kappa * even.learning_rate))
    found = even.run(linear.theta_of(*start), n_steps, n_paths=settings["paths"], rng=seed, t_eval=61)
    late = float(linear.trace_hessian(*linear.split(found.y[:, 41:], model.dims), SIGMA_X).mean())
    checks.append(bounded("noise without a direction: late Tr ∇²L, the least", late, flat.least, 0.05 * flat.least))
    checks.append(at_least("noise without a direction: late Tr ∇²L, above the start's", late, flat.now, limit=True))
    line = [sharpening(LinearTask(V, SIGMA_X, turned(x)), start).equilibrium for x in fine]
    return checks, {"curves": curves, "late": told, "line": (fine, line), "now": foretold.now, "least": foretold.least}


def draw(figure: Any, data: dict[str, Any]) -> None:
    left, right = figure.subplots(1, 2)
    colours = ("#0072B2", "#009E73", "#CC79A7", "#D55E00", "#000000")
    for (phi, (t, curvature)), colour in zip(data["curves"].items(), colours):
        left.plot(t, curvature, color=colour, label=f"φ = {float(phi):g}°")
    left.axhline(data["now"], color="#999999", lw=0.8, ls=":")
    left.set(xlabel="t·κ", ylabel="Tr ∇²L, mean over paths", title="SGD from one balanced start")
    left.legend()
    right.plot(*data["line"], color="#D55E00", ls="--", label="noise equilibrium")
    right.plot(
        [float(phi) for phi in data["late"]], list(data["late"].values()), "o", color="#0072B2", label="SGD, late"
    )
    right.axhline(data["now"], color="#999999", ls=":", label="the start")
    right.axhline(data["least"], color="#000000", lw=0.8, label="least")
    right.set(xlabel="angle of the label noise to V, degrees", ylabel="Tr ∇²L")
    right.legend()


CLAIM = Claim(
    name="data-orientation",
    statement="how the label noise lies to what is learnt decides whether SGD flattens or sharpens, and by how much",
    source="Ziyin et al. 2024, arXiv 2402.07193, authors' reply to reviewers (data orientation, balance, sharpness); "
    "Tr ∇²L at the noise equilibrium in closed form, sgdsde.theory.equilibrium_sharpness",
    quick={"φ": [0.0, 45.0, 90.0], "controls at": [90.0], "η·Tr H": 0.04, "lifetimes": 8.0, "paths": 8},
    full={"φ": [0.0, 30.0, 45.0, 80.0, 90.0], "controls at": [90.0], "η·Tr H": 0.02, "lifetimes": 12.0, "paths": 16},
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="SGD could flatten for every angle, go to the flattest network, or stay where gradient descent does.",
    holds="Two linear layers with label noise, hidden width the rank of V, from starts on UW = V, up to O(η).",
    fails_where="Label noise in proportion to the identity makes the equilibrium the flattest network for every Σ_x: "
    "then SGD never sharpens. From small starts the growth of the norms sharpens, whatever the noise.",
    caption="Left: Tr ∇²L in time. Right: its late mean over the angle.",
)  # fmt: skip
