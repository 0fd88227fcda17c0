"""tanh networks: a symmetry that holds up to ζ leaves the noise equilibrium visible, with a bias of size ζ.

x ↦ U tanh(Wx) is a linear network up to the cube of its inputs: with inputs and labels multiplied by s (and η over s²,
so that the linear part of the dynamics is the same) the rescaling of W against U is broken by ζ ~ s². The mismatch
‖aWΣ_xWᵀ - bUᵀΣ_εU‖ / ‖aWΣ_xWᵀ + bUᵀΣ_εU‖ after SGD and after gradient descent from the same starts, as s grows. And
without Monte Carlo, over all single-sample steps at a random θ: the mean change of C is that of the symmetric law plus
-2ηθᵀA∇L, and the leak |gᵀAθ|/‖g‖‖Aθ‖ falls as s².

Controls: the law without its bias; gradient descent's mismatch by the standard of SGD. Limit: s = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, at_most, bounded


def leak(problem: sg.SGD, A: Any, theta: np.ndarray) -> float:
    """Root mean square over samples of gᵀAθ, over that of ‖g‖ and ‖Aθ‖."""
    g, pull = problem.per_sample_gradients(theta), A.apply(theta)
    return float(np.sqrt(np.mean((g @ pull) ** 2) / np.mean(np.sum(g**2, axis=1)) / (pull @ pull)))


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    d, n_paths = settings["d"], settings["starts"]
    V = linear.orthogonal(d, 100 + seed) @ np.diag(np.linspace(1.0, 0.5, d)) @ linear.orthogonal(d, 200 + seed)
    wide = np.geomspace(3.0, 1 / 3, d)
    Sigma_x, Sigma_eps = np.diag(wide), 0.25 * np.diag(wide)
    M_x, M_eps = np.trace(Sigma_eps) * Sigma_x, np.trace(Sigma_x) * Sigma_eps
    X, Y = linear.every_pair(V, Sigma_x, Sigma_eps, seed)
    model, line = (sg.models.MLP([d, d, d], activation=word, biases=False) for word in ("tanh", "identity"))
    A = line.symmetries()["B=I"]
    charge = sg.Charge(A)
    theta0 = np.stack([model.init(rng=10 * seed + k) for k in range(n_paths)])

    def problem(s: float, net: Any = model) -> sg.SGD:
        return sg.SGD(net, s * X, s * Y, learning_rate=settings["eta"] / s**2, gamma=0.01 * s**2)

    checks = []
    one, theta = problem(1.0), theta0[0]
    eta, gamma = one.learning_rate, one.gamma
    steps = (1 - 2 * eta * gamma) * theta - eta * one.per_sample_gradients(theta)
    measured = float(charge(steps).mean() - charge(theta))
    law = eta * float(charge.terms(one, theta).total)
    bias = -2 * eta * (1 - 2 * eta * gamma) * float(A.apply(theta) @ one.gradient(theta))
    checks.append(at_most("one step, E ΔC off the law with -2ηθᵀA∇L", abs(measured / (law + bias) - 1), 1e-10))
    checks.append(at_most("one step, E ΔC off the symmetric law", abs(measured / law - 1), 1e-10, control=True))
    few = np.array([0.02, 0.04])
    leaks = [leak(problem(s), A, theta) for s in few]
    checks.append(bounded("leak |gᵀAθ| ~ s^p: p", float(np.diff(np.log(leaks))[0] / np.log(2)), 2.0, 0.02))
    checks.append(at_most("leak of the linear network", leak(problem(1.0, line), A, theta), 1e-14))
    checks.append(at_most("leak of tanh, s = 1", leak(one, A, theta), 1e-14, control=True))

    curves, ends = {}, []
    cases = [("linear", 1.0, line), *((f"tanh, s = {s:g}", s, model) for s in settings["s"])]
    for name, s, net in cases:
        sgd = problem(s, net).replace(gamma=0.0)
        found = {}
        for dynamics, runner, n in (
            ("SGD", sgd, settings["steps"]),
            ("gradient descent", sgd.replace(batch_size=len(X), replacement=False), settings["steps of descent"]),
        ):
            run = runner.run(theta0, n, n_paths, rng=seed, t_eval=61)
            found[dynamics] = linear.mismatch(*linear.split(run.y, net.dims), M_x, M_eps)
            curves[name, dynamics] = run.t * s**2, np.median(found[dynamics], axis=0)
        after, still = (
            float(np.median(found["SGD"][:, 30:].mean(axis=1))),
            float(np.median(found["gradient descent"][:, -1])),
        )
        ends.append((s, after, still))
        told = f"{name}: mismatch of SGD over that of gradient descent, median of starts"
        checks.append(at_most(told, after / still, 0.5, limit=s == 1.0 and net is model))
        if net is line:
            checks.append(at_most(f"{name}: mismatch of SGD", after, 0.2))
            checks.append(at_most(f"{name}: mismatch of gradient descent", still, 0.2, control=True))
    return checks, {"curves": curves, "ends": ends}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2)
    names = list(dict.fromkeys(name for name, _ in data["curves"]))
    for (name, dynamics), (t, values) in data["curves"].items():
        style = "-" if dynamics == "SGD" else ":"
        label = name if dynamics == "SGD" else None
        axes[0].plot(t / t[-1], values, style, color=f"C{names.index(name)}", label=label)
    axes[0].set(xlabel="time / length of the run", ylabel="mismatch; dotted: gradient descent", ylim=(0, 1))
    axes[0].legend()
    s, after, still = np.array(data["ends"][1:]).T
    axes[1].loglog(s, after, "o-", color="#0072B2", label="SGD")
    axes[1].loglog(s, still, "s:", color="#D55E00", label="gradient descent")
    axes[1].axhline(data["ends"][0][1], color="#0072B2", ls="--", lw=1, label="SGD, linear network")
    axes[1].set(xlabel="s, size of the inputs", ylabel="mismatch at the end, median of starts")
    axes[1].legend()


CLAIM = Claim(
    name="tanh-network",
    statement="an approximate symmetry leaves the noise equilibrium visible: tanh networks near it under SGD, not "
    "under gradient descent",
    source="Ziyin et al. 2024, arXiv 2402.07193, Eq. (24) and the figure of tanh networks",
    quick={"d": 6, "eta": 0.01, "s": [0.25, 0.5, 1.0], "starts": 6, "steps": 40_000, "steps of descent": 4000},
    full={"d": 6, "eta": 0.004, "s": [0.1, 0.25, 0.5, 1.0], "starts": 10, "steps": 250_000, "steps of descent": 10_000},
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="The bias -2θᵀA∇L could drown the noise for any breaking of the symmetry, and the mismatch be that "
    "of gradient descent.",
    holds="ζ|θᵀA∇L| below σ²Tr[ΣA], here inputs up to half the unit of tanh; the mean step with its bias is exact "
    "for any network.",
    fails_where="Strongly bent units (s = 1): the bias wins, and SGD ends about as far off as gradient descent.",
    deviation="The plan asked for half the mismatch of gradient descent at inputs of unit size. There it is more "
    "than half: at s = 1 the bias is as large as the noise. The claim is about a symmetry that nearly holds, and "
    "there, at s ≤ 1/2, the bound is met.",
    caption="Left: the mismatch along the run. Right: at its end, against the size of the inputs.",
)
