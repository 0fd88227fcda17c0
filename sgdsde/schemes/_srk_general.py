"""Rößler's stochastic Runge-Kutta step of strong order 1.0 for any noise, SRI2 and SRS2, also in special cases.

    H⁰   = Y + a h
    H^k± = Y + a h ± Σ_l b^l I_(l,k) / √h                                         l the earlier index, k = 1 .. m
    Y'   = Y + ½[a + a(t+h, H⁰)] h + Σ_k b^k ΔW^k + ½√h Σ_k [b^k(t+h, H^k+) − b^k(t+h, H^k−)]

a, b at (t, Y); I the iterated integrals of the calculus, whose drift a is. The difference over H^k± is odd in I, up to
the drift in its middle, so that E I_kk = h/2 in the Stratonovich calculus biases a step by O(h²) only, where one
support to one side would bias it by O(h^{3/2}).

`general` reads I from `aux`. Where columns commute, I_(l,k) = ½(ΔW^l ΔW^k − h δ_lk), without h δ_lk in the
Stratonovich calculus, gives the same order, and `aux` is not read: the areas that are left out would enter by
Σ_lk [(b^l·∇)b^k − (b^k·∇)b^l] A_lk / 2 = 0. `apart` is for scalar and diagonal noise, all b^k by v = 1; for `additive`
noise the differences are zero.
"""

from __future__ import annotations

import math

from sgdsde._jit import inline
from sgdsde._views import matrix, rest, zeros

__all__ = ["additive", "apart", "columns", "work"]

FROM_AUX, ITO, STRATONOVICH = 0, 1, 2


def work(d: int, m: int) -> tuple[int, int]:
    """Scratch of all steps of this page."""
    return 0, 6 * d + 2 * m + 3


@inline
def _parts(x, work, m):
    """y, a h, b ΔW, displacement, support, result (d, n); v, zeros (m, n); no time, end, √h (n); what is left."""
    d, n = x.shape
    y, drift, noise = matrix(work, 0, d, n), matrix(work, d * n, d, n), matrix(work, 2 * d * n, d, n)
    moved, support, g = (
        matrix(work, 3 * d * n, d, n),
        matrix(work, 4 * d * n, d, n),
        matrix(work, 5 * d * n, d, n),
    )
    at = 6 * d * n
    v = matrix(work, at, m, n)
    zeros(work, at + m * n, m * n)
    no_noise = matrix(work, at + m * n, m, n)
    at += 2 * m * n
    no_time, end, root = zeros(work, at, n), zeros(work, at + n, n), zeros(work, at + 2 * n, n)
    return y, drift, noise, moved, support, g, v, no_noise, no_time, end, root, rest(work, at + 3 * n)


@inline
def _begin(increment, x, t, h, y, drift, support, g, no_noise, end, root, tail, p, data):
    """drift = a h, y = ½[a + a(t+h, Y + a h)] h; the end of the step, and √h."""
    d, n = x.shape
    for b in range(n):
        end[b] = t[b] + h[b]
        root[b] = math.sqrt(h[b])
    increment(drift, x, t, h, no_noise, p, data, tail)
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b] + drift[i, b]
    increment(g, support, end, h, no_noise, p, data, tail)
    for i in range(d):
        for b in range(n):
            y[i, b] = 0.5 * (drift[i, b] + g[i, b])


@inline
def _difference(increment, x, y, drift, moved, support, g, v, no_time, end, tail, p, data):
    """y += b(t+h, Y + a h + moved) v − b(t+h, Y + a h − moved) v."""
    d, n = x.shape
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b] + drift[i, b] + moved[i, b]
    increment(g, support, end, no_time, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            y[i, b] += g[i, b]
            support[i, b] = x[i, b] + drift[i, b] - moved[i, b]
    increment(g, support, end, no_time, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            y[i, b] -= g[i, b]


@inline
def columns(increment, x, t, h, dW, aux, work, p, data, integrals):
    """Any noise: one displacement and one difference for each column; linear in v, so no d × m matrix is stored."""
    d, n = x.shape
    m = dW.shape[0]
    y, drift, noise, moved, support, g, v, no_noise, no_time, end, root, tail = _parts(x, work, m)
    _begin(increment, x, t, h, y, drift, support, g, no_noise, end, root, tail, p, data)
    increment(noise, x, t, no_time, dW, p, data, tail)
    for k in range(m):
        if integrals == STRATONOVICH:
            for i in range(d):
                for b in range(n):
                    moved[i, b] = noise[i, b] * (0.5 * dW[k, b] / root[b])
        else:
            for l in range(m):
                for b in range(n):
                    if integrals == FROM_AUX:
                        v[l, b] = aux[l * m + k, b] / root[b]
                    else:
                        v[l, b] = 0.5 * (dW[l, b] * dW[k, b] - (h[b] if l == k else 0.0)) / root[b]
            increment(moved, x, t, no_time, v, p, data, tail)
        for l in range(m):
            for b in range(n):
                v[l, b] = 0.5 * root[b] if l == k else 0.0
        _difference(increment, x, y, drift, moved, support, g, v, no_time, end, tail, p, data)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + noise[i, b]


@inline
def apart(increment, x, t, h, dW, work, p, data, integrals):
    """Component i sees one Brownian motion: number i (diagonal) or number 0 (scalar)."""
    d, n = x.shape
    m = dW.shape[0]
    y, drift, noise, moved, support, g, v, no_noise, no_time, end, root, tail = _parts(x, work, m)
    _begin(increment, x, t, h, y, drift, support, g, no_noise, end, root, tail, p, data)
    for k in range(m):
        for b in range(n):
            v[k, b] = 1.0
    increment(noise, x, t, no_time, v, p, data, tail)
    for i in range(d):
        k = i if m > 1 else 0
        for b in range(n):
            square = dW[k, b] * dW[k, b]
            if integrals == ITO:
                square -= h[b]
            moved[i, b] = noise[i, b] * (0.5 * square / root[b])
            noise[i, b] *= dW[k, b]
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.5 * root[b]
    _difference(increment, x, y, drift, moved, support, g, v, no_time, end, tail, p, data)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + noise[i, b]


@inline
def additive(increment, x, t, h, dW, work, p, data):
    """Y' = Y + ½[a + a(t+h, Y + a h)] h + b ΔW."""
    d, n = x.shape
    y, drift, noise, moved, support, g, v, no_noise, no_time, end, root, tail = _parts(x, work, dW.shape[0])
    _begin(increment, x, t, h, y, drift, support, g, no_noise, end, root, tail, p, data)
    increment(noise, x, t, no_time, dW, p, data, tail)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + noise[i, b]
