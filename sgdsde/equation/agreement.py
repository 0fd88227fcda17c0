"""Does a compiled function give at the start what Python gives? numba's integers have 64 bits, Python's have no end.

In compiled code `2**-1` of two ints is 0 and `10**20` is some other number, without a word. So what was compiled is
evaluated once where Python was evaluated too; a function that differs there runs in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from sgdsde.equation.fingerprint import globals_read

__all__ = ["all_python", "disagreement"]

EQUAL = 1e-6
"""Relative: what single precision may do to a value."""
NUDGE = 2.0**-40
"""Relative change of t and y, far above what rounding may do to them inside a function."""


def disagreement(
    compiled: Callable[[], np.ndarray],
    python: Callable[[float, np.ndarray], np.ndarray],
    t: float,
    y: np.ndarray,
) -> str:
    """Why a function that numba compiled cannot be used, in a few words; empty where both give the same at (t, y).

    Values that cancel almost entirely may differ by rounding: by what a nudge of t and y changes in Python.
    """
    with np.errstate(all="ignore"):
        wanted = python(t, y)
        try:
            found = compiled()
        except Exception as error:
            return f"compiled it raises {type(error).__name__}: {error}"
        gap = np.abs(found - wanted)
        allowed = EQUAL * np.maximum(np.abs(found), np.abs(wanted))
        if (gap <= allowed).all():
            return ""
        try:
            nudged = python(t + NUDGE * (1.0 + abs(t)), y + NUDGE * np.where(y == 0.0, 1.0, y))
            if (gap <= allowed + np.abs(nudged - wanted)).all():
                return ""
        except Exception:  # a state that the user did not choose
            pass
    i = int(np.argmax(~(gap <= allowed)))
    return (
        f"at the start it gives {found[i]:g} when compiled and {wanted[i]:g} in Python (int ** negative int, integers "
        "beyond 64 bits, random numbers? floats such as 2.0 in place of 2 often help)"
    )


def all_python(function: Any) -> bool:
    """Whether no part of a function was compiled by a person; what was is taken at its word, with its own globals."""
    seen: set[int] = set()
    ahead = [function]
    while ahead:
        one = ahead.pop()
        if isinstance(one, Dispatcher):
            return False
        if isinstance(one, FunctionType) and id(one) not in seen:
            seen.add(id(one))
            ahead += [one.__globals__.get(name) for name in globals_read(one.__code__)]
            ahead += [cell.cell_contents for cell in one.__closure__ or () if cell != CellType()]
    return True
