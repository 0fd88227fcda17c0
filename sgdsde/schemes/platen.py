"""Platen's explicit method of weak order 2, for any noise.

    ΔŴ^j  = ±√(3h) with probability 1/6 each, else 0: by |ΔW^j| > 0.967 √h and the sign of ΔW^j
    V^rj  = ±h with probability ½ for r < j;  V^jr = −V^rj;  V^jj = −h
    Υ     = Y + a h + Σ_j b^j ΔŴ^j,     R^j± = Y + a h ± b^j √h,     U^r± = Y ± b^r √h
    Y'    = Y + ½[a + a(t+h, Υ)] h
          + ¼ Σ_j  [b^j(t+h, R^j+) + b^j(t+h, R^j−) + 2 b^j] ΔŴ^j
          + ¼ Σ_j  [b^j(t+h, R^j+) − b^j(t+h, R^j−)] [(ΔŴ^j)² + V^jj] / √h
          + ¼ Σ_j≠r [b^j(t, U^r+) + b^j(t, U^r−) − 2 b^j] ΔŴ^j
          + ¼ Σ_j≠r [b^j(t, U^r+) − b^j(t, U^r−)] [ΔŴ^j ΔŴ^r + V^rj] / √h                  Kloeden & Platen (15.1.3)

a, b: Itô drift and columns at (t, Y). The book has no time in it; here time is one more component, of drift 1 and no
noise, so a support with a h stands at t + h and one without at t, and the order stays. Additive noise (15.1.4):

    Y' = Y + ½[a + a(t+h, Υ)] h + ½ Σ_j [b^j(t) + b^j(t+h)] ΔŴ^j

Weak order 2.0 for every kind of noise. It has no strong order: ΔŴ has correlation 0.87 with ΔW and V none, so paths do
not converge. As a monotone function of ΔW, ΔŴ repeats from `dW` and keeps runs that share noise close. V is ±h: with
±√h, as has been shipped elsewhere, second moments converge to something else, and means do not show it.

Where noise commutes the V cancel, up to higher terms of mean zero, and are left out: general noise alone asks for
`aux`, whose row j(j − 1)/2 + r is V^rj, r < j. For diagonal noise the U terms are zero.

Cost, in increments: additive 2, scalar and diagonal 5 (all b^j at once by v = 1), others 5m + 2: drift, columns, drift
at Υ, and one for each support, for Σ_j b^j(U^r+) c_j is linear in c.

Not for: paths; large m with general noise; Stratonovich equations (convert with `to_ito`), other than additive ones.
"""

from __future__ import annotations

import math

import numpy as np

from sgdsde._abi import AUX, AUXILIARY, STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector, zeros
from sgdsde.random.philox import words
from sgdsde.schemes._scheme import NOISE_KINDS, Aux, Scheme

__all__ = ["SCHEME"]

BORDER = 0.967421566101701  # Φ(BORDER) = 5/6
ROOT_3 = math.sqrt(3.0)
BITS, BIT, ONE, PURPOSE = 64, np.uint64(63), np.uint64(1), np.uint64(AUXILIARY)


@inline
def three_points(dW, h):
    """−√(3h), 0 or √(3h), with probabilities 1/6, 2/3, 1/6 for dW ~ N(0, h)."""
    if abs(dW) <= BORDER * math.sqrt(h):
        return 0.0
    return math.copysign(ROOT_3 * math.sqrt(h), dW)


@kernel(AUX)
def fill_signs(aux, dW, h, path, step, key, p, data, work):
    """aux[i, b] = ±h[b]: bit i mod 64 of random word i // 64 of the step."""
    rows, n = aux.shape
    calls = (rows + 2 * BITS - 1) // (2 * BITS)
    for b in range(n):
        for q in range(calls):
            v, w = words(np.uint64(step * calls + q), path[b], PURPOSE, key)
            for i in range(2 * BITS * q, min(rows, 2 * BITS * (q + 1))):
                word = w if i & BITS else v
                aux[i, b] = h[b] if (word >> (np.uint64(i) & BIT)) & ONE else -h[b]


@inline
def _add(increment, y, support, t, h, v, p, data, work):
    """y += a h + G v at (t, support)."""
    d, n = y.shape
    more = matrix(work, 0, d, n)
    increment(more, support, t, h, v, p, data, rest(work, d * n))
    for i in range(d):
        for b in range(n):
            y[i, b] += more[i, b]


@kernel(STEP)
def additive(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    support = matrix(work, d * n, d, n)
    v = matrix(work, 2 * d * n, m, n)
    end = vector(work, (2 * d + m) * n, n)
    tail = rest(work, (2 * d + m + 1) * n)
    for b in range(n):
        end[b] = t[b] + h[b]
        for j in range(m):
            v[j, b] = three_points(dW[j, b], h[b])
    increment(y, x, t, h, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b] + y[i, b]
            x[i, b] += 0.5 * y[i, b]
    increment(y, support, end, h, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += 0.5 * y[i, b]


@kernel(STEP)
def apart(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """Component i sees one Brownian motion: number i (diagonal) or number 0 (scalar)."""
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    f = matrix(work, d * n, d, n)
    g = matrix(work, 2 * d * n, d, n)
    support = matrix(work, 3 * d * n, d, n)
    v = matrix(work, 4 * d * n, m, n)
    hat = matrix(work, (4 * d + m) * n, m, n)
    at = (4 * d + 2 * m) * n
    no_time = zeros(work, at, n)
    half = vector(work, at + n, n)
    end = vector(work, at + 2 * n, n)
    root = vector(work, at + 3 * n, n)
    tail = rest(work, at + 4 * n)
    for b in range(n):
        end[b], half[b], root[b] = t[b] + h[b], 0.5 * h[b], math.sqrt(h[b])
    for j in range(m):
        for b in range(n):
            v[j, b] = 0.0
            hat[j, b] = three_points(dW[j, b], h[b])
    increment(f, x, t, h, v, p, data, tail)  # a h
    for j in range(m):
        for b in range(n):
            v[j, b] = 1.0
    increment(g, x, t, no_time, v, p, data, tail)  # b
    for j in range(m):
        for b in range(n):
            v[j, b] = 0.0
    for i in range(d):
        j = i if m > 1 else 0
        for b in range(n):
            support[i, b] = x[i, b] + f[i, b] + g[i, b] * hat[j, b]  # Υ
            y[i, b] = 0.5 * (f[i, b] + g[i, b] * hat[j, b])
            f[i, b] += x[i, b]
            g[i, b] *= root[b]
    _add(increment, y, support, end, half, v, p, data, tail)
    for side in (1.0, -1.0):
        for j in range(m):
            for b in range(n):
                v[j, b] = 0.25 * (hat[j, b] + side * (hat[j, b] * hat[j, b] - h[b]) / root[b])
        for i in range(d):
            for b in range(n):
                support[i, b] = f[i, b] + side * g[i, b]  # R±
        _add(increment, y, support, end, no_time, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


@inline
def _across(v, hat, aux, root, k, side):
    """v[j] = ¼ ΔŴ^j ± ¼ [ΔŴ^j ΔŴ^k + V^kj] / √h for j ≠ k, 0 for j = k; without rows of aux V is zero."""
    m, n = v.shape
    for j in range(m):
        for b in range(n):
            product = hat[j, b] * hat[k, b]
            if aux.shape[0] > 0 and j > k:
                product += aux[j * (j - 1) // 2 + k, b]
            elif aux.shape[0] > 0 and j < k:
                product -= aux[k * (k - 1) // 2 + j, b]
            v[j, b] = 0.0 if j == k else 0.25 * (hat[j, b] + side * product / root[b])


@kernel(STEP)
def mixed(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """Any columns."""
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    f = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    columns = matrix(work, 3 * d * n, m * d, n)  # b^j √h in rows j d .. j d + d − 1
    v = matrix(work, (3 + m) * d * n, m, n)
    hat = matrix(work, ((3 + m) * d + m) * n, m, n)
    at = ((3 + m) * d + 2 * m) * n
    no_time = zeros(work, at, n)
    half = vector(work, at + n, n)
    end = vector(work, at + 2 * n, n)
    root = vector(work, at + 3 * n, n)
    tail = rest(work, at + 4 * n)
    for b in range(n):
        end[b], half[b], root[b] = t[b] + h[b], 0.5 * h[b], math.sqrt(h[b])
    for j in range(m):
        for b in range(n):
            v[j, b] = 0.0
            hat[j, b] = three_points(dW[j, b], h[b])
    increment(f, x, t, h, v, p, data, tail)  # a h
    for i in range(d):
        for b in range(n):
            y[i, b] = 0.5 * f[i, b]
            f[i, b] += x[i, b]
            support[i, b] = f[i, b]
    for j in range(m):
        for b in range(n):
            v[j, b] = root[b]
        increment(matrix(columns, j * d * n, d, n), x, t, no_time, v, p, data, tail)
        for b in range(n):
            v[j, b] = 0.0
        for i in range(d):
            for b in range(n):
                moved = columns[j * d + i, b] * hat[j, b] / root[b]
                support[i, b] += moved  # Υ
                y[i, b] += (1.0 - 0.5 * m) * moved  # ¼ [2 − 2 (m − 1)] b^j ΔŴ^j
    _add(increment, y, support, end, half, v, p, data, tail)
    for k in range(m):
        for side in (1.0, -1.0):
            for j in range(m):
                for b in range(n):
                    v[j, b] = 0.0
            for b in range(n):
                v[k, b] = 0.25 * (hat[k, b] + side * (hat[k, b] * hat[k, b] - h[b]) / root[b])
            for i in range(d):
                for b in range(n):
                    support[i, b] = f[i, b] + side * columns[k * d + i, b]  # R^k±
            _add(increment, y, support, end, no_time, v, p, data, tail)
            if m > 1:
                _across(v, hat, aux, root, k, side)
                for i in range(d):
                    for b in range(n):
                        support[i, b] = x[i, b] + side * columns[k * d + i, b]  # U^k±
                _add(increment, y, support, t, no_time, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


SCHEME = Scheme(
    "platen",
    {
        ("general", "ito"): mixed,
        ("additive", "ito"): additive,
        ("additive", "stratonovich"): additive,
        ("scalar", "ito"): apart,
        ("diagonal", "ito"): apart,
    },
    calculus=("ito",),
    strong=dict.fromkeys(NOISE_KINDS, 0.0),
    weak=dict.fromkeys(NOISE_KINDS, 2.0),
    work=lambda d, m: (0, (4 + m) * d + 2 * m + 4),
    aux={
        ("general", "ito"): Aux(fill_signs, rows=lambda d, m: m * (m - 1) // 2),
        **{(kind, "ito"): None for kind in NOISE_KINDS if kind != "general"},
        ("additive", "stratonovich"): None,
    },
    evaluations="5m + 2; scalar, diagonal 5; additive 2",
    ode_order=2,
    reference="Kloeden & Platen 1992, (15.1.3), (15.1.4)",
    summary="weak order 2 for any noise: laws and no paths",
)
