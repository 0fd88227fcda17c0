"""What `weak_error` runs: both dynamics of every level, some paths at a time, with a control variate for each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sgdsde._errors import DivergenceWarning
from sgdsde.comparison._control import NAME, Control, controllable
from sgdsde.comparison._means import Sums, one
from sgdsde.comparison._study import MEMORY, Study, make_study
from sgdsde.comparison._weak_error_levels import Level

__all__ = ["Estimates", "estimate"]

ROUNDING = 16 * float(np.finfo(float).eps)
"""No control variate makes a variance smaller than this fraction of what it was."""

Functions = dict[str, Callable[[np.ndarray], Any]]


class Estimates(NamedTuple):
    """Means with the covariance of their estimates; rows (side, function, level), the side of SGD first."""

    mean: np.ndarray
    covariance: np.ndarray
    lost: np.ndarray
    """(rows,) paths that are not finite."""
    squares: np.ndarray
    """(n_functions,) root mean square of each at the smallest learning rate."""
    plain_variance: np.ndarray
    """(rows,) of the means without control variates."""


def estimate(
    levels: list[Level], of: Functions, theta0: np.ndarray, time: float, sides: tuple[bool, bool], *,
    order: int, method: Any, refine: int, n_paths: int, key: int, control: bool, options: dict[str, Any],
) -> Estimates:  # fmt: skip
    """Means of every function; `sides` says which of (SGD, SDE) are run. A side that is not run has zeros."""
    runs: list[_SGDRun | _SDERun] = []
    places: list[list[int]] = [[], []]
    if sides[0]:
        places[0] = list(range(len(levels)))
        runs += [_SGDRun(level, of, theta0, time, n_paths, key, control, options) for level in levels]
    if sides[1]:
        known: dict[int, int] = {}
        finest = max(level.n_steps for level in levels)
        for level in levels:
            if id(level.of_sde) not in known:
                shared = sum(other.of_sde is level.of_sde for other in levels) > 1
                known[id(level.of_sde)] = len(runs)
                n = (finest if shared else level.n_steps) * refine
                arguments = (order, method, n, theta0, time, n_paths, key, control, options)
                runs.append(_SDERun(level.of_sde, of, *arguments))
            places[1].append(known[id(level.of_sde)])
    q = len(of)
    sums = Sums(2 * len(runs) * q, q)
    size = max(1, min(n_paths, MEMORY // max(run.doubles for run in runs)))
    for first in range(0, n_paths, size):
        found = [run.values(range(first, min(first + size, n_paths))) for run in runs]
        values = np.concatenate([f for f, _ in found])
        last = found[len(levels) - 1 if sides[0] else -1][0]
        sums.squares += (np.where(np.isfinite(last), last, 0.0) ** 2).sum(axis=1)
        sums.add(np.concatenate([values, *(z for _, z in found)]))
    half = len(runs) * q
    mean, covariance = _controlled(sums, half, q)
    plain = np.diag(sums.covariance())[:half]
    at = [[run * q + f for f in range(q) for run in side] for side in places]  # rows (function, level)
    n = q * len(levels)
    total = np.zeros((2 * n, half))
    for side, rows in enumerate(at):
        for i, row in enumerate(rows):
            total[side * n + i, row] = 1.0
    chosen = total.astype(bool)
    return Estimates(
        total @ mean,
        total @ covariance @ total.T,
        np.where(chosen, sums.lost[:half], 0).sum(axis=1),
        np.sqrt(sums.squares / n_paths),
        total @ plain,
    )


def _controlled(sums: Sums, half: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of the first rows, each regressed on the q control variates of its own run, whose mean is zero."""
    C = sums.covariance()
    into = np.eye(half, 2 * half)
    for first in range(0, half, q):
        rows = np.arange(first, first + q)
        on = half + rows[(np.diag(C)[half + rows] > 0) & (sums.lost[half + rows] == 0)]
        scale = np.sqrt(np.diag(C)[on])
        correlation = C[np.ix_(on, on)] / scale / scale[:, None]
        slopes = np.linalg.pinv(correlation, rcond=1e-10) @ (C[np.ix_(on, rows)] / scale[:, None])
        into[np.ix_(rows, on)] = -(slopes / scale[:, None]).T
    left = into @ C @ into.T
    spread = np.arange(half)
    left[spread, spread] = np.maximum(np.diag(left), ROUNDING * np.diag(C)[:half])
    return into @ sums.mean, left


class _SGDRun:
    """SGD at one level."""

    def __init__(
        self, level: Level, of: Functions, theta0: np.ndarray, time: float, n_paths: int, key: int, control: bool,
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        self.level, self.of, self.theta0, self.n_paths, self.key, self.options = (
            level,
            of,
            theta0,
            n_paths,
            key,
            options,
        )
        usable = control and controllable(level.sgd.recursion().scheme, level.sgd)
        self.track = Control(of, theta0, (0.0, time), level.n_steps) if usable else None
        self.doubles = 8 * (theta0.size + 1)

    def values(self, paths: range) -> tuple[np.ndarray, np.ndarray]:
        """f and Z, (n_functions, n_paths)."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # counted, and reported in the result
            solution = self.level.sgd.run(
                self.theta0, self.level.n_steps, n_paths=self.n_paths, rng=self.key, path_index=paths, keep="final",
                track=self.track, **self.options,
            )  # fmt: skip
        return _seen(solution, self.of, self.theta0.size, self.track)


class _SDERun:
    """An SDE on two grids of one Brownian path, combined so that the leading error of the method is gone."""

    def __init__(
        self, problem: Any, of: Functions, order: int, method: Any, n_steps: int, theta0: np.ndarray, time: float,
        n_paths: int, key: int, control: bool, options: dict[str, Any],
    ) -> None:  # fmt: skip
        self.of, self.d, self.grids = of, theta0.size, (n_steps, 2 * n_steps)
        self.study: Study = make_study(
            problem.sde(order=order), theta0, (0.0, time), method, None, goal="weak", n_steps=self.grids, refine=1,
            least=2, n_paths=n_paths, rng=key, args=None, options=options,
        )  # fmt: skip
        usable = control and self.study.scheme.name == "euler-maruyama"
        self.tracks = [Control(of, theta0, (0.0, time), n) if usable else None for n in self.grids]
        power = self.study.scheme.weak.get(self.study.noise)
        self.weights = (0.0, 1.0) if not power else (-1.0 / (2.0**power - 1.0), 2.0**power / (2.0**power - 1.0))
        self.doubles = self.grids[1] * max(self.study.m, 1)

    def values(self, paths: range) -> tuple[np.ndarray, np.ndarray]:
        """Combined f and Z, (n_functions, n_paths); D. Talay, L. Tubaro, Stoch. Anal. Appl. 8 (1990) 483."""
        piece = self.study.piece(paths)
        f, z = np.zeros((len(self.of), len(paths))), np.zeros((len(self.of), len(paths)))
        for n, weight, track in zip(self.grids, self.weights, self.tracks):
            if weight:
                a, b = _seen(piece.run(self.study.scheme, n, track=track), self.of, self.d, track)
                f += weight * a
                z += weight * b
        return f, z


def _seen(solution: Any, of: Functions, d: int, track: Control | None) -> tuple[np.ndarray, np.ndarray]:
    y = solution.y[:, -1, :d]
    found = np.stack([one(name, function, y, len(y)) for name, function in of.items()])
    if track is None:
        return found, np.zeros(found.shape)
    return found, np.ascontiguousarray(solution.tracked[NAME][:, -1].T)
