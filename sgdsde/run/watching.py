"""Observers and trackers: what they offer the runner, and how plain functions become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.equation._equation import Equation

__all__ = ["Watcher", "check_names", "named", "watcher_of"]


class Watcher(NamedTuple):
    """A kernel that looks at a run: an OBSERVE kernel at the saved times, or a TRACK kernel along the path."""

    kernel: Any
    p: np.ndarray
    data: np.ndarray
    rows: int
    """Numbers it gives per path."""
    work: tuple[int, int] = (0, 0)
    """Scratch it needs: (fixed, per path)."""
    owner: Any = None
    """What must live as long as the run."""


def named(argument: str, things: Any, slots: int) -> dict[str, Any]:
    """`observe=` and `track=` as a dict of names: a dict, one thing, or a sequence of things that name themselves."""
    if things is None:
        return {}
    if isinstance(things, Mapping):
        result = dict(things)
    elif isinstance(things, Sequence) and not isinstance(things, str):
        result = {_name(thing): thing for thing in things}
        if len(result) < len(things):
            raise ArgumentError(f"{argument} has two entries of one name; give a dict name -> function")
    else:
        result = {_name(things): things}
    for name, thing in result.items():
        method = "__observe__" if argument == "observe" else "__track__"
        if not isinstance(name, str):
            raise ArgumentError(f"{argument} must have text for names, got {name!r}")
        if not hasattr(thing, method) and not (argument == "observe" and callable(thing)):
            wanted = f"an object with {method}" + (" or a function f(t, y, *args)" if argument == "observe" else "")
            raise ArgumentError(f"{argument}[{name!r}] must be {wanted}, got {thing!r}")
    if len(result) > slots:
        raise ArgumentError(f"{argument} takes at most {slots} entries, got {len(result)}")
    return result


def check_names(observe: Mapping[str, Any], track: Mapping[str, Any]) -> None:
    """Statistics are asked for by name, so each name means one thing."""
    for argument, names in (("observe", observe), ("track", track)):
        if "y" in names:
            raise ArgumentError(f"{argument} must not use the name 'y', which is the state's")
    for name in observe:
        if name in track:
            raise ArgumentError(f"observe and track must have different names, got {name!r} in both")


def _name(thing: Any) -> str:
    return str(getattr(thing, "name", None) or getattr(thing, "__name__", None) or type(thing).__name__)


def watcher_of(name: str, thing: Any, equation: Equation, t0: float, y0: np.ndarray, *, label: str = "") -> Watcher:
    """The OBSERVE kernel of `observe[name]`: the thing's own, or made of a function f(t, y, *args).

    The function is tried at (t0, y0) in Python. It gets the arguments of the equation, where that has any.
    """
    if hasattr(thing, "__observe__"):
        return Watcher(*thing.__observe__(equation))
    from sgdsde.equation.observing import compile_observer, probe

    label = label or f"observe[{name!r}]"
    args = getattr(equation, "args", ())
    rows = probe(label, thing, t0, y0, args)
    made = compile_observer(thing, args, equation.dim, rows, (t0, y0))
    if made.kernel is not None:
        return Watcher(made.kernel, made.p, made.data, rows, made.work)
    from sgdsde.equation.bound import _warn_once
    from sgdsde.run.python_observer import PythonObserver, python_observe

    _warn_once(label, thing, made.reason)
    observer = PythonObserver(label, thing, args, rows)
    return Watcher(python_observe, observer.p(), np.zeros(0), rows, (0, 0), observer)
