"""Arrays on the stack of a kernel: small scratch of a size known when the kernel is compiled, that costs no allocation.

The array lives as long as the call of the kernel that made it: it may be passed down to other compiled functions, never
returned. Its contents are undefined at first. Keep it small (a few thousand numbers): a thread's stack is short.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["local_array", "local_words"]

MOST = 8192  # elements, 64 KiB


def _stack_array(dtype: Any, element: Any) -> Any:
    """Typing and code of an array of n elements, n a literal."""

    def typer(typingctx: Any, n: Any) -> Any:
        if not isinstance(n, types.IntegerLiteral):
            raise TypingError(f"the length of an array on the stack must be a literal integer, got {n}")
        if not 1 <= n.literal_value <= MOST:
            raise TypingError(f"the length of an array on the stack must be in 1..{MOST}, got {n.literal_value}")
        length = n.literal_value
        array_type = types.Array(dtype, 1, "C")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            memory = cgutils.alloca_once(builder, ir.ArrayType(element, length))
            memory.align = 64
            array = arrayobj.make_array(array_type)(context, builder)
            item = context.get_constant(types.intp, 8)
            arrayobj.populate_array(
                array,
                data=builder.bitcast(memory, element.as_pointer()),
                shape=cgutils.pack_array(builder, [context.get_constant(types.intp, length)]),
                strides=cgutils.pack_array(builder, [item]),
                itemsize=item,
                meminfo=None,
            )
            return array._getvalue()

        return array_type(n), codegen

    return typer


@intrinsic(prefer_literal=True)
def local_array(typingctx, n):
    """An uninitialised float64 array (n,) on the stack; `n` is a literal or a global integer constant."""
    return _local_array(typingctx, n)


@intrinsic(prefer_literal=True)
def local_words(typingctx, n):
    """An uninitialised uint64 array (n,) on the stack; `n` is a literal or a global integer constant."""
    return _local_words(typingctx, n)


_local_array = _stack_array(types.float64, ir.DoubleType())
_local_words = _stack_array(types.uint64, ir.IntType(64))
