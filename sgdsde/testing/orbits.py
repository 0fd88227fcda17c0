"""A symmetry as it is seen along its orbit θ_λ = e^{λA}θ: losses stay, the covariance of gradients turns with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.algebra import Generator
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import gradient_sizes, needs_samples, read

__all__ = ["assert_losses_kept", "assert_orbit_covariance"]


def assert_losses_kept(problem: Any, generator: Any, theta: Any, lam: float | None = None) -> float:
    """ℓ_i(e^{λA}θ) = ℓ_i(θ) for every sample: the symmetry itself, for a finite λ.

    Source: the definition of an exponential symmetry, Ziyin et al. 2024 (arXiv 2402.07193).

    Parameters
    ----------
    problem, generator, theta : as in `assert_tangent`
    lam : float, optional
        λ; default 1/‖A‖.

    Notes
    -----
    Tolerance 1e-12·d·(1 + ℓ_i)·e^{2|λ|‖A‖}: e^{λA} has the condition e^{2|λ|‖A‖}, so it may raise the terms that cancel
    in the outputs by that much. For entries up to 3 and |λ|‖A‖ <= 2.
    """
    a, x = read(problem, generator, theta, symmetric=False)
    lam = _lambda(a, lam)
    needs_samples(problem, "this law")
    before, after = problem.per_sample_losses(x), problem.per_sample_losses(a.exp(lam, x))
    tolerance = 1e-12 * a.dim * (1 + np.abs(before)) * np.exp(2 * abs(lam) * a.norm)
    return hold("ℓ_i(e^{λA}θ) = ℓ_i(θ)", after, before, tolerance, problem=problem, generator=a, theta=x, lam=lam)


def assert_orbit_covariance(problem: Any, generator: Any, theta: Any, lam: float | None = None) -> float:
    """Σ(e^{λA}θ) = e^{-λAᵀ} Σ(θ) e^{-λA}: gradients turn against the state, so noise grows where weights shrink.

    Source: g_i(e^{λA}θ) = e^{-λAᵀ}g_i(θ); it is what makes the noise equilibrium unique (Ziyin et al. 2024, arXiv
    2402.07193, theorem 4.3).

    Parameters
    ----------
    problem, generator, theta, lam : as in `assert_losses_kept`

    Notes
    -----
    Tolerance 1e-11·max‖g_i‖²·e^{2|λ|‖A‖} for each entry (the two exponentials are multiplied in).
    """
    a, x = read(problem, generator, theta, symmetric=False)
    lam = _lambda(a, lam)
    back = a if a.is_symmetric else Generator.from_matrix(a.matrix.T)
    turned = back.exp(-lam, back.exp(-lam, problem.covariance(x)).T).T  # rows, then columns
    tolerance = 1e-11 * gradient_sizes(problem, x).max() ** 2 * np.exp(2 * abs(lam) * a.norm)
    return hold(
        "Σ(e^{λA}θ) = e^{-λAᵀ}Σ(θ)e^{-λA}", problem.covariance(a.exp(lam, x)), turned, tolerance,
        problem=problem, generator=a, theta=x, lam=lam,
    )  # fmt: skip


def _lambda(a: Generator, lam: float | None) -> float:
    if lam is not None:
        return _check.number("lam", lam)
    return 1.0 / a.norm if a.norm > 0 else 1.0
