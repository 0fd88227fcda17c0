"""Which calls of Philox a block of numbers needs, 64 at a time, and where their two results go.

Row r of column b of a block (R, B) is number n = first + r of path[b]; numbers 2q and 2q + 1 come from call q. The
calls q0 .. q0 + nq - 1 of all columns are laid out in one list, in the order that keeps neighbours in memory together:
down the columns when there are few, along the rows otherwise. The list is cut into pieces of 64 lanes, and what is
computed between `addresses` and `scatter` are plain loops over the lanes. Nothing depends on the cut, as a lane never
sees another.
"""

from __future__ import annotations

import numpy as np

from sgdsde.random.philox import exact

__all__ = ["LANES", "addresses", "calls", "padded", "scatter"]

LANES = 64
FEW = 8  # columns; doubles in a line of cache
ZERO = np.uint64(0)
U = np.uint64  # for indices: a signed one may be negative for all the compiler knows, and then loads are not packed


@exact
def calls(first, rows):
    """The first call and how many there are, for the numbers first .. first + rows - 1."""
    q0 = first >> 1
    return q0, ((first + rows - 1) >> 1) - q0 + 1


@exact
def padded(n):
    """How many lanes to compute for n: whole packs of 8, as single ones at the end of a loop take longer."""
    return n if n <= 1 else (n + 7) & ~7


@exact
def addresses(call, who, start, n, q0, nq, path):
    """Write the number of the call and the path of the lanes start .. start + n - 1 of the list; fill up with zeros."""
    B = path.shape[0]
    i = 0
    if B < FEW:
        b, q = start // nq, start % nq
        while i < n:
            run = min(n - i, nq - q)
            for j in range(run):
                call[U(i + j)] = np.uint64(q0 + q + j)
                who[U(i + j)] = path[U(b)]
            i += run
            q = 0
            b += 1
    else:
        q, b = start // B, start % B
        while i < n:
            run = min(n - i, B - b)
            for j in range(run):
                call[U(i + j)] = np.uint64(q0 + q)
                who[U(i + j)] = path[U(b + j)]
            i += run
            b = 0
            q += 1
    for i in range(n, padded(n)):
        call[U(i)] = ZERO
        who[U(i)] = ZERO


@exact
def scatter(out, z0, z1, start, n, first, q0, nq):
    """Put the two results of the lanes start .. start + n - 1 of the list where they belong, if asked for."""
    R, B = out.shape
    i = 0
    if B < FEW:
        b, q = start // nq, start % nq
        while i < n:
            run = min(n - i, nq - q)
            r = 2 * (q0 + q) - first
            for j in range(1 if r < 0 else 0, run):
                out[U(r + 2 * j), U(b)] = z0[U(i + j)]
            for j in range(run - 1 if r + 2 * run > R else run):
                out[U(r + 2 * j + 1), U(b)] = z1[U(i + j)]
            i += run
            q = 0
            b += 1
    else:
        q, b = start // B, start % B
        while i < n:
            run = min(n - i, B - b)
            r = 2 * (q0 + q) - first
            if r >= 0:
                for j in range(run):
                    out[U(r), U(b + j)] = z0[U(i + j)]
            if r + 1 < R:
                for j in range(run):
                    out[U(r + 1), U(b + j)] = z1[U(i + j)]
            i += run
            b = 0
            q += 1
