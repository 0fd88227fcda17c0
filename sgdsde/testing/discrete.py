"""What a step of discrete SGD does to a charge: exactly, for every batch, and on average over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde.symmetry import Charge
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import ROUNDING, gradient_sizes, noise_of, read
from sgdsde.testing.steps import all_batches, batch_steps

__all__ = ["assert_discrete_law", "assert_discrete_mean"]


def assert_discrete_law(problem: Any, generator: Any, theta: Any, batches: Any = None) -> float:
    """C(θ') = (1 - 2ηγ)² C(θ) + η² ĝᵀAĝ, C = θᵀAθ: one step of SGD, whatever the batch, with no approximation.

    Source: the step is θ' = (1 - 2ηγ)θ - ηĝ and ĝᵀAθ = 0 (`assert_tangent`); for A = I it is the recursion of the norm
    behind the fluctuation-dissipation relation of Yaida 2018 (arXiv 1810.00004).

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    batches : (n, S) array_like of int, optional
        Default: every batch that SGD can draw.

    Notes
    -----
    Through the model's STEP kernel, against ĝ from the gradients of single samples. Tolerance 64·d·eps·‖A‖(‖θ‖ +
    η·max‖g_i‖)².
    """
    a, x = read(problem, generator, theta)
    batches = all_batches(problem) if batches is None else np.asarray(batches)
    eta, g = problem.learning_rate, problem.per_sample_gradients(x)
    mean = g[batches].mean(axis=1)
    wanted = (1 - 2 * eta * problem.gamma) ** 2 * a.quadratic(x) + eta**2 * a.quadratic(mean)
    size = np.linalg.norm(x) + eta * gradient_sizes(problem, x).max()
    return hold(
        "C(θ') = (1-2ηγ)²C(θ) + η²ĝᵀAĝ", a.quadratic(batch_steps(problem, x, batches)), wanted,
        ROUNDING * a.dim * a.norm * size**2,
        problem=problem, generator=a, theta=x, batch=lambda i: batches[i[0]],
    )  # fmt: skip


def assert_discrete_mean(problem: Any, generator: Any, theta: Any) -> float:
    """E[C(θ') - C(θ)] = (-4ηγ + 4η²γ²)C + η²(ρTr[ΣA]/S + ∇LᵀA∇L), over every batch.

    `Charge.discrete_rate` says the same. ρ = 1 with replacement and (N - S)/(N - 1) without. Source: the mean of
    `assert_discrete_law`, and Cov ĝ = ρΣ/S (sampling from a finite population, e.g. Cochran 1977, theorem 2.2).

    Parameters
    ----------
    problem, generator, theta : as in `assert_discrete_law`

    Notes
    -----
    Tolerance 1e-12·‖A‖(‖θ‖ + η·max‖g_i‖)².
    """
    a, x = read(problem, generator, theta)
    eta = problem.learning_rate
    found = (a.quadratic(batch_steps(problem, x, all_batches(problem))) - a.quadratic(x)).mean()
    wanted = -4 * eta * problem.gamma * (1 - eta * problem.gamma) * a.quadratic(x)
    wanted += eta * noise_of(problem) * a.trace(problem.covariance(x)) + eta**2 * a.quadratic(problem.gradient(x))
    tolerance = 1e-12 * a.norm * (np.linalg.norm(x) + eta * gradient_sizes(problem, x).max()) ** 2
    words = {"problem": problem, "generator": a, "theta": x}
    said = eta * Charge(a).discrete_rate(problem, x)
    return max(
        hold("E[ΔC] = (-4ηγ+4η²γ²)C + η²(ρTr[ΣA]/S + ∇LᵀA∇L)", found, wanted, tolerance, **words),
        hold("Charge.discrete_rate·η = E[ΔC]", said, found, tolerance, **words),
    )
