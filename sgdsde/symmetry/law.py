"""ChargeLaw: follows a charge along a run, beside the exact mean of each step for that dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, SgdsdeError
from sgdsde.algebra import Affine
from sgdsde.models import charge_rows as rows
from sgdsde.run.watching import Watcher
from sgdsde.symmetry.charges import Charge, as_problem, eigen_moments, gradient_form, pulls
from sgdsde.symmetry.fluctuation import step_variance
from sgdsde.symmetry.report import ChargeReport

__all__ = ["COVERED", "ChargeLaw"]

EPS = float(np.finfo(float).eps)
COVERED = ("sgd", "svag", "euler-maruyama", "milstein-symmetric")
"""Dynamics whose one-step mean of a charge is known."""
PATHS_LOOKED_AT, TIMES_LOOKED_AT, MANY = 3, 10, 1 << 18
"""States at which the variance of a step is evaluated, for the size of the remainder; of one path if N·d is many."""


class ChargeLaw:
    """A track: `solve(..., track=law)`, `problem.run(..., track=law)`, then `law.report(solution)`.

    Along the path it adds up the parts of the exact one-step mean of C = θᵀAθ,

        E[ΔC] = ((1 - 2γh)² - 1)C + h²∇LᵀA∇L + 2σ²ρh Tr[ΣA],

    which holds for discrete SGD with h = η, for SVAG with h = η/l, and for Euler-Maruyama with any step h. In shuffled
    epochs a batch depends on those before it, and the remainder shows how much. For `milstein-symmetric` it holds to
    O(h²) a step: the mean square of the Milstein term is not in it. Any other method is refused, because its mean is
    not known here. With a schedule σ² = η_k/2S of step k enters; an SDE then has to take the steps of the schedule.

    Parameters
    ----------
    charge : Charge, Generator or Affine
        Symmetric, of a symmetry of every sample's loss. The law of one with a constant b (see `Charge`) is evaluated
        in Python at each step.
    problem : SGD
        The problem that is run; γ, noise and data are read from it.

    Notes
    -----
    A tracked step costs about one pass over all samples (`track_every=k` looks at each k-th step and the report
    completes the sums). Models that know the generator's structure bring a compiled kernel; for others each step is
    evaluated in Python, slow but complete.
    """

    def __init__(self, charge: Any, problem: Any) -> None:
        self.charge = charge if isinstance(charge, Charge) else Charge(charge)
        self.problem = as_problem(problem)
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
        if getattr(equation, "order", 1) != 1:
            raise ArgumentError("track: the law of a charge is of the SDE of order 1, and this is of order 2")
        if equation.dim != generator.dim:
            raise ArgumentError(f"track: {self.name} acts on {generator.dim} components, the run has {equation.dim}")
        problem = self.problem
        if not _same(problem, getattr(equation, "problem", problem)):
            raise ArgumentError(
                f"track: the law is of {problem!r}, but the run is of {equation.problem!r}, not the same"
            )
        watcher = None
        if not isinstance(generator, Affine):
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
            states of a few paths: good to some tens of per cent, worse where a run falls fast between saved times).

        Returns
        -------
        ChargeReport

        Notes
        -----
        With `track_every` = 1 the sums and C itself are exact at the last grid point before each saved time. With
        `track_every` = k the sums over all steps are estimated from every k-th one and the two ends (a trapezoidal
        rule, error of second order in k; one more pass over the per-sample gradients for each saved state), C is that
        of the saved state, and the pathwise terms (`quadratic`, `cross`, `abs_cross`) are of the tracked steps alone.
        """
        if not (hasattr(solution, "method") and hasattr(solution, "tracked_steps")):
            raise ArgumentError(f"solution must be a Solution of solve or of SGD.run, got {_check.show(solution)}")
        dynamics = solution.method
        if dynamics not in COVERED:
            raise ArgumentError(f"solution must be of {', '.join(COVERED)}, got method {dynamics!r}")
        sums = self._sums(solution)
        n_paths, n_times, _ = sums.shape
        y0 = np.atleast_2d(solution.y0)
        start = np.broadcast_to(self.charge(y0), (n_paths,))[:, None]
        tracked, steps = np.asarray(solution.tracked_steps), np.asarray(solution.steps)
        states = np.reshape(solution.y, (n_paths, n_times, -1))
        if np.array_equal(tracked, steps):
            lost = np.isnan(sums[..., rows.SUM_H_CHARGE])
            delta = np.where(tracked > 0, sums[..., rows.CHARGE] - start, np.where(lost, np.nan, 0.0))
        else:
            delta = self.charge(states) - start
            sums = self._completed(sums, y0, states, tracked, steps, float(solution.dt))
        gamma, noise_scale = float(self.problem.gamma), float(self.problem.noise_scale)
        decay = -4 * gamma * sums[..., rows.SUM_H_CHARGE] + 4 * gamma**2 * sums[..., rows.SUM_H2_CHARGE]
        if getattr(self.problem, "schedule", None) is None:
            noise = 2 * noise_scale * sums[..., rows.SUM_H_TRACE]
        else:
            self._check_schedule(solution)
            parts = 1 if self.problem.optimizer is None else self.problem.optimizer.parts
            noise = parts * float(self.problem.rho) / self.problem.batch_size * sums[..., rows.SUM_H2_TRACE]
        gradient = sums[..., rows.SUM_H2_GRADIENT]
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
            rounding=EPS * sums[..., rows.SUM_SCALE],
            remainder_size=self._remainder_size(solution, states, y0) if size else None,
        )

    def _check_schedule(self, solution: Any) -> None:
        """The sums are of η_k h Tr[ΣA] where the step h is η_k (η_k/l with SVAG)."""
        schedule, n = self.problem.schedule, int(solution.n_steps)
        parts = 1 if self.problem.optimizer is None else self.problem.optimizer.parts
        own = schedule(np.arange(n) // parts) / parts
        end = schedule.time(n // parts) + (n % parts) * own[-1]
        if abs(float(solution.t[-1]) - end) > 1e-9 * end or abs(float(solution.dt) - own.max()) > 1e-9 * own.max():
            raise ArgumentError(f"dt must be that of {schedule!r} for its charge law: leave dt out of solve")
        if not np.array_equal(solution.tracked_steps, solution.steps):
            raise ArgumentError("track_every must be 1 for the charge law of a schedule: every step has its own rate")

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

    def _completed(
        self, sums: np.ndarray, y0: np.ndarray, states: np.ndarray, tracked: np.ndarray, steps: np.ndarray, dt: float
    ) -> np.ndarray:
        """Sums over all steps from those over steps 0, k, 2k, …: kΣ - (k-1)/2·first + (n - mk + (k-1)/2)·last."""
        k = _stride(tracked, steps)
        weight = np.where(tracked > 0, steps - k * tracked + (k - 1) / 2, 0.0)
        first = np.array([self._row_terms(x, dt) for x in y0])[:, None]
        last = np.array([self._row_terms(x, dt) for x in states.reshape(-1, states.shape[-1])])
        last = last.reshape(*states.shape[:2], -1)
        out = sums.copy()
        moved = (tracked > 0)[:, None]
        used = [rows.SUM_H_CHARGE, rows.SUM_H2_CHARGE, rows.SUM_H2_GRADIENT, rows.SUM_H_TRACE]
        out[..., used] = k * sums[..., used] - np.where(moved, (k - 1) / 2 * first, 0.0) + weight[:, None] * last
        return out

    def _row_terms(self, x: np.ndarray, h: float) -> list[float]:
        """What one step from x adds to the first four rows."""
        if not np.isfinite(x).all():
            return [np.nan] * 4
        mean, var = eigen_moments(self.problem, self.charge.generator, x)
        generator = self.charge.generator
        pull, square = pulls(generator, x)
        form = gradient_form(generator, mean, float(self.problem.gamma))
        return [h * pull, h * h * square, h * h * form, h * float(generator.eigenvalues @ var)]

    def _remainder_size(self, solution: Any, states: np.ndarray, y0: np.ndarray) -> np.ndarray | None:
        """√∫(Var ΔC of a step)/h dt up to each time, from a few states; None where that variance has no formula."""
        t = np.asarray(solution.t)
        # Denser at the start, where gradients fall off.
        later = np.geomspace(1, max(t.size - 1, 1), TIMES_LOOKED_AT).round().astype(int)
        chosen = np.unique([0, *later[later < t.size]])
        large = (getattr(self.problem, "n_samples", None) or 1) * self.charge.generator.dim > MANY
        alive = np.flatnonzero(np.isfinite(states).all(axis=(1, 2)))[: 1 if large else PATHS_LOOKED_AT]
        if getattr(self.problem, "schedule", None) is not None:
            return None
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
        # Geometric between the states looked at: gradients fall off exponentially at the start of a run.
        logs = np.log(np.maximum(rate, np.finfo(float).tiny) / solution.dt)
        density = np.exp(np.interp(fine, [when for when, _ in looked_at], logs))
        total = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
        return np.sqrt(np.interp(t, fine, total))


def _stride(tracked: np.ndarray, steps: np.ndarray) -> int:
    """The smallest k with tracked = ceil(steps / k)."""
    for k in range(2, int(steps.max()) + 1):
        if np.array_equal(tracked, -(-steps // k)):
            return k
    raise ArgumentError("solution has counts of tracked steps that no track_every explains")


def _same(one: Any, other: Any) -> bool:
    """Two problems with the same data and numbers."""
    if one is other:
        return True
    names = ("gamma", "noise_scale", "learning_rate", "schedule", "optimizer")
    if any(getattr(one, name, None) != getattr(other, name, None) for name in names):
        return False
    first, second = (np.asarray(getattr(getattr(p, "samples", None), "data", 0.0)) for p in (one, other))
    return type(one.model) is type(other.model) and np.array_equal(first, second)
