"""Fluctuation-dissipation relations: what must balance in a run that is stationary, without Σ and without the SDE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra import Generator
from sgdsde.algebra.sparse import entries
from sgdsde.comparison.averages import TimeAverage, batch_means
from sgdsde.models.naming import charged
from sgdsde.run.watching import Watcher
from sgdsde.symmetry.law import _same

__all__ = ["Balance", "FluctuationDissipation"]

SIGMAS = 5.0
"""Standard errors that a relation may be off."""
SENTENCES = {
    "balanced": f"balanced: no relation is off by more than {SIGMAS:g} standard errors, and both sides are seen",
    "unbalanced": f"unbalanced: a relation is off by more than {SIGMAS:g} standard errors: the run is not at rest",
    "inconclusive": "inconclusive: too few batches, or sides too small to be seen; a longer run, or more paths",
}
MOST = 16
"""Charges that are followed where none are named."""
COVERED = ("sgd", "svag", "heavy-ball", "euler-maruyama")


@dataclass(frozen=True)
class Balance:
    """One relation, left = right at stationarity.

    Attributes
    ----------
    name : str
    left, right, difference : TimeAverage
        Averages over the run after the burn-in; `difference` is paired, batch by batch. As a sum it is the change of
        ‖θ‖² or C over the run, so batches undo each other and its error is on the safe side.
    t_tau : float
        Integrated autocorrelation time of the difference of the two sides, in units of t.
    """

    name: str
    left: TimeAverage
    right: TimeAverage
    difference: TimeAverage
    t_tau: float

    @property
    def z(self) -> float:
        """difference / standard error."""
        return self.difference.mean / self.difference.stderr if self.difference.stderr > 0 else float("nan")

    @property
    def verdict(self) -> str:
        """'balanced', 'unbalanced' or 'inconclusive'.

        Balanced: the sides differ from zero, and not from each other, by more than 5 standard errors. Unbalanced: they
        differ from each other. Inconclusive: too few batches, or sides that are not seen.
        """
        if not self.difference.reliable or not self.difference.stderr > 0:
            return "inconclusive"
        if abs(self.z) > SIGMAS:
            return "unbalanced"
        seen = abs(self.left.mean) > SIGMAS * self.difference.stderr
        return "balanced" if seen else "inconclusive"


class FluctuationDissipation:
    """A track: ``problem.run(..., track=fdr)``, then ``fdr.report(solution)``.

    For θ' = θ - ηĝ_γ, ĝ_γ the gradient of the batch with weight decay, ‖θ'‖² = ‖θ‖² - 2ηθ·ĝ_γ + η²‖ĝ_γ‖², and for a
    symmetry, θᵀAĝ = 0, C' = (1 - 2ηγ)²C + η²ĝᵀAĝ. Both sides of what follows therefore have the same mean at
    stationarity, whatever the sampling, exactly and for any η:

        FDR1    2⟨θ·ĝ_γ⟩ = η⟨‖ĝ_γ‖²⟩                      S. Yaida, ICLR 2019, (FDR1)
        A-FDR   (4γ - 4ηγ²)⟨C⟩ = η⟨ĝᵀAĝ⟩                   for every generator A of a symmetry

    and with heavy-ball momentum 4γ⟨C⟩ = η(1 + β)⟨vᵀAv⟩ in place of the latter. They need neither Σ nor an SDE: a run
    that does not obey them has not come to rest.

    Parameters
    ----------
    problem : SGD
    generators : Generator, sequence or mapping of them, optional
        Symmetric; by default the first 16 of the model's `symmetries()` that are.

    Notes
    -----
    A step costs as many operations as A has entries, and no pass over the data. Averages are taken between the saved
    times: ask for a few hundred (`t_eval=400`) to have an error.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> problem = sg.SGD(sg.models.DeepLinear([2, 2, 1]), X, X @ [1.0, -1.0] + 0.1, learning_rate=0.02, gamma=0.05)
    >>> fdr = sg.FluctuationDissipation(problem)
    >>> run = problem.run(problem.model.init(rng=0), 40_000, n_paths=4, rng=0, t_eval=401, track=fdr)
    >>> report = fdr.report(run)
    >>> report.verdict, bool(abs(report["A-FDR B=I"].z) < 4)
    ('balanced', True)
    """

    name = "fluctuation-dissipation"

    def __init__(self, problem: Any, generators: Any = None) -> None:
        self.problem = problem
        self.generators = _read(problem, generators)

    def __repr__(self) -> str:
        return f"FluctuationDissipation({', '.join(self.generators) or 'FDR1 alone'})"

    def __track__(self, equation: Any, scheme: Any) -> Watcher:
        """The TRACK kernel; asked for by the runner."""
        from sgdsde.comparison import _fluctuation_kernels as kernels

        if scheme.name not in COVERED:
            raise ArgumentError(
                f"track: the relations hold for {', '.join(COVERED)}, not for {scheme.name!r}, whose step is not along "
                "the gradient of a batch"
            )
        if not _same(self.problem, getattr(equation, "problem", self.problem)):
            raise ArgumentError(f"track: the relations are of {self.problem!r}, but the run is of {equation.problem!r}")
        if getattr(equation, "order", 1) != 1:
            raise ArgumentError("track: the relations are those of the SDE of order 1, and this is of order 2")
        beta = getattr(self.problem.optimizer, "beta", 0.0) if scheme.name == "heavy-ball" else 0.0
        found = [entries(generator) for generator in self.generators.values()]
        p = np.array([self.problem.gamma, beta, *(float(values.size) for _, _, values in found)])
        data = np.concatenate([np.zeros(0), *(part.astype(float) for one in found for part in one)])
        kernel = kernels.heavy_ball if scheme.name == "heavy-ball" else kernels.plain
        return Watcher(kernel, p, data, kernels.HEAD + kernels.PER_GENERATOR * len(found))

    def report(self, solution: Any, *, burn_in: float = 0.5) -> FluctuationReport:
        """Both sides of every relation over the run after a part `burn_in` of its time, with errors of batch means.

        Raises
        ------
        ArgumentError
            The solution did not track this, kept no paths, or saved fewer than 3 times after the burn-in.
        """
        from sgdsde.comparison._fluctuation_kernels import HEAD, PER_GENERATOR

        burn_in = _check.number("burn_in", burn_in, least=0.0)
        names = [name for name, thing in getattr(solution, "track", {}).items() if thing is self]
        if not names:
            raise ArgumentError("solution must come from a run with track= this object")
        sums = np.asarray(solution.tracked[names[0]])
        sums = sums.reshape(-1, *sums.shape[-2:])
        t = np.asarray(solution.t)
        used = np.flatnonzero(t >= t[0] + burn_in * (t[-1] - t[0]))
        if used.size < 3:
            raise ArgumentError(f"solution must have saved 3 times after the burn-in, got {used.size}; more t_eval")
        stopped = ~np.isfinite(sums).all(axis=(1, 2))
        parts = np.diff(sums[~stopped][:, used], axis=1)  # (n_paths, n_batches, rows)
        if not len(parts):
            raise ArgumentError("solution has no path that reached the end")
        interval, time = float(np.median(np.diff(t[used]))), parts[..., 0]
        gamma, heavy = float(self.problem.gamma), solution.method == "heavy-ball"
        found = []
        if not heavy:
            found.append(_balance("FDR1", parts[..., 1] / time, parts[..., 2] / time, interval))
        for k, name in enumerate(self.generators):
            h_charge, h2_charge, quadratic = (parts[..., HEAD + PER_GENERATOR * k + i] for i in range(3))
            left, right = 4 * gamma * h_charge - 4 * gamma**2 * h2_charge, quadratic
            if heavy:  # sums have h = η/(1 - β)
                beta = self.problem.optimizer.beta
                right = (1 - beta) * (1 + beta) * quadratic
            found.append(_balance(f"A-FDR {name}", left / time, right / time, interval))
        return FluctuationReport({one.name: one for one in found}, solution.method, int(stopped.sum()))


class FluctuationReport(Mapping[str, Balance]):
    """Relations by name; prints as a table."""

    def __init__(self, balances: dict[str, Balance], dynamics: str, n_stopped: int) -> None:
        self.balances, self.dynamics, self.n_stopped = balances, dynamics, n_stopped

    def __getitem__(self, name: str) -> Balance:
        return self.balances[name]

    def __iter__(self) -> Any:
        return iter(self.balances)

    def __len__(self) -> int:
        return len(self.balances)

    @property
    def verdict(self) -> str:
        """'unbalanced' where a relation is, else 'balanced' where one is (of a symmetry, if any), else 'inconclusive'.

        Of a charge that is zero at rest nothing is seen, so not every relation need be.
        """
        found = {name: one.verdict for name, one in self.balances.items()}
        if "unbalanced" in found.values():
            return "unbalanced"
        of_symmetry = [word for name, word in found.items() if name != "FDR1"]
        return "balanced" if "balanced" in (of_symmetry or found.values()) else "inconclusive"

    def __repr__(self) -> str:
        rows = [["relation", "left", "right", "difference", "std. error", "z", "tau (t)", "batches", ""]]
        for one in self.balances.values():
            d = one.difference
            note = "" if d.reliable else " (too few: error too small)"
            rows.append(
                [one.name, f"{one.left.mean:.5g}", f"{one.right.mean:.5g}", f"{d.mean:.2g}", f"{d.stderr:.2g}",
                 f"{one.z:.2f}", f"{one.t_tau:.3g}", f"{d.n_batches}{note}", one.verdict]
            )  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [f"Fluctuation-dissipation relations of {self.dynamics}"]
        lines += ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        lines.append(SENTENCES[self.verdict])
        if self.n_stopped:
            lines.append(f"note: {self.n_stopped} paths that left the finite numbers are left out")
        return "\n".join(lines)


def _balance(name: str, left: np.ndarray, right: np.ndarray, interval: float) -> Balance:
    difference = batch_means(left - right)
    return Balance(name, batch_means(left), batch_means(right), difference, difference.tau * interval)


def _read(problem: Any, generators: Any) -> dict[str, Generator]:
    if not hasattr(problem, "model"):
        raise ArgumentError(f"problem must be an SGD problem, got {_check.show(problem)}")
    if generators is None:
        found = charged(problem.model.symmetries(), MOST)
    elif isinstance(generators, Mapping):
        found = dict(generators)
    else:
        many = [generators] if isinstance(generators, Generator) else list(generators)
        found = {getattr(one, "name", "") or f"A{k}": one for k, one in enumerate(many)}
    for name, one in found.items():
        if not isinstance(one, Generator) or one.dim != problem.model.dim or not one.is_symmetric:
            raise ArgumentError(f"generators[{name!r}] must be a symmetric Generator of {problem.model.dim} components")
    return found
