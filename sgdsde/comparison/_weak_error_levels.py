"""The levels of `weak_error`: at each learning rate an SGD problem, the equation beside it, and their grids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.sgd.optimizers import SVAG
from sgdsde.sgd.problem import SGD

__all__ = ["Level", "make_levels"]

WHOLE = 1e-9
"""A ratio this close to a whole number, relatively, is one."""


@dataclass(frozen=True)
class Level:
    """SGD with one learning rate, and what it is compared with."""

    rate: float
    """η, with SVAG η/l."""
    sgd: Any
    n_steps: int
    of_sde: Any
    """The problem whose SDE it is."""


def make_levels(problem: Any, time: Any, learning_rates: Any, scale: str) -> list[Level]:
    """Levels from the largest rate to the smallest; every argument is checked."""
    if not isinstance(problem, SGD):
        raise ArgumentError(f"problem must be an SGD problem, got {_check.show(problem)}")
    time = _check.positive("time", time)
    if problem.schedule is not None:
        raise ModelError("problem must have a constant learning rate: an order is measured against it")
    if scale != "learning_rate" and problem.optimizer is not None:
        raise ModelError(f"problem must be without an optimizer for scale={scale!r}, got {problem.optimizer!r}")
    if scale == "batch_size" and not problem.replacement:
        raise ModelError(
            'problem must draw with replacement for scale="batch_size": without, σ² = η(N - S)/(2S(N - 1)) changes '
            "with S at fixed η/S"
        )
    if isinstance(learning_rates, str) or not isinstance(learning_rates, Iterable):
        raise ArgumentError(f"learning_rates must be a sequence of numbers, got {_check.show(learning_rates)}")
    rates = sorted((_check.positive("learning_rates", rate) for rate in learning_rates), reverse=True)
    if len(rates) < 3 or len(set(rates)) < len(rates):
        raise ArgumentError(f"learning_rates must be at least 3 different numbers, got {rates}")
    return [_level(problem, time, rate, scale) for rate in rates]


def _level(problem: Any, time: float, rate: float, scale: str) -> Level:
    if scale == "learning_rate":
        made = problem.replace(learning_rate=rate)
        sde = made
    elif scale == "batch_size":
        ratio = rate * problem.batch_size / problem.learning_rate
        size = _whole(
            ratio, f"learning_rates must be multiples of η/S = {problem.learning_rate / problem.batch_size:g}"
        )
        if problem.n_samples is not None and size > problem.n_samples:
            raise ArgumentError(f"learning_rates must not need batches above N = {problem.n_samples}, got {size}")
        made, sde = problem.replace(learning_rate=rate, batch_size=size), problem
    else:
        l = _whole(problem.learning_rate / rate, f"learning_rates must be η/l, η = {problem.learning_rate:g}, l whole")
        made, sde = problem.replace(optimizer=SVAG(l)), problem
    pace = 1.0 if scale == "svag" or made.optimizer is None else made.optimizer.pace
    n_steps = _whole(time / (rate * pace), f"time = {time:g} must be a whole number of steps of every learning rate")
    return Level(rate, made, n_steps, sde)


def _whole(ratio: float, wanted: str) -> int:
    nearest = round(ratio)
    if nearest < 1 or abs(ratio - nearest) > WHOLE * max(nearest, 1):
        raise ArgumentError(f"{wanted}: a ratio is {ratio:.6g}")
    return int(nearest)
