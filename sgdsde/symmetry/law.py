"""ChargeLaw: follows a charge along a run, beside the exact mean of each step for that dynamics (theory A4, A5, K8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError, ModelError, SgdsdeError
from sgdsde.models import model as rows
from sgdsde.run.watching import Watcher
from sgdsde.symmetry.charges import Charge
from sgdsde.symmetry.fluctuation import step_variance
from sgdsde.symmetry.report import ChargeReport

__all__ = ["COVERED", "ChargeLaw"]

EPS = float(np.finfo(float).eps)
COVERED = ("sgd", "euler-maruyama", "milstein-symmetric")
"""Dynamics whose one-step mean of a charge is known."""
PATHS_LOOKED_AT, TIMES_LOOKED_AT = 3, 4
"""States at which the variance of a step is evaluated, for the size of the remainder."""


class ChargeLaw:
    """A track: `solve(..., track=law)`, `problem.run(..., track=law)`, then `law.report(solution)`.

    Along the path it adds up the parts of the exact one-step mean of C = θᵀAθ,

        E[ΔC] = ((1 - 2γh)² - 1)C + h²∇LᵀA∇L + 2σ²ρh Tr[ΣA],

    which holds for discrete SGD with h = η and any sampling (theory A4) and for Euler-Maruyama with any step h (A5).
    For `milstein-symmetric` it holds to O(h²) a step: the mean square of the Milstein term is not in it. Any other
    method is refused, because its mean is not known here.

    Parameters
    ----------
    charge : Charge or Generator
        Symmetric, of a symmetry of every sample's loss.
    problem : SGD
        The problem that is run; γ, noise and data are read from it.

    Notes
    -----
    A tracked step costs about one pass over all samples (`track_every=k` looks at each k-th step and the report scales
    the sums). Models that know the generator's structure bring a compiled kernel; for others each step is evaluated in
    Python, slow but complete.
    """

    def __init__(self, charge: Any, problem: Any) -> None:
        self.charge = charge if isinstance(charge, Charge) else Charge(charge)
        self.problem = problem
        self.name = self.charge.name
        if problem.model.dim != self.charge.generator.dim:
            raise ArgumentError(
                f"charge acts on {self.charge.generator.dim} components, the problem has {problem.model.dim}"
            )

    def __repr__(self) -> str:
        return f"ChargeLaw({self.name!r}, {self.problem!r})"

    def __track__(self, equation: Any, scheme: Any) -> Watcher:
        """The TRACK kernel of this law; asked for by the runner."""
        if scheme.name not in COVERED:
            raise ArgumentError(
                f"track: the mean change of a charge is known for {', '.join(COVERED)}, not for {scheme.name!r}; "
                f"use observe= to follow {self.name} without its law"
            )
        generator = self.charge.generator
        if equation.dim != generator.dim:
            raise ArgumentError(f"track: {self.name} acts on {generator.dim} components, the run has {equation.dim}")
        problem = self.problem
        watcher = problem.model.charge_track(generator, float(problem.gamma), problem.X, problem.Y)
        if watcher is None:
            from sgdsde.symmetry.interpreted import interpreted_track

            watcher = interpreted_track(self)
        return watcher

    def report(self, solution: Any, *, size: bool = True) -> ChargeReport:
        """What happened to the charge, against its law, for each path.

        Parameters
        ----------
        solution : Solution
            Of a run with `track=` this law, with keep="all" or "final".
        size : bool
            Also predict how far ΔC scatters around its mean (some passes over the per-sample gradients, at a few saved
            states of a few paths).

        Returns
        -------
        ChargeReport

        Notes
        -----
        With `track_every` = 1 the sums and C itself are exact at the last grid point before each saved time. Otherwise
        sums are scaled by steps / tracked steps, C is that of the saved state, and the pathwise terms (`cross`,
        `abs_cross`) are those of the tracked steps alone.
        """
        dynamics = solution.method
        if dynamics not in COVERED:
            raise ArgumentError(f"solution must be of {', '.join(COVERED)}, got method {dynamics!r}")
        sums = self._sums(solution)
        n_paths, n_times, _ = sums.shape
        y0 = np.atleast_2d(solution.y0)
        start = np.broadcast_to(self.charge(y0), (n_paths,))[:, None]
        tracked, steps = np.asarray(solution.tracked_steps), np.asarray(solution.steps)
        every = bool(np.array_equal(tracked, steps))
        states = np.reshape(solution.y, (n_paths, n_times, -1))
        if every:
            delta = np.where(tracked > 0, sums[..., rows.CHARGE] - start, np.where(np.isnan(sums[..., 0]), np.nan, 0.0))
        else:
            delta = self.charge(states) - start
            sums = sums * np.where(tracked > 0, steps / np.maximum(tracked, 1), 0.0)[:, None]
        gamma, noise_scale = float(self.problem.gamma), float(self.problem.noise_scale)
        decay = -4 * gamma * sums[..., rows.SUM_H_CHARGE] + 4 * gamma**2 * sums[..., rows.SUM_H2_CHARGE]
        noise = 2 * noise_scale * sums[..., rows.SUM_H_TRACE]
        gradient = sums[..., rows.SUM_H2_GRADIENT]
        norms = np.einsum("ptd,ptd->pt", states, states)
        largest = np.maximum.accumulate(np.maximum(norms, np.einsum("pd,pd->p", y0, y0)[:, None]), axis=1)
        rounding = EPS * (sums[..., rows.SUM_SCALE] + steps * self.charge.generator.norm * largest)
        return ChargeReport(
            name=self.name,
            dynamics=dynamics,
            t=np.asarray(solution.t),
            dt=float(solution.dt),
            delta=delta,
            noise=noise,
            gradient=gradient,
            decay=decay,
            continuous=noise - 4 * gamma * sums[..., rows.SUM_H_CHARGE],
            quadratic=sums[..., rows.SUM_QUADRATIC],
            cross=sums[..., rows.SUM_CROSS],
            abs_cross=sums[..., rows.SUM_ABS_CROSS],
            rounding=rounding,
            remainder_size=self._remainder_size(solution, states, y0) if size else None,
        )

    def _sums(self, solution: Any) -> np.ndarray:
        names = [
            name for name, thing in solution.track.items() if thing is self or getattr(thing, "name", 0) == self.name
        ]
        if not names:
            raise ArgumentError(
                f"solution must come from a run with track= this law ({self.name}); it tracked nothing of it"
            )
        try:
            sums = np.asarray(solution.tracked[names[0]])
        except SgdsdeError as error:
            raise ArgumentError(f"solution must keep its paths for a report of the charge law: {error}") from None
        return sums.reshape((-1, *sums.shape[-2:]))

    def _remainder_size(self, solution: Any, states: np.ndarray, y0: np.ndarray) -> np.ndarray | None:
        """√∫(Var ΔC of a step)/h dt up to each time, from a few states; None where that variance has no formula."""
        t = np.asarray(solution.t)
        chosen = np.unique(np.linspace(0, t.size - 1, TIMES_LOOKED_AT).round().astype(int))
        alive = np.flatnonzero(np.isfinite(states).all(axis=(1, 2)))[:PATHS_LOOKED_AT]
        looked_at = [(float(t[k]), states[alive, k]) for k in chosen]
        t_start = float(t[0])
        if t.size == 1:  # the end alone was kept
            t_start = float(t[0]) - float(solution.n_steps * solution.dt)
            looked_at.insert(0, (t_start, np.broadcast_to(y0, states[:, 0].shape)[alive]))
        if not alive.size:
            return None
        try:
            rate = [
                np.mean([step_variance(self.problem, self.charge, x, solution.dt, solution.method) for x in many])
                for _, many in looked_at
            ]
        except (ModelError, NotImplementedError):
            return None
        fine = np.linspace(t_start, float(t[-1]), 257)
        density = np.interp(fine, [when for when, _ in looked_at], np.array(rate) / solution.dt)
        total = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
        return np.sqrt(np.interp(t, fine, total))
