"""What shapes the steps of a run: `project=`, where the state must stay, and `step_size=`, how far a step may go."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.equation._equation import Equation
from sgdsde.run.watching import Watcher, watcher_of
from sgdsde.schemes._scheme import Scheme

__all__ = ["BY_FUNCTION", "BY_KERNEL", "check_step_size", "projection_of", "step_size_of"]

BY_KERNEL, BY_FUNCTION = 1, 2
"""As in `run.stepping`, which needs numba."""


def projection_of(
    thing: Any, equation: Equation, scheme: Scheme, t0: float, y0: np.ndarray
) -> tuple[int, Watcher | None]:
    """How `project` is given, and its kernel."""
    if thing is None:
        return 0, None
    if hasattr(thing, "__project__"):
        return BY_KERNEL, Watcher(*thing.__project__(equation, scheme))
    if not callable(thing):
        raise ArgumentError(f"project must be a function f(t, y, *args) -> y or a projection, got {_check.show(thing)}")
    watcher = _function("project", thing, equation, t0, y0)
    if watcher.rows != equation.dim:
        raise ShapeError(f"project must return the state, {equation.dim} numbers, got {watcher.rows}")
    return BY_FUNCTION, watcher


def step_size_of(thing: Any, equation: Equation, t0: float, y0: np.ndarray) -> Watcher | None:
    """The kernel of `step_size`, which gives δ in (0, 1]."""
    if thing is None:
        return None
    if isinstance(thing, str):
        _check.choice("step_size", thing, ["auto"])
        own = getattr(equation, "step_size", None)
        found = own() if own is not None else None
        if found is None:
            raise ArgumentError(
                'step_size="auto" is for models that know how far a step may go (models.Product); give a function '
                "f(t, y, *args) of the state with values in (0, 1], the part of dt that a step from there may take"
            )
        return Watcher(*found)
    if not callable(thing) and not hasattr(thing, "__observe__"):
        raise ArgumentError(f'step_size must be "auto" or a function f(t, y, *args), got {_check.show(thing)}')
    watcher = _function("step_size", thing, equation, t0, y0)
    if watcher.rows != 1:
        raise ShapeError(f"step_size must return one number, got {watcher.rows}")
    check_step_size(watcher, t0, y0)
    return watcher


def check_step_size(watcher: Watcher, t0: float, y0: np.ndarray) -> None:
    """Whether δ is in (0, 1] at the start."""
    out, work = np.empty((1, 1)), np.empty(sum(watcher.work) + 1)
    watcher.kernel(out, np.array(y0, dtype=float)[:, None].copy(), np.full(1, t0), watcher.p, watcher.data, work)
    if not 0.0 < out[0, 0] <= 1.0:
        raise ModelError(
            f"step_size must be in (0, 1], the part of dt that a step may take; at the start it is {out[0, 0]:g}"
        )


def _function(argument: str, thing: Any, equation: Equation, t0: float, y0: np.ndarray) -> Watcher:
    return watcher_of(argument, thing, equation, t0, y0, label=argument)
