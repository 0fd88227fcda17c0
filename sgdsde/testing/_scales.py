"""The sizes of which rounding is a part, and the arguments of laws read once.

An identity such as g_iᵀAθ = 0 holds to c·d·eps·‖A‖‖θ‖‖g_i‖ when the components of g_i carry a relative rounding of eps.
Where g_i itself is the small rest of large terms (a hidden unit that happens to be nearly zero), its rounding is of the
size of those terms. They are seen at states nearby, so ‖g_i‖ here is the largest over θ and two states within 25 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.algebra import Generator
from sgdsde.symmetry.charges import as_generator

__all__ = ["EPS", "ROUNDING", "gradient_rows", "gradient_sizes", "near", "needs_samples", "noise_of", "read", "slope"]

EPS = float(np.finfo(float).eps)
ROUNDING = 64 * EPS
"""Times d and the norms of what is multiplied: the tolerance of an algebraic identity."""


def read(problem: Any, generator: Any, theta: Any, *, symmetric: bool = True) -> tuple[Generator, np.ndarray]:
    """The generator and θ, checked against the problem."""
    a = as_generator(generator)
    if a.dim != problem.model.dim:
        raise ArgumentError(f"generator acts on {a.dim} components, the problem has {problem.model.dim}")
    if symmetric and not a.is_symmetric:
        raise ArgumentError(f"generator must be symmetric for this law, got {a!r}")
    return a, _check.array("theta", theta, (a.dim,))


def gradient_rows(problem: Any, theta: np.ndarray) -> np.ndarray:
    """g_i, (N, d); of a law of the data without samples the mean gradient and the columns of its noise factor."""
    if problem.n_samples is None:
        return np.vstack([problem.gradient(theta), problem.factor(theta).T])
    return np.asarray(problem.per_sample_gradients(theta))


def gradient_sizes(problem: Any, theta: np.ndarray) -> np.ndarray:
    """‖g_i‖, (N,), the largest over θ and two states within 25 % (fixed signs)."""
    return np.max([np.linalg.norm(gradient_rows(problem, x), axis=1) for x in near(theta)], axis=0)


def near(theta: np.ndarray) -> list[np.ndarray]:
    """θ and two states within 25 %, fixed signs."""
    signs = np.random.default_rng(0).choice([-0.25, 0.25], (2, theta.size))
    return [theta, *(theta * (1.0 + signs))]


def slope(problem: Any, theta: np.ndarray) -> float:
    """The largest ‖∇g_i‖ (Frobenius norm) over θ and two states within 25 %, by differences."""
    found = []
    for x in near(theta):
        steps = EPS ** (1 / 3) * (1 + np.abs(x))
        ends = ((gradient_rows(problem, x + e), gradient_rows(problem, x - e)) for e in np.diag(steps))
        columns = [(one - other) / (2 * s) for s, (one, other) in zip(steps, ends, strict=True)]
        found.append(np.sqrt(np.sum(np.square(columns), axis=(0, 2)).max()))
    return float(max(found))


def noise_of(problem: Any) -> float:
    """2σ²ρ = ηρ/S, from the problem's numbers."""
    n, size = problem.n_samples, problem.batch_size
    rho = 1.0 if problem.replacement else (n - size) / (n - 1) if n > 1 else 0.0
    return problem.learning_rate * rho / size


def needs_samples(problem: Any, law: str) -> None:
    """Refuses a law of the data without samples."""
    if problem.n_samples is None:
        raise ModelError(f"{law} is about single samples; {problem.X!r} is a law of the data")
