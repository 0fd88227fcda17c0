"""Run and catch: C* wanders with θ, and C runs after it, dC/dt = -κ(C - C*), without a noise of its own.

C* is the charge at the noise equilibrium on the orbit of θ, κ = 4γ + 2σ²Tr[ΣA²]/‖Aθ‖². Two linear layers, discrete SGD
on data of independent x and ε. Here C*, κ and the drift G_A = -4γC + 2σ²Tr[ΣA] come from traces of Σ that this page
computes itself, and C* from the closed form of eigenvalues ±1; the package's own `noise_equilibrium` must agree.

Four things: G_A regressed on -κ(C - C*); the quadratic variation of C, step by step, against that of C*; ΔC against
∫G_A dt; and C against the solution of the relaxation equation, fed with C*(t) alone.

Controls: C* of half the noise and of γ doubled, κ of half the noise. Limit: all samples in every batch, where the noise
is gone and C still moves, by η∇LᵀA∇L.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation import _linear as linear
from validation.claim import Check, Claim, at_least, at_most, bounded, statistical


class Terms:
    """a = ‖U‖², b = ‖W‖², p = Tr Σ_U, m = Tr Σ_W at states (..., d); A is +1 on U and -1 on W."""

    def __init__(self, problem: sg.SGD, states: np.ndarray) -> None:
        w, u = linear.split(states, problem.model.dims)
        hidden = np.einsum("...ij,nj->...ni", w, problem.X)
        r = np.einsum("...ij,...nj->...ni", u, hidden) - problem.Y
        back = np.einsum("...ji,...nj->...ni", u, r)
        self.a, self.b = np.sum(u**2, axis=(-1, -2)), np.sum(w**2, axis=(-1, -2))
        self.p, self.m = (
            self._trace(r, hidden),
            self._trace(back, np.broadcast_to(problem.X, (*r.shape[:-1], w.shape[-1]))),
        )
        self.gamma, self.sigma2 = problem.gamma, problem.sigma2

    @staticmethod
    def _trace(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Tr of the covariance of 2·left rightᵀ over samples."""
        mean = np.einsum("...ni,...nj->...ij", left, right) / left.shape[-2]
        squares = (np.sum(left**2, axis=-1) * np.sum(right**2, axis=-1)).mean(axis=-1)
        return 4 * (squares - np.sum(mean**2, axis=(-1, -2)))

    @property
    def charge(self) -> np.ndarray:
        return self.a - self.b

    @property
    def drift(self) -> np.ndarray:
        """G_A."""
        return -4 * self.gamma * self.charge + 2 * self.sigma2 * (self.p - self.m)

    def equilibrium(self, noise: float = 1.0, decay: float = 1.0) -> np.ndarray:
        """C* = ae^{2λ} - be^{-2λ}, e^{4λ} = (2γb + σ²p)/(2γa + σ²m), with factors on σ² and γ to be wrong by."""
        gamma, sigma2 = decay * self.gamma, noise * self.sigma2
        square = np.sqrt((2 * gamma * self.b + sigma2 * self.p) / (2 * gamma * self.a + sigma2 * self.m))
        return self.a * square - self.b / square

    def kappa(self, noise: float = 1.0) -> np.ndarray:
        return 4 * self.gamma + 2 * noise * self.sigma2 * (self.p + self.m) / (self.a + self.b)


def slope(drift: np.ndarray, pull: np.ndarray) -> float:
    """Of the regression of the one on the other through zero."""
    return float(np.sum(drift * pull) / np.sum(pull**2))


def caught(t: np.ndarray, start: float, kappa: np.ndarray, aim: np.ndarray) -> np.ndarray:
    """c' = -κ(c - C*) from `start`, κ and C* at the times t taken as constant between them."""
    c = np.empty(t.size)
    c[0] = start
    for k, stay in enumerate(np.exp(-kappa[:-1] * np.diff(t))):
        c[k + 1] = aim[k] + stay * (c[k] - aim[k])
    return c


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    dims, eta = settings["dims"], settings["eta"]
    d_x, h, d_y = dims
    left, right = linear.orthogonal(d_y, 100 + seed)[:, :h], linear.orthogonal(d_x, 200 + seed)[:h]
    V, Sigma_x = left @ np.diag(np.linspace(1.0, 0.5, h)) @ right, np.diag(np.geomspace(2.0, 0.5, d_x))
    model = sg.models.DeepLinear(dims)
    X, Y = linear.every_pair(V, Sigma_x, np.eye(d_y), seed)
    problem = sg.SGD(model, X, Y, learning_rate=eta, gamma=settings["gamma"])
    A = model.symmetries()["B=I"]
    start = A.exp(settings["lambda"], linear.theta_of(*linear.two_layers(V, Sigma_x, np.eye(d_y))))
    kappa = float(Terms(problem, start).kappa())
    every = settings["look every"]
    n_looks = round(settings["lifetimes"] / (kappa * eta * every))
    law = sg.ChargeLaw(A, problem)
    sgd = problem.run(start, n_looks * every, settings["paths"], rng=seed, t_eval=n_looks + 1, track=law)
    t, at = sgd.t, Terms(problem, sgd.y)
    C, aim, rate, drift = at.charge, at.equilibrium(), at.kappa(), at.drift
    late = slice(n_looks // 2, None)
    checks = []

    few = sgd.y[0, :: n_looks // 4]
    own = np.array([sg.noise_equilibrium(problem, x, A).charge for x in few])
    off = float(np.abs(own / Terms(problem, few).equilibrium() - 1).max())
    checks.append(at_most("C* of the package off the closed form", off, 1e-9))
    wrong = float(np.abs(own / Terms(problem, few).equilibrium(noise=0.5) - 1).min())
    checks.append(at_most("C* of the package off that of half the noise", wrong, 1e-9, control=True))

    measured = slope(drift[:, late], -(rate * (C - aim))[:, late])
    checks.append(bounded("slope of G_A on -κ(C - C*)", measured, 1.0, 0.01))
    related = np.corrcoef(drift[:, late].ravel(), -(rate * (C - aim))[:, late].ravel())[0, 1]
    checks.append(at_least("their correlation", related, 0.999))
    for name, wrong_aim in (("half the noise", at.equilibrium(noise=0.5)), ("γ halved", at.equilibrium(decay=0.5))):
        measured = slope(drift[:, late], -(rate * (C - wrong_aim))[:, late])
        checks.append(bounded(f"slope, C* of {name}", measured, 1.0, 0.01, control=True))
    measured = slope(drift[:, late], -(at.kappa(0.5) * (C - aim))[:, late])
    checks.append(bounded("slope, κ of half the noise", measured, 1.0, 0.01, control=True))

    steps = problem.run(sgd.y[0, -1], 2000, rng=seed + 1, t_eval="steps")
    fine = Terms(problem, steps.y)
    variation = [float(np.sum(np.diff(values) ** 2)) for values in (fine.equilibrium(), fine.charge)]
    checks.append(at_least("quadratic variation of C* over that of C", variation[0] / variation[1], 50.0))

    report = law.report(sgd, size=False)
    off = float(np.abs(report.gap).max() / np.abs(report.delta).max())
    checks.append(bounded("ΔC against ∫G_A dt, the worst of all times and paths", off, 0.0, 0.15))
    z = float(report.z()[-1])
    checks.append(statistical("ΔC less its exact one-step means, all paths, in its own scatter", z, 0.0, 1.0))
    follows = {}
    for name, target, control in (("C*(t)", aim, False), ("C* of half the noise", at.equilibrium(noise=0.5), True)):
        follows[name] = np.array([caught(t, c[0], k, g) for c, k, g in zip(C, rate, target)])
        off = float(np.sqrt(np.mean((follows[name] - C) ** 2) / np.mean((C - C[:, :1]) ** 2)))
        checks.append(bounded(f"C against c' = -κ(c - C*) fed with {name}, rms", off, 0.0, 0.03, control=control))

    full = problem.replace(gamma=0.0, batch_size=len(X), replacement=False)
    moved = np.diff(sg.Charge(A)(full.run(2 * start, 2000, rng=seed).y))
    checks.append(bounded("all samples in each batch: ΔC, where ∫G_A dt = 0", float(moved[0]), 0.0, 1e-6, limit=True))
    return checks, {"t": t, "C": C, "aim": aim, "drift": drift, "pull": -rate * (C - aim), "c": follows["C*(t)"]}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 2)
    some = slice(None, None, max(1, data["t"].size // 600))
    for k, colour in enumerate(("#0072B2", "#D55E00")):
        t = data["t"][some]
        axes[0].plot(t, data["aim"][k, some], color=colour, lw=0.5, alpha=0.6, label="C*" if k == 0 else None)
        axes[0].plot(t, data["C"][k, some], color=colour, lw=2, label="C" if k == 0 else None)
        axes[0].plot(t, data["c"][k, some], ":", color="#000000", label="c' = -κ(c - C*)" if k == 0 else None)
    axes[0].set(xlabel="t = Σ η", ylabel="charge, two paths")
    axes[0].legend()
    axes[1].plot(data["pull"][:, some].ravel(), data["drift"][:, some].ravel(), ".", color="#0072B2", ms=3)
    axes[1].axline((0, 0), slope=1, color="#D55E00", lw=1)
    axes[1].set(xlabel="-κ(C - C*)", ylabel="G_A = -4γC + 2σ²Tr[ΣA]")


CLAIM = Claim(
    name="run-and-catch",
    statement="C* wanders with θ and C runs after it at the rate κ, without a noise of its own",
    source="Ziyin et al. 2024, arXiv 2402.07193, Theorem 4.3 (uniqueness, monotone drift along an orbit); κ is "
    "derived in the docs",
    quick={
        "dims": [5, 2, 2],
        "eta": 0.002,
        "gamma": 0.005,
        "lambda": 0.15,
        "lifetimes": 5.0,
        "look every": 20,
        "paths": 3,
    },
    full={
        "dims": [6, 3, 3],
        "eta": 0.001,
        "gamma": 0.005,
        "lambda": 0.15,
        "lifetimes": 5.0,
        "look every": 20,
        "paths": 6,
    },
    run=run,
    draw=draw,
    paper="Ziyin et al. 2024, noise equilibrium",
    could_fail="C could fluctuate as much as C* does; it could go to another value than C* or at another speed; the "
    "drift could vanish elsewhere.",
    holds="At small learning rates, near the equilibrium: there G_A = -κ(C - C*) to first order; far away κ is that "
    "of a point between.",
    fails_where="Where the mean gradient rules: with all samples in a batch there is no noise and no G_A, and C "
    "moves by η∇LᵀA∇L.",
    caption="Left: C* of two paths, the charge C, and the solution of the relaxation equation. Right: the regression.",
)
