"""The time grid of a run, and where the times to save fall on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["Grid", "Saves", "make_grid", "make_saves", "time_span"]

ROUNDING = 1e-9
"""A ratio this close (relatively) to an integer is that integer: (1 - 0)/0.1 is ten steps."""


@dataclass(frozen=True)
class Grid:
    """Times t_k = t0 + k·h for k < n_steps, and t_n = t1: the last step has length h_last <= h."""

    t0: float
    t1: float
    h: float
    h_last: float
    n_steps: int

    def time(self, k: np.ndarray | int) -> np.ndarray:
        """Grid times of the indices k."""
        return np.where(np.asarray(k) >= self.n_steps, self.t1, self.t0 + np.asarray(k) * self.h)


@dataclass(frozen=True)
class Saves:
    """Times to save, each as the grid point before it and the time past that point (0 on the grid)."""

    times: np.ndarray
    step: np.ndarray
    offset: np.ndarray


def time_span(t_span: Any) -> tuple[float, float]:
    """(t0, t1) with t0 < t1."""
    span = _check.array("t_span", t_span, (2,))
    if not span[0] < span[1]:
        raise ArgumentError(f"t_span must go forward in time, got ({span[0]:g}, {span[1]:g})")
    return float(span[0]), float(span[1])


def make_grid(t0: float, t1: float, dt: float) -> Grid:
    """Steps of length dt from t0 to t1; a dt that does not divide the interval makes the last step shorter."""
    ratio = (t1 - t0) / dt
    if ratio > 2**52:
        raise ArgumentError(f"dt must allow at most 2**52 steps, got {dt:g} for an interval of {t1 - t0:g}")
    nearest = round(ratio)
    if nearest >= 1 and abs(ratio - nearest) <= ROUNDING * ratio:
        h = (t1 - t0) / nearest
        return Grid(t0, t1, h, h, nearest)
    n_steps = math.ceil(ratio)
    return Grid(t0, t1, dt, t1 - (t0 + (n_steps - 1) * dt), n_steps)


def make_saves(grid: Grid, t_eval: Any, *, keep: str, on_grid: bool) -> Saves:
    """Read `t_eval`: None (start and end), an int (that many equal times), "steps" (every step) or a sequence.

    With `on_grid` (discrete dynamics) each time moves to the nearest step, and times that meet there are one.
    """
    if keep == "final":
        if t_eval is not None:
            raise ArgumentError('t_eval must be None with keep="final", which keeps the end alone')
        wanted = np.array([grid.t1])
    elif t_eval is None:
        wanted = np.array([grid.t0, grid.t1])
    elif isinstance(t_eval, str):
        _check.choice("t_eval", t_eval, ["steps"])
        steps = np.arange(grid.n_steps + 1)
        return Saves(grid.time(steps), steps, np.zeros(steps.size))
    elif np.ndim(t_eval) == 0:
        wanted = np.linspace(grid.t0, grid.t1, _check.count("t_eval", t_eval, least=2))
    else:
        wanted = _check.times("t_eval", t_eval, grid.t0, grid.t1)
    if on_grid:
        steps = np.unique(np.rint((wanted - grid.t0) / grid.h).astype(np.int64))
        return Saves(grid.time(steps), steps, np.zeros(steps.size))
    tolerance = max(ROUNDING * grid.h, 4 * np.finfo(float).eps * max(abs(grid.t0), abs(grid.t1)))
    steps = np.floor((wanted - grid.t0) / grid.h).astype(np.int64)
    steps = np.minimum(steps, grid.n_steps - 1)
    steps -= (wanted < grid.t0 + steps * grid.h).astype(np.int64)
    offset = wanted - (grid.t0 + steps * grid.h)
    length = np.where(steps == grid.n_steps - 1, grid.h_last, grid.h)
    end = offset >= length - tolerance
    steps = np.where(end, steps + 1, steps)
    offset = np.where(end | (offset <= tolerance), 0.0, offset)
    return Saves(wanted, np.maximum(steps, 0), offset)
