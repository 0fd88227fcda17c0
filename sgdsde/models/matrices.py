"""Matrices in kernels: products that add to what is there, rows, and sums along rows and columns.

The product is numba's own call to SciPy's BLAS, with the factor β that `np.dot` leaves out. Sums along a row are packed
instructions (`sgdsde._sums`).
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj, linalg

from sgdsde._jit import OPTIONS
from sgdsde._sums import dot, total
from sgdsde._views import vector

__all__ = ["PLAIN", "TURNED", "add_row_sums", "add_to_rows", "column_norms", "multiply", "row", "times"]

inline = numba.njit(**{**OPTIONS, "forceinline": True})

PLAIN, TURNED = 0, 1
"""A factor as it is, or transposed."""


@intrinsic
def multiply(typingctx, out, a, a_turned, b, b_turned, beta):
    """out = op(a) op(b) + beta·out for C-contiguous matrices, op = PLAIN or TURNED; beta = 0 does not read `out`."""
    for one in (out, a, b):
        if not (isinstance(one, types.Array) and one.ndim == 2 and one.dtype == types.float64 and one.layout == "C"):
            raise TypingError(f"multiply needs C-contiguous float64 matrices, got {one}")
    linalg.ensure_blas()

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = {k: arrayobj.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 1, 3)}
        shapes = {k: cgutils.unpack_tuple(builder, array.shape) for k, array in arrays.items()}
        char, size, pointer = ir.IntType(8), context.get_value_type(types.intp), ir.IntType(8).as_pointer()
        plain, turned = ir.Constant(char, ord("n")), ir.Constant(char, ord("t"))
        is_turned = {k: builder.icmp_signed("!=", args[k + 1], args[k + 1].type(0)) for k in (1, 3)}
        inner = builder.select(is_turned[1], shapes[1][0], shapes[1][1])
        one = cgutils.alloca_once_value(builder, ir.Constant(ir.DoubleType(), 1.0))
        scale = cgutils.alloca_once_value(builder, args[5])
        # BLAS reads columns first: outᵀ = op(b)ᵀ op(a)ᵀ, and a C-contiguous b is its bᵀ.
        given = [
            (char, ir.Constant(char, ord("d"))),
            (char, builder.select(is_turned[3], turned, plain)),
            (char, builder.select(is_turned[1], turned, plain)),
            (size, shapes[0][1]),
            (size, shapes[0][0]),
            (size, inner),
            (pointer, builder.bitcast(one, pointer)),
            (pointer, builder.bitcast(arrays[3].data, pointer)),
            (size, shapes[3][1]),
            (pointer, builder.bitcast(arrays[1].data, pointer)),
            (size, shapes[1][1]),
            (pointer, builder.bitcast(scale, pointer)),
            (pointer, builder.bitcast(arrays[0].data, pointer)),
            (size, shapes[0][1]),
        ]
        function = ir.FunctionType(ir.IntType(32), [kind for kind, _ in given])
        call = cgutils.get_or_insert_function(builder.module, function, "numba_xxgemm")
        builder.call(call, [value for _, value in given])
        return context.get_dummy_value()

    return types.void(out, a, types.intp, b, types.intp, types.float64), codegen


@inline
def row(a, i):
    """Row i of a C-contiguous matrix."""
    return vector(a, i * a.shape[1], a.shape[1])


@inline
def times(out, a, x):
    """out = a x for a vector x, without the cost of a call of BLAS."""
    for j in range(a.shape[0]):
        out[j] = dot(row(a, j), x)


@inline
def add_row_sums(out, a):
    """out_j += Σ_i a_ji."""
    for j in range(a.shape[0]):
        out[j] += total(row(a, j))


@inline
def add_to_rows(a, b):
    """a_ji += b_j."""
    m, n = a.shape
    for j in range(m):
        x = row(a, j)
        y = b[j]
        for i in range(n):
            x[i] += y


@inline
def column_norms(out, a, start):
    """out_i = start + Σ_j a_ji²."""
    m, n = a.shape
    for i in range(n):
        out[i] = start
    for j in range(m):
        x = row(a, j)
        for i in range(n):
            out[i] += x[i] * x[i]
