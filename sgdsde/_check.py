"""Checks of arguments. Each names the argument, says what it got and what it wanted, and returns the clean value."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["array", "choice", "count", "flag", "number", "positive", "show", "times"]


def show(value: Any, width: int = 60) -> str:
    """A short word for a value in an error message."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value)
    return text if len(text) <= width else f"{text[: width - 1]}… ({type(value).__name__})"


def number(name: str, value: Any, *, least: float | None = None, most: float | None = None) -> float:
    """A finite real number, within [least, most] where given."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    try:
        clean = float(value) if real else math.nan
    except OverflowError:
        clean = math.inf
    if not math.isfinite(clean):
        raise ArgumentError(f"{name} must be a finite real number, got {show(value)}")
    value = clean
    if (least is not None and value < least) or (most is not None and value > most):
        wanted = f"at least {least:g}" if most is None else f"between {least:g} and {most:g}"
        raise ArgumentError(f"{name} must be {wanted}, got {show(value)}")
    return value


def positive(name: str, value: Any) -> float:
    """A finite real number above zero."""
    value = number(name, value)
    if value <= 0:
        raise ArgumentError(f"{name} must be positive, got {value!r}")
    return value


def count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """An integer in [least, most]; 3.0 and True are refused."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        value = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer, got {show(value)}") from None
    if value < least or (most is not None and value > most):
        wanted = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ArgumentError(f"{name} must be {wanted}, got {value}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{name} must be True or False, got {show(value)}")
    return bool(value)


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """One of a few words."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, options))}, got {show(value)}")
    return value


def array(name: str, value: Any, shape: tuple[Any, ...] | None = None, *, finite: bool = True) -> np.ndarray:
    """A new C-contiguous float64 array of real numbers.

    `shape` may hold integers (that size), None (any size) and strings (any size, named in the message). Booleans and
    integers are promoted; complex, object and text arrays are refused, and so is anything not finite unless
    `finite=False`.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ArgumentError(f"{name} must have no masked entries, got {np.ma.count_masked(value)} of {value.size}")
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} must be a rectangular array of numbers, got {show(value)} ({error})") from None
    if raw.dtype.kind not in "biuf":
        raise ArgumentError(f"{name} must hold real numbers, got dtype {raw.dtype} ({show(value)})")
    if shape is not None:
        fits = raw.ndim == len(shape) and all(
            not isinstance(want, (int, np.integer)) or have == want for have, want in zip(raw.shape, shape)
        )
        if not fits:
            wanted = ", ".join("any" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "")
            raise ShapeError(f"{name} must have shape ({wanted}), got {raw.shape}")
    clean = np.array(raw, dtype=np.float64, order="C", copy=True)
    if finite and not np.isfinite(clean).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(clean))[0])
        raise ArgumentError(f"{name} must be finite, got {clean[where]} at index {where}")
    return clean


def times(name: str, value: Any, t0: float, t1: float) -> np.ndarray:
    """Strictly increasing times within [t0, t1]."""
    clean = array(name, value, ("n_times",))
    if clean.size == 0:
        raise ArgumentError(f"{name} must hold at least one time, got an empty sequence")
    if np.any(np.diff(clean) <= 0):
        raise ArgumentError(f"{name} must increase strictly, got {show(value)}")
    slack = 8 * np.finfo(float).eps * max(abs(t0), abs(t1))
    if clean[0] < t0 - slack or clean[-1] > t1 + slack:
        got = f"[{float(clean[0])!r}, {float(clean[-1])!r}]"
        raise ArgumentError(f"{name} must lie within t_span [{float(t0)!r}, {float(t1)!r}], got {got}")
    return np.unique(np.clip(clean, t0, t1))
