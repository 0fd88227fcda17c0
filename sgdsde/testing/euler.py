"""What a step of Euler-Maruyama does to a charge: exactly, for every noise, and mean and variance by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.algebra import Generator
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, noise_of, read
from sgdsde.testing.steps import all_batches, all_signs, batch_steps, gauss_nodes, sde_steps

__all__ = [
    "assert_equal_means",
    "assert_euler_maruyama_law",
    "assert_euler_maruyama_mean",
    "assert_euler_maruyama_variance",
]


def assert_euler_maruyama_law(
    problem: Any, generator: Any, theta: Any, dW: Any = None, dt: float | None = None, factor: Any = None
) -> float:
    """C(θ') = (1 - 2γh)² C(θ) + vᵀAv, v = -h∇L + √(2σ²ρ)G dW: one step of Euler-Maruyama, for every noise.

    The noise enters C at second order only. Source: θᵀAv = 0 for the gradient and for each column of G; the SDE of SGD
    is that of Li, Tai and E 2017 (arXiv 1511.06251).

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    dW : (n, m) array_like, optional
        Brownian increments; default three rows of √h·N(0, 1) from a fixed seed.
    dt : float, optional
        h; default the learning rate.
    factor : as in `SGD.sde`
        One that does not leak along the orbit: not "cholesky".

    Notes
    -----
    Through `solve`, against v from `gradient` and `factor`. Tolerance 64·d·eps·‖A‖(‖θ‖ + V)², V = (h + √(2σ²ρ)Σ|dW|)·
    max‖g_i‖; with a factor that is a square root of Σ also 64·√eps·‖A‖·V², because a root loses half the digits where Σ
    is the small rest of large terms.
    """
    a, x = read(problem, generator, theta)
    h = _step(problem, dt)
    m = problem.sde(factor).bind(0.0, x).noise_dim
    if dW is None:
        dW = np.sqrt(h) * np.random.default_rng(0).standard_normal((3, m))
    dW = _check.array("dW", dW, ("n", m))
    v = -h * problem.gradient(x) + np.sqrt(noise_of(problem)) * dW @ problem.factor(x, factor).T
    wanted = (1 - 2 * problem.gamma * h) ** 2 * a.quadratic(x) + a.quadratic(v)
    moved = (h + np.sqrt(noise_of(problem)) * np.abs(dW).sum(axis=1)) * gradient_sizes(problem, x).max()
    tolerance = ROUNDING * a.dim * a.norm * (np.linalg.norm(x) + moved) ** 2
    if problem.sde(factor).factor.name != "per-sample":
        tolerance += 64 * np.sqrt(EPS) * a.norm * moved**2
    return hold(
        "C(θ') = (1-2γh)²C(θ) + vᵀAv", _charges(problem, a, x, dW, h, factor), wanted, tolerance,
        problem=problem, generator=a, theta=x, dt=h, factor=factor, dW=lambda i: dW[i[0]],
    )  # fmt: skip


def assert_euler_maruyama_mean(
    problem: Any, generator: Any, theta: Any, dt: float | None = None, factor: Any = None
) -> float:
    """E[C(θ')] = (1 - 2γh)² C + h²∇LᵀA∇L + 2σ²ρh Tr[ΣA], over all 2^m sign vectors √h·(±1, …, ±1) in place of noise.

    Signs have the first three moments of N(0, 1), and C is quadratic: the mean is exact. Source: the mean of
    `assert_euler_maruyama_law`.

    Parameters
    ----------
    problem, generator, theta, dt, factor : as in `assert_euler_maruyama_law`
        With m <= 12.

    Notes
    -----
    Tolerance 1e-12·‖A‖(‖θ‖ + V)², V = (h + m√(2σ²ρh))·max‖g_i‖.
    """
    a, x = read(problem, generator, theta)
    h = _step(problem, dt)
    found = _sign_mean(problem, a, x, h, factor)
    wanted = (1 - 2 * problem.gamma * h) ** 2 * a.quadratic(x) + h**2 * a.quadratic(problem.gradient(x))
    wanted += noise_of(problem) * h * a.trace(problem.covariance(x))
    return hold(
        "E C(θ') = (1-2γh)²C + h²∇LᵀA∇L + 2σ²ρh Tr[ΣA]", found, wanted, 1e-12 * a.norm * _reach(problem, x, h) ** 2,
        problem=problem, generator=a, theta=x, dt=h, factor=factor,
    )  # fmt: skip


def assert_euler_maruyama_variance(
    problem: Any, generator: Any, theta: Any, dt: float | None = None, factor: Any = None
) -> float:
    """Var[C(θ')] = 2(2σ²ρh)² Tr[(ΣA)²] + 4h²(2σ²ρh) ∇LᵀAΣA∇L: what is left of the noise in a charge, O(h²) a step.

    It adds up to a scatter of √h along a path: a charge of the SDE has no noise, that of Euler-Maruyama has. Source:
    the variance of a quadratic form of Gaussian numbers, 2Tr[(GᵀAG)²], and of its linear part.

    Parameters
    ----------
    problem, generator, theta, dt, factor : as in `assert_euler_maruyama_law`
        With m <= 7.

    Notes
    -----
    The left side is a sum over the 3^m nodes of a rule that is exact for the fourth moments of N(0, I). Tolerance
    1e-12·w² + 2rw + r², w = ‖A‖V² the size of vᵀAv, r = 64·d·eps·‖A‖(‖θ‖ + V)² the rounding of C, V as in
    `assert_euler_maruyama_mean`.
    """
    a, x = read(problem, generator, theta)
    h, strength = _step(problem, dt), noise_of(problem) * _step(problem, dt)
    nodes, weights = gauss_nodes(problem.sde(factor).bind(0.0, x).noise_dim)
    charges = _charges(problem, a, x, np.sqrt(h) * nodes, h, factor) - a.quadratic(x)
    found = weights @ (charges - weights @ charges) ** 2
    moved, turned = a.apply(problem.covariance(x)), a.apply(problem.gradient(x))  # ΣA, A∇L
    wanted = 2 * strength**2 * np.sum(moved * moved.T) + 4 * h**2 * strength * (turned @ problem.covariance(x) @ turned)
    reach = _reach(problem, x, h)
    width, rounding = a.norm * (reach - np.linalg.norm(x)) ** 2, ROUNDING * a.dim * a.norm * reach**2
    return hold(
        "Var C(θ') = 2(2σ²ρh)²Tr[(ΣA)²] + 4h²(2σ²ρh)∇LᵀAΣA∇L", found, wanted,
        1e-12 * width**2 + 2 * rounding * width + rounding**2,
        problem=problem, generator=a, theta=x, dt=h, factor=factor,
    )  # fmt: skip


def assert_equal_means(problem: Any, generator: Any, theta: Any, factor: Any = None) -> float:
    """E[C(θ')] of Euler-Maruyama with h = η is that of SGD: both enumerated, all batches against all sign vectors.

    So, as far as charges go, Euler-Maruyama at the step η is SGD with Gaussian noise. Source: `assert_discrete_mean`
    and `assert_euler_maruyama_mean` with h = η.

    Parameters
    ----------
    problem, generator, theta, factor : as in `assert_euler_maruyama_mean`

    Notes
    -----
    Tolerance as there.
    """
    a, x = read(problem, generator, theta)
    eta = problem.learning_rate
    discrete = a.quadratic(batch_steps(problem, x, all_batches(problem))).mean()
    return hold(
        "E C of Euler-Maruyama at h = η is E C of SGD", _sign_mean(problem, a, x, eta, factor), discrete,
        1e-12 * a.norm * _reach(problem, x, eta) ** 2, problem=problem, generator=a, theta=x, factor=factor,
    )  # fmt: skip


def _step(problem: Any, dt: float | None) -> float:
    return float(problem.learning_rate) if dt is None else _check.positive("dt", dt)


def _charges(problem: Any, a: Generator, x: np.ndarray, dW: np.ndarray, h: float, factor: Any) -> np.ndarray:
    return a.quadratic(sde_steps(problem, x, dW[:, None, :], h, factor)[:, 1])


def _sign_mean(problem: Any, a: Generator, x: np.ndarray, h: float, factor: Any) -> float:
    signs = all_signs(problem.sde(factor).bind(0.0, x).noise_dim)
    return float(_charges(problem, a, x, np.sqrt(h) * signs, h, factor).mean())


def _reach(problem: Any, x: np.ndarray, h: float) -> float:
    """‖θ‖ + V: how far a step may go with each of the numbers that drive it up to √(3h)."""
    size = gradient_sizes(problem, x).max()
    driven = np.sqrt(3 * noise_of(problem) * h) * max(problem.n_samples or 1, 1)
    return float(np.linalg.norm(x) + (h + driven) * size)
