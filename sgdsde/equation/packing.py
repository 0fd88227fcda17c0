"""An equation's `args` in the two flat arrays that kernels read: numbers in p, arrays in data. Every bit is kept.

A float stands in p as it is, an int and a bool by their 64 bits; an array stands in data, of float64, int64 or bool
(eight to a double), and p says where it starts and how long each axis is. So new values, and new lengths, need no new
code; a new type or number of axes does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from sgdsde._check import show
from sgdsde._errors import ArgumentError

__all__ = ["INTRINSICS", "clean_args", "layout", "pack", "unpack_source"]

# Letter in a layout -> NumPy and numba type.
_KINDS = {"f": (np.float64, types.float64), "i": (np.int64, types.int64), "b": (np.bool_, types.boolean)}


def clean_args(name: str, args: Any) -> tuple[Any, ...]:
    """A copy: a tuple of floats, ints, bools, read-only arrays of those, and tuples of such.

    Raises
    ------
    ArgumentError
        If `args` is no tuple or list, or holds anything else; the message names the entry.
    """
    if not isinstance(args, (tuple, list)):
        raise ArgumentError(f"{name} must be a tuple of what the functions take after t and y, got {show(args)}")
    return tuple(_clean(f"{name}[{k}]", entry) for k, entry in enumerate(args))


def _clean(name: str, entry: Any) -> Any:
    if isinstance(entry, tuple):
        return tuple(_clean(f"{name}[{k}]", inner) for k, inner in enumerate(entry))
    if isinstance(entry, (bool, int, float, np.generic)) or isinstance(entry, np.ndarray):
        array = np.asarray(entry)
        if array.dtype.kind in "biuf":
            dtype = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}[array.dtype.kind]
            if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
                raise ArgumentError(f"{name} must fit into 64 bits with a sign, got {show(entry)}")
            if array.ndim == 0:
                return array.astype(dtype).item()
            clean: np.ndarray = np.array(array, dtype=dtype, order="C")
            clean.flags.writeable = False
            return clean
    raise ArgumentError(
        f"{name} must be a number, a bool, an array of those or a tuple of such, got {show(entry)}; "
        "other objects can be captured by the functions themselves (a closure)"
    )


def layout(args: Sequence[Any]) -> tuple[Hashable, ...]:
    """Types of clean args as a key: 'f', 'i', 'b', ('f', ndim) for an array, a tuple of these for a tuple."""
    return tuple(_kind(entry) for entry in args)


def _kind(entry: Any) -> Hashable:
    if isinstance(entry, tuple):
        return ("tuple", *layout(entry))
    if isinstance(entry, np.ndarray):
        return (entry.dtype.kind, entry.ndim)
    return "b" if isinstance(entry, bool) else "i" if isinstance(entry, int) else "f"


def pack(args: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """p and data of clean args, as `unpack_source` reads them."""
    numbers: list[Any] = []
    arrays: list[np.ndarray] = []
    start = 0
    for entry in _flat(args):
        if isinstance(entry, np.ndarray):
            flat = np.zeros(-(-entry.nbytes // 8))
            flat.view(np.uint8)[: entry.nbytes] = entry.reshape(-1).view(np.uint8)
            numbers.extend((start, *entry.shape))
            arrays.append(flat)
            start += flat.size
        else:
            numbers.append(entry)
    p = np.empty(len(numbers))
    for k, number in enumerate(numbers):
        if isinstance(number, float):
            p[k] = number
        else:
            p.view(np.int64)[k] = number
    return p, np.concatenate(arrays) if arrays else np.zeros(0)


def _flat(args: Sequence[Any]) -> Iterator[Any]:
    for entry in args:
        if isinstance(entry, tuple):
            yield from _flat(entry)
        else:
            yield entry


def unpack_source(kinds: Sequence[Any]) -> list[str]:
    """One Python expression for each of the args of this layout, over p and data and the names in INTRINSICS."""
    return _expressions(kinds, [0])


def _expressions(kinds: Sequence[Any], place: list[int]) -> list[str]:
    return [_expression(kind, place) for kind in kinds]


def _expression(kind: Any, place: list[int]) -> str:
    at = place[0]
    if kind == "f":
        place[0] += 1
        return f"p[{at}]"
    if kind in ("i", "b"):
        place[0] += 1
        return f"int_bits(p[{at}])" if kind == "i" else f"(int_bits(p[{at}]) != 0)"
    if kind[0] == "tuple":
        return "(" + "".join(f"{inner}, " for inner in _expressions(kind[1:], place)) + ")"
    letter, ndim = kind
    place[0] += 1 + ndim
    shape = "".join(f"int_bits(p[{at + 1 + axis}]), " for axis in range(ndim))
    return f"array_{letter}(data, int_bits(p[{at}]), ({shape}))"


@intrinsic
def _int_bits(typingctx, number):
    """The 64 bits of a double as an int."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def _array_at(dtype: Any) -> Any:
    """An intrinsic f(data, start, shape): the array of that shape that starts at data[start], not copied."""

    @intrinsic
    def array_at(typingctx, data, start, shape):
        array_type = types.Array(dtype, len(shape), "C")

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source = arrayobj.make_array(signature.args[0])(context, builder, args[0])
            first = builder.gep(source.data, [args[1]])
            result = arrayobj.make_array(array_type)(context, builder)
            pointer = builder.bitcast(first, context.get_data_type(dtype).as_pointer())
            item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(dtype)))
            lengths = cgutils.unpack_tuple(builder, args[2], len(shape))
            strides = [item]
            for length in reversed(lengths[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            arrayobj.populate_array(
                result,
                data=pointer,
                shape=cgutils.pack_array(builder, lengths),
                strides=cgutils.pack_array(builder, strides),
                itemsize=item,
                meminfo=None,
            )
            return result._getvalue()

        return array_type(data, types.int64, types.UniTuple(types.int64, len(shape))), codegen

    return array_at


INTRINSICS = {"int_bits": _int_bits} | {f"array_{letter}": _array_at(kind) for letter, (_, kind) in _KINDS.items()}


def numba_types(kinds: Sequence[Any]) -> tuple[Any, ...]:
    """numba's types of the args of this layout."""
    return tuple(_numba_type(kind) for kind in kinds)


def _numba_type(kind: Any) -> Any:
    if isinstance(kind, str):
        return _KINDS[kind][1]
    if kind[0] == "tuple":
        return types.BaseTuple.from_types(numba_types(kind[1:]))
    return types.Array(_KINDS[kind[0]][1], kind[1], "C")
