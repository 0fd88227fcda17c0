"""All the laws at one state: what a model of one's own should satisfy to be trusted with the rest of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde.models import MLP, ScaleInvariant
from sgdsde.testing import (
    activations,
    corrections,
    discrete,
    equilibria,
    euler,
    midpoint,
    noise,
    norms,
    orbits,
    projections,
    samplers,
    tangency,
)
from sgdsde.testing._scales import read
from sgdsde.testing.steps import MOST, count_batches, sde_steps

__all__ = ["assert_laws"]


def assert_laws(problem: Any, generator: Any, theta: Any) -> dict[str, float]:
    """Every law that can be tried at one state of a problem, for a model or a generator of one's own.

    Parameters
    ----------
    problem : SGD
        With few samples: means are over all batches and all sign vectors, left out where there are more than 4096. For
        a `Population` only the laws of the SDE are tried.
    generator : Generator or (d, d) array_like
        Symmetric, a symmetry of every sample's loss.
    theta : (d,) array_like
        With entries of order 1.

    Returns
    -------
    dict
        Name of the law -> its largest error over the tolerance, at most 1.

    Raises
    ------
    BrokenLaw
        The first law that fails, with a witness.

    Examples
    --------
    >>> import sgdsde as sg
    >>> model = sg.models.Product(width=2)
    >>> problem = sg.SGD(model, [1.0, 2.0, -1.0], [0.5, 1.0, 1.0], learning_rate=0.1, gamma=0.1)
    >>> ratios = assert_laws(problem, model.symmetries()["W1/W2"], [1.0, 0.5, -0.5, 2.0])
    >>> max(ratios.values()) <= 1, "assert_discrete_mean" in ratios
    (True, True)
    """
    a, x = read(problem, generator, theta)
    sde = problem.sde()
    m = sde.noise_dim
    laws: list[Any] = [
        tangency.assert_tangent,
        tangency.assert_factor_tangent,
        tangency.assert_curvature,
        orbits.assert_orbit_covariance,
        euler.assert_euler_maruyama_law,
        equilibria.assert_monotone_rate,
        equilibria.assert_equilibrium,
    ]
    if m and 2**m <= MOST:
        laws.append(euler.assert_euler_maruyama_mean)
    if m and 3**m <= MOST:
        laws.append(euler.assert_euler_maruyama_variance)
    if sde.exact_correction:
        laws += [corrections.assert_orbit_correction, midpoint.assert_midpoint_rate]
    if m == 1:
        laws.append(midpoint.assert_sign_pair)
    if problem.n_samples is not None:
        laws.append(orbits.assert_losses_kept)
        if count_batches(problem) <= MOST:
            laws += [discrete.assert_discrete_law, discrete.assert_discrete_mean]
            if m and 2**m <= MOST:
                laws.append(euler.assert_equal_means)
    ratios = {law.__name__: law(problem, a, x) for law in laws}
    ratios |= {law.__name__: law(problem, x) for law in _of_the_model(problem)}
    if problem.n_samples is not None:
        ratios["assert_covariance"] = noise.assert_covariance(problem, x)
        if "per-sample" in problem.model.factors:
            ratios["assert_noise"] = noise.assert_noise(problem, x)
    dW = np.sqrt(problem.learning_rate) * np.random.default_rng(0).standard_normal((3, 1, m))
    paths = sde_steps(problem, x, dW)
    ratios["assert_start_projection"] = projections.assert_start_projection(problem, a, paths)
    ratios["assert_midpoint_projection"] = projections.assert_midpoint_projection(a, paths)
    return ratios


def _of_the_model(problem: Any) -> list[Any]:
    """The laws that are not about the generator."""
    model = problem.model
    laws: list[Any] = []
    smooth = not isinstance(model, MLP) or model.activation not in ("relu", "leaky_relu")
    if smooth and problem.sde().exact_correction:
        laws.append(corrections.assert_correction)
    if problem.n_samples is not None and count_batches(problem) <= MOST:
        laws.append(samplers.assert_sampling)
        if not smooth and model.depth > 1:
            laws.append(activations.assert_unit_balance)
        if isinstance(model, ScaleInvariant):
            laws.append(norms.assert_norm_law)
    return laws
