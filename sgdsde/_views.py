"""Views of a vector in compiled code that own nothing: no reference is counted and nothing is checked or copied.

A slice of an array counts a reference, atomically, when it is made and when it is dropped, which costs more than a
short loop over it (twenty nanoseconds against two instructions). These views do not keep their array alive: use them
inside a kernel, on arrays of its caller, of sizes that the caller promised.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj

from sgdsde._jit import inline

__all__ = ["all_zero", "matrix", "rest", "vector", "zeros"]


def _view(context: Any, builder: Any, source: Any, value: Any, start: Any, target: Any, shape: list[Any]) -> Any:
    array = arrayobj.make_array(source)(context, builder, value)
    view = arrayobj.make_array(target)(context, builder)
    item = context.get_constant(types.intp, 8)
    strides = [item] if len(shape) == 1 else [builder.mul(shape[1], item), item]
    arrayobj.populate_array(
        view,
        data=builder.gep(array.data, [start]),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=item,
        meminfo=None,
    )
    return view._getvalue()


def _checked(a: Any, *sizes: Any) -> None:
    if not (isinstance(a, types.Array) and a.dtype == types.float64 and a.layout == "C"):
        raise TypingError(f"a view needs a C-contiguous float64 array, got {a}")
    if not all(isinstance(s, types.Integer) for s in sizes):
        raise TypingError(f"a view needs integers, got {sizes}")


@intrinsic
def vector(typingctx, a, start, n):
    """The n numbers of the contiguous array `a` from number `start` on; a may have any number of axes."""
    _checked(a, start, n)
    target = types.Array(types.float64, 1, "C")

    def codegen(context, builder, signature, args):
        return _view(context, builder, signature.args[0], args[0], args[1], target, [args[2]])

    return target(a, types.intp, types.intp), codegen


@intrinsic
def matrix(typingctx, a, start, rows, columns):
    """`rows` × `columns` numbers of the contiguous array `a` from number `start` on, in C order."""
    _checked(a, start, rows, columns)
    target = types.Array(types.float64, 2, "C")

    def codegen(context, builder, signature, args):
        return _view(context, builder, signature.args[0], args[0], args[1], target, [args[2], args[3]])

    return target(a, types.intp, types.intp, types.intp), codegen


@inline
def rest(a, start):
    """What follows number `start` of the vector `a`."""
    return vector(a, start, a.shape[0] - start)


@inline
def zeros(a, start, n):
    """n zeros, at number `start` of the vector `a` and on."""
    row = vector(a, start, n)
    for b in range(n):
        row[b] = 0.0
    return row


@inline
def all_zero(a):
    """Whether every number of the contiguous array `a` is zero; the first, which mostly is not, is looked at first."""
    flat = vector(a, 0, a.size)
    if a.size > 0 and flat[0] != 0.0:
        return False
    others = 0
    for b in range(a.size):  # a sum, not a search, so that it is vectorised
        others += 1 if flat[b] != 0.0 else 0
    return others == 0
