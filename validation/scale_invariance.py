"""A loss that only sees the direction of θ: SGD spirals outward, and with weight decay turns by √(4ηγ) a step at rest.

f = θ·x/‖θ‖, y = x_1 + ε/2: ℓ(cθ) = ℓ(θ), the generator is A = 1, the charge ‖θ‖². Without decay every step of SGD has
‖θ'‖² = ‖θ‖² + η²‖ĝ‖², so that ‖θ‖⁴ grows at 4σ²⟨Tr Σ(θ/‖θ‖)⟩; gradient descent at the same η hardly moves it.
With decay the norm settles where noise and decay balance, and the angle of a step is √(4ηγ) whatever the data. Two
layers that are divided by both norms (Net-B) have a charge for each matrix, by the sum of squares (Net-A) one in all.

Controls: half the growth; the angle √(2ηγ); matrices of Net-A that never shrink. Limits: the balance with Tr Σ frozen
at the least loss, and the angle long before rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from sgdsde.theory import angular_update, equilibrium_norm
from validation.claim import Check, Claim, at_most, bounded

MODEL = sg.models.ScaleInvariant([10, 1])
LEAST = np.eye(1, 10).ravel()


def trace(problem: sg.SGD, theta: np.ndarray) -> float:
    """Tr Σ(θ/‖θ‖), the mean over states (…, d)."""
    flat = theta.reshape(-1, theta.shape[-1])
    return float(np.mean([problem.gradient_moments(x / np.linalg.norm(x))[1].sum() for x in flat]))


def size4(theta: np.ndarray) -> np.ndarray:
    return np.square(theta).sum(axis=-1) ** 2


def decreases(model: sg.models.ScaleInvariant, states: np.ndarray) -> dict[str, int]:
    """How often the norm of each matrix, and of θ, shrinks by more than rounding."""
    pieces = {name: states[..., at] for name, at in model.places().items()} | {"θ": states}
    sizes = {name: np.square(piece).sum(axis=-1) for name, piece in pieces.items()}
    return {name: int((np.diff(s, axis=-1) < -1e-14 * s[..., 1:]).sum()) for name, s in sizes.items()}


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    rng, eta, n_paths = np.random.default_rng(seed), settings["eta"], settings["paths"]
    X = rng.standard_normal((500, 10))
    Y = X[:, 0] + 0.5 * rng.standard_normal(500)
    free = sg.SGD(MODEL, X, Y, learning_rate=eta)
    start = LEAST + 0.3 * rng.standard_normal(10) / np.sqrt(10)
    start /= np.linalg.norm(start)
    n = settings["steps"]
    options = {"n_paths": n_paths, "rng": seed, "t_eval": 41}
    dynamics = {
        "SGD": free.run(start, n, **options),
        "SDE": sg.solve(free.sde(), (0, n * eta), start, dt=4 * eta, method="milstein-symmetric", **options),
    }
    checks, curves = [], {}
    for name, found in dynamics.items():
        states, t = found.y, found.t
        grown = size4(states).mean(axis=0)
        wanted = 4 * free.sigma2 * trace(free, states[:, ::4])
        slope = (grown[-1] - grown[0]) / (t[-1] - t[0])
        checks += [
            bounded(f"{name}, γ=0: growth of E‖θ‖⁴ over 4σ²⟨Tr Σ(θ/‖θ‖)⟩", slope / wanted, 1.0, 0.05),
            bounded(f"{name}, γ=0: of 2σ²⟨Tr Σ⟩", slope / (wanted / 2), 1.0, 0.05, control=True),
        ]
        curves[name] = t, grown, grown[0] + wanted * t
    descent = free.replace(batch_size=500, replacement=False).run(start, n, t_eval=41)
    curves["gradient descent"] = descent.t, size4(descent.y), None
    share = (size4(descent.y[-1]) - 1) / (curves["SGD"][1][-1] - 1)
    checks.append(at_most("gradient descent, γ=0: its growth of ‖θ‖⁴ over that of SGD", share, 0.02))

    small = rng.standard_normal((60, 3))
    for norm, shrinking in (("layers", ()), ("total", ("W1", "W2"))):
        net = sg.models.ScaleInvariant([3, 4, 2], norm=norm)
        two = sg.SGD(net, small, small @ rng.standard_normal((3, 2)) + rng.standard_normal((60, 2)), learning_rate=0.02)
        states = two.run(net.init(seed), settings["identity"], rng=seed, t_eval="steps").y
        step = np.diff(states, axis=0)
        off = np.square(states[1:]).sum(-1) - np.square(states[:-1]).sum(-1) - np.square(step).sum(-1)
        off = np.abs(off).max() / np.square(states).sum(-1).max()
        told = "Net-B" if norm == "layers" else "Net-A"
        checks.append(at_most(f"{told}: ‖θ'‖² - ‖θ‖² - η²‖ĝ‖², relative, worst step", off, 1e-12))
        for name, count in decreases(net, states).items():
            checks.append(at_most(f"{told}: steps at which {name} shrinks", count, 0, control=name in shrinking))

    eta, gamma = settings["rest eta"], settings["gamma"]
    held = sg.SGD(MODEL, X, Y, learning_rate=eta, gamma=gamma)
    begin = equilibrium_norm(trace(held, start), eta, 1, gamma) * start
    settled = held.run(begin, settings["settle"], n_paths=n_paths, rng=seed + 10).y[:, -1]
    late = held.run(settled, settings["late"], n_paths=n_paths, rng=seed + 20, t_eval="steps").y
    turned = (late[:, 1:] - (1 - 2 * eta * gamma) * late[:, :-1]) / np.linalg.norm(late[:, :-1], axis=-1, keepdims=True)
    angle = float(np.sqrt(np.square(turned).sum(axis=-1).mean()))
    rest, noise = size4(late).mean(), held.sigma2 * trace(held, late[:, :: settings["late"] // 20]) / (2 * gamma)
    loud = held.replace(learning_rate=0.01, gamma=0.1)
    shaken = loud.run(begin, 4000, n_paths=n_paths, rng=seed + 40, t_eval=401).y[:, 100:]
    frozen = equilibrium_norm(trace(loud, LEAST), 0.01, 1, 0.1) ** 4
    far = held.run(30 * begin, 40, n_paths=n_paths, rng=seed + 30, t_eval="steps").y
    early = (far[:, 1:] - (1 - 2 * eta * gamma) * far[:, :-1]) / np.linalg.norm(far[:, :-1], axis=-1, keepdims=True)
    early_angle = float(np.sqrt(np.square(early).sum(axis=-1).mean()))
    told = angular_update(eta, gamma)
    checks += [
        bounded("γ>0, at rest: angle of a step over √(4ηγ)", angle / told, 1.0, 0.02),
        bounded("γ>0, at rest: of √(2ηγ)", angle / (told / np.sqrt(2)), 1.0, 0.02, control=True),
        bounded("γ>0, at rest: E‖θ‖⁴ over σ²⟨Tr Σ(θ/‖θ‖)⟩/2γ", rest / noise, 1.0, 0.05),
        bounded("γ>0, at rest: of half of it", rest / (noise / 2), 1.0, 0.05, control=True),
        bounded(
            "γ=0.1, η=0.01: of Tr Σ frozen at the least loss", size4(shaken).mean() / frozen, 1.0, 0.05, limit=True
        ),
        bounded("γ>0, 30 times too long: angle over √(4ηγ)", early_angle / told, 1.0, 0.02, limit=True),
    ]
    angles = np.sqrt(np.square(turned).sum(axis=-1)).ravel()
    return checks, {"curves": curves, "angles": angles[:: max(1, angles.size // 4000)], "told": told}


def draw(figure: Any, data: dict[str, Any]) -> None:
    left, right = figure.subplots(1, 2)
    for (name, (t, grown, wanted)), colour in zip(data["curves"].items(), ("#0072B2", "#009E73", "#000000")):
        left.plot(t, grown, color=colour, label=name)
        if wanted is not None:
            left.plot(t, wanted, "--", color="#D55E00", lw=1.2, label="predicted" if name == "SDE" else None)
    left.set(xlabel="t", ylabel="E‖θ‖⁴", title="without weight decay")
    left.legend()
    right.hist(data["angles"], bins=60, color="#0072B2", density=True)
    right.axvline(data["told"], color="#D55E00", ls="--", label="√(4ηγ), its rms")
    right.set(xlabel="angle of a step, radians", ylabel="density", title="with weight decay, at rest")
    right.legend()


CLAIM = Claim(
    name="scale-invariance",
    statement="noise drives the norm of scale-invariant weights outward, ‖θ‖⁴ in proportion to t; with weight decay "
    "each step turns them by √(4ηγ)",
    source="Ziyin et al. 2024, arXiv 2402.07193 (scale invariance); the angle follows from "
    "‖θ'‖² = (1 - 2ηγ)²‖θ‖² + η²‖ĝ‖²",
    quick={"eta": 0.002, "steps": 20_000, "paths": 8, "identity": 2000, "rest eta": 0.01, "gamma": 0.002,
           "settle": 40_000, "late": 1000},
    full={"eta": 0.002, "steps": 80_000, "paths": 16, "identity": 6000, "rest eta": 0.005, "gamma": 0.002,
          "settle": 160_000, "late": 4000},
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="The norm could stay, as under gradient flow, shrink, or grow at another rate; with decay it could "
    "settle at another size, and the angle could depend on the data.",
    holds="Every step, exactly, for losses of the direction alone, layer by layer where each layer is divided by its "
    "norm; rates up to O(η).",
    fails_where="Before rest the angle is whatever the norm makes it. The size with Tr Σ taken at the least loss is "
    "too small: the direction fluctuates, and with it Tr Σ.",
    deviation="The equilibrium norm is often quoted with Tr Σ at the minimum of the loss. At an effective learning "
    "rate of η/‖θ‖² the direction fluctuates by so much that Tr Σ is larger; its mean over the run is what balances.",
    caption="Left: the fourth power of the norm. Right: angles of single steps at rest.",
)  # fmt: skip
