"""The time grid of a run, and where the times to save fall on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.run.memory import refuse_more_than_half

__all__ = ["Grid", "Saves", "make_grid", "make_saves", "time_span"]

ROUNDING = 1e-9
"""A ratio this close (relatively) to an integer is that integer: (1 - 0)/0.1 is ten steps."""


NONE = np.zeros(0)


@dataclass(frozen=True)
class Grid:
    """Times t_k = t0 + k·h for k < n_steps, and t_n = t1: the last step has length h_last <= h.

    Or steps of any `lengths` (n_steps,), with their starts in `starts`; then h is the longest.
    """

    t0: float
    t1: float
    h: float
    h_last: float
    n_steps: int
    lengths: np.ndarray = field(default_factory=lambda: NONE)
    starts: np.ndarray = field(default_factory=lambda: NONE)

    @property
    def equal(self) -> bool:
        """Whether all steps have one length."""
        return self.lengths.size == 0 and self.h_last == self.h

    def time(self, k: np.ndarray | int) -> np.ndarray:
        """Grid times of the indices k."""
        k = np.asarray(k)
        if self.lengths.size:
            return np.where(k >= self.n_steps, self.t1, self.starts[np.minimum(k, self.n_steps - 1)])
        return np.where(k >= self.n_steps, self.t1, self.t0 + k * self.h)

    def length(self, k: np.ndarray) -> np.ndarray:
        """Lengths of the steps number k."""
        if self.lengths.size:
            return self.lengths[k]
        return np.where(k == self.n_steps - 1, self.h_last, self.h)


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


def make_grid(t0: float, t1: float, dt: Any) -> Grid:
    """Steps of length dt from t0 to t1; a dt that does not divide the interval makes the last step shorter.

    An array of lengths has to add up to the interval.
    """
    if np.ndim(dt) > 0:
        return _unequal(t0, t1, _check.array("dt", dt))
    ratio = (t1 - t0) / dt
    if ratio > 2**52:
        raise ArgumentError(f"dt must allow at most 2**52 steps, got {dt:g} for an interval of {t1 - t0:g}")
    nearest = round(ratio)
    if nearest >= 1 and abs(ratio - nearest) <= ROUNDING * ratio:
        h = (t1 - t0) / nearest
        return Grid(t0, t1, h, h, nearest)
    n_steps = math.ceil(ratio)
    return Grid(t0, t1, dt, (t1 - t0) - (n_steps - 1) * dt, n_steps)


def _unequal(t0: float, t1: float, lengths: np.ndarray) -> Grid:
    if lengths.ndim != 1 or lengths.size == 0 or lengths.min() <= 0.0:
        raise ArgumentError(f"dt must be positive, or a sequence of positive lengths, got {_check.show(lengths)}")
    total = math.fsum(lengths)
    if abs(total - (t1 - t0)) > ROUNDING * (t1 - t0):
        raise ArgumentError(
            f"dt must add up to t1 - t0 = {t1 - t0:.12g}, got {lengths.size} lengths of {total:.12g} in all"
        )
    starts = t0 + np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    if np.any(np.diff(starts) <= 0.0) or starts[-1] >= t1:
        raise ArgumentError("dt must hold lengths that move the time: one of them is lost in rounding")
    return Grid(t0, t1, float(lengths.max()), float(lengths[-1]), lengths.size, lengths.copy(), starts)


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
        _refuse_many(grid.n_steps + 1)
        steps = np.arange(grid.n_steps + 1)
        return Saves(grid.time(steps), steps, np.zeros(steps.size))
    elif np.ndim(t_eval) == 0:
        if not hasattr(t_eval, "__index__") and not isinstance(t_eval, np.ndarray):
            wanted_kinds = 'None, "steps", how many times, or a sequence of times'
            raise ArgumentError(f"t_eval must be {wanted_kinds}, got {_check.show(t_eval)}")
        n_times = _check.count("t_eval", t_eval, least=2)
        _refuse_many(n_times)
        wanted = np.linspace(grid.t0, grid.t1, n_times)
    else:
        wanted = _check.times("t_eval", t_eval, grid.t0, grid.t1)
    if on_grid:
        steps = _nearest(grid, wanted)
        steps = np.unique(np.where(wanted == grid.t1, grid.n_steps, np.minimum(steps, grid.n_steps)))
        return Saves(grid.time(steps), steps, np.zeros(steps.size))
    return _between(grid, wanted)


def _nearest(grid: Grid, wanted: np.ndarray) -> np.ndarray:
    """The grid point nearest to each time."""
    if not grid.lengths.size:
        return np.rint((wanted - grid.t0) / grid.h).astype(np.int64)
    middles = grid.starts + 0.5 * grid.lengths
    return np.searchsorted(middles, wanted, side="left")


def _between(grid: Grid, wanted: np.ndarray) -> Saves:
    """Each time as the grid point before it and an offset; what misses a grid point by rounding alone is on it."""
    past = wanted - grid.t0
    if grid.lengths.size:
        steps = np.maximum(np.searchsorted(grid.starts, wanted, side="right") - 1, 0)
        offset = wanted - grid.starts[steps]
    else:
        steps = np.minimum(np.floor(past / grid.h).astype(np.int64), grid.n_steps - 1)
        steps = np.maximum(steps - (past < steps * grid.h), 0)
        offset = past - steps * grid.h
    length = grid.length(steps)
    tolerance = np.maximum(ROUNDING * length, 4 * np.finfo(float).eps * np.abs(wanted))
    tolerance = np.minimum(tolerance, length / 4)
    end = offset >= length - tolerance
    steps = np.where(end, steps + 1, steps)
    offset = np.where(end | (offset <= tolerance), 0.0, offset)
    steps[wanted == grid.t1], offset[wanted == grid.t1] = grid.n_steps, 0.0
    steps[wanted == grid.t0], offset[wanted == grid.t0] = 0, 0.0
    return Saves(wanted, steps, offset)


def _refuse_many(n_times: int) -> None:
    refuse_more_than_half(8.0 * 4 * n_times, f"saving at {n_times} times", ["fewer times in t_eval"])
