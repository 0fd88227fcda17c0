"""An independent Philox4x32-10 in NumPy, written from the paper, to compare the compiled one with."""

import numpy as np
import pytest


def philox(c0, c1, c2, c3, k0, k1):
    """Ten rounds on Python integers, or on uint64 arrays of 32-bit words."""
    mask = 0xFFFFFFFF
    for i in range(10):
        if i:
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & mask, (p0 >> 32) ^ c3 ^ k1, p0 & mask
    return c0, c1, c2, c3


class Reference:
    """The addresses of the package, as its documentation states them."""

    philox = staticmethod(philox)

    @staticmethod
    def words(call, path, purpose, key):
        """The two 64-bit words of one call, as Python integers."""
        mask = 0xFFFFFFFF
        x = philox(call & mask, call >> 32, path & mask, (path >> 32) | (purpose << 24), key & mask, key >> 32)
        return x[0] | (x[1] << 32), x[2] | (x[3] << 32)

    @classmethod
    def word(cls, number, path, purpose, key):
        """The 64-bit word from which number `number` of a path is made."""
        return cls.words(number // 2, path, purpose, key)[number % 2]

    @classmethod
    def block_words(cls, first, rows, paths, purpose, key):
        """The words v, w of the calls first // 2 ... of each path: two uint64 arrays (calls, B)."""
        q = range(first // 2, (first + rows - 1) // 2 + 1)
        both = [[cls.words(i, int(p), purpose, key) for p in paths] for i in q]
        return np.moveaxis(np.array(both, dtype=np.uint64), 2, 0)


@pytest.fixture
def reference():
    return Reference
