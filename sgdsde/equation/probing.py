"""Calling a user's function in Python, where a mistake is an exception: one clear error in place of a wrong number.

Compiled code reads past the end of an array, forgets the imaginary part and adds what happens to broadcast. So each
function is called once in Python at the start, and what it returns is compared with what the noise kind wants.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from sgdsde._check import show
from sgdsde._errors import ModelError, ShapeError

__all__ = ["call_with_args", "check_drift", "diffusion_form", "function_name", "values"]

# How the array that a diffusion returned is laid out: g[i] times v[0], g[i] times v[i], or g[i, j] times v[j].
COLUMN, DIAGONAL, MATRIX = "column", "diagonal", "matrix"


def function_name(function: Any) -> str:
    """The name that a person gave to a callable."""
    if isinstance(function, functools.partial):
        return f"partial({function_name(function.func)})"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(name).rpartition("<locals>.")[2] if name else type(function).__name__


def python_function(function: Any) -> Callable[..., Any]:
    """The Python function behind a callable: what numba compiled, where it was compiled."""
    if isinstance(function, functools.partial):
        return functools.partial(python_function(function.func), *function.args, **function.keywords)
    return function.py_func if isinstance(function, Dispatcher) else function


def _called(label: str, function: Any) -> str:
    name = function_name(function)
    return label if name in (label, "<lambda>") else f"{label} ({name})"


def call_with_args(label: str, function: Any, t: float, y: np.ndarray, args: Sequence[Any]) -> Any:
    """What `function(t, y, *args)` returns in Python; ModelError, with the exception behind it, where it raises.

    The function gets a copy of y.
    """
    python = python_function(function)
    _check_arity(label, function, python, args)
    try:
        with np.errstate(all="ignore"):
            try:
                return python(float(t), y.copy(), *args)
            except NotImplementedError:  # a compiled function that uses what only compiled code can do
                if not isinstance(function, Dispatcher):
                    raise
                return function(float(t), y.copy(), *args)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ModelError(
            f"{_called(label, function)} cannot be evaluated at t={t:g}, y={_short(y)}: {reason}"
        ) from error


def _check_arity(label: str, function: Any, python: Any, args: Sequence[Any]) -> None:
    try:
        signature = inspect.signature(python)
    except (TypeError, ValueError):  # built in, without a signature
        return
    try:
        signature.bind(0.0, None, *args)
    except TypeError as error:
        given = f"args has {len(args)} {'entry' if len(args) == 1 else 'entries'}"
        raise ModelError(
            f"{_called(label, function)} takes {signature} but is called as {label}(t, y, *args), and {given}: {error}"
        ) from error


def values(label: str, function: Any, returned: Any, wanted: str) -> np.ndarray:
    """What a function returned as a float64 array of any shape; refuses all that is not real numbers."""
    name = _called(label, function)
    if returned is None:
        raise ModelError(f"{name} returned None (is a return missing?), but {wanted} is wanted")
    try:
        array = np.asarray(returned)
    except ValueError:
        array = np.asarray(None)
    kind = array.dtype.kind
    if kind == "c":
        raise ModelError(f"{name} returned complex numbers ({show(returned)}), but {wanted} is wanted")
    if kind not in "biuf":
        error = ShapeError if isinstance(returned, (tuple, list)) and _all_numbers(returned) else ModelError
        raise error(f"{name} returned {show(returned)}, which is no array of real numbers; {wanted} is wanted")
    return array.astype(np.float64)


def _all_numbers(returned: Any) -> bool:
    """Numbers all the way down: then only the shape is at fault (rows of unequal length)."""
    if isinstance(returned, (tuple, list)):
        return all(_all_numbers(entry) for entry in returned)
    return np.asarray(returned).dtype.kind in "biuf"


def check_drift(function: Any, returned: Any, d: int) -> np.ndarray:
    """The drift (d,) that was returned; a number where d = 1."""
    wanted = f"{d} number{'s'[: d != 1]}, shape ({d},),"
    array = values("drift", function, returned, wanted)
    if array.shape != (d,) and not (d == 1 and array.ndim == 0):
        raise ShapeError(f"{_called('drift', function)} returned {_shaped(returned, array)}, but {wanted} is wanted")
    return array.reshape(d)


def diffusion_form(function: Any, returned: Any, d: int, noise: str) -> tuple[np.ndarray, str, int]:
    """What a diffusion returned (d,) or (d, m), how it is laid out, and the number m of noises, by the noise kind."""
    wanted = {
        "scalar": f"one noise: shape ({d},) or ({d}, 1)",
        "diagonal": f"one noise for each component: shape ({d},)",
        "additive": f"shape ({d},), one noise for each component, or ({d}, m)",
    }.get(noise, f"a matrix with {d} row{'s'[: d != 1]}: shape ({d}, m), two-dimensional also where m = 1,")
    array = values("diffusion", function, returned, wanted)
    shape = array.shape
    if noise in ("scalar", "diagonal", "additive") and (shape == (d,) or (d == 1 and shape == ())):
        form, m = (COLUMN, 1) if noise == "scalar" else (DIAGONAL, d)
        return array.reshape(d), form, m
    if len(shape) == 2 and shape[0] == d and (shape[1] == 1 if noise == "scalar" else noise != "diagonal"):
        if shape[1] >= 1:
            return array, MATRIX, shape[1]
    hint = ""
    if shape == (d,):
        hint = "; noise='diagonal' takes one number for each component, noise='scalar' one column"
    elif len(shape) == 2 and shape[0] == d and shape[1] >= 1:
        hint = "; noise='general' takes a matrix"
    raise ShapeError(
        f"{_called('diffusion', function)} returned {_shaped(returned, array)}, "
        f"but noise={noise!r} wants {wanted.rstrip(',')}{hint}"
    )


def check_finite(label: str, function: Any, array: np.ndarray, t: float, y: np.ndarray) -> None:
    """ModelError where a function is not finite at the start."""
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        entry = where[0] if len(where) == 1 else where
        raise ModelError(
            f"{_called(label, function)} is not finite at the start: entry {entry} is {array[where]} "
            f"at t={t:g}, y={_short(y)}"
        )


def _shaped(returned: Any, array: np.ndarray) -> str:
    kind = "an array" if isinstance(returned, np.ndarray) else f"a {type(returned).__name__}"
    return f"{kind} of shape {array.shape}" if array.ndim else f"a single number, {array.item():g}"


def _short(y: np.ndarray) -> str:
    return np.array2string(y, precision=6, separator=", ", threshold=8, edgeitems=3)
