"""Random indices by their address: single ones with replacement, and subsets without.

A 64-bit word w becomes an integer below n by the upper half of the product, floor(w n / 2**64) (D. Lemire, "Fast
random integer generation in an interval", ACM TOMACS 29 (2019) 3, without his rejection, as number k of a path is made
from word k alone). Each of the n values has probability 1/n up to a relative error of n / 2**64.
"""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import BLOCK, PATHS, VECTOR
from sgdsde._jit import kernel
from sgdsde._stack import local_array, local_words
from sgdsde.random._lanes import LANES, addresses, calls, padded, scatter
from sgdsde.random.philox import BITS32, EXACT, LOW, exact, words

__all__ = ["fill_indices", "fill_subsets", "subset_work"]

ONE = np.uint64(1)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: multiplying by it spreads neighbours over a table
ABSENT = -1.0


@exact
def _below(w, n):
    """floor(w n / 2**64) for uint64 w and n <= 2**53, by products of 32-bit halves."""
    w0, w1 = w & LOW, w >> BITS32
    n0, n1 = n & LOW, n >> BITS32
    cross = w1 * n0
    middle = ((w0 * n0) >> BITS32) + (cross & LOW) + w0 * n1
    return w1 * n1 + (cross >> BITS32) + (middle >> BITS32)


@kernel(types.void(BLOCK, types.int64, PATHS, types.int64, types.uint64, types.int64), **EXACT)
def fill_indices(out, first, path, purpose, key, n):
    """out[r, b] = index number first + r of path[b], uniform in 0 .. n-1, as a float64; 1 <= n <= 2**53.

    The other arguments are those of `fill_normals`, and so is the promise: a block may be cut in any way.
    """
    R, B = out.shape
    call, who = local_words(LANES), local_words(LANES)
    z0, z1 = local_array(LANES), local_array(LANES)
    stream, below = np.uint64(purpose), np.uint64(n)
    q0, nq = calls(first, R)
    for start in range(0, nq * B, LANES):
        lanes = min(LANES, nq * B - start)
        addresses(call, who, start, lanes, q0, nq, path)
        for i in range(padded(lanes)):
            v, w = words(call[i], who[i], stream, key)
            z0[i] = np.float64(_below(v, below))
            z1[i] = np.float64(_below(w, below))
        scatter(out, z0, z1, start, lanes, first, q0, nq)


def subset_work(size: int) -> int:
    """Scratch that `fill_subsets` needs for subsets of `size` indices, in doubles."""
    slots = 2
    while slots < 2 * size:
        slots *= 2
    return 2 * slots


@exact
def _slot(keys, t, shift):
    """Where position t stands in the table, or the empty slot where it would be put."""
    last = np.uint64(keys.shape[0] - 1)
    i = (np.uint64(t) * GOLDEN) >> shift
    while keys[i] != ABSENT and keys[i] != np.float64(t):
        i = (i + ONE) & last
    return i


@kernel(types.void(BLOCK, types.int64, PATHS, types.int64, types.uint64, types.int64, VECTOR), **EXACT)
def fill_subsets(out, first, path, purpose, key, n, work):
    """out[:, b] = S different indices out of 0 .. n-1 for path[b], as float64: the start of a random permutation.

    Parameters
    ----------
    out : float64 (S, B)
        1 <= S <= n. Every subset is equally likely, and every order of it; S = n gives a permutation of all indices.
    first : int64
        Element s is made from word number first + s of the path, so the k-th subset of a path has first = k S.
    path, purpose, key
        As for `fill_normals`.
    n : int64
        At most 2**53.
    work : float64 (at least subset_work(S),)
        Scratch; contents neither matter on entry nor mean anything on return.

    The shuffle of Fisher and Yates (D. E. Knuth, TAOCP vol. 2, section 3.4.2, algorithm P), stopped after S exchanges.
    Only the positions that have been changed are stored, in a table with open addressing: O(S) time and memory for
    any n.
    """
    S, B = out.shape
    slots, shift = 2, np.uint64(63)
    while slots < 2 * S:
        slots *= 2
        shift -= ONE
    keys, values = work[:slots], work[slots : 2 * slots]
    stream = np.uint64(purpose)
    v = w = np.uint64(0)
    for b in range(B):
        for i in range(slots):
            keys[i] = ABSENT
        for s in range(S):
            number = first + s
            odd = number & 1
            if s == 0 or not odd:
                v, w = words(np.uint64(number >> 1), path[b], stream, key)
            word = w if odd else v
            t = s + np.int64(_below(word, np.uint64(n - s)))
            there = _slot(keys, t, shift)
            out[s, b] = np.float64(t) if keys[there] == ABSENT else values[there]
            here = _slot(keys, s, shift)
            moved = np.float64(s) if keys[here] == ABSENT else values[here]
            keys[there] = np.float64(t)  # position s is never looked at again: what it held goes to position t
            values[there] = moved
