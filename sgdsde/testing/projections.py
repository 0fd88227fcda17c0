"""Where an increment goes: its part along Aθ at the start of the step, and at the middle."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.symmetry import decompose
from sgdsde.symmetry.charges import as_generator
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import ROUNDING, gradient_sizes, noise_of, read

__all__ = ["assert_midpoint_projection", "assert_start_projection"]


def assert_start_projection(problem: Any, generator: Any, trajectory: Any, dt: float | None = None) -> float:
    """2Aθ·Δθ = -4γhC(θ) for a step of SGD or Euler-Maruyama from θ: along the orbit there is weight decay alone.

    Without decay the part along Aθ at the start is zero although C moves, by ΔθᵀAΔθ. Source: `assert_tangent`, in a
    step. Through `decompose(..., rule="ito")`.

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    trajectory : Solution or (..., n_steps + 1, d) array_like
        Every step of a run (`t_eval="steps"`), with h constant.
    dt : float, optional
        h; default the learning rate.

    Notes
    -----
    Tolerance 64·d·eps·‖A‖‖θ‖(‖θ‖ + ‖Δθ‖ + V), V = (h + 8√(2σ²ρhN))·max‖g_i‖ for the gradients that a step adds up
    (N(0, 1) numbers up to 8). ‖θ‖ because Δθ is the difference of two states.
    """
    states = _states(trajectory)
    a, _ = read(problem, generator, states.reshape(-1, states.shape[-1])[0])
    h = float(problem.learning_rate) if dt is None else _check.positive("dt", dt)
    start, delta = states[..., :-1, :], np.diff(states, axis=-2)
    found = next(iter(decompose(states, a, rule="ito").charge_changes.values()))
    sizes = np.array([gradient_sizes(problem, x).max() for x in start.reshape(-1, a.dim)]).reshape(start.shape[:-1])
    moved = (h + 8 * np.sqrt(noise_of(problem) * h * (problem.n_samples or 1))) * sizes
    norms = np.linalg.norm(start, axis=-1)
    return hold(
        "2Aθ·Δθ = -4γhC(θ)", found, -4 * problem.gamma * h * a.quadratic(start),
        ROUNDING * a.dim * a.norm * norms * (norms + np.linalg.norm(delta, axis=-1) + moved),
        problem=problem, generator=a, dt=h, theta=lambda i: start[i], delta=lambda i: delta[i],
    )  # fmt: skip


def assert_midpoint_projection(generator: Any, trajectory: Any) -> float:
    """2Aθ_mid·Δθ_∥ = C(θ') - C(θ), θ_mid = (θ + θ')/2, for any two states: the part along the orbit carries all of ΔC.

    A polarisation identity: no symmetry, no method, no small step is needed. Through `decompose(..., rule="midpoint")`.

    Parameters
    ----------
    generator : Generator or (d, d) array_like
        Symmetric.
    trajectory : Solution or (..., n_times, d) array_like

    Notes
    -----
    Tolerance 64·d·eps·‖A‖(‖θ‖ + ‖θ'‖)².

    Examples
    --------
    >>> import sgdsde as sg
    >>> assert_midpoint_projection(sg.rescaling(2), [[1.0, 2.0], [-0.3, 0.7], [5.0, 5.0]]) <= 1
    True
    """
    states, a = _states(trajectory), as_generator(generator)
    if not a.is_symmetric:
        raise ArgumentError(f"generator must be symmetric for this law, got {a!r}")
    found = next(iter(decompose(states, a, rule="midpoint").charge_changes.values()))
    norms = np.linalg.norm(states, axis=-1)
    return hold(
        "2Aθ_mid·Δθ_∥ = ΔC", found, np.diff(a.quadratic(states), axis=-1),
        ROUNDING * a.dim * a.norm * (norms[..., :-1] + norms[..., 1:]) ** 2,
        generator=a, start=lambda i: states[..., :-1, :][i], end=lambda i: states[..., 1:, :][i],
    )  # fmt: skip


def _states(trajectory: Any) -> np.ndarray:
    return _check.array("trajectory", getattr(trajectory, "y", trajectory))
