"""Compiled functions as addresses: handing a kernel other kernels without numba's 50 µs of unboxing for each.

numba passes a first-class function as a struct of three addresses, which it looks up anew in every call from Python. A
run calls the engine many times with the same kernels, so they are looked up once (`address`) and put back together
inside (`function_at`). Whoever holds addresses must hold the dispatchers too: they own the machine code.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.experimental.function_type import _get_jit_address, _get_wrapper_address
from numba.extending import intrinsic

__all__ = ["address", "function_at"]


_found: weakref.WeakKeyDictionary[Any, tuple[Any, tuple[int, int, int]]] = weakref.WeakKeyDictionary()


def address(function: Any, signature: Any) -> tuple[int, int, int]:
    """Addresses of a kernel of this signature: C wrapper, Python object, machine code. Looked up once.

    None has the address zero, and must not be called.
    """
    if function is None:
        return 0, 0, 0
    known = _found.get(function)
    if known is None or known[0] is not signature:
        words = _get_wrapper_address(function, signature), id(function), _get_jit_address(function, signature)
        signed = np.array(words, dtype=np.uint64).view(np.int64)
        known = _found[function] = signature, (int(signed[0]), int(signed[1]), int(signed[2]))
    return known[1]


def function_at(signature: Any) -> Any:
    """An intrinsic (c_address, py_address, jit_address) -> first-class function of `signature`, for use in kernels."""
    function_type = types.FunctionType(signature)

    @intrinsic
    def build(typing_context, c_address, py_address, jit_address):
        signature_ = function_type(types.int64, types.int64, types.int64)

        def codegen(context, builder, signature, args):
            value = cgutils.create_struct_proxy(function_type)(context, builder)
            pointer = context.get_value_type(types.voidptr)
            value.c_addr, value.py_addr, value.jit_addr = (builder.inttoptr(a, pointer) for a in args)
            return value._getvalue()

        return signature_, codegen

    return build
