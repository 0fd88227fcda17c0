"""The charge of heavy-ball momentum: a recursion that is exact for every batch, and what it balances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.run.watching import Watcher
from sgdsde.symmetry.charges import Charge, as_problem
from sgdsde.symmetry.law import _same

__all__ = ["HeavyBallLaw", "HeavyBallReport"]

EPS = float(np.finfo(float).eps)
SLACK = 64.0
"""Roundings of the size of `HeavyBallReport.rounding` that a step may have."""


class HeavyBallLaw:
    """A track: ``problem.run(..., track=law)`` with `HeavyBall(β)`, then ``law.report(solution)``.

    For v' = βv + ĝ + 2γθ, θ' = θ - ηv' and a symmetry of every sample's loss, C = θᵀAθ and B = θᵀAv obey

        B' = βB + 2γC - ηv'ᵀAv',    C' = C - 2η(βB + 2γC) + η²v'ᵀAv',

    for every batch and whatever the sampling. Added up over n steps, without B inside,

        2γ⟨C⟩ = (η/2)(1 + β)⟨v'ᵀAv'⟩ + [β(B_n - B_0) - (1 - β)(C_n - C_0)/2η]/n,

    an identity of each path; the last term is that of the ends and falls like 1/n. What is left at rest is the fixed
    point of this dynamics; for small η, ⟨vᵀAv⟩ = Tr[ΣA]/(S(1 - β²)) makes it that of the SDE, 2γC = σ²Tr[ΣA] with
    σ² = η/(2S(1 - β)), which `Charge.residual` evaluates. β = 0 is plain SGD. `FluctuationDissipation` has both sides
    with errors from batch means.

    Parameters
    ----------
    charge : Charge or Generator
        Symmetric and linear, of a symmetry of every sample's loss.
    problem : SGD
        With `HeavyBall`, and a learning rate that is a number.

    Notes
    -----
    A step costs as many operations as A has entries, and no pass over the data.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> problem = sg.SGD(
    ...     sg.models.DeepLinear([2, 2, 1]), X, X @ [1.0, -1.0] + 0.1, learning_rate=0.01, gamma=0.05,
    ...     optimizer=sg.optimizers.HeavyBall(0.8),
    ... )
    >>> law = HeavyBallLaw(problem.model.symmetries()["B=I"], problem)
    >>> report = law.report(problem.run(problem.model.init(rng=0), 1000, rng=0, track=law))
    >>> bool(abs(report.left - report.right - report.ends).max() < 1e-12), report.holds
    (True, True)
    """

    def __init__(self, charge: Any, problem: Any) -> None:
        from sgdsde.algebra import Generator
        from sgdsde.sgd.optimizers import HeavyBall

        self.charge = charge if isinstance(charge, Charge) else Charge(charge)
        if not isinstance(self.charge.generator, Generator):
            raise ArgumentError(f"charge must be of a linear generator, got {self.charge.generator!r}")
        self.problem, self.name = as_problem(problem), self.charge.name
        if problem.model.dim != self.charge.generator.dim:
            raise ArgumentError(
                f"charge acts on {self.charge.generator.dim} components, the problem has {problem.model.dim}"
            )
        if not isinstance(problem.optimizer, HeavyBall) or problem.schedule is not None:
            raise ArgumentError(
                f"problem must be an SGD problem with HeavyBall and a learning rate that is a number, got {problem!r}"
            )

    def __repr__(self) -> str:
        return f"HeavyBallLaw({self.name!r}, {self.problem!r})"

    def __track__(self, equation: Any, scheme: Any) -> Watcher:
        """The TRACK kernel; asked for by the runner."""
        from sgdsde.symmetry import _momentum_kernels as kernels
        from sgdsde.symmetry import forms

        if scheme.name != "heavy-ball":
            raise ArgumentError(f"track: this law is of heavy-ball momentum, not of {scheme.name!r}; use ChargeLaw")
        if not _same(self.problem, equation.problem):
            raise ArgumentError(f"track: the law is of {self.problem!r}, but the run is of {equation.problem!r}")
        generator = self.charge.generator
        head = [self.problem.gamma, self.problem.optimizer.beta, generator.norm]
        p = np.concatenate([head, forms.encode(generator)])
        return Watcher(kernels.track, p, np.zeros(1), kernels.ROWS, (0, 6 + generator.dim))

    def report(self, solution: Any) -> HeavyBallReport:
        """Both sides of the identity, the ends, and how far each single step is from its law, for each path and time.

        Raises
        ------
        ArgumentError
            The solution did not track this law at every step, or kept no paths.
        """
        from sgdsde.symmetry import _momentum_kernels as rows

        names = [name for name, thing in getattr(solution, "track", {}).items() if thing is self]
        if not names:
            raise ArgumentError(f"solution must come from a run with track= this law ({self.name})")
        if not np.array_equal(solution.tracked_steps, solution.steps):
            raise ArgumentError("track_every must be 1 for the law of heavy-ball momentum: its steps are added up")
        sums = np.asarray(solution.tracked[names[0]])
        sums = sums.reshape((-1, *sums.shape[-2:]))
        start = np.broadcast_to(np.atleast_2d(solution.y0), (len(sums), 2 * self.charge.generator.dim))
        theta, v = np.split(start, 2, axis=1)
        C0 = np.asarray(self.charge(theta))[:, None]
        B0 = np.sum(theta * self.charge.generator.apply(v), axis=1)[:, None]
        n = sums[..., rows.STEPS]
        eta, gamma, beta = self.problem.learning_rate, self.problem.gamma, self.problem.optimizer.beta
        moved = np.where(n > 0, sums[..., rows.CHARGE] - C0, 0.0)
        turned = np.where(n > 0, sums[..., rows.MIXED] - B0, 0.0)
        many = np.maximum(n, 1.0)
        return HeavyBallReport(
            name=self.name,
            t=np.asarray(solution.t),
            left=2 * gamma * sums[..., rows.SUM_CHARGE] / many,
            right=0.5 * eta * (1 + beta) * sums[..., rows.SUM_SQUARE] / many,
            ends=(beta * turned - (1 - beta) * moved / (2 * eta)) / many,
            defect=sums[..., rows.DEFECT_C] + sums[..., rows.DEFECT_B],
            rounding=EPS * sums[..., rows.ROUNDING],
        )


@dataclass(frozen=True, repr=False, eq=False)
class HeavyBallReport:
    """Means over the steps since the start; arrays are (n_paths, n_times)."""

    name: str
    t: np.ndarray
    """(n_times,)"""
    left: np.ndarray
    """2γ⟨C⟩."""
    right: np.ndarray
    """(η/2)(1 + β)⟨v'ᵀAv'⟩."""
    ends: np.ndarray
    """[β(B_n - B_0) - (1 - β)(C_n - C_0)/2η]/n."""
    defect: np.ndarray
    """Σ over steps of how far C' and ηB' are from their law."""
    rounding: np.ndarray
    """eps Σ‖A‖(‖θ‖ + η‖v'‖)², of which `defect` may be a few."""

    @property
    def holds(self) -> bool:
        """Whether every step of every path obeyed the law: `defect` is at most 64 times `rounding`."""
        alive = np.isfinite(self.defect)
        return bool((self.defect[alive] <= SLACK * self.rounding[alive]).all())

    def __repr__(self) -> str:
        left, right, ends = (f"{a[:, -1].mean(): .6e}" for a in (self.left, self.right, self.ends))
        lines = [
            f"Law of {self.name} along heavy-ball momentum, t = {self.t[-1]:g}, {len(self.left)} paths",
            f"  2γ⟨C⟩              {left}",
            f"  (η/2)(1+β)⟨vᵀAv⟩   {right}",
            f"  ends               {ends}",
            f"  single steps: off by {np.nanmax(self.defect):.1e}, rounding is {np.nanmax(self.rounding):.1e}",
        ]
        return "\n".join(lines)
