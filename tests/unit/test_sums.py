"""Sums in lanes against the same sums one by one, for every length around a whole number of lanes."""

import numba
import numpy as np
import pytest
from numba import types

from sgdsde._jit import kernel_uncached
from sgdsde._sums import LANES, combine, dot, total

VECTOR = types.float64[::1]
SIZE = types.intp


@pytest.fixture(scope="module")
def sums():
    @kernel_uncached(types.float64(VECTOR, VECTOR))
    def of_products(x, y):
        return dot(x, y)

    @kernel_uncached(types.float64(VECTOR))
    def of_numbers(x):
        return total(x)

    @kernel_uncached(types.void(VECTOR, SIZE, VECTOR, SIZE, SIZE, VECTOR, SIZE, SIZE, SIZE))
    def of_rows(out, at, c, first, apart, rows, start, wide, count):
        combine(out, at, c, first, apart, rows, start, wide, count)

    return of_products, of_numbers, of_rows


@pytest.mark.parametrize("n", [*range(0, 2 * LANES + 2), 100])
def test_of_products_and_of_numbers(sums, n):
    """Whole numbers: every sum is exact, so a term that is missing or counted twice shows."""
    rng = np.random.default_rng(n)
    x, y = rng.integers(-9, 9, (2, n)).astype(float)
    assert sums[0](x, y) == x @ y
    assert sums[1](x) == x.sum()


def test_the_order_is_the_one_that_is_written_down(sums):
    """Lane by lane, then halves, then what is left: bit for bit, without contraction for a sum of numbers."""
    x = np.random.default_rng(0).normal(size=3 * LANES + 5)
    lanes = x[: 3 * LANES].reshape(3, LANES).cumsum(axis=0)[-1]
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    wanted = lanes[0]
    for one in x[3 * LANES :]:
        wanted += one
    assert sums[1](x) == wanted != x[::-1].cumsum()[-1]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_of_rows(sums, count):
    rng = np.random.default_rng(count)
    wide = LANES + 3
    c, rows = rng.integers(-9, 9, 40).astype(float), rng.integers(-9, 9, 7 * wide).astype(float)
    out = np.full(20, 0.5)
    sums[2](out, 4, c, 2, 3, rows, wide, wide, count)
    wanted = np.full(20, 0.5)
    wanted[4 : 4 + LANES] = sum((c[2 + 3 * j] * rows[(1 + j) * wide :][:LANES] for j in range(count)), np.zeros(LANES))
    np.testing.assert_array_equal(out, wanted)


def test_other_arrays_are_refused_when_compiled():
    with pytest.raises(numba.TypingError, match="contiguous float64 vectors"):
        numba.njit(lambda x: dot(x, x))(np.ones(4, dtype=np.float32))
    with pytest.raises(numba.TypingError, match="contiguous float64 vectors"):
        numba.njit(lambda x: total(x))(np.ones((2, 2)))
