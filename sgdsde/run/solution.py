"""Solution: the arrays of a run, what happened to each path, and statistics with their errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import DIVERGED, INTERRUPTED, NOT_CONVERGED, OK, STATUS_WORDS, STEP_SIZE, SgdsdeError
from sgdsde.random.stream import RNG_VERSION
from sgdsde.run.statistics import Moments, moments_of

__all__ = ["Solution"]


@dataclass(repr=False, eq=False)
class Solution:
    """What `solve` and `SGD.run` return.

    Attributes
    ----------
    t : (n_times,) array
        Times saved.
    y : (n_paths, n_times, d) array
        States; (n_times, d) when `n_paths` was None. NaN from the time a path stopped. With ``keep="stats"`` there is
        none, and asking for it is an error that says so.
    observed, tracked : dict of arrays
        Observers and trackers by name, (n_paths, n_times, rows) or (n_times, rows).
    dW : array or None
        Brownian increments, (n_paths, n_steps, m) or (n_steps, m), with ``save_noise=True``.
    success : bool
        True when every path reached the end.
    path_status : (n_paths,) array
        0 reached the end, 1 left the finite numbers, 2 an implicit step or a projection failed, 3 interrupted,
        4 `step_size` gave no usable step.
    events : (n_paths,) array
        How often a step of the path did what the method's page says is counted: normal numbers clipped by an implicit
        step.
    t_stopped : (n_paths,) array
        Time of the first bad step of a path, NaN for a path that reached the end.
    n_diverged : int
    message, method, seed, dt, n_steps
        What was done; ``rng=sol.seed`` repeats it to the bit.
    rng_version : int
        Raised by a release in which the same seed gives other numbers than before.
    steps, tracked_steps : (n_times,) arrays
        Steps taken, and steps tracked, up to each time.
    """

    t: np.ndarray
    method: str
    calculus: str
    dt: float
    n_steps: int
    seed: int
    problem: Any
    y0: np.ndarray
    n_paths: int
    single: bool
    dim: int
    path_index: np.ndarray
    path_status: np.ndarray
    events: np.ndarray
    t_stopped: np.ndarray
    steps: np.ndarray
    tracked_steps: np.ndarray
    names: dict[str, slice]
    values: np.ndarray | None
    moments: Moments | None
    dW: np.ndarray | None = None
    track: dict[str, Any] = field(default_factory=dict)
    rng_version: int = RNG_VERSION

    @property
    def y(self) -> np.ndarray:
        return self._rows(slice(0, self.dim))

    @property
    def observed(self) -> dict[str, np.ndarray]:
        return {name[9:]: self._rows(part) for name, part in self.names.items() if name.startswith("observed:")}

    @property
    def tracked(self) -> dict[str, np.ndarray]:
        return {name[8:]: self._rows(part) for name, part in self.names.items() if name.startswith("tracked:")}

    def _rows(self, part: slice) -> np.ndarray:
        if self.values is None:
            raise SgdsdeError('single paths were not kept: this run had keep="stats"; use .mean(), .var() or .stderr()')
        rows = self.values[:, :, part]
        return rows[0] if self.single else rows

    @property
    def success(self) -> bool:
        return bool(np.all(self.path_status == OK))

    @property
    def n_diverged(self) -> int:
        return int(np.count_nonzero(self.path_status == DIVERGED))

    @property
    def message(self) -> str:
        if self.success:
            return (
                f"all {self.n_paths} paths reached t = {self.t[-1]:g}"
                if not self.single
                else f"reached t = {self.t[-1]:g}"
            )
        words = []
        for code, word in STATUS_WORDS.items():
            n = int(np.count_nonzero(self.path_status == code))
            if n and code != OK:
                first = (
                    ""
                    if code == INTERRUPTED
                    else f" (the first at t = {np.nanmin(self.t_stopped[self.path_status == code]):g})"
                )
                paths = "path" if self.n_paths == 1 else "paths"
                words.append(f"{n} of {self.n_paths} {paths}{':' * (code in (NOT_CONVERGED, STEP_SIZE))} {word}{first}")
        return "; ".join(words)

    def _statistics(self, what: str, skip_diverged: bool) -> tuple[Moments, slice, np.ndarray]:
        part = slice(0, self.dim)
        if what != "y":
            options = {name.split(":", 1)[1]: rows for name, rows in self.names.items()}
            part = options[_check.choice("what", what, ["y", *options])]
        if self.moments is None:
            assert self.values is not None
            self.moments = moments_of(self.values)
        complete = self.moments.count[:, part] == self.n_paths
        return self.moments, part, complete | _check.flag("skip_diverged", skip_diverged)

    def mean(self, what: str = "y", *, skip_diverged: bool = False) -> np.ndarray:
        """Mean over paths, (n_times, rows), of the state or of the observer or tracker named `what`.

        NaN from the first time at which a path is missing, unless `skip_diverged=True`; then it is over the
        `count()` paths that are left.
        """
        moments, part, good = self._statistics(what, skip_diverged)
        return np.where(good, moments.mean[:, part], np.nan)

    def var(self, what: str = "y", *, skip_diverged: bool = False) -> np.ndarray:
        """Unbiased variance over paths, (n_times, rows); NaN with one path."""
        moments, part, good = self._statistics(what, skip_diverged)
        return np.where(good, moments.var[:, part], np.nan)

    def std(self, what: str = "y", *, skip_diverged: bool = False) -> np.ndarray:
        """Square root of `var`."""
        return np.sqrt(self.var(what, skip_diverged=skip_diverged))

    def stderr(self, what: str = "y", *, skip_diverged: bool = False) -> np.ndarray:
        """Standard error of `mean`, (n_times, rows): std/√count."""
        moments, part, good = self._statistics(what, skip_diverged)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(good, np.sqrt(moments.var[:, part] / moments.count[:, part]), np.nan)

    def count(self, what: str = "y") -> np.ndarray:
        """Number of paths alive at each time, (n_times, rows)."""
        moments, part, _ = self._statistics(what, False)
        return moments.count[:, part].astype(np.int64)

    def __repr__(self) -> str:
        kept = "moments only" if self.values is None else f"y {self.y.shape}"
        lines = [
            f"Solution of {self.problem!r}",
            f"  method {self.method}, dt = {self.dt:g}, {self.n_steps} steps to t = {self.t[-1]:g}, seed {self.seed}",
            f"  {self.message}; {kept} at {self.t.size} times",
        ]
        for name, part in self.names.items():
            lines.append(f"  {name.replace(':', ' ')}: {part.stop - part.start} numbers")
        return "\n".join(lines)
