"""A run driven by a `Brownian`: which of its paths, and what it gives for a range of steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.equation._equation import Equation
from sgdsde.random.brownian import Brownian
from sgdsde.random.stream import key_from
from sgdsde.run.grid import Grid, Saves
from sgdsde.run.paths import Paths

__all__ = ["check_brownian", "drive", "key_beside"]


def check_brownian(brownian: Any, equation: Equation, grid: Grid, saves: Saves, paths: Paths, beyond: str) -> None:
    """Whether the object can drive this run, or one error that says what it would have to be."""
    if brownian is None:
        return
    if not isinstance(brownian, Brownian):
        raise ArgumentError(f"brownian must be a sgdsde.Brownian, got {_check.show(brownian)}")
    if equation.calculus == "discrete":
        raise ArgumentError("brownian cannot drive discrete SGD: its randomness is the choice of the batch")
    if brownian.m != equation.noise_dim:
        raise ShapeError(f"brownian must have m = {equation.noise_dim} components, got {brownian.m}")
    if (brownian.t0, brownian.t1) != (grid.t0, grid.t1):
        raise ArgumentError(
            f"brownian must live on t_span = ({grid.t0:g}, {grid.t1:g}), got ({brownian.t0:g}, {brownian.t1:g})"
        )
    if not grid.equal:
        raise ArgumentError("dt must divide t1 - t0 where a Brownian drives: its grids have equal steps")
    if np.any(saves.offset > 0):
        raise ArgumentError("t_eval must lie on the grid t0 + k·dt where a Brownian drives: it is not asked in between")
    missing = np.setdiff1d(paths.all(), brownian.path_index)
    if missing.size:
        raise ArgumentError(
            f"brownian has no path number {missing[0]}, which this run needs: Brownian(..., n_paths=) or path_index="
        )
    brownian.steps(grid.n_steps, 0, 0, beyond=beyond)


def key_beside(brownian: Brownian) -> int:
    """The key for random numbers that are not of the path, independent of the path's own."""
    return key_from(np.random.SeedSequence(brownian.seed))


def drive(
    brownian: Brownian, grid: Grid, path: np.ndarray, k0: int, k1: int, beyond: str
) -> tuple[np.ndarray, np.ndarray]:
    """dW (B, (k1 − k0)·m) and aux (B, (k1 − k0)·r) of steps k0 .. k1 − 1 of the paths `path`."""
    dW, aux = brownian.only(path).steps(grid.n_steps, k0, k1, beyond=beyond)
    return tuple(np.ascontiguousarray(a.reshape(-1, path.size).T) for a in (dW, aux))  # type: ignore[return-value]
