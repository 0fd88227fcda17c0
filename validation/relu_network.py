"""ReLU networks of three layers: the gradients of neighbouring layers are balanced, unit by unit; their norms are not.

Every hidden unit has the rescaling of what leads in (with its bias) against what leads out, so without weight decay
C_i' = C_i + η²(‖ĝ_in‖² - ‖ĝ_out‖²) in every step of SGD, to rounding. When C_i has come to rest, the mean squares of
the two gradients agree: their difference over a stretch of the run *is* the change of C over η². The norms of weights
themselves need not be equal, and are not.

Controls: norms in place of gradients; the same weights of a network of tanh, which has no such symmetry, step by step.
Limit: the balance of gradients in that network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation.claim import Check, Claim, at_least, bounded, means


def measure(model: Any, problem: Any, settings: Mapping[str, Any], n_steps: int, seed: int) -> dict[str, np.ndarray]:
    """Along the late half of a run: mean squares of gradients and of weights, in and out of each hidden unit."""
    relu = sg.models.MLP(model.dims, activation="relu")
    theta0 = model.init(rng=seed, scale=2**0.5)
    solution = problem.run(theta0, n_steps, settings["paths"], rng=seed, t_eval=settings["looks"] * 2 + 1)
    states = solution.y[:, settings["looks"] :]
    moments = np.array([[np.square(problem.gradient_moments(x)[0]) for x in path] for path in states])
    moments += np.array([[problem.gradient_moments(x)[1] for x in path] for path in states])
    found: dict[str, Any] = {"t": solution.t[settings["looks"] :]}
    for name, A in relu.symmetries().items():
        if "[" in name:
            side = A.apply(np.ones(A.dim))
            for word, sign in (("in", 1.0), ("out", -1.0)):
                found[f"{name} {word}"] = moments[..., sign * side > 0].sum(axis=-1)
                found[f"{name} weights {word}"] = np.sum(states[..., sign * side > 0] ** 2, axis=-1)
    return found


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    rng = np.random.default_rng(seed)
    dims = settings["dims"]
    X = rng.standard_normal((settings["samples"], dims[0]))
    Y = X + rng.standard_normal(X.shape)
    checks, found = [], {}
    for activation in ("relu", "tanh"):
        model = sg.models.MLP(dims, activation=activation)
        problem = sg.SGD(model, X, Y, learning_rate=settings["eta"])
        units = sg.models.MLP(dims, activation="relu").symmetries()
        tanh = activation == "tanh"
        single = [f"W{k}/W{k + 1}[0]" for k in range(1, len(dims) - 1)]
        for name in single:
            law = sg.ChargeLaw(sg.Charge(units[name]), problem)
            short = problem.run(model.init(rng=seed), 300, 4, rng=seed, t_eval=2, track=law)
            report = law.report(short, size=False)
            worst = float(np.max(report.abs_cross[:, -1] / report.rounding[:, -1]))
            checks.append(bounded(f"{activation}, {name}: Σ|cross| / rounding", worst, 0.0, 1.0, control=tanh))
        n_steps = settings["steps"] // (4 if tanh else 1)
        found[activation] = got = measure(model, problem, settings, n_steps, seed)
        apart = []
        for k in range(1, len(dims) - 1):
            layer = [name for name in units if name.startswith(f"W{k}/W{k + 1}[")]
            sums = {word: sum(got[f"{name} {word}"] for name in layer) for word in ("in", "out")}
            ratio, error = means(sums["in"].mean(axis=1) / sums["out"].mean(axis=1))
            apart.append(abs(ratio - 1))
            if tanh:
                continue
            name = f"{activation}, layers {k} and {k + 1}: E‖g_in‖² / E‖g_out‖²"
            checks.append(bounded(name, ratio, 1.0, 0.01 + 5 * error))
            norms = {w: sum(got[f"{name} weights {w}"] for name in layer) for w in ("in", "out")}
            moved = (norms["in"] - norms["out"])[:, -1] - (norms["in"] - norms["out"])[:, 0]
            eta, lasted = problem.learning_rate, float(got["t"][-1] - got["t"][0])
            off = float(np.mean(moved / (eta * lasted * sums["out"].mean(axis=1))))
            name = f"relu, layers {k} and {k + 1}: E(‖ĝ_in‖² - ‖ĝ_out‖²) / E‖g_out‖², as ΔC/η²"
            checks.append(bounded(name, off, 0.0, 0.01))
            ratio = float(norms["in"].mean() / norms["out"].mean())
            name = f"relu, layers {k} and {k + 1}: norms in place of gradients"
            checks.append(bounded(name, ratio, 1.0, 0.05, control=True))
    checks.append(
        bounded("tanh: |E‖g_in‖² / E‖g_out‖² - 1|, the larger of both layers", max(apart), 0.0, 0.1, limit=True)
    )
    active = [n for n in units if "[" in n and found["relu"][f"{n} out"].mean() > 0]
    pairs = np.log([[found["relu"][f"{n} {w}"].mean() for w in ("in", "out")] for n in active])
    checks.append(
        at_least("relu, unit by unit: correlation of ln E‖g_in‖² and ln E‖g_out‖²", np.corrcoef(pairs.T)[0, 1], 0.98)
    )
    return checks, {"found": found, "units": [n for n in units if "[" in n]}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 3)
    for ax, (activation, what, label) in zip(
        axes, (("relu", "", "gradients, relu"), ("relu", "weights ", "weights, relu"), ("tanh", "", "gradients, tanh"))
    ):
        pairs = [
            [data["found"][activation][f"{name} {what}{word}"].mean() for word in ("in", "out")]
            for name in data["units"]
        ]
        x, y = np.array(pairs).T
        ax.loglog(x, y, "o", color="#0072B2", ms=5)
        ax.axline((1, 1), (10, 10), color="#D55E00", lw=1)
        ax.set(title=label, xlabel="mean square of what leads in", ylabel="of what leads out")


CLAIM = Claim(
    name="relu-network",
    statement="in a ReLU network of three layers SGD balances the gradients of each hidden unit, not the weights",
    source="Ziyin, Li & Ueda 2023, arXiv 2308.06671, Theorem 3.1 and the figure of ReLU networks (20, 200, 20; y = "
    "x + ε)",
    quick={"dims": [6, 6, 6, 6], "samples": 256, "eta": 0.01, "steps": 600_000, "paths": 4, "looks": 40},
    full={"dims": [6, 8, 8, 6], "samples": 256, "eta": 0.01, "steps": 5_000_000, "paths": 8, "looks": 60},
    run=run,
    draw=draw,
    paper="Ziyin, Li & Ueda 2023, law of balance",
    could_fail="The gradients could differ as those of a tanh network do, or the weights be balanced in their "
    "place; a step of SGD could move C_i by more than η²(‖ĝ_in‖² - ‖ĝ_out‖²).",
    holds="Networks of relu or leaky relu of any depth, biases with the weights that lead in, without weight decay, "
    "once the charges rest; the step of each charge is exact from the start.",
    fails_where="Activations without the rescaling (tanh). The norms of weights: equal gradients do not make equal "
    "weights.",
    deviation="The paper's network is 20-200-20 and has one hidden layer; here are two hidden layers and smaller "
    "ones, so that the charges come to rest within the time of a run.",
    caption="One point for each hidden unit, means over the late half of the run. On the line, both are equal.",
)
