"""A symmetry as it is seen at one state: gradients, noise and curvature have nothing along Aθ."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_rows, gradient_sizes, read

__all__ = ["assert_curvature", "assert_factor_tangent", "assert_tangent"]

LEAKS = {"per-sample": ROUNDING, "rank-one": ROUNDING, "gram": ROUNDING, "cholesky": 1e-5}
"""‖GᵀAθ‖ of a factor over ‖A‖‖θ‖max‖g_i‖, by name; all but the last also times d."""


def assert_tangent(problem: Any, generator: Any, theta: Any) -> float:
    """g_iᵀAθ = 0 for every sample: the derivative of ℓ_i(e^{λA}θ) = ℓ_i(θ) at λ = 0.

    A symmetry on average over samples is not enough: the noise of SGD would move the charge. Source: Noether's theorem
    for gradient flow, as in Kunin et al. 2021 (arXiv 2012.04728) and Ziyin et al. 2024 (arXiv 2402.07193).

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Any A; it need not be symmetric.
    theta : (d,) array_like

    Returns
    -------
    float
        The largest error over its tolerance.

    Raises
    ------
    BrokenLaw
        An AssertionError, with the sample, θ, the value and the tolerance.

    Notes
    -----
    Tolerance 64·d·eps·‖A‖‖θ‖‖g_i‖: the rounding of a scalar product of d terms, and of the gradient in it.

    Examples
    --------
    >>> import sgdsde as sg
    >>> model = sg.models.DeepLinear([2, 1, 1])
    >>> problem = sg.SGD(model, [[1.0, 2.0], [3.0, -1.0]], [0.5, 1.0], learning_rate=0.1)
    >>> assert_tangent(problem, model.symmetries()["B=I"], [1.0, -2.0, 0.5]) <= 1
    True
    >>> assert_tangent(problem, sg.scaling(3), [1.0, -2.0, 0.5])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sgdsde.testing._holding.BrokenLaw: g_iᵀAθ = 0: got ...
    """
    a, x = read(problem, generator, theta, symmetric=False)
    tolerance = ROUNDING * a.dim * a.norm * np.linalg.norm(x) * gradient_sizes(problem, x)
    value = gradient_rows(problem, x) @ a.apply(x)
    return hold("g_iᵀAθ = 0", value, 0.0, tolerance, problem=problem, generator=a, theta=x)


def assert_factor_tangent(
    problem: Any, generator: Any, theta: Any, factor: Any = None, *, leak: float | None = None
) -> float:
    """GᵀAθ = 0 for a factor G of the gradient covariance Σ = GGᵀ: the noise does not push along the orbit.

    It follows from `assert_tangent` in exact arithmetic for every G, since ‖GᵀAθ‖² = θᵀAᵀΣAθ = 0; what a factor makes
    of it in rounding is measured here. Source: Ziyin et al. 2024 (arXiv 2402.07193).

    Parameters
    ----------
    problem, generator, theta : as in `assert_tangent`
    factor : as in `SGD.sde`
    leak : float, optional
        Tolerance, over ‖A‖‖θ‖max‖g_i‖.

    Notes
    -----
    Tolerance 64·d·eps for factors that are made of gradients (per-sample, rank-one, Gram); 10·√1e-12 for "cholesky",
    which adds 1e-12·Tr Σ/d to the diagonal of the singular Σ; 64·d·eps for others unless `leak` is given.
    """
    a, x = read(problem, generator, theta, symmetric=False)
    if leak is None:
        name = problem.sde(factor).factor.name
        leak = LEAKS.get(name, ROUNDING) * (1 if name == "cholesky" else a.dim)
    tolerance = leak * a.norm * np.linalg.norm(x) * gradient_sizes(problem, x).max()
    value = problem.factor(x, factor).T @ a.apply(x)
    return hold("GᵀAθ = 0", value, 0.0, tolerance, problem=problem, generator=a, factor=factor, theta=x)


def assert_curvature(problem: Any, generator: Any, theta: Any, step: float = 1e-5) -> float:
    """H_iAθ = -Aᵀg_i, H_i = ∇²ℓ_i: the derivative of `assert_tangent`, and the reason why orbits are curved valleys.

    Source: differentiate g_i(θ)ᵀAθ = 0 once more (Kunin et al. 2021, arXiv 2012.04728).

    Parameters
    ----------
    problem, generator, theta : as in `assert_tangent`
    step : float
        Of the central difference of the gradients along the orbit direction, over ‖A‖: θ ± (step/‖A‖)·Aθ.

    Notes
    -----
    Tolerance 1e-6·‖A‖‖g_i‖: the difference errs by step² and eps/step of it, 1e-10 times third derivatives and 2e-11.
    """
    a, x = read(problem, generator, theta, symmetric=False)
    if a.norm == 0:
        return 0.0
    move = _check.positive("step", step) / a.norm
    ahead, behind = (gradient_rows(problem, x + sign * move * a.apply(x)) for sign in (1, -1))
    turned = gradient_rows(problem, x) @ a.matrix
    tolerance = (1e-6 + EPS / step) * a.norm * gradient_sizes(problem, x)
    return hold(
        "H_iAθ = -Aᵀg_i", (ahead - behind) / (2 * move), -turned, tolerance[:, None],
        problem=problem, generator=a, theta=x,
    )  # fmt: skip
