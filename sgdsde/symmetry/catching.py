"""Run and catch: the equilibrium C* of a charge moves with θ, roughly, and the charge follows it, smoothly.

C* is the same on a whole orbit, but noise carries θ from orbit to orbit, so C*(θ_t) fluctuates like any function of θ;
C itself has no noise and is driven by -κ(C - C*), with κ = 4γ + 2σ²ρTr[ΣA²]/‖Aθ‖² taken between θ and the equilibrium.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.symmetry.charges import Charge, as_generator, as_problem
from sgdsde.symmetry.equilibrium import noise_equilibrium

__all__ = ["Catch", "run_and_catch"]


@dataclass(frozen=True, eq=False)
class Catch:
    """A charge and the equilibrium that it runs after, along trajectories; arrays (..., n_times)."""

    t: np.ndarray | None = field(repr=False)
    """(n_times,), of a solution."""
    charge: np.ndarray = field(repr=False)
    """C(θ_t)."""
    target: np.ndarray = field(repr=False)
    """C*(θ_t) of `noise_equilibrium`: ±inf where the charge runs away, NaN where it is degenerate."""
    rate: np.ndarray = field(repr=False)
    """dC/dt = -4γC + 2σ²ρTr[ΣA] at θ_t, which has the sign of C* - C."""
    kappa: np.ndarray = field(repr=False)
    """κ at θ_t."""

    @property
    def slope(self) -> float:
        """Least squares of the rate on -κ(C - C*), through zero, over all times: 1 where C is close to C*."""
        x, y = self._pairs()
        return float(x @ y / (x @ x)) if x.size and x @ x > 0 else float("nan")

    @property
    def correlation(self) -> float:
        """Of the rate and -κ(C - C*), both about zero."""
        x, y = self._pairs()
        size = np.sqrt((x @ x) * (y @ y)) if x.size else 0.0
        return float(x @ y / size) if size > 0 else float("nan")

    @property
    def roughness(self) -> np.ndarray:
        """Σ(ΔC*)² over Σ(ΔC)² between the saved times, (...): how much rougher the target is than the charge."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rough, smooth = (np.sum(np.diff(a, axis=-1) ** 2, axis=-1) for a in (self.target, self.charge))
            return rough / smooth

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(invalid="ignore"):
            x, y = np.ravel(-self.kappa * (self.charge - self.target)), np.ravel(self.rate)
        good = np.isfinite(x) & np.isfinite(y)
        return x[good], y[good]


def run_and_catch(problem: Any, trajectory: Any, generator: Any) -> Catch:
    """C, its moving target C*, its rate and κ at every saved state.

    Parameters
    ----------
    problem : SGD
    trajectory : Solution or array_like of shape (..., n_times, d)
    generator : Generator or Charge
        Symmetric, of a symmetry of every sample's loss.

    Returns
    -------
    Catch

    Raises
    ------
    ArgumentError, ShapeError

    Notes
    -----
    Costs three passes over the per-sample gradients for each state. Source: Ziyin et al. 2024 (arXiv 2402.07193, below
    theorem 4.3), for the picture; κ by differentiating the rate along the orbit.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> problem = sg.SGD(sg.models.Product(), sg.models.uw_gauss(0.2, 1.0), learning_rate=0.01, gamma=0.05)
    >>> sol = sg.solve(problem.sde(), (0, 10), [1.0, 0.5], rng=0, t_eval=50)
    >>> catch = run_and_catch(problem, sol, sg.rescaling(2))
    >>> bool(np.all(np.sign(catch.rate) == np.sign(catch.target - catch.charge)))
    True
    """
    problem, a = as_problem(problem), as_generator(generator)
    charge = Charge(a)
    t = None
    if hasattr(trajectory, "y") and hasattr(trajectory, "t"):
        trajectory, t = trajectory.y, np.asarray(trajectory.t)
    states = _check.array("trajectory", trajectory, finite=False)
    if states.ndim < 2 or states.shape[-1] != a.dim:
        raise ShapeError(f"trajectory must have shape (..., n_times, {a.dim}), got {states.shape}")
    if float(problem.gamma) < 0:
        raise ArgumentError(f"gamma must be at least 0 for a noise equilibrium, got {problem.gamma:g}")
    target, rate, kappa = (np.full(states.shape[:-1], np.nan) for _ in range(3))
    for at in np.ndindex(states.shape[:-1]):
        if np.isfinite(states[at]).all():
            found = noise_equilibrium(problem, states[at], a)
            target[at], rate[at] = found.charge, found.rate_at_start
            kappa[at] = charge.relaxation_rate(problem, states[at])
    return Catch(t, charge(states), target, rate, kappa)
