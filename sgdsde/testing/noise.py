"""The noise of SGD's SDE: the covariance of gradients, its factors, and that a factor is free up to a rotation."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, needs_samples, noise_of
from sgdsde.testing.steps import sde_steps

__all__ = ["assert_covariance", "assert_noise", "assert_rotated_factor"]


def assert_covariance(problem: Any, theta: Any) -> float:
    """Σ = (1/N)Σ_i(g_i - ḡ)(g_i - ḡ)ᵀ: symmetric, no negative eigenvalue, rank <= N - 1, Tr Σ = mean‖g_i‖² - ‖ḡ‖², GGᵀ.

    Also that ḡ is the problem's gradient, and that the blocks of Σ by name are its diagonal blocks.

    Parameters
    ----------
    problem : SGD
        With samples.
    theta : (d,) array_like

    Notes
    -----
    Tolerance 64·d·eps·max‖g_i‖², as for the mean of N products of d numbers; an eigenvalue within it counts as zero.
    """
    needs_samples(problem, "this law")
    x = _check.array("theta", theta, (problem.model.dim,))
    g, sigma = problem.per_sample_gradients(x), problem.covariance(x)
    n, d = g.shape
    largest = gradient_sizes(problem, x).max()
    tolerance, words = ROUNDING * d * largest**2, {"problem": problem, "theta": x}
    values = np.linalg.eigvalsh((sigma + sigma.T) / 2)
    centred = g - g.mean(axis=0)
    factor, trace = problem.factor(x), (g**2).sum() / n - (g.mean(axis=0) ** 2).sum()
    checks = [
        hold("∇L = mean of g_i", problem.gradient(x), g.mean(axis=0), ROUNDING * d * largest, **words),
        hold("Σ = mean of (g_i-ḡ)(g_i-ḡ)ᵀ", sigma, centred.T @ centred / n, tolerance, **words),
        hold("Σ = Σᵀ", sigma, sigma.T, 0.0, **words),
        hold("Σ has no negative eigenvalue", np.minimum(values, 0.0), 0.0, tolerance, **words),
        hold("rank of Σ <= N - 1", values[: max(0, d - n + 1)], 0.0, tolerance, **words),
        hold("Tr Σ = mean‖g_i‖² - ‖ḡ‖²", np.trace(sigma), trace, tolerance, **words),
        hold("GGᵀ = Σ", factor @ factor.T, sigma, tolerance, **words),
    ]
    for name, at in problem.model.places().items():
        block = problem.covariance(x, block=name)
        checks.append(hold(f"the block {name} of Σ", block, sigma[at, at], tolerance, **words))
    return max(checks)


def assert_noise(problem: Any, theta: Any, xi: Any = None, shift: float = 1.0) -> float:
    """Gξ = G(ξ + c·1), and Gξ = ∇Σ_i c_i ℓ_i with c_i = (ξ_i - mean ξ)/√N: noise is one weighted gradient.

    For the per-sample factor, G = [g_1 - ḡ, …, g_N - ḡ]/√N: as a matrix (`SGD.factor`) and as the compiled increment of
    the SDE, which never forms it. Source: Σ_i (ξ_i - mean ξ) ḡ = 0.

    Parameters
    ----------
    problem : SGD
        Of a model with the factor "per-sample".
    theta : (d,) array_like
    xi : (N,) array_like, optional
        Default N(0, 1) from a fixed seed.
    shift : float
        c.

    Notes
    -----
    Tolerance 64·(N + d)·eps·max‖g_i‖·(‖ξ‖₁ + N|c|) against the shift; 1e-6·Σ|c_i|(‖g_i‖ + ℓ_i) against central
    differences of step 1e-5·(1 + |θ_k|), whose rounding is eps·ℓ/step. States add eps·‖θ‖.
    """
    needs_samples(problem, "this law")
    x = _check.array("theta", theta, (problem.model.dim,))
    n, d = problem.n_samples, x.size
    xi = np.random.default_rng(0).standard_normal(n) if xi is None else _check.array("xi", xi, (n,))
    h, strength, sizes = problem.learning_rate, np.sqrt(noise_of(problem)), gradient_sizes(problem, x)
    G, words = problem.factor(x, "per-sample"), {"problem": problem, "theta": x, "xi": xi}
    rounding = ROUNDING * (n + d) * sizes.max() * (np.abs(xi).sum() + n * abs(shift))
    paths = sde_steps(problem, x, np.stack([0 * xi, xi, xi + shift])[:, None, :], h, "per-sample")[:, 1]
    state_rounding = ROUNDING * d * (np.linalg.norm(x) + h * sizes.max()) + strength * rounding
    c = (xi - xi.mean()) / np.sqrt(n)
    steps = 1e-5 * (1 + np.abs(x))
    losses = np.array([[problem.per_sample_losses(x + s * e) for s in (1, -1)] for e in np.diag(steps)])
    gradient = (losses[:, 0] - losses[:, 1]) @ c / (2 * steps)
    differences = 1e-6 * np.abs(c) @ (sizes + problem.per_sample_losses(x))
    return max(
        hold("G(ξ + c1) = Gξ", G @ (xi + shift), G @ xi, rounding, **words),
        hold("Euler-Maruyama with ξ + c1 is that with ξ", paths[2], paths[1], state_rounding, **words),
        hold("Gξ = ∇Σ c_iℓ_i", G @ xi, gradient, differences + rounding, **words),
        hold(
            "matrix-free √(2σ²ρ)Gξ = √(2σ²ρ)∇Σ c_iℓ_i", paths[1] - paths[0], strength * gradient,
            strength * differences + state_rounding, **words,
        ),
    )  # fmt: skip


def assert_rotated_factor(
    problem: Any, theta: Any, rotation: Any, dW: Any, dt: float | None = None, factor: Any = None
) -> float:
    """G and GO driven by dW and Oᵀdw give the same path, and (GO)(GO)ᵀ = Σ: the law of the SDE knows Σ alone.

    Parameters
    ----------
    problem : SGD
    theta : (d,) array_like
    rotation : (m, m) array_like
        Orthogonal O.
    dW : (n, n_steps, m) array_like
    dt : float, optional
        h; default the learning rate. Small enough for the paths not to run away: rounding grows with them.
    factor : as in `SGD.sde`

    Notes
    -----
    The first path through the compiled increment, the second through the matrix GO, evaluated in Python. Tolerance
    1e-12·n_steps·(max‖θ_t‖ + V), V = (h + √(2σ²ρ)Σ|dW|)max‖g_i‖ of the largest step at the start, and √eps·V in place
    of 1e-12·V for a factor that is a square root (see `assert_euler_maruyama_law`).
    """
    x = _check.array("theta", theta, (problem.model.dim,))
    dW = _check.array("dW", dW, ("n", "n_steps", "m"))
    O = _check.array("rotation", rotation, dW.shape[-1:] * 2)
    if np.abs(O @ O.T - np.eye(len(O))).max() > 1e-12:
        raise ArgumentError("rotation must be orthogonal: OOᵀ = 1 to 1e-12")
    h = float(problem.learning_rate) if dt is None else _check.positive("dt", dt)

    def turned(state: np.ndarray) -> np.ndarray:
        return problem.factor(state, factor) @ O

    one, other = sde_steps(problem, x, dW, h, factor), sde_steps(problem, x, dW @ O, h, turned)
    largest = gradient_sizes(problem, x).max()
    moved = (h + np.sqrt(noise_of(problem)) * np.abs(dW).sum(axis=-1).max()) * largest
    root = np.sqrt(EPS) if problem.sde(factor).factor.name != "per-sample" else 0.0
    tolerance = dW.shape[1] * (1e-12 * (np.linalg.norm(one, axis=-1).max() + moved) + root * moved)
    words = {"problem": problem, "theta": x, "rotation": O, "dW": dW, "dt": h, "factor": factor}
    F = turned(x)
    return max(
        hold("G with dW and GO with Oᵀdw give one path", other, one, tolerance, **words),
        hold("(GO)(GO)ᵀ = Σ", F @ F.T, problem.covariance(x), ROUNDING * x.size * largest**2, **words),
    )
