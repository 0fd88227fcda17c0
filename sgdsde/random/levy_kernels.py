"""Iterated integrals, compiled: one pass over the normal numbers of a step, O(m²) memory and O(p m²) work.

The series and its tails are those of `sgdsde.random.levy_methods`. The numbers of step k of a path, of the purpose
AUXILIARY, start at k·2**24: first M (m), then G above its diagonal row by row (m (m − 1)/2), then X_1, Y_1, X_2, Y_2, …
(m each). Every method and every number of terms finds the same number in the same place, so more terms go on from the
leading ones. Sums are taken term by term, without contraction: bits do not depend on the block.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from sgdsde._abi import AUX, AUXILIARY, BLOCK, PATHS, VECTOR
from sgdsde._jit import kernel
from sgdsde._views import matrix, vector
from sgdsde.random.levy_methods import SLOT_BITS, TABLE, choose, trigamma
from sgdsde.random.normal import fill_normals
from sgdsde.random.philox import EXACT, exact

__all__ = ["AREA", "ITO", "STRATONOVICH", "fill_integrals", "fill_ito", "fill_stratonovich", "integrals_work"]

AREA, STRATONOVICH, ITO = -1, 0, 1
DRAWN = 512  # numbers drawn at once, if the block is narrow
SQRT2 = math.sqrt(2.0)
INV_2PI = 1 / (2 * math.pi)
SQRT2_PI = math.sqrt(2.0) * math.pi
BASEL = math.pi**2 / 6
RANK_BITS = 42
SIDE_TERMS = 64
CUBE = types.float64[:, :, ::1]


def integrals_work(m: int) -> tuple[int, int]:
    """Scratch of the kernels of this page: (fixed, per path), in doubles."""
    return DRAWN, 5 * m


@exact
def _sum_terms(out, X, U, z, b0, m, k0, count, given):
    """Add the terms k0 + 1 .. k0 + count, z (2 m count, n): upper triangle of Y Xᵀ − X Yᵀ, Σ X/k and Σ Y/k²."""
    n, width = z.shape[1], out.shape[1]
    for k in range(count):
        r = 1.0 / np.float64(k0 + k + 1)
        x = 2 * m * k * n
        y = x + m * n
        xs, ys, sums = vector(z, x, m * n), vector(z, y, m * n), vector(X, 0, m * n)
        for c in range(m * n):
            xs[c] *= r
            sums[c] += xs[c]
        if given:
            squares = vector(U, 0, m * n)
            for c in range(m * n):
                squares[c] += ys[c] * r * r
        if width == 1:  # one path: along the row of the matrix
            for i in range(m - 1):
                x_i, y_i, left = xs[i], ys[i], m - 1 - i
                row = vector(out, i * m + i + 1, left)
                x_j, y_j = vector(z, x + i + 1, left), vector(z, y + i + 1, left)
                for j in range(left):
                    row[j] += y_i * x_j[j] - y_j[j] * x_i
            continue
        for i in range(m):
            x_i, y_i = vector(z, x + i * n, n), vector(z, y + i * n, n)
            for j in range(i + 1, m):
                row = vector(out, (i * m + j) * width + b0, n)
                x_j, y_j = vector(z, x + j * n, n), vector(z, y + j * n, n)
                for c in range(n):
                    row[c] += y_i[c] * x_j[c] - y_j[c] * x_i[c]


_COLUMNS = (types.int64, types.int64, types.int64, types.uint64)  # b0, b1, first, key
_WANTED = (types.int64, types.int64, types.int64, types.boolean)  # method, terms, result, given


@kernel(types.void(BLOCK, BLOCK, BLOCK, VECTOR, PATHS, *_COLUMNS, *_WANTED, VECTOR), **EXACT)
def _integrals(out, dW, H, h, path, b0, b1, first, key, method, terms, result, given, work):
    """Columns b0 .. b1 - 1, which share h: out[i m + j] = what `result` says, given H (m, B) if `given`."""
    m, n, width = dW.shape[0], b1 - b0, dW.shape[1]
    _, _, _, vector_tail, pair_tail, spread = TABLE[method]
    who = path[b0:b1]
    X, U, v = matrix(work, 0, m, n), matrix(work, m * n, m, n), matrix(work, 2 * m * n, m, n)
    at, rows = 3 * m * n, max(2 * m, DRAWN // n)
    tail = m * (m + 1) // 2
    for i in range(m):
        for c in range(n):
            X[i, c] = 0.0
            U[i, c] = 0.0
            v[i, c] = 0.0
        for j in range(i + 1, m):
            for c in range(n):
                out[i * m + j, b0 + c] = 0.0
    step = h[b0]
    scale = 1.0 / np.sqrt(step)
    if m > 1:
        per = rows // (2 * m)
        for k0 in range(0, terms, per):
            count = min(per, terms - k0)
            z = matrix(work, at, 2 * m * count, n)
            fill_normals(z, first + tail + 2 * m * k0, who, AUXILIARY, key)
            _sum_terms(out, X, U, z, b0, m, k0, count, given)
        rest = trigamma(terms + 1.0)
        if vector_tail > 0.0:
            z = matrix(work, at, m, n)
            fill_normals(z, first, who, AUXILIARY, key)
            root = np.sqrt(rest)
            for i in range(m):
                for c in range(n):
                    X[i, c] += root * z[i, c]
        if pair_tail > 0.0:
            root = np.sqrt(2.0 * rest)
            i, j = 0, 1
            for r0 in range(m, tail, rows):
                count = min(rows, tail - r0)
                z = matrix(work, at, count, n)
                fill_normals(z, first + r0, who, AUXILIARY, key)
                for r in range(count):
                    g, row = vector(z, r * n, n), vector(out, (i * m + j) * width + b0, n)
                    for c in range(n):
                        g[c] *= root
                        row[c] += g[c]
                    if spread > 0.0:
                        for c in range(n):
                            v[i, c] += g[c] * dW[j, b0 + c]
                            v[j, c] -= g[c] * dW[i, b0 + c]
                    j += 1
                    if j == m:
                        i += 1
                        j = i + 1
    squares = vector(work, at, n)
    for c in range(n):
        squares[c] = 0.0
    for i in range(m):
        x_i = vector(X, i * n, n)
        for c in range(n):
            squares[c] += dW[i, b0 + c] * dW[i, b0 + c]
            if given:  # every X_k moves by beta/k, so that Σ X_k/k becomes √2 π H; Y_k and what is left stay
                v[i, c] = (SQRT2_PI * scale * H[i, b0 + c] - x_i[c]) / BASEL
                x_i[c] = SQRT2_PI * scale * H[i, b0 + c]
    for c in range(n):
        squares[c] = spread / (step * (1.0 + np.sqrt(1.0 + squares[c] / step)))
    whole = 0.0 if result == AREA else 0.5
    for i in range(m):
        x_i, u_i, v_i = vector(X, i * n, n), vector(U, i * n, n), vector(v, i * n, n)
        w_i, row = vector(dW, i * width + b0, n), vector(out, (i * m + i) * width + b0, n)
        for c in range(n):
            row[c] = whole * w_i[c] * w_i[c]
            if result == ITO:
                row[c] -= 0.5 * step
        for j in range(i + 1, m):
            x_j, u_j, v_j = vector(X, j * n, n), vector(U, j * n, n), vector(v, j * n, n)
            w_j = vector(dW, j * width + b0, n)
            above, below = vector(out, (i * m + j) * width + b0, n), vector(out, (j * m + i) * width + b0, n)
            for c in range(n):
                total = above[c] + SQRT2 * scale * (x_i[c] * w_j[c] - x_j[c] * w_i[c])
                if given:
                    total += u_i[c] * v_j[c] - u_j[c] * v_i[c]
                else:
                    total += squares[c] * (v_i[c] * w_j[c] - v_j[c] * w_i[c])
                area, both = step * INV_2PI * total, whole * w_i[c] * w_j[c]
                above[c] = both + area
                below[c] = both - area


@exact
def _equal_run(h, b0):
    """The end of the run of columns from b0 on that share h, and therefore the method and its terms."""
    b1 = b0 + 1
    while b1 < h.shape[0] and h[b1] == h[b0]:
        b1 += 1
    return b1


@exact
def _step_integrals(aux, dW, h, path, step, key, result, work):
    m, rank, k = dW.shape[0], step >> RANK_BITS, step & ((1 << RANK_BITS) - 1)
    first = k << SLOT_BITS
    if rank > 0:
        first = (1 << 62) + ((rank & 1023) << 52) + ((k & ((1 << 28) - 1)) << SLOT_BITS)
    b0 = 0
    while b0 < h.shape[0]:
        b1 = _equal_run(h, b0)
        method, terms = choose(-1, h[b0], m, h[b0] * np.sqrt(h[b0]))
        if rank > 0:
            terms = min(terms, SIDE_TERMS)
        _integrals(aux, dW, dW, h, path, b0, b1, first, key, method, terms, result, False, work)
        b0 = b1


@kernel(AUX, **EXACT)
def fill_ito(aux, dW, h, path, step, key, p, data, work):
    """AUX kernel: aux[i m + j] = I_(i,j) = ∫∫ dW_i dW_j (Itô), W_i the earlier one, given dW; `integrals_work` scratch.

    The cheapest approximation of root mean square error h^{3/2}, which is what strong order 1 needs. Steps k below
    2**38 have numbers of their own; so have the side branches of the engine to times between steps (step number
    rank·2**42 + k, rank > 0) for k < 2**28 and rank < 2**10. As their errors do not add up, a side branch takes at
    most 64 terms, however short it is.
    """
    _step_integrals(aux, dW, h, path, step, key, ITO, work)


@kernel(AUX, **EXACT)
def fill_stratonovich(aux, dW, h, path, step, key, p, data, work):
    """AUX kernel: as `fill_ito`, aux[i m + j] = J_(i,j) = ∫∫ dW_i ∘ dW_j = I_(i,j) + ½ h δ_ij."""
    _step_integrals(aux, dW, h, path, step, key, STRATONOVICH, work)


@kernel(
    types.void(
        CUBE, CUBE, CUBE, BLOCK, PATHS, types.int64, types.uint64, types.int64, types.float64, types.int64, VECTOR
    ),
    **EXACT,
)
def fill_integrals(out, dW, H, h, path, first_step, key, method, error, result, work):
    """Many steps: out[s, i m + j, b] for step first_step + s of path[b], from dW (n, m, B) over steps h (n, B).

    Parameters
    ----------
    out : float64 (n, m*m, B)
    H : float64 (n, m, B) or (0, m, B)
        Space-time areas to respect (only by methods whose tail is exact in H: vector = 1); no rows if they are free.
    method : int64
        Row of METHODS, or -1 for the cheapest.
    error : float64
        Root mean square error of each entry; h^{3/2} if it is not positive.
    result : int64
        AREA (antisymmetric part), STRATONOVICH or ITO.
    work : float64
        `integrals_work(m)`.
    """
    given = H.shape[0] > 0
    for s in range(dW.shape[0]):
        b0 = 0
        while b0 < path.shape[0]:
            b1 = _equal_run(h[s], b0)
            wanted = error if error > 0.0 else h[s, b0] * np.sqrt(h[s, b0])
            row, terms = choose(method, h[s, b0], dW.shape[1], wanted)
            first = (first_step + s) << SLOT_BITS
            space = H[s] if given else dW[s]
            _integrals(out[s], dW[s], space, h[s], path, b0, b1, first, key, row, terms, result, given, work)
            b0 = b1
