"""How `SGD` and its runs read what they are given: sampling, optimizer, the start, the grid of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.sgd.optimizers import Adam, HeavyBall, Optimizer

if TYPE_CHECKING:
    from sgdsde.run.grid import Grid

__all__ = ["SAMPLING", "check_sde", "make_grid", "make_start", "read_optimizer", "read_sampling"]

SAMPLING = ["with replacement", "without replacement", "epochs"]


def read_sampling(sampling: Any, replacement: bool) -> str:
    if sampling is None:
        return SAMPLING[0] if replacement else SAMPLING[1]
    if not replacement and sampling != SAMPLING[1]:
        raise ArgumentError("replacement and sampling exclude each other: both say how batches are drawn")
    return _check.choice("sampling", sampling, SAMPLING)


def read_optimizer(optimizer: Any, sampling: str) -> Optimizer | None:
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise ArgumentError(
            f"optimizer must be HeavyBall, SVAG or Adam of sgdsde.optimizers, got {_check.show(optimizer)}"
        )
    if optimizer is not None and optimizer.batches == 2 and sampling == "epochs":
        raise ArgumentError('sampling must not be "epochs" with SVAG, which needs two independent batches for a step')
    return optimizer


def make_grid(problem: Any, n_steps: Any) -> Grid:
    """n_steps steps, each as long as its learning rate times the pace of the optimizer."""
    from sgdsde.run import grid as grids

    n = _check.count("n_steps", n_steps)
    pace, parts = (1.0, 1) if problem.optimizer is None else (problem.optimizer.pace, problem.optimizer.parts)
    if problem.schedule is None:
        h = problem.learning_rate * pace
        return grids.Grid(0.0, n * h, h, h, n)
    whole, part = np.divmod(np.arange(n), parts)
    lengths = problem.schedule(whole) * pace
    starts = problem.schedule.time(whole) * (pace * parts) + part * lengths
    return grids.Grid(
        0.0, float(starts[-1] + lengths[-1]), float(lengths.max()), float(lengths[-1]), n, lengths, starts
    )


def make_start(problem: Any, theta0: Any, n_paths: int | None, path_index: Any) -> np.ndarray:
    """The whole state at the start, (dim,) or one row for each path."""
    theta0 = _check.array("theta0", theta0)
    d, optimizer = problem.model.dim, problem.optimizer
    width = d if optimizer is None else optimizer.size(d)
    rows = theta0.shape[:-1]
    fits = rows == () or (len(rows) == 1 and n_paths is not None and (rows[0] == n_paths or path_index is not None))
    if theta0.shape[-1:] not in ((d,), (width,)) or not fits:
        many = "" if n_paths is None else f" or ({n_paths}, {d})"
        whole = "" if width == d else f" (the whole state of {optimizer!r} is {width} numbers)"
        raise ShapeError(f"theta0 must have shape ({d},){many}, got {theta0.shape}{whole}")
    return theta0 if theta0.shape[-1] == width else optimizer.start(theta0)


def check_sde(problem: Any, order: Any) -> None:
    """Whether there is an SDE of the problem, of that order."""
    optimizer = problem.optimizer
    if isinstance(optimizer, Adam):
        raise ModelError("optimizer Adam has no SDE here: its step is not a gradient plus noise of mean zero")
    if problem.schedule is not None and isinstance(optimizer, HeavyBall):
        raise ModelError("learning_rate must be a number for the SDE of heavy-ball momentum, got a schedule")
    if isinstance(order, bool) or not isinstance(order, int) or order not in (1, 2):
        raise ArgumentError(f"order must be 1 or 2, got {_check.show(order)}")
    if order == 2 and (problem.schedule is not None or optimizer is not None):
        raise ModelError("order must be 1 with a schedule or an optimizer: the modified equation is that of plain SGD")
