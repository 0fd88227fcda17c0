"""The law of balance d(‖u‖² - ‖w‖²)/dt = -T(uᵀC₁u - wᵀC₂w), and what gradient descent, SGD, Langevin noise do to uw.

ℓ̃(uwᵀ) = ℓ(u, w), Ã_ki = ∂ℓ̃/∂(u_i w_k): C₁ = E[ÃᵀÃ] - E[Ã]ᵀE[Ã], C₂ = E[ÃÃᵀ] - E[Ã]E[Ã]ᵀ, T = η/S. Held against the
rate that the package takes from per-sample gradients, at random θ. Then uw, C = u² - w²: every step of SGD has
C' = C(1 - ĉ²), ĉ = η∂ℓ/∂(uw), so that ln|C| falls at the rate T·Var ∂ℓ/∂(uw), for label noise of one size and for
Gaussian inputs, whose noise depends on uw. Gradient descent keeps C, noise of one size in all directions spreads it.

Controls: Ã transposed; E[∇ℓ∇ℓᵀ] in place of the covariance; half the rate; Langevin noise by the law of SGD. Limit: a
step with |ĉ| > √2, which moves C away from balance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import sgdsde as sg
from validation.claim import Check, Claim, at_most, bounded, means, statistical


def matrices(d: int, seed: int) -> list[Check]:
    """The law with C₁ and C₂ against the rate from per-sample gradients; and bounds on ‖u‖²/‖w‖² at equilibrium."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, d)) * rng.uniform(0.4, 1.6, d)
    Y = X @ rng.standard_normal((d, d)) + rng.standard_normal((40, d)) * rng.uniform(0.4, 1.6, d)
    model = sg.models.DeepLinear([d, 1, d])
    problem, A = sg.SGD(model, X, Y, learning_rate=0.02, batch_size=2), model.symmetries()["B=I"]
    theta = rng.standard_normal(model.dim)
    w, u = theta[:d], theta[d:]

    def both(w: np.ndarray, u: np.ndarray, centred: bool = True) -> tuple[np.ndarray, np.ndarray]:
        a = 2 * X[:, :, None] * (np.outer(X @ w, u) - Y)[:, None, :]
        a = a - centred * a.mean(axis=0)
        return np.einsum("nki,nkj->ij", a, a) / len(X), np.einsum("nik,njk->ij", a, a) / len(X)

    rate, T = sg.Charge(A).rate(problem, theta), 2 * problem.sigma2
    C1, C2 = both(w, u)
    checks = []
    for name, (one, two) in {
        "C₁, C₂": (C1, C2),
        "Ã transposed": (C2, C1),
        "second moments in place of covariances": both(w, u, centred=False),
    }.items():
        predicted = -T * (u @ one @ u - w @ two @ w)
        off = abs(rate / predicted - 1)
        checks.append(at_most(f"d={d}: rate of C over the law, off 1: {name}", off, 1e-11, control=name != "C₁, C₂"))
    end = sg.noise_equilibrium(problem, theta, A).theta
    w, u = end[:d], end[d:]
    first, second = (np.linalg.eigvalsh(c) for c in both(w, u))
    low, high, ratio = second[0] / first[-1], second[-1] / first[0], float(u @ u / (w @ w))
    inside = float(low <= ratio <= high)
    checks.append(bounded(f"d={d}: λ₂min/λ₁max ≤ ‖u‖²/‖w‖² ≤ λ₂max/λ₁min (1: yes)", inside, 1.0, 0.0))
    return checks


def run(settings: Mapping[str, Any], seed: int) -> tuple[list[Check], dict[str, Any]]:
    checks = matrices(settings["d"], seed)
    eta, s, n_paths = settings["eta"], settings["label_noise"], settings["paths"]
    model, theta0 = sg.models.Product(scale=0.5), np.array([2.0, 0.6])
    charge = sg.Charge(model.symmetries()["W1/W2"])
    start, curves = float(charge(theta0)), {}
    # y = 1 ± s: two samples with the variance s² of the gradient exactly
    problem = sg.SGD(model, np.ones(2), 1.0 + s * np.array([1.0, -1.0]), learning_rate=eta)
    time = settings["lifetimes"] / (eta * s * s)
    n_steps = round(time / eta)

    descent = problem.replace(batch_size=2, replacement=False).run(theta0, n_steps, n_paths=2, rng=seed, t_eval=61)
    curves["gradient descent"] = descent.t, charge(descent.y)
    change = float(np.abs(charge(descent.y) - start).max())
    checks.append(at_most("gradient descent: |ΔC|", change, 1e-2))

    found = problem.run(theta0, n_steps, n_paths=n_paths, rng=seed, t_eval=61)
    curves["SGD"] = found.t, charge(found.y)
    slope, error = means(np.log(np.abs(charge(found.y[:, -1])) / start) / time)
    law = -eta * s * s
    checks.append(bounded("SGD, label noise: rate of E ln|C| / T·Var", slope / law, 1.0, 0.05))
    checks.append(bounded("SGD, label noise: rate of E ln|C|, T/2", slope / (law / 2), 1.0, 0.05, control=True))

    rng = np.random.default_rng(seed)
    x = rng.standard_normal(settings["samples"])
    full = sg.models.Product()
    gauss = sg.SGD(full, x, x + s * rng.standard_normal(x.size), learning_rate=eta / 8)
    gauss_charge = sg.Charge(full.symmetries()["W1/W2"])
    moving = gauss.run(theta0, n_steps, n_paths=n_paths, rng=seed, t_eval=401)
    v = full.value(moving.y)
    law_of_data = [gauss.samples.numbers[k] for k in (6, 7, 8)]
    variance = 4 * (law_of_data[0] * v**2 - 2 * law_of_data[1] * v + law_of_data[2])
    expected = -gauss.learning_rate * np.trapezoid(variance.mean(axis=0), moving.t)
    fallen, error = means(np.log(np.abs(gauss_charge(moving.y[:, -1])) / start))
    checks.append(bounded("SGD, Gaussian inputs: E ln|C| / -∫T·Var dt", fallen / expected, 1.0, 0.05))

    factor = np.eye(2) * settings["isotropic"] / np.sqrt(2 * problem.noise_scale)
    end = settings["isotropic time"]
    loose = sg.solve(problem.sde(factor=factor), (0, end), theta0, dt=0.02, n_paths=n_paths, rng=seed, t_eval=61)
    curves["Langevin"] = loose.t * time / end, charge(loose.y)
    spread = float(charge(loose.y[:, -1]).var(ddof=1))
    square = np.sum(loose.y**2, axis=-1).mean(axis=0)
    predicted = 4 * settings["isotropic"] ** 2 * float(np.trapezoid(square, loose.t))
    checks.append(bounded("Langevin: Var C / ∫4s²E‖θ‖²dt", spread / predicted, 1.0, 0.2))
    mean, error = means(charge(loose.y[:, -1]))
    checks.append(statistical("Langevin: E C(t) = C(0)", mean, start, error + 0.01))
    fallen = start * np.exp(law * end * 10)
    checks.append(statistical("Langevin: E C(t), ten times as long under SGD", mean, fallen, error, control=True))

    large = problem.replace(learning_rate=1.6 / s)
    after = large.run(np.array([2.0, 0.5]), 1, rng=seed)  # uw = 1, so that ĉ = ±1.6 for both samples
    growth = abs(float(charge(after.y[-1])) / float(charge(after.y[0])))
    checks.append(bounded("one step with |ĉ| = 1.6: |C'/C| = |1 - ĉ²|", growth, 1.56, 1e-12))
    checks.append(at_most("one step with |ĉ| = 1.6: |C'/C|, towards balance", growth, 1.0, limit=True))
    return checks, {"curves": curves, "law": start * np.exp(law * found.t), "t": found.t}


def draw(figure: Any, data: dict[str, Any]) -> None:
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (name, (t, C)) in zip(axes, data["curves"].items()):
        ax.plot(t, C[:25].T, color="#999999", lw=0.5)
        ax.plot(t, C.mean(axis=0), color="#0072B2", label="mean over paths")
        if name == "SGD":
            ax.plot(data["t"], data["law"], "--", color="#D55E00", label="C(0) exp(-T·Var·t)")
            ax.legend()
        ax.set(title=name, xlabel="t" if name != "Langevin" else "t, on another scale", ylim=(-4, 12))
    axes[0].set_ylabel("C = u² - w²")


CLAIM = Claim(
    name="law-of-balance",
    statement="SGD's noise brings u and w to balance at the rate T·Var; gradient descent keeps C, Langevin noise "
    "spreads it",
    source="Ziyin, Li & Ueda 2023, arXiv 2308.06671, Theorem 3.1, Corollary 3.3 and Figure 1; discrete law in the docs",
    quick={
        **{"eta": 0.01, "label_noise": 1.0, "lifetimes": 2.0, "paths": 200, "d": 4, "samples": 500},
        **{"isotropic": 0.1, "isotropic time": 40.0},
    },
    full={
        **{"eta": 0.004, "label_noise": 1.0, "lifetimes": 3.0, "paths": 1000, "d": 8, "samples": 2000},
        **{"isotropic": 0.1, "isotropic time": 100.0},
    },
    run=run,
    draw=draw,
    paper="Ziyin, Li & Ueda 2023, law of balance",
    could_fail="C could stay under SGD as it does under gradient descent, or spread as it does under noise that is "
    "alike in all directions; or fall at another rate.",
    holds="Every loss that depends on u and w through uwᵀ; path by path under the SDE, and exactly as C' = C(1 - "
    "ĉ²) in each step of SGD on uw.",
    fails_where="Steps with |ĉ| > √2 move C away from balance. Noise that is not that of SGD.",
    deviation="C₁ and C₂ are those of Ã with rows for w and columns for u, and covariances: the appendix of the "
    "paper has the other order of indices, and its main text the second moments. Both are controls here.",
    caption="C = u² - w² of uw from one start, single paths in grey.",
)
