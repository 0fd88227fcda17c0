"""A Brownian path as a tree of halved intervals: each node's increment W and space-time area H, from its address.

The root is the whole span T: W ~ N(0, T), H ~ N(0, T/12), independent. A node of length h with (W, H) is halved by two
normals z₁, z₂ for each component,

    W₁ = W/2 + 3H/2 + Z      H₁ = H/4 − Z/2 + N      Z = √(h/16) z₁
    W₂ = W − W₁              H₂ = H/4 − Z/2 − N      N = √(h/48) z₂

which is the exact law (J. Foster, T. Lyons, H. Oberhauser, SIAM J. Numer. Anal. 58 (2020) 1393). Node i of level l has
the numbers 2m(2^l + i) … of the purpose DRIVING for its halves, the root itself those of node 0: W first, H after it
(z₁ before z₂). So any node is found in its level's number of halvings, and nothing depends on what was asked before.
Level 48 is the resolution of time. Sums are not contracted: a node has the same bits however it is reached.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from sgdsde._abi import BLOCK, DRIVING, INTS, PATHS
from sgdsde._jit import kernel
from sgdsde.random.normal import fill_normals
from sgdsde.random.philox import EXACT, exact

__all__ = ["DEPTH", "fill_intervals", "level_range"]

DEPTH = 48
TICKS = 1 << DEPTH
R48, R12 = 1 / math.sqrt(48), 1 / math.sqrt(12)
CUBE = types.float64[:, :, ::1]


def level_range(
    level: int, i0: int, i1: int, m: int, span: float, path: np.ndarray, key: int
) -> tuple[np.ndarray, np.ndarray]:
    """(W, H), each (i1 − i0, m, B): the nodes i0 .. i1 − 1 of a level. Cost: twice their number, and the level."""
    B = path.size

    def draw(first: int, nodes: int) -> np.ndarray:
        out = np.empty((2 * m * nodes, B))
        fill_normals(out, 2 * m * first, path, DRIVING, np.uint64(key))
        return out.reshape(nodes, 2, m, B)

    z, h = draw(0, 1), span
    W, H, low = math.sqrt(h) * z[:, 0], math.sqrt(h) * R12 * z[:, 1], 0
    for l in range(level):
        shift = level - l
        keep = slice((i0 >> shift) - low, ((i1 - 1) >> shift) + 1 - low)
        W, H, low = W[keep], H[keep], i0 >> shift
        z, root = draw((1 << l) + low, len(W)), math.sqrt(h)
        Z, N = 0.25 * root * z[:, 0], R48 * root * z[:, 1]
        left, half = 0.5 * W + 1.5 * H + Z, 0.25 * H - 0.5 * Z
        W = np.stack([left, W - left], axis=1).reshape(-1, m, B)
        H = np.stack([half + N, half - N], axis=1).reshape(-1, m, B)
        low, h = 2 * low, 0.5 * h
    keep = slice(i0 - low, i1 - low)
    return W[keep], H[keep]


@exact
def _halve(W, H, W2, H2, z, l, i, h, path, key):
    """The node (W, H), number i of level l, becomes its left half; the right half goes to (W2, H2)."""
    m, B = W.shape
    fill_normals(z, 2 * m * ((1 << l) + i), path, DRIVING, key)
    root = np.sqrt(h)
    for j in range(m):
        for b in range(B):
            Z, N = 0.25 * root * z[j, b], R48 * root * z[m + j, b]
            left, half = 0.5 * W[j, b] + 1.5 * H[j, b] + Z, 0.25 * H[j, b] - 0.5 * Z
            W2[j, b] = W[j, b] - left
            H2[j, b] = half - N
            W[j, b] = left
            H[j, b] = half + N


@exact
def _copy(to, a):
    for j in range(a.shape[0]):
        for b in range(a.shape[1]):
            to[j, b] = a[j, b]


@exact
def _append(W, J, length, W1, H1, h1):
    """The interval (W, J = ∫ (W(u) − W(start)) du) of a length, with a node of length h1 after it."""
    for j in range(W.shape[0]):
        for b in range(W.shape[1]):
            J[j, b] += h1 * (W[j, b] + (0.5 * W1[j, b] + H1[j, b]))
            W[j, b] += W1[j, b]
    return length + h1


@exact
def _prepend(W, J, length, W1, H1, h1):
    """The same with the node before it."""
    for j in range(W.shape[0]):
        for b in range(W.shape[1]):
            J[j, b] += h1 * (0.5 * W1[j, b] + H1[j, b]) + length * W1[j, b]
            W[j, b] += W1[j, b]
    return length + h1


@kernel(
    types.void(
        CUBE, CUBE, INTS, INTS, types.float64, PATHS, types.uint64, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK
    ),
    **EXACT,
)
def fill_intervals(out_W, out_H, start, stop, span, path, key, W, H, W2, H2, WR, HR, z):
    """out_W[q], out_H[q] (m, B): increment and space-time area from tick start[q] to tick stop[q] of 2**48 in `span`.

    The smallest node that holds the interval is found by halving; then the end of its left half and the beginning of
    its right half are put together from whole nodes, from the middle outwards. Scratch: W … HR (m, B), z (2m, B).
    """
    m, B = W.shape
    for q in range(start.shape[0]):
        a, c = start[q], stop[q]
        sum_W, sum_J = out_W[q], out_H[q]
        for j in range(m):
            for b in range(B):
                sum_W[j, b] = 0.0
                sum_J[j, b] = 0.0
        if a >= c:
            continue
        fill_normals(z, 0, path, DRIVING, key)
        for j in range(m):
            for b in range(B):
                W[j, b] = np.sqrt(span) * z[j, b]
                H[j, b] = np.sqrt(span) * R12 * z[m + j, b]
        l, i, h, low, ticks = 0, 0, span, 0, TICKS
        while not (a == low and c == low + ticks):
            middle = low + ticks // 2
            if a < middle and c > middle:
                break
            _halve(W, H, W2, H2, z, l, i, h, path, key)
            l, i, h, ticks = l + 1, 2 * i, 0.5 * h, ticks // 2
            if a >= middle:
                _copy(W, W2)
                _copy(H, H2)
                i, low = i + 1, middle
        if a == low and c == low + ticks:
            _copy(sum_W, W)
            _copy(sum_J, H)
            continue
        _halve(W, H, WR, HR, z, l, i, h, path, key)
        l, i, h, ticks = l + 1, 2 * i, 0.5 * h, ticks // 2
        length = 0.0
        right, right_low = i + 1, low + ticks
        depth, half, size = l, h, ticks
        while a > low:  # [a, low + ticks) at the end of the left half
            _halve(W, H, W2, H2, z, l, i, h, path, key)
            l, i, h, ticks = l + 1, 2 * i, 0.5 * h, ticks // 2
            if a < low + ticks:
                length = _prepend(sum_W, sum_J, length, W2, H2, h)
            else:
                _copy(W, W2)
                _copy(H, H2)
                i, low = i + 1, low + ticks
        length = _prepend(sum_W, sum_J, length, W, H, h)
        l, i, h, low, ticks = depth, right, half, right_low, size
        while c < low + ticks:  # [low, c) at the beginning of the right half
            _halve(WR, HR, W2, H2, z, l, i, h, path, key)
            l, i, h, ticks = l + 1, 2 * i, 0.5 * h, ticks // 2
            if c > low + ticks:
                length = _append(sum_W, sum_J, length, WR, HR, h)
                _copy(WR, W2)
                _copy(HR, H2)
                i, low = i + 1, low + ticks
        length = _append(sum_W, sum_J, length, WR, HR, h)
        for j in range(m):
            for b in range(B):
                sum_J[j, b] = sum_J[j, b] / length - 0.5 * sum_W[j, b]
