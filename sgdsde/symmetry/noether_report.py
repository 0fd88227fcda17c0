"""NoetherReport: a charge C_J along a run beside its law; Circulation: J∘dθ and J·dθ step by step, for any J."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.symmetry.noether_fields import as_field
from sgdsde.symmetry.noether_law import Run, along, read_run

__all__ = ["Circulation", "NoetherReport", "circulation"]


@dataclass(frozen=True, repr=False, eq=False)
class NoetherReport:
    """A charge along a run; arrays are (n_paths, n_times). NaN where a path is no longer finite."""

    name: str
    dynamics: str
    t: np.ndarray
    """(n_times,)"""
    charge: np.ndarray
    """C_J."""
    rate: np.ndarray
    """-2γθ·J + σ²ρ Tr[Σ∇J] at the saved states."""
    predicted: np.ndarray
    """Change since the start by the law: of single steps where all were saved, else of the SDE."""
    by_steps: bool
    """Whether `predicted` adds up means of single steps."""

    @classmethod
    def of(cls, name: str, run: Run, values: np.ndarray, rates: np.ndarray, means: np.ndarray) -> NoetherReport:
        predicted = np.concatenate([np.zeros((len(values), 1)), np.cumsum(means, axis=1)], axis=1)
        return cls(name, run.method, run.t, values, rates, predicted, run.step is not None)

    @property
    def delta(self) -> np.ndarray:
        """C_J(t) - C_J(t_0), measured."""
        return self.charge - self.charge[:, :1]

    @property
    def residual(self) -> np.ndarray:
        """2γθ·J - σ²ρ Tr[Σ∇J]: zero at the noise equilibrium."""
        return -self.rate

    @property
    def continuous(self) -> np.ndarray:
        """∫rate dt over the saved states (trapezoidal rule)."""
        parts = 0.5 * (self.rate[:, 1:] + self.rate[:, :-1]) * np.diff(self.t)
        return np.concatenate([np.zeros((len(parts), 1)), np.cumsum(parts, axis=1)], axis=1)

    @property
    def remainder(self) -> np.ndarray:
        """delta - predicted. By steps, and for an affine J, a martingale."""
        return self.delta - self.predicted

    def __repr__(self) -> str:
        n = len(self.charge)
        lines = [f"{self.name} along {self.dynamics}, t = {self.t[-1]:g}, {n} {'path' if n == 1 else 'paths'}"]
        for label, values in (
            ("ΔC measured", self.delta),
            ("ΔC predicted", self.predicted),
            ("remainder", self.remainder),
            ("∫rate dt", self.continuous),
            ("residual", self.residual),
        ):
            last = values[:, -1]
            error = f" ± {last.std(ddof=1) / np.sqrt(n):.1e}" if n > 1 else ""
            lines.append(f"  {label:<13} {last.mean(): .6e}{error}")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False, eq=False)
class Circulation:
    """J along a trajectory; arrays are (n_paths, n_times - 1), one number for each interval between saved states."""

    name: str
    t: np.ndarray | None
    stratonovich: np.ndarray
    """J((θ_n + θ_{n+1})/2)·Δθ, or the mean of J at both ends times Δθ."""
    ito: np.ndarray
    """J(θ_n)·Δθ: -2γhθ·J in every step of SGD and Euler-Maruyama, exactly."""
    predicted: np.ndarray | None
    """(-2γθ·J + σ²ρTr[Σ∇J])Δt, or the mean of a step where all were saved; None without a problem."""

    @property
    def total(self) -> np.ndarray:
        """∫J∘dθ up to each time, (n_paths, n_times)."""
        return np.concatenate([np.zeros((len(self.ito), 1)), np.cumsum(self.stratonovich, axis=1)], axis=1)

    @property
    def remainder(self) -> np.ndarray:
        """stratonovich - predicted."""
        if self.predicted is None:
            raise ArgumentError("problem must be given to circulation for a prediction: this was a bare trajectory")
        return self.stratonovich - self.predicted

    def __repr__(self) -> str:
        n, steps = self.ito.shape
        text = f"Circulation of {self.name} over {steps} intervals, {n} {'path' if n == 1 else 'paths'}: "
        text += f"∫J∘dθ = {self.stratonovich.sum(axis=1).mean():.6g}, ∫J·dθ = {self.ito.sum(axis=1).mean():.6g}"
        return text if self.predicted is None else text + f", predicted {self.predicted.sum(axis=1).mean():.6g}"


def circulation(trajectory: Any, J: Any, problem: Any = None, *, rule: str = "midpoint") -> Circulation:
    """The increments J∘dθ (Stratonovich) and J·dθ (Itô) of a trajectory, for any J, gradient or not.

    For a symmetry, J·∇ℓ_i = 0, the SDE of SGD has J·dθ = -2γθ·J dt and J∘dθ = (-2γθ·J + σ²ρ Tr[Σ∇J])dt, neither with
    noise. Where J is the gradient of a charge, J∘dθ is dC_J; where it is not, its sum depends on the way taken, and is
    what a charge would have been. For an antisymmetric J = Aθ both are zero (`Angles`).

    Parameters
    ----------
    trajectory : Solution or array_like of shape (n_times, d) or (n_paths, n_times, d)
        Saved densely: with `t_eval="steps"` each number is that of one step.
    J : callable, Generator, Affine, pair (A, b), Charge or NoetherCharge
    problem : SGD, optional
        Default that of the solution.
    rule : {"midpoint", "trapezoid"}
        Both have an error of third order in Δθ, and none for an affine J.

    Examples
    --------
    >>> turn = lambda x: np.array([-x[1], x[0]])
    >>> square = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]]
    >>> circulation(square, turn).total[0, -1]  # twice the area: no function has this J for a gradient
    np.float64(8.0)
    """
    rule = _check.choice("rule", rule, ["midpoint", "trapezoid"])
    run = None
    if hasattr(trajectory, "y"):
        field = as_field(J, otherwise=np.shape(trajectory.y)[-1])
        own = getattr(trajectory, "problem", None)
        if problem is not None or hasattr(own, "model") or hasattr(own, "problem"):
            run = read_run(field, trajectory, problem)
        states, t = np.asarray(trajectory.y), np.asarray(trajectory.t)
    else:
        if problem is not None:
            raise ArgumentError("problem must be left out for a bare array of states: it has no times")
        states, t = _check.array("trajectory", trajectory, finite=False), None
        if states.ndim not in (2, 3):
            raise ShapeError(f"trajectory must have shape (n_times, d) or (n_paths, n_times, d), got {states.shape}")
        field = as_field(J, otherwise=states.shape[-1])
    if states.ndim < 2 or states.shape[-1] != field.dim or states.shape[-2] < 2:
        raise ShapeError(f"trajectory must have shape (..., n_times, {field.dim}), 2 times or more, got {states.shape}")
    states = states.reshape(-1, *states.shape[-2:])
    first, last = states[:, :-1], states[:, 1:]
    start = field.apply(first)
    mean = field.apply((first + last) / 2) if rule == "midpoint" else (start + field.apply(last)) / 2
    delta = last - first
    predicted = None if run is None else along(field, run)[1]
    return Circulation(field.name, t, np.sum(mean * delta, axis=-1), np.sum(start * delta, axis=-1), predicted)
