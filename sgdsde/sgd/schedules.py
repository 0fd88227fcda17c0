"""Learning rates that change: pieces of constant η over the steps of SGD, by which time t = Σ η_k goes on.

Offers `constant`, `step`, `linear_warmup`, `cosine`, `from_function`, and `Schedule`, which all of them are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.run.memory import refuse_more_than_half

__all__ = ["Schedule", "constant", "cosine", "from_function", "linear_warmup", "read", "step"]


@dataclass(frozen=True, eq=False)
class Schedule:
    """η_k for every step k = 0, 1, …: constant from each of some steps on until the next, and for ever after the last.

    Parameters
    ----------
    name : str
        How it prints.
    steps : (K,) array of integers
        Where pieces begin: 0 first, increasing.
    rates : (K,) array
        η > 0 of each piece.

    Examples
    --------
    >>> from sgdsde import schedules
    >>> two = schedules.step(0.001, {5000: 0.008})
    >>> two
    step(0.001, {5000: 0.008})
    >>> two([0, 4999, 5000, 10**9])
    array([0.001, 0.001, 0.008, 0.008])
    >>> float(two.time(6000))  # 5000 steps of 0.001 and 1000 of 0.008
    13.0
    """

    name: str
    steps: np.ndarray
    rates: np.ndarray
    starts: np.ndarray = field(init=False, repr=False)
    """(K,) times t = Σ η_k at which the pieces begin."""

    def __post_init__(self) -> None:
        steps = np.asarray(self.steps)
        rates = _check.array("rates", self.rates)
        if steps.ndim != 1 or steps.shape != rates.shape or steps.size == 0 or steps.dtype.kind not in "iu":
            raise ArgumentError(f"steps and rates must be as many integers as rates, got {steps.shape}, {rates.shape}")
        if steps[0] != 0 or np.any(np.diff(steps) <= 0):
            raise ArgumentError(f"steps must begin with 0 and increase, got {_check.show(self.steps)}")
        if rates.min() <= 0.0:
            raise ArgumentError(f"every learning rate must be positive, got {rates.min():g}")
        starts = np.concatenate([[0.0], np.cumsum(np.diff(steps) * rates[:-1])])
        for name, value in (("steps", steps.astype(np.int64)), ("rates", rates.copy()), ("starts", starts)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return np.array_equal(self.steps, other.steps) and np.array_equal(self.rates, other.rates)

    def __hash__(self) -> int:
        return hash((self.steps.tobytes(), self.rates.tobytes()))

    def __call__(self, k: Any) -> np.ndarray:
        """η of step number k, an integer or an array of them."""
        k = _step_numbers(k)
        return self.rates[np.searchsorted(self.steps, k, side="right") - 1]

    def time(self, k: Any) -> np.ndarray:
        """t = Σ_{j<k} η_j, where step number k begins."""
        k = _step_numbers(k)
        piece = np.searchsorted(self.steps, k, side="right") - 1
        return self.starts[piece] + (k - self.steps[piece]) * self.rates[piece]

    def lengths(self, t0: float, t1: float) -> np.ndarray:
        """Lengths of steps from t0 to t1 that are those of SGD, the first and last cut off where they must be."""
        if t0 < 0.0:
            raise ArgumentError(f"t_span must not begin before 0, where the schedule {self} begins, got {t0:g}")
        edges = [t0]
        k = self._step_at(t0)
        n = self._step_at(t1) + 1
        _refuse_many(n - k, "steps of SGD from t0 to t1", "a dt of your own")
        times = self.time(np.arange(k + 1, n + 1))
        slack = 1e-9 * np.maximum(self(np.arange(k + 1, n + 1)), 0.0)
        inside = times[(times > t0 + slack) & (times < t1 - slack)]
        return np.diff(np.concatenate([edges, inside, [t1]]))

    def _step_at(self, t: float) -> int:
        """The step within which time t falls."""
        piece = max(int(np.searchsorted(self.starts, t, side="right")) - 1, 0)
        return int(self.steps[piece] + math.floor((t - self.starts[piece]) / self.rates[piece] * (1 + 1e-12)))


def _step_numbers(k: Any) -> np.ndarray:
    array = np.asarray(k)
    if array.dtype.kind not in "iu" and array.size:
        raise ArgumentError(f"k must be the number of a step, an integer or an array of them, got {_check.show(k)}")
    if array.size and array.min() < 0:
        raise ArgumentError(f"k must be the number of a step, 0, 1, …, got {array.min()}")
    return array.astype(np.int64)


def _refuse_many(n: int, what: str, advice: str) -> None:
    refuse_more_than_half(8.0 * n * 6, f"a table of {n:.4g} {what}", [advice])


def constant(learning_rate: float) -> Schedule:
    """One η for all steps."""
    eta = _check.positive("learning_rate", learning_rate)
    return Schedule(f"{eta:g}", np.array([0]), np.array([eta]))


def step(learning_rate: float, changes: Mapping[int, float]) -> Schedule:
    """η until the first step in `changes`, which maps step numbers to the η from there on.

    The warm-up of the law-of-balance papers is ``step(0.001, {5000: 0.008})``.
    """
    eta = _check.positive("learning_rate", learning_rate)
    if not isinstance(changes, Mapping):
        raise ArgumentError(f"changes must map step numbers to learning rates, got {_check.show(changes)}")
    at = sorted((_check.count("changes", k), _check.positive("changes", value)) for k, value in changes.items())
    name = f"step({eta:g}, {{{', '.join(f'{k}: {value:g}' for k, value in at)}}})"
    return Schedule(name, np.array([0, *(k for k, _ in at)]), np.array([eta, *(value for _, value in at)]))


def linear_warmup(learning_rate: float, n_steps: int, start: float | None = None) -> Schedule:
    """From `start` (η/n_steps by default) to η in equal increments over `n_steps` steps, then η."""
    eta, n = _check.positive("learning_rate", learning_rate), _check.count("n_steps", n_steps)
    first = eta / n if start is None else _check.positive("start", start)
    _refuse_many(n, "learning rates", "fewer n_steps, or schedules.step with a few pieces")
    rates = first + (eta - first) * np.arange(n + 1) / n
    return Schedule(f"linear_warmup({eta:g}, {n}, {first:g})", np.arange(n + 1), rates)


def cosine(learning_rate: float, n_steps: int, end: float) -> Schedule:
    """η_k = end + ½(η − end)(1 + cos(πk/n_steps)), then `end` (I. Loshchilov, F. Hutter, ICLR 2017, (5), one cycle)."""
    eta, n = _check.positive("learning_rate", learning_rate), _check.count("n_steps", n_steps)
    last = _check.positive("end", end)
    _refuse_many(n, "learning rates", "fewer n_steps, or schedules.step with a few pieces")
    rates = last + 0.5 * (eta - last) * (1.0 + np.cos(np.pi * np.arange(n + 1) / n))
    return Schedule(f"cosine({eta:g}, {n}, {last:g})", np.arange(n + 1), rates)


def from_function(function: Callable[[np.ndarray], Any], n_steps: int) -> Schedule:
    """η_k = function(k) for k < n_steps, an array of them at once; the last one for ever after."""
    if not callable(function):
        raise ArgumentError(f"function must be a function of step numbers, got {_check.show(function)}")
    n = _check.count("n_steps", n_steps)
    _refuse_many(n, "learning rates", "fewer n_steps, or schedules.step with a few pieces")
    try:
        returned = function(np.arange(n))
    except ValueError as error:  # what `if k < 100` says of an array
        raise ArgumentError(
            f"function must take all step numbers at once, as an array (np.where for cases): {error}"
        ) from error
    rates = _check.array("function's result", returned)
    if rates.shape != (n,):
        raise ArgumentError(f"function must return one learning rate for each of {n} steps, got shape {rates.shape}")
    name = getattr(function, "__name__", type(function).__name__)
    return Schedule(f"from_function({name}, {n})", np.arange(n), rates)


def read(learning_rate: Any) -> Schedule | None:
    """A schedule if it is one; None for what ought to be a number."""
    if isinstance(learning_rate, Schedule):
        return None if learning_rate.steps.size == 1 else learning_rate
    if callable(learning_rate):
        raise ArgumentError(
            "learning_rate must be a number or a schedule; schedules.from_function makes one of a function"
        )
    return None
