"""The runs of the demo: four dynamics from one start for the law, then two starts on one orbit for the equilibrium."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde._errors import INTERRUPTED, DivergenceWarning, SgdsdeError
from sgdsde.cli._demo_scheme import looked_at, scheme_term
from sgdsde.cli._demo_settings import Settings
from sgdsde.random import key_from
from sgdsde.run.progress import reporter
from sgdsde.run.solving import solve
from sgdsde.symmetry import Charge, ChargeLaw, Decomposition, decompose, noise_equilibrium
from sgdsde.symmetry.report import ChargeReport

__all__ = ["Law", "Results", "SplitReport", "run", "warm"]

SAVED = 500
"""Times at which the runs for the law are saved, about."""
SIDES = 0.35
"""The two starts are e^{±SIDES·A}θ*, on both sides of the noise equilibrium θ* of the orbit."""
TRACK_EVERY = 10
"""On the way to the equilibrium, where everything is slow."""
SIDE_TIMES = np.concatenate([np.linspace(0, 1, 12)[:-1] ** 2 / 2, np.linspace(0.5, 1, 11)])
"""Saved times on that way, as parts of it: dense at the start, where the charge falls."""


@dataclass(frozen=True, repr=False)
class SplitReport(ChargeReport):
    """A ChargeReport with one more part of the mean: what the scheme does beyond the formula."""

    scheme: Any = 0.0

    @property
    def predicted(self) -> np.ndarray:
        return self.noise + self.gradient + self.decay + self.scheme


class Law:
    """A ChargeLaw whose reports know the scheme's own term where it was measured; for the table and the plots."""

    def __init__(self, law: ChargeLaw) -> None:
        self.law, self.charge, self.problem, self.name = law, law.charge, law.problem, law.name
        self.reports: dict[int, SplitReport] = {}

    def add(self, solution: Any, scheme: Any = 0.0) -> None:
        """Make the report of a run, once: where only some steps were tracked it costs passes over the data."""
        self.reports[id(solution)] = SplitReport(**vars(self.law.report(solution, size=False)), scheme=scheme)

    def report(self, solution: Any, *, size: bool = False) -> SplitReport:
        """As `ChargeLaw.report`, for a run that was added."""
        return self.reports[id(solution)]


@dataclass
class Results:
    """Everything that the table and the figure show."""

    settings: Settings
    problem: Any
    law: Law
    theta0: np.ndarray
    theta: np.ndarray
    """The state on whose orbit both starts lie: its noise equilibrium, where it has one."""
    lam: float = SIDES
    runs: dict[str, Any] = field(default_factory=dict)
    """Label -> Solution, for the law."""
    sides: dict[str, Any] = field(default_factory=dict)
    """Label -> Solution, towards the equilibrium."""
    at: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    """Saved times, evenly spaced, between which motion is decomposed."""
    parts: dict[str, Decomposition] = field(default_factory=dict)


SGD_RUN, EM, EM_FINE = "SGD", "SDE, Euler-Maruyama, dt = η", "SDE, Euler-Maruyama, dt = η/4"
MILSTEIN = "SDE, milstein-symmetric, dt = η"
ABOVE, BELOW = "from above", "from below"
DYNAMICS = {
    SGD_RUN: ("sgd", 1),
    EM: ("euler-maruyama", 1),
    EM_FINE: ("euler-maruyama", 4),
    MILSTEIN: ("milstein-symmetric", 1),
}
"""Label -> method, and by how much its step is smaller than η."""


def warm(problem: Any, theta0: np.ndarray) -> None:
    """One step of each kind, so that compiling is over before anything is timed or shown."""
    law = ChargeLaw(Charge(_generator(problem)), problem)
    problem.run(theta0, 1, rng=0, track=law)
    for method in ("euler-maruyama", "milstein-symmetric"):
        solve(problem.sde(), (0, problem.learning_rate), theta0, method=method, rng=0, track=law)


def run(problem: Any, theta0: np.ndarray, settings: Settings) -> Results:
    """Run everything, with progress on standard error."""
    n, eta = settings.law_steps, settings.learning_rate
    generator = _generator(problem)
    law = ChargeLaw(Charge(generator), problem)
    results = Results(settings, problem, Law(law), theta0, theta0)
    keys = [key_from(child) for child in np.random.SeedSequence(settings.seed).spawn(9)]
    steps = np.arange(0, n + 1, max(1, n // SAVED))
    tried, _ = looked_at(n)
    saved = np.unique(np.concatenate([steps, [n], tried, tried + 1]))

    def one(number: int, label: str, theta: np.ndarray, n_steps: int, dynamics: tuple[str, int], **options: Any) -> Any:
        """Run number `number` + 1 of 9: a method and by how much its step is smaller than η."""
        method, finer = dynamics
        common = {**options, "n_paths": settings.paths, "rng": keys[number], "track": law}
        show = reporter(True, f"[{number + 1}/9] {label}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            if method == "sgd":
                solution = problem.run(theta, n_steps, progress=show, **common)
            else:
                span, dt = (0.0, n_steps * eta), eta / finer
                solution = solve(problem.sde(), span, theta, method=method, dt=dt, progress=show, **common)
        _check_end(label, solution)
        return solution

    for number, (label, dynamics) in enumerate(DYNAMICS.items()):
        results.runs[label] = solution = one(number, label, theta0, n, dynamics, t_eval=saved * eta)
        if label != MILSTEIN:
            results.law.add(solution)
    formula = law.report(solution, size=False).predicted
    show = reporter(True, "[5/9] single steps of Milstein, for their mean")
    results.law.add(solution, scheme_term(problem, law.charge, solution, formula, keys[4], show))

    state = results.runs[SGD_RUN].y[0, -1]
    found = noise_equilibrium(problem, state, generator)
    results.theta = found.theta if found.theta is not None else state
    number = 5
    for name, label in (("SGD", SGD_RUN), ("SDE", EM)):
        for side, lam in ((ABOVE, SIDES), (BELOW, -SIDES)):
            words, start = f"{name} {side}", generator.exp(lam, results.theta)
            how = {"t_eval": np.unique(np.rint(SIDE_TIMES * settings.steps)) * eta, "track_every": TRACK_EVERY}
            solution = one(number, f"{words}, to the equilibrium", start, settings.steps, DYNAMICS[label], **how)
            results.sides[words] = solution
            results.law.add(solution)
            number += 1
    at = results.at = np.searchsorted(saved, steps)
    for label in (SGD_RUN, EM):
        solution = results.runs[label]
        parts = decompose(solution.y[:, at], problem.model)
        results.parts[label] = Decomposition(**{**vars(parts), "t": solution.t[at]})
    return results


def _generator(problem: Any) -> Any:
    return problem.model.symmetries()["B=I"]


def _check_end(label: str, solution: Any) -> None:
    """A path that left the finite numbers, or Ctrl-C, ends the demo with one line."""
    if np.any(solution.path_status == INTERRUPTED):
        raise KeyboardInterrupt
    if not solution.success:
        raise SgdsdeError(f"{label}: {solution.message}; a smaller --learning-rate may keep it finite")
