"""How far gradient descent, which has no noise, moves the charges of linear layers: by its finite steps alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.symmetry.charges import as_problem
from sgdsde.symmetry.matrix_charges import MatrixCharge

__all__ = ["DescentBudget", "descent_budget"]


@dataclass(frozen=True, eq=False)
class DescentBudget:
    """A run of gradient descent and the change of Q = UᵀU - WWᵀ in it."""

    learning_rate: float
    losses: np.ndarray
    """(n_steps + 1,) L."""
    charge: np.ndarray
    """(n_steps + 1, h, h) Q."""
    squares: np.ndarray
    """(n_steps,) η²‖∇L‖² of the layers' two matrices: bounds ‖ΔQ‖_* of the step."""
    step_error: float
    """Largest entry of ΔQ - η²(∇_UᵀL∇_UL - ∇_WL∇_WᵀL): rounding."""
    descends: bool
    """L fell by (η/2)‖∇L‖² or more in every step, as it does for η‖∇²L‖ <= 1 along the path: what `bound` needs."""

    @property
    def change(self) -> float:
        """‖Q_end - Q_0‖_*, the nuclear norm."""
        return float(np.linalg.norm(self.charge[-1] - self.charge[0], "nuc"))

    @property
    def path(self) -> float:
        """Σ_steps ‖ΔQ‖_*."""
        return float(np.sum(np.linalg.norm(np.diff(self.charge, axis=0), "nuc", axis=(-2, -1))))

    @property
    def bound(self) -> float:
        """2η(L_0 - L_end)."""
        return 2.0 * self.learning_rate * float(self.losses[0] - self.losses[-1])

    def __repr__(self) -> str:
        holds = "" if self.descends else ", not guaranteed: some step did not lower L by (η/2)‖∇L‖²"
        return (
            f"gradient descent, {len(self.squares)} steps of {self.learning_rate:g}: L {self.losses[0]:.6g} -> "
            f"{self.losses[-1]:.6g}\n  ‖ΔQ‖_* = {self.change:.4g} <= Σ‖ΔQ_k‖_* = {self.path:.4g} <= Ση²‖∇L‖² = "
            f"{self.squares.sum():.4g} <= 2η(L_0 - L_end) = {self.bound:.4g}{holds}"
        )


def descent_budget(problem: Any, theta0: Any, n_steps: int, layer: int = 1) -> DescentBudget:
    """Run gradient descent from θ_0 and follow Q of a hidden layer, against what it may move.

    Each step has exactly ΔQ = η²(∇_UᵀL∇_UL - ∇_WL∇_WᵀL): O(η²). Over a whole run

        ‖Q_end - Q_0‖_* <= Σ‖ΔQ‖_* <= Ση²‖∇L‖² <= 2η(L_0 - L_end),

    the last where η‖∇²L‖ <= 1 along the path (then L falls by (η/2)‖∇L‖² a step): O(η), for any number of steps.

    Parameters
    ----------
    problem : SGD
        With γ = 0; its batches do not matter, all samples enter each step of η = `learning_rate`.
    theta0 : (d,) array_like
    n_steps : int
    layer : int
        Hidden layer of linear units.

    Examples
    --------
    >>> import sgdsde as sg
    >>> problem = sg.SGD(sg.models.DeepLinear([1, 1, 1]), [[1.0]], [[1.0]], learning_rate=0.1)
    >>> budget = descent_budget(problem, [1.0, 0.2], 50)
    >>> bool(budget.change <= budget.path <= budget.squares.sum() <= budget.bound)
    True
    """
    as_problem(problem, "loss", "gradient", "gamma")
    if float(problem.gamma) > 0:
        raise ArgumentError(
            f"problem must have gamma = 0: weight decay moves Q by itself, got gamma = {problem.gamma:g}"
        )
    if getattr(problem, "schedule", None) is not None:
        raise ArgumentError("problem must have a constant learning rate")
    n_steps = _check.count("n_steps", n_steps)
    eta, charge = float(problem.learning_rate), MatrixCharge(problem.model, layer)
    theta = _check.array("theta0", theta0, (problem.model.dim,))
    losses, charges, squares = [problem.loss(theta)], [charge(theta)], []
    error, descends = 0.0, True
    for _ in range(n_steps):
        gradient = problem.gradient(theta)
        theta = theta - eta * gradient
        u, v = charge.layers(gradient)
        charges.append(charge(theta))
        losses.append(problem.loss(theta))
        squares.append(eta**2 * float(np.sum(u**2) + np.sum(v**2)))
        error = max(error, float(np.abs(charges[-1] - charges[-2] - eta**2 * charge(gradient)).max()))
        fall = 0.5 * eta * float(gradient @ gradient)
        descends = descends and bool(losses[-1] <= losses[-2] - fall + 1e-14 * abs(losses[-2]))
    return DescentBudget(eta, np.array(losses), np.array(charges), np.array(squares), error, descends)
