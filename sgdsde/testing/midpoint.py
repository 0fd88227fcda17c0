"""Two steps in which a charge feels less of the noise: the implicit midpoint rule, and signs for normal numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, DivergenceWarning, ModelError
from sgdsde.run.solving import solve
from sgdsde.symmetry import Charge
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, noise_of, read, slope
from sgdsde.testing.steps import sde_steps

__all__ = ["assert_midpoint_rate", "assert_sign_pair"]

SOLVED = 1e-13
"""To which the equation of an implicit step is solved, relative to the state and its change."""


def assert_midpoint_rate(
    problem: Any, generator: Any, theta: Any, dW: Any = None, dt: float | None = None, factor: Any = None
) -> float:
    """C(θ') - C(θ) = h·(-4γC + 2σ²ρTr[ΣA]) at ½(θ + θ') for the implicit midpoint rule: a charge has no noise at all.

    Whatever the noise and its size, in one step. Source: C is quadratic, so ΔC = 2θ_mᵀA·Δθ, and every column of G is
    tangent to the orbit at θ_m; what is left is the Stratonovich drift (Milstein, Repin & Tretyakov 2002, SIAM J.
    Numer. Anal. 40, 1583, on quadratic invariants). It asks of the CORRECTION kernel to be right along Aθ.

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    dW : (n, m) array_like, optional
        Brownian increments; default three rows of √h·N(0, 1) from a fixed seed.
    dt : float, optional
        h; default the learning rate, or less where such a step might have no solution: h·max‖∇g_i‖ <= ½, and
        √(2σ²ρh)·max‖∇g_i‖ <= ¼ for the noise.
    factor : as in `SGD.sde`
        One with a correction in closed form: the model's own.

    Raises
    ------
    ArgumentError
        If a step has no solution, or none was found.

    Notes
    -----
    Tolerance 10·1e-13·‖A‖(‖θ‖ + V)², 1e-13 the error of the solver, V = (h + √(2σ²ρ)Σ|dW|)·max‖g_i‖.
    """
    a, x = read(problem, generator, theta)
    sde = problem.sde(factor)
    if not sde.exact_correction:
        raise ModelError(f"factor must have a correction in closed form for this law, got {sde!r}")
    h = _solvable(problem, x) if dt is None else _check.positive("dt", dt)
    if dW is None:
        dW = np.sqrt(h) * np.random.default_rng(0).standard_normal((3, sde.noise_dim))
    dW = _check.array("dW", dW, ("n", sde.noise_dim))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        found = solve(
            sde, (0.0, h), x, dt=h, method="implicit-midpoint", n_paths=len(dW), dW=dW[:, None, :], t_eval="steps",
            threads=1,
        )  # fmt: skip
    if not found.success:
        raise ArgumentError(f"dt must be small enough for an implicit step, got {h:g}: {found.message}")
    end = found.y[:, 1]
    rate = Charge(a).rate(problem, (x + end) / 2)
    moved = (h + np.sqrt(noise_of(problem)) * np.abs(dW).sum(axis=1)) * gradient_sizes(problem, x).max()
    return hold(
        "ΔC = h·rate(½(θ + θ'))", a.quadratic(end) - a.quadratic(x), h * rate,
        10 * SOLVED * a.norm * (np.linalg.norm(x) + moved) ** 2,
        problem=problem, generator=a, theta=x, dt=h, factor=factor, dW=lambda i: dW[i[0]],
    )  # fmt: skip


def assert_sign_pair(problem: Any, generator: Any, theta: Any, dt: float | None = None, factor: Any = None) -> float:
    """With one noise, dW = ±√h: C(θ'₊) - C(θ'₋) = -4h√(2σ²ρh)·∇LᵀAG for Euler-Maruyama, the cross term alone.

    dW² is then h, so the part of ΔC that is quadratic in the noise is the same for both signs: a charge scatters by
    h^{3/2} in a step, not by h as with normal numbers. The mean of the two is (1 - 2γh)²C + h²∇LᵀA∇L + 2σ²ρh·GᵀAG.
    Source: `assert_euler_maruyama_law`.

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    dt : float, optional
        h; default the learning rate.
    factor : as in `SGD.sde`
        Of one column; default "rank-one" where the model has it, otherwise `sgd.LowRank(1)`.

    Notes
    -----
    Tolerance 64·d·eps·‖A‖(‖θ‖ + V)², V = (h + √(2σ²ρhN))·max‖g_i‖. G is `problem.factor`, which is that of the step, to
    rounding, although as a square root of Σ it may be wrong by more.
    """
    from sgdsde.sgd import LowRank

    a, x = read(problem, generator, theta)
    h = float(problem.learning_rate) if dt is None else _check.positive("dt", dt)
    if factor is None:
        factor = "rank-one" if "rank-one" in problem.model.factors else LowRank(1)
    m = problem.sde(factor).bind(0.0, x).noise_dim
    if m != 1:
        raise ArgumentError(f"factor must have one column for this law, got {m}")
    root = np.sqrt(noise_of(problem) * h)
    dW = np.sqrt(h) * np.array([[[1.0]], [[-1.0]]])
    plus, minus = a.quadratic(sde_steps(problem, x, dW, h, factor)[:, 1])
    gradient, column = problem.gradient(x), problem.factor(x, factor)[:, 0]
    turned = a.apply(gradient)
    mean = (1 - 2 * problem.gamma * h) ** 2 * a.quadratic(x) + h**2 * turned @ gradient + root**2 * a.quadratic(column)
    moved = (h + root * np.sqrt(problem.n_samples or 1)) * gradient_sizes(problem, x).max()
    tolerance = ROUNDING * a.dim * a.norm * (np.linalg.norm(x) + moved) ** 2
    words = {"problem": problem, "generator": a, "theta": x, "dt": h, "factor": factor}
    return max(
        hold("C(θ'₊) - C(θ'₋) = -4h√(2σ²ρh)∇LᵀAG", plus - minus, -4 * h * root * turned @ column, tolerance, **words),
        hold("½(C(θ'₊) + C(θ'₋)) has GᵀAG, no scatter", (plus + minus) / 2, mean, tolerance, **words),
    )


def _solvable(problem: Any, x: np.ndarray) -> float:
    """The learning rate, or a step over which neither drift nor noise changes by more than half of themselves."""
    steepest = max(slope(problem, x), EPS)
    return float(min(problem.learning_rate, 0.5 / steepest, (0.25 / steepest) ** 2 / max(noise_of(problem), EPS)))
