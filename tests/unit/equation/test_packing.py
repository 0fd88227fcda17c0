"""args go into two flat arrays and come out of them in compiled code with every bit and type."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sgdsde import ArgumentError
from sgdsde.equation.packing import INTRINSICS, clean_args, layout, pack, unpack_source

numbers = st.floats(width=64) | st.integers(-(2**63), 2**63 - 1) | st.booleans()
tables = st.sampled_from([np.float64, np.int64, np.bool_]).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
)
entries = st.recursive(numbers | tables, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


def as_bits(value):
    """A value such that equality means equal types, shapes and bits."""
    if isinstance(value, tuple):
        return tuple(as_bits(one) for one in value)
    array = np.asarray(value)
    return (array.dtype.str, array.shape, array.tobytes())


def unpacked(args):
    """What the source reads, run in Python with stand-ins for the intrinsics."""
    p, data = pack(args)
    kinds = {"f": np.float64, "i": np.int64, "b": np.bool_}

    def array_at(letter):
        def read(data, start, shape):
            count = int(np.prod(shape))
            return data[start:].view(kinds[letter])[:count].reshape(shape)

        return read

    space = {f"array_{letter}": array_at(letter) for letter in kinds}
    space["int_bits"] = lambda number: int(np.float64(number).view(np.int64))
    space |= {"p": p, "data": data}
    return tuple(eval(expression, space) for expression in unpack_source(layout(args)))


@given(st.lists(entries, max_size=4).map(tuple))
def test_round_trip(args):
    clean = clean_args("args", args)
    assert as_bits(clean) == as_bits(args)
    assert as_bits(unpacked(clean)) == as_bits(args)


def test_round_trip_compiled():
    args = (
        -0.0,
        -(2**62) - 1,
        True,
        np.array([[1.0, np.nan, -0.0]]),
        np.arange(24).reshape(2, 3, 4) - 2**60,
        (np.array([True, False, True] * 5), (np.zeros((0, 3)), False)),
    )
    source = f"def read(p, data): return ({', '.join(unpack_source(layout(args)))})"
    space = dict(INTRINSICS)
    exec(source, space)
    read = numba.njit(space["read"])

    @numba.njit
    def copies(p, data):  # nothing that points into data may leave compiled code
        a, b, c, d, e, (f, (g, h)) = read(p, data)
        return a, b, c, d[:, ::-1].copy(), e[:, ::2, ::3].copy(), (f[::2].copy(), (g[:, 1:].copy(), h))

    a, b, c, d, e, (f, (g, h)) = args
    wanted = (a, b, c, d[:, ::-1], e[:, ::2, ::3], (f[::2], (g[:, 1:], h)))
    assert as_bits(copies(*pack(args))) == as_bits(wanted)


def test_layout_tells_types_but_not_lengths():
    assert layout((1.0, np.ones(3))) == layout((2.0, np.ones(5)))
    for one, two in ((1.0, 1), (1, True), (np.ones(3), np.ones((3, 1))), (np.ones(3), np.ones(3, int)), ((1.0,), 1.0)):
        assert layout((one,)) != layout((two,))


@pytest.mark.parametrize(
    "value, wanted",
    [
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.array(2.5), 2.5),
        (np.array([1, 2], dtype=np.uint8), np.array([1, 2])),
        (np.array([1.5], dtype=np.float32), np.array([1.5])),
    ],
)
def test_other_widths_are_widened(value, wanted):
    assert as_bits(clean_args("args", [value])) == as_bits((wanted,))


@pytest.mark.parametrize("value", ["a", None, 1j, {}, [1.0], np.array(["a"]), np.array([1j]), np.datetime64("2020")])
def test_refused(value):
    with pytest.raises(ArgumentError, match=r"args\[1\] must be a number, a bool, an array"):
        clean_args("args", (1.0, value))


def test_too_large_for_64_bits():
    for value in (np.array([2**63], dtype=np.uint64), np.uint64(2**64 - 1)):
        with pytest.raises(ArgumentError, match=r"args\[0\] must fit into 64 bits"):
            clean_args("args", (value,))
