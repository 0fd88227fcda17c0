"""What a kernel is made of: a digest of everything that its machine code depends on besides its own file.

numba keeps machine code as long as the file that holds the kernel is unchanged. It does not look at functions that the
kernel inlines from other files, nor at the constants it read from them; after an edit, or an upgrade that touched only
those, it would go on serving the old code. The digest goes into numba's stamp of the cached code.
"""

from __future__ import annotations

import hashlib
import inspect
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["digest"]


def digest(function: Any) -> str:
    """Hash of the source files and constants that `function` reaches through its globals and closure."""
    found = hashlib.sha256()
    files: set[str] = set()
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        files.add(one.__code__.co_filename)
        for name, value in sorted(_used(one), key=lambda pair: pair[0]):
            inner = _python_function(value)
            if inner is not None:
                if inner.__module__.split(".")[0] == __package__:
                    waiting.append(inner)
            elif isinstance(value, types.ModuleType):
                if value.__name__.split(".")[0] == __package__ and value.__file__:
                    files.add(value.__file__)
            elif isinstance(value, (bool, int, float, str, tuple, np.generic)):
                found.update(f"{one.__qualname__} {name} {value!r}\n".encode())
    for content in sorted(map(_content, files)):
        found.update(content)
    return found.hexdigest()


def _used(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Names a function may read, with their values: globals, and variables of the functions around it."""
    codes = [function.__code__]
    for code in codes:
        codes.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        for name in code.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]
    yield from inspect.getclosurevars(function).nonlocals.items()


def _python_function(value: Any) -> types.FunctionType | None:
    """The Python source of a dispatcher or an intrinsic; None for anything else."""
    inner = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
    return inner if isinstance(inner, types.FunctionType) else None


@cache
def _content(file: str) -> bytes:
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:
        return file.encode()
