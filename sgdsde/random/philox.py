"""Philox4x32-10: a function from a counter and a key to 128 random bits. The one source of randomness of the package.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11 (2011), section
3.3: ten rounds of two 32 x 32 -> 64 bit products. It passes BigCrush, and its published answers are in the tests. There
is no state: random number n of a path is computed from its address, so any part of any path can be had alone, on any
thread.

The address of one call:

    key      low and high word of the seed
    c0, c1   low and high word of the number q >= 0 of the call
    c2       low word of the path
    c3       bits 32..55 of the path, and the purpose (0..255) in the eight bits above them

Different seeds, paths, purposes or calls never meet in one address: it is written down, not hashed.

Words are uint64 that hold 32 bits, and so is every constant (numba makes a float of uint64 and int64): in this form a
loop over addresses becomes packed instructions. `exact` compiles what is inlined in such loops.
"""

from __future__ import annotations

import numba
import numpy as np

from sgdsde._jit import OPTIONS

__all__ = ["EXACT", "MOST_PATHS", "MOST_PURPOSES", "exact", "philox4x32_10", "words"]

# No contraction here: products and sums are rounded one by one, as IEEE 754 says, so that a random number has the same
# bits in a packed loop and alone, with and without FMA instructions, on every processor.
EXACT = {"fastmath": False}
exact = numba.njit(**{**OPTIONS, **EXACT, "forceinline": True})

MOST_PATHS = 2**56
MOST_PURPOSES = 2**8

M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)  # the multipliers
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)  # added to the key between rounds
LOW, LOW24, LOW8 = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFF), np.uint64(0xFF)
BITS24, BITS32 = np.uint64(24), np.uint64(32)


@exact
def philox4x32_10(c0, c1, c2, c3, k0, k1):
    """Four random 32-bit words for the counter (c0, c1, c2, c3) and the key (k0, k1); all are uint64 below 2**32."""
    for _ in range(10):
        p0 = M0 * (c0 & LOW)  # what is above 32 bits in c0..c3 is left there, as no product looks at it
        p1 = M1 * (c2 & LOW)
        c0, c1, c2, c3 = (p1 >> BITS32) ^ c1 ^ k0, p1, (p0 >> BITS32) ^ c3 ^ k1, p0
        k0 = (k0 + W0) & LOW
        k1 = (k1 + W1) & LOW
    return c0 & LOW, c1 & LOW, c2 & LOW, c3 & LOW


@exact
def words(call, path, purpose, key):
    """Two random 64-bit words: call number `call` of `path` for `purpose`; all are uint64."""
    c3 = ((path >> BITS32) & LOW24) | ((purpose & LOW8) << BITS24)
    x0, x1, x2, x3 = philox4x32_10(call & LOW, call >> BITS32, path & LOW, c3, key & LOW, key >> BITS32)
    return x0 | (x1 << BITS32), x2 | (x3 << BITS32)
