"""Where label noise has unequal sizes, the charges of two linear layers do not come to rest: they turn.

At Tr Σ_ε·WΣ_xWᵀ = Tr Σ_x·UᵀΣ_εU the drift of every charge Q = UᵀU - WWᵀ vanishes on UW = V. But UW fluctuates about V,
and where Σ does not commute with the curvature these fluctuations circulate. Antisymmetric generators have no charge
that would hold them, so the circulation turns the hidden units against each other: the principal axes of Q turn by
ω·T per time, T = η/S, with one ω for all small learning rates and batch sizes. In the turning frame the drift is the
commutator [ω, Q] in place of zero. With label noise of one size Σ commutes with the curvature, and nothing turns.

Controls: that the axes rest; that they turn by η per time, whatever the batch. Limit: label noise of one size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, bounded, means, statistical


def turning(problem: sg.SGD, theta0: np.ndarray, settings: Mapping[str, Any], seed: int) -> tuple[Any, Any]:
    """Times Tt and the angle of the principal axes of Q, (n_paths, n_times), for two hidden units."""
    T = problem.learning_rate / problem.batch_size
    n_steps = round(settings["Tt"] / (T * problem.learning_rate))
    run = problem.run(theta0, n_steps, settings["paths"], rng=seed, t_eval=201)
    w, u = linear.split(run.y, problem.model.dims)
    Q = np.swapaxes(u, -1, -2) @ u - w @ np.swapaxes(w, -1, -2)
    return run.t * T, np.unwrap(np.arctan2(2 * Q[..., 0, 1], Q[..., 0, 0] - Q[..., 1, 1]), axis=1) / 2


def speed(Tt: np.ndarray, angle: np.ndarray) -> tuple[float, float]:
    """Turn per Tt after the first quarter, and its standard error."""
    first = Tt.size // 4
    return means((angle[:, -1] - angle[:, first]) / (Tt[-1] - Tt[first]))


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    d = 4
    left, right = np.array([[0.8, -0.6], [0.6, 0.8]]), linear.orthogonal(d, 201)[:2]  # off the axes of Σ_ε and Σ_x
    V, Sigma_x = left @ np.diag([1.8, 1.2]) @ right, np.diag(np.geomspace(4.0, 0.25, d))
    model = sg.models.DeepLinear([d, 2, 2])
    checks, curves, found = [], {}, {}
    for noise, Sigma_eps in (("unequal", np.diag([0.2, 1.8])), ("equal", np.eye(2))):
        data = linear.every_pair(V, Sigma_x, Sigma_eps, seed)
        theta0 = linear.theta_of(*linear.two_layers(V, Sigma_x, Sigma_eps))
        at_rest = sg.SGD(model, *data, learning_rate=settings["η, S"][0][0])
        drift = max(
            abs(sg.Charge(model.generator(np.array(B))).rate(at_rest, theta0))
            for B in ([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]])
        )
        checks.append(bounded(f"{noise} label noise: drift of Q at the start", drift, 0.0, 1e-12))
        for eta, S in settings["η, S"][: None if noise == "unequal" else 1]:
            problem = at_rest.replace(learning_rate=eta, batch_size=S)
            curves[noise, eta, S] = turning(problem, theta0, settings, seed)
            found[noise, eta, S] = speed(*curves[noise, eta, S])
    pairs = [(key, found[key]) for key in found if key[0] == "unequal"]
    ((_, eta, S), (omega, error)), *others = pairs
    for (_, other, batch), (value, off) in others:
        both = float(np.hypot(error, off)) + settings["bias"] * abs(omega)
        name = f"turn per Tt, η={other:g}, S={batch}, against η={eta:g}, S={S}"
        checks.append(statistical(name, value, omega, both))
        if batch != S:
            wrong = statistical(f"turn per ηt, S={batch}, against S={S}", value / batch, omega, both, control=True)
            checks.append(wrong)
    checks.append(statistical("unequal label noise: the axes rest", omega, 0.0, error, control=True))
    still, off = found["equal", eta, S]
    checks.append(statistical("label noise of one size: turn per Tt", still, 0.0, off))
    checks.append(statistical("label noise of one size: it turns as unequal noise does", still, omega, off, limit=True))
    return checks, {"curves": curves}


def draw(figure: Any, data: dict[str, Any]) -> None:
    ax = figure.subplots()
    for k, ((noise, eta, S), (Tt, angle)) in enumerate(data["curves"].items()):
        mean, error = angle.mean(0) - angle[:, :1].mean(), angle.std(0, ddof=1) / np.sqrt(len(angle))
        ax.fill_between(Tt, mean - 2 * error, mean + 2 * error, color=f"C{k}", alpha=0.25, lw=0)
        ax.plot(Tt, mean, color=f"C{k}", label=f"{noise} label noise, η = {eta:g}, S = {S}")
    ax.set(xlabel="Tt, T = η/S", ylabel="angle of the axes of Q, mean ± 2 standard errors")
    ax.legend()


CLAIM = Claim(
    name="turning-charges",
    statement="with label noise of unequal sizes the charges of two linear layers turn at a constant rate in place "
    "of resting",
    source="not in the papers: found here, when closed forms of the equilibrium were missed by as much at every "
    "learning rate",
    quick={"η, S": [[0.004, 1], [0.002, 1], [0.004, 4]], "Tt": 1.5, "paths": 12, "bias": 0.02},
    full={"η, S": [[0.002, 1], [0.001, 1], [0.002, 4], [0.004, 8]], "Tt": 4.0, "paths": 32, "bias": 0.02},
    run=run,
    draw=draw,
    paper="derived here",
    could_fail="The axes could rest, as a fixed point of all charges has it; or turn more slowly at small learning "
    "rates, as what is a mere discretisation error would.",
    holds="Two or more hidden units, label noise whose covariance is not a multiple of the unit matrix.",
    fails_where="Label noise of one size, where Σ is a multiple of the curvature on UW = V: nothing circulates, and "
    "nothing turns. One hidden unit, which has no frame to turn.",
    doubts="The rate ω is measured; no closed form for it is given here.",
    deviation="Theorem 4.3 is about one generator, and holds: the charge of B = I comes to rest. For all charges "
    "together the equilibrium of two and more layers is exact where nothing circulates, and off by some per cent "
    "else.",
    caption="Angle of the principal axes of Q = UᵀU - WWᵀ along SGD that starts at the closed form.",
    size=(8.0, 4.2),
)
