"""What a function computes, as a key: its code, and the values of the globals and closures that it reads.

numba freezes globals and closures when it compiles. Two functions with equal keys may therefore share machine code, and
a function whose key has changed since it was compiled needs new code. Names of files and line numbers do not count.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import types
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

__all__ = ["fingerprint", "globals_read"]

# Modules whose attributes do not change under a program.
_FIXED = ("builtins", "math", "cmath", "numpy", "scipy", "numba", "operator")


class _Same:
    """An object that is known by identity only. Holds it, so that the identity is not given to another one."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def fingerprint(value: Any) -> Hashable:
    """A hashable key that is equal for values which numba would compile to the same machine code.

    Numbers, text, tuples and arrays count by value, functions by their code and what they read, anything else by
    identity.

    Examples
    --------
    >>> def factory(a):
    ...     return lambda t, y: (-a * y[0],)
    >>> fingerprint(factory(1.0)) == fingerprint(factory(1.0)), fingerprint(factory(1.0)) == fingerprint(factory(2.0))
    (True, False)
    """
    return _key(value, {}, ())


def globals_read(code: types.CodeType) -> set[str]:
    """Names of the globals that a code object, or code inside it, looks up."""
    codes = list(_codes(code))
    return {i.argval for c in codes for i in dis.get_instructions(c) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the lambdas and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _key(value: Any, seen: dict[int, int], attributes: tuple[str, ...]) -> Hashable:
    """Key of one value; `seen` numbers the functions and modules met, `attributes` are names asked of modules."""
    if value is None or (isinstance(value, (bool, int, float, complex, str, bytes)) and _plain(value)):
        return (type(value).__name__, repr(value))  # repr tells 1 from 1.0 and 0.0 from -0.0
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str, value.tobytes())
    if type(value) is np.ndarray and not value.dtype.hasobject:
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()
        return ("array", value.dtype.str, value.shape, value.flags.c_contiguous, value.flags.writeable, digest)
    if isinstance(value, (tuple, list)):
        return (_Same(type(value)), tuple(_key(item, seen, attributes) for item in value))
    if isinstance(value, types.CodeType):
        return _code(value, seen)
    if isinstance(value, types.FunctionType):
        return _function(value, seen)
    if isinstance(value, Dispatcher):
        return ("compiled", repr(sorted(value.targetoptions.items())), _key(value.py_func, seen, ()))
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__, *_module_attributes(value, seen, attributes))
    return _Same(value)


def _plain(value: Any) -> bool:
    """Not an instance of a subclass, whose repr may say anything (an Enum, say)."""
    return type(value) in (bool, int, float, complex, str, bytes)


def _code(code: types.CodeType, seen: dict[int, int]) -> Hashable:
    constants = tuple(_key(constant, seen, ()) for constant in code.co_consts)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    table = getattr(code, "co_exceptiontable", b"")
    return (code.co_code, table, constants, counts, names)


def _function(function: types.FunctionType, seen: dict[int, int]) -> Hashable:
    if id(function) in seen:
        return ("seen", seen[id(function)])
    seen[id(function)] = len(seen)
    code = function.__code__
    asked = tuple(name for inner in _codes(code) for name in inner.co_names)
    return (
        _code(code, seen),
        _key(function.__defaults__, seen, asked),
        tuple((name, _key(value, seen, asked)) for name, value in (function.__kwdefaults__ or {}).items()),
        tuple(_cell(cell, seen, asked) for cell in function.__closure__ or ()),
        tuple((name, _global(function, name, seen, asked)) for name in sorted(globals_read(code))),
    )


def _cell(cell: types.CellType, seen: dict[int, int], asked: tuple[str, ...]) -> Hashable:
    try:
        return _key(cell.cell_contents, seen, asked)
    except ValueError:
        return "an empty cell"


def _global(function: types.FunctionType, name: str, seen: dict[int, int], asked: tuple[str, ...]) -> Hashable:
    if name in function.__globals__:
        return _key(function.__globals__[name], seen, asked)
    return ("builtin", name) if hasattr(builtins, name) else ("missing", name)


def _module_attributes(module: types.ModuleType, seen: dict[int, int], asked: tuple[str, ...]) -> Iterator[Hashable]:
    """What a function may read of a module: `parameters.rate` is frozen by numba just as a global is."""
    if module.__name__.partition(".")[0] in _FIXED or id(module) in seen:
        return
    seen[id(module)] = len(seen)
    for name in asked:
        if name in vars(module):
            yield (name, _key(vars(module)[name], seen, asked))
