"""Functions that discrete SGD descends in place of L, and the potential of its slow motion along symmetries.

    order 2        L_γ + (η/4)‖∇L_γ‖²                            Q. Li, C. Tai, W. E, JMLR 20 (2019)
    shuffling      L_γ + (η/4)(1/m)Σ_k‖∇L_{k,γ}‖²                S. Smith, B. Dherin, D. Barrett, S. De, ICLR 2021
    slow motion    2γ‖θ‖² + σ²ρ Tr Σ

L_γ = L + γ‖θ‖²; m batches of S samples make an epoch, ρ = (N-S)/(N-1), and the mean over shuffles is L_γ +
(η/4)(‖∇L_γ‖² + ρ Tr Σ/S). arXiv:2308.06671 (A.3) has (T/4)‖∇L‖² with T = η/S in the first, right for S = 1 alone; and
with L in place of L_γ there the term 4ηγ²C of a charge is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.symmetry.charges import as_problem
from sgdsde.symmetry.group_equilibrium import orbit_potential

__all__ = ["modified_gradient", "modified_loss", "shuffled_loss", "slow_potential"]


def modified_loss(problem: Any, theta: Any) -> float:
    """L_γ + (η/4)‖∇L_γ‖² at θ (d,): what the SDE of order 2 descends."""
    theta, g = _gradient(problem, theta)
    return _loss(problem, theta) + 0.25 * problem.effective_learning_rate * float(g @ g)


def modified_gradient(problem: Any, theta: Any) -> np.ndarray:
    """Its gradient ∇L_γ + (η/2)∇²L_γ∇L_γ, (d,): one product with the Hessian."""
    theta, g = _gradient(problem, theta)
    curved = problem.model.hessian_vector(theta, g, problem.samples) + 2.0 * problem.gamma * g
    return g + 0.5 * problem.effective_learning_rate * curved


def shuffled_loss(problem: Any, theta: Any) -> float:
    """L_γ + (η/4)(‖∇L_γ‖² + ρ Tr Σ/S) at θ (d,): what epochs of SGD without replacement descend in the mean."""
    theta, g = _gradient(problem, theta)
    n, S = problem.n_samples, problem.batch_size
    if not n or n < S or n < 2:
        raise ArgumentError(f"problem must have at least {max(S, 2)} samples to be shuffled, got {n}")
    spread = (n - S) / (n - 1) / S * _trace(problem, theta)
    return _loss(problem, theta) + 0.25 * problem.effective_learning_rate * (float(g @ g) + spread)


def slow_potential(problem: Any, theta: Any) -> float:
    """F = 2γ‖θ‖² + σ²ρ Tr Σ at θ (d,).

    d F(e^{λA}θ)/dλ = 4γC_A - 2σ²ρTr[ΣA] = -dC_A/dt for every symmetry A: along orbits SGD goes down F, and noise
    equilibria are its minima there.
    """
    problem = as_problem(problem)
    return float(orbit_potential(problem, problem.model.check_theta(theta, one=True)))


def _gradient(problem: Any, theta: Any) -> tuple[np.ndarray, np.ndarray]:
    problem = as_problem(problem, "effective_learning_rate")
    theta = problem.model.check_theta(theta, one=True)
    return theta, problem.gradient(theta) + 2.0 * problem.gamma * theta


def _loss(problem: Any, theta: np.ndarray) -> float:
    return float(problem.loss(theta)) + problem.gamma * float(theta @ theta)


def _trace(problem: Any, theta: np.ndarray) -> float:
    return float(problem.gradient_moments(theta)[1].sum())
