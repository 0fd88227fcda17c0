"""Sums of products in packed instructions, in an order that is fixed: eight lanes, added up in pairs at the end.

A compiler that may not reorder a sum adds its terms one by one, eight times slower. Here the order is written down
instead of left to the compiler, and is the same on every machine, whatever the width of its registers; a product and
the sum it goes into are one rounding where the machine has it, as everywhere in kernels.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["LANES", "combine", "dot", "total"]

LANES = 8
_LANES = ir.VectorType(ir.DoubleType(), LANES)
_CONTRACT = ("contract",)


def _vectors(*arrays: Any) -> None:
    for a in arrays:
        if not (isinstance(a, types.Array) and a.ndim == 1 and a.dtype == types.float64 and a.layout == "C"):
            raise TypingError(f"a sum in lanes needs contiguous float64 vectors, got {a}")


def _data(context: Any, builder: Any, signature: Any, args: Any, k: int) -> tuple[Any, Any]:
    array = arrayobj.make_array(signature.args[k])(context, builder, args[k])
    return array.data, cgutils.unpack_tuple(builder, array.shape)[0]


def _load(builder: Any, data: Any, at: Any) -> Any:
    pointer = builder.bitcast(builder.gep(data, [at]), _LANES.as_pointer())
    return builder.load(pointer, align=8)


def _halves(builder: Any, lanes: Any) -> Any:
    """((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))."""
    width = LANES
    while width > 1:
        width //= 2
        index = ir.VectorType(ir.IntType(32), width)
        low = builder.shuffle_vector(lanes, lanes, ir.Constant(index, list(range(width))))
        high = builder.shuffle_vector(lanes, lanes, ir.Constant(index, list(range(width, 2 * width))))
        lanes = builder.fadd(low, high)
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


def _sum(context: Any, builder: Any, x: Any, y: Any, n: Any) -> Any:
    """Σ_k x_k y_k, or Σ_k x_k without y: whole groups of eight in lanes, what is left one by one."""
    size = n.type
    lanes = cgutils.alloca_once_value(builder, ir.Constant(_LANES, [0.0] * LANES))
    groups = builder.lshr(n, size(3))
    with cgutils.for_range(builder, groups) as loop:
        at = builder.mul(loop.index, size(LANES))
        term = _load(builder, x, at)
        if y is not None:
            term = builder.fmul(term, _load(builder, y, at), flags=_CONTRACT)
        builder.store(builder.fadd(builder.load(lanes), term, flags=_CONTRACT), lanes)
    whole = builder.mul(groups, size(LANES))
    rest = cgutils.alloca_once_value(builder, _halves(builder, builder.load(lanes)))
    with cgutils.for_range(builder, n, start=whole) as loop:
        one = builder.load(builder.gep(x, [loop.index]))
        if y is not None:
            one = builder.fmul(one, builder.load(builder.gep(y, [loop.index])), flags=_CONTRACT)
        builder.store(builder.fadd(builder.load(rest), one, flags=_CONTRACT), rest)
    return builder.load(rest)


@intrinsic
def dot(typingctx, x, y):
    """Σ_k x_k y_k of two vectors, as long as x is."""
    _vectors(x, y)

    def codegen(context, builder, signature, args):
        data, n = _data(context, builder, signature, args, 0)
        return _sum(context, builder, data, _data(context, builder, signature, args, 1)[0], n)

    return types.float64(x, y), codegen


@intrinsic
def total(typingctx, x):
    """Σ_k x_k of a vector."""
    _vectors(x)

    def codegen(context, builder, signature, args):
        data, n = _data(context, builder, signature, args, 0)
        return _sum(context, builder, data, None, n)

    return types.float64(x), codegen


@intrinsic
def combine(typingctx, out, at, c, first, apart, rows, start, wide, count):
    """out[at : at + 8] = Σ_j c[first + j·apart] rows[start + j·wide : + 8] over j < count; nothing is checked.

    Eight numbers are read of each row and written, whatever is meant: arrays must have room for them.
    """
    _vectors(out, c, rows)

    def codegen(context, builder, signature, args):
        target, coefficients, lines = (_data(context, builder, signature, args, k)[0] for k in (0, 2, 5))
        _, place, _, from_, apart_, _, start_, wide_, n = args
        lanes = cgutils.alloca_once_value(builder, ir.Constant(_LANES, [0.0] * LANES))
        none = ir.Constant(_LANES, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        with cgutils.for_range(builder, n) as loop:
            one = builder.load(builder.gep(coefficients, [builder.add(from_, builder.mul(loop.index, apart_))]))
            same = builder.insert_element(none, one, ir.Constant(ir.IntType(32), 0))
            same = builder.shuffle_vector(same, none, zeros)
            row = _load(builder, lines, builder.add(start_, builder.mul(loop.index, wide_)))
            product = builder.fmul(same, row, flags=_CONTRACT)
            builder.store(builder.fadd(builder.load(lanes), product, flags=_CONTRACT), lanes)
        pointer = builder.bitcast(builder.gep(target, [place]), _LANES.as_pointer())
        builder.store(builder.load(lanes), pointer, align=8)
        return context.get_dummy_value()

    size = types.intp
    return types.void(out, size, c, size, size, rows, size, size, size), codegen
