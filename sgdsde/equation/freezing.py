"""A user's function made ready for numba: what it reads is taken now, the plain functions it calls are compiled too.

numba compiles a function once and keeps the globals of that moment. Here each compilation gets a copy of the function
whose globals are a snapshot, so that a later change leads to new code instead of being overlooked. Indices are checked
in the copy, which costs nothing where an array's length is known to the compiler, as y's is. A function that is already
compiled (a numba dispatcher) is used as it is, unless something it reads has changed since it was first met.
"""

from __future__ import annotations

import builtins
import types
import weakref
from collections.abc import Hashable
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from sgdsde._jit import OPTIONS
from sgdsde.equation.fingerprint import fingerprint, globals_read

__all__ = ["frozen"]

# Which key a compiled function had when it was first met: its machine code knows the values of then.
_first_met: weakref.WeakKeyDictionary[Any, Hashable] = weakref.WeakKeyDictionary()


def frozen(function: Any, pipeline_class: Any = None) -> Any:
    """A dispatcher for `function`, a plain function or a dispatcher, that computes what the function computes now.

    `pipeline_class` is numba's, for the function itself when it is plain; the functions it calls are compiled as usual.
    """
    return _frozen(function, {}, pipeline_class)


def _frozen(function: Any, made: dict[int, Any], pipeline_class: Any = None) -> Any:
    if id(function) in made:
        return made[id(function)]
    options: dict[str, Any] = {**OPTIONS, "boundscheck": True}
    plain = function
    if isinstance(function, Dispatcher):
        key = fingerprint(function)
        if _first_met.setdefault(function, key) == key:
            return function
        plain = function.py_func
        options = {name: value for name, value in function.targetoptions.items() if name != "nopython"}  # njit says so
    elif pipeline_class is not None:
        options["pipeline_class"] = pipeline_class
    namespace: dict[str, Any] = {"__name__": plain.__module__, "__builtins__": builtins}
    cells = tuple(types.CellType() for _ in plain.__closure__ or ())
    copy = types.FunctionType(plain.__code__, namespace, plain.__name__, plain.__defaults__, cells or None)
    copy.__kwdefaults__ = plain.__kwdefaults__
    copy.__module__, copy.__qualname__ = plain.__module__, plain.__qualname__
    made[id(function)] = dispatcher = numba.njit(**options)(copy)
    for name in globals_read(plain.__code__):  # after `made`: functions may call themselves and each other
        if name in plain.__globals__:
            namespace[name] = _value(plain.__globals__[name], made)
    for cell, source in zip(cells, plain.__closure__ or ()):
        cell.cell_contents = _value(source.cell_contents, made)
    return dispatcher


def _value(value: Any, made: dict[int, Any]) -> Any:
    return _frozen(value, made) if isinstance(value, (types.FunctionType, Dispatcher)) else value
