"""How a step takes blocks from the front of `work`: views that cost two instructions, where a slice and a reshape cost
twenty nanoseconds, a third of a whole step of one path.

A view does not keep `work` alive and does not check bounds: it is for the length of a kernel's call, of sizes that the
caller promised (`Scheme.work`).
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from sgdsde._jit import inline

__all__ = ["block", "rest", "zeros"]


def _view(ndim: int, shape: Any) -> Any:
    """Typing and code of a C-contiguous float64 view of `work` from element `start` on."""

    def typer(typingctx: Any, work: Any, start: Any, *sizes: Any) -> Any:
        view_type = types.Array(types.float64, ndim, "C")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            work_type, *int_types = signature.args
            source = arrayobj.make_array(work_type)(context, builder, args[0])
            first, *extent = (
                context.cast(builder, value, kind, types.intp) for value, kind in zip(args[1:], int_types)
            )
            n = shape(builder, source, first, extent)
            item = context.get_constant(types.intp, 8)
            strides = [builder.mul(item, n[1]), item] if ndim == 2 else [item]
            view = arrayobj.make_array(view_type)(context, builder)
            arrayobj.populate_array(
                view,
                data=builder.gep(source.data, [first]),
                shape=cgutils.pack_array(builder, n),
                strides=cgutils.pack_array(builder, strides),
                itemsize=item,
                meminfo=None,
            )
            return view._getvalue()

        return view_type(work, start, *sizes), codegen

    return typer


_block = _view(2, lambda builder, source, first, extent: extent)
_rest = _view(1, lambda builder, source, first, extent: [builder.sub(builder.extract_value(source.shape, 0), first)])


@intrinsic
def block(typingctx, work, start, n_rows, n_columns):
    """`work[start : start + n_rows * n_columns]` as an array (n_rows, n_columns)."""
    return _block(typingctx, work, start, n_rows, n_columns)


@intrinsic
def rest(typingctx, work, start):
    """`work[start:]`, for whom the step calls."""
    return _rest(typingctx, work, start)


@inline
def zeros(work, start, n):
    """n zeros at `work[start:]`, as an array (n,)."""
    row = rest(work, start)[:n]
    for b in range(n):
        row[b] = 0.0
    return row
