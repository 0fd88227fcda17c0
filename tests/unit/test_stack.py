"""Arrays on the stack: the length asked for, no overlap, no allocation, and an unknown length is refused."""

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from sgdsde._stack import local_array, local_words

LENGTH = 48


@numba.njit
def _total(a):
    s = 0.0
    for x in a:
        s += x
    return s


@numba.njit
def _use(n):
    """Fill and read n times; the arrays are made inside the loop, as a kernel that is inlined into one would."""
    total = 0.0
    for k in range(n):
        a = local_array(LENGTH)
        b = local_array(5)
        w = local_words(16)
        for i in range(LENGTH):
            a[i] = i
        for i in range(5):
            b[i] = 1000.0
        for i in range(16):
            w[i] = np.uint64(2**63) + np.uint64(i)
        table = a.reshape(8, 6)
        total += _total(a) + _total(b[:2]) + table[7, 5] + float(w[15] - np.uint64(2**63)) + k
    return total, a.shape[0], b.size, w.size


def test_contents_and_lengths():
    once = 47 * 48 / 2 + 2000 + 47 + 15
    assert _use(1) == (once, LENGTH, 5, 16)


def test_a_loop_does_not_eat_the_stack():
    n = 200_000  # 48 + 5 + 16 doubles each: 110 MB if the stack grew in every turn
    assert _use(n)[0] == n * (47 * 48 / 2 + 2062) + n * (n - 1) / 2


def test_nothing_is_allocated():
    assert "NRT_MemInfo_alloc" not in _use.inspect_llvm(
        _use.signatures[0] if _use.signatures else _use.compile("(int64,)")
    )


@pytest.mark.parametrize("bad", [0, -1, 8193])
def test_a_length_out_of_range_is_refused(bad):
    @numba.njit
    def use():
        return local_array(bad)[0]

    with pytest.raises(TypingError, match=r"must be in 1\.\.8192"):
        use()


def test_a_length_unknown_to_the_compiler_is_refused():
    @numba.njit
    def use(n):
        return local_words(n)[0]

    with pytest.raises(TypingError, match="must be a literal integer"):
        use(3)
