"""Steps of Milstein's method: with Lévy areas and without derivatives, and with the derivative in one evaluation.

The formulas are on the page `milstein`.
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector, zeros

__all__ = ["diagonal_derivative", "general_derivative", "ito", "stratonovich", "symmetric_derivative"]


@inline
def _supports(increment, y, G, u, half, x, t, no_time, root, work, p, data):
    """y += Σ_j b(Υ^j; u_j·)/√h, Υ^j = x + b^j √h, b^j from G; u holds I, or with `half` J, whose area is taken."""
    d, n = x.shape
    m = G.shape[0] // d
    g = matrix(work, 0, d, n)
    support = matrix(work, d * n, d, n)
    v = matrix(work, 2 * d * n, m, n)
    tail = rest(work, (2 * d + m) * n)
    for j in range(m):
        for i in range(d):
            for b in range(n):
                support[i, b] = x[i, b] + G[i * m + j, b] * root[b]
        _row(v, u, j, half, root)
        increment(g, support, t, no_time, v, p, data, tail)
        for i in range(d):
            for b in range(n):
                y[i, b] += g[i, b]


@inline
def _row(v, u, j, half, root):
    """v = u_j· / √h, or the area ½(u_j· − u_·j) / √h."""
    m, n = v.shape
    for k in range(m):
        for b in range(n):
            v[k, b] = u[j * m + k, b] / root[b]
        if half:
            for b in range(n):
                v[k, b] = 0.5 * (u[j * m + k, b] - u[k * m + j, b]) / root[b]


@inline
def _rows_sum(v, u, half, root):
    """v_k = Σ_j of `_row`."""
    m, n = v.shape
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.0
        for j in range(m):
            if half:
                for b in range(n):
                    v[k, b] += 0.5 * (u[j * m + k, b] - u[k * m + j, b])
            else:
                for b in range(n):
                    v[k, b] += u[j * m + k, b]
        for b in range(n):
            v[k, b] /= root[b]


@inline
def _times(y, G, v):
    """y += G v."""
    d, n = y.shape
    m = v.shape[0]
    for i in range(d):
        for k in range(m):
            for b in range(n):
                y[i, b] += G[i * m + k, b] * v[k, b]


@kernel(STEP)
def ito(increment, columns, x, t, h, dW, aux, status, work, p, data):
    """G once, the drift, and b(Υ^j; I_j· / √h) for every j."""
    d, n = x.shape
    m = dW.shape[0]
    G = matrix(work, 0, d * m, n)  # the room that the equation's kernels declare
    y = matrix(work, d * m * n, d, n)
    v = matrix(work, d * (m + 1) * n, m, n)
    no_time = zeros(work, (d * (m + 1) + m) * n, n)
    root = vector(work, (d * (m + 1) + m + 1) * n, n)
    tail = rest(work, (d * (m + 1) + m + 2) * n)
    for b in range(n):
        root[b] = math.sqrt(h[b])
    columns(G, x, t, p, data, tail)
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.0
    increment(y, x, t, h, v, p, data, tail)
    _rows_sum(v, aux, False, root)
    for k in range(m):
        for b in range(n):
            v[k, b] = dW[k, b] - v[k, b]
    _times(y, G, v)
    _supports(increment, y, G, aux, False, x, t, no_time, root, tail, p, data)
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


@kernel(STEP)
def stratonovich(increment, columns, x, t, h, dW, aux, status, work, p, data):
    """G once, the drift, b(Υ^j; A_j· / √h) for every j, and ½b(Y + b(Y; ΔW); ΔW)."""
    d, n = x.shape
    m = dW.shape[0]
    G = matrix(work, 0, d * m, n)
    y = matrix(work, d * m * n, d, n)
    v = matrix(work, d * (m + 1) * n, m, n)
    no_time = zeros(work, (d * (m + 1) + m) * n, n)
    root = vector(work, (d * (m + 1) + m + 1) * n, n)
    tail = rest(work, (d * (m + 1) + m + 2) * n)
    for b in range(n):
        root[b] = math.sqrt(h[b])
    columns(G, x, t, p, data, tail)
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.0
    increment(y, x, t, h, v, p, data, tail)
    _rows_sum(v, aux, True, root)
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.5 * dW[k, b] - v[k, b]
    _times(y, G, v)
    _supports(increment, y, G, aux, True, x, t, no_time, root, tail, p, data)
    support = matrix(tail, 0, d, n)  # Y + b(Y; ΔW), and b there with the same ΔW
    g = matrix(tail, d * n, d, n)
    for i in range(d):
        for b in range(n):
            support[i, b] = x[i, b]
    _times(support, G, dW)
    increment(g, support, t, no_time, dW, p, data, rest(tail, 2 * d * n))
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b] + 0.5 * g[i, b]


@inline
def _extended(increment, x, t, h, v, work, at, p, data):
    """x += f h + G ΔW + the double sums, v = (ΔW, u) (`sgdsde.equation.derivative`), which stands in front of `at`."""
    d, n = x.shape
    y = matrix(work, at, d, n)
    increment(y, x, t, h, v, p, data, rest(work, at + d * n))
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


@inline
def _front(work, dW, rows):
    """The extended noise, in the room that the equation's kernels declare for it: ΔW, and rows yet to be filled."""
    m, n = dW.shape
    v = matrix(work, 0, rows, n)
    for j in range(m):
        for b in range(n):
            v[j, b] = dW[j, b]
    return v


@kernel(STEP)
def general_derivative(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """One increment, u = I (Itô) or J (Stratonovich)."""
    m, n = dW.shape
    v = _front(work, dW, m + m * m)
    for r in range(m * m):
        for b in range(n):
            v[m + r, b] = aux[r, b]
    _extended(increment, x, t, h, v, work, (m + m * m) * n, p, data)


@inline
def _products(increment, x, t, h, dW, work, p, data, ito):
    m, n = dW.shape
    v = _front(work, dW, m + m * m)
    for j in range(m):
        for k in range(m):
            for b in range(n):
                v[m + j * m + k, b] = 0.5 * (dW[j, b] * dW[k, b] - (h[b] if ito and k == j else 0.0))
    _extended(increment, x, t, h, v, work, (m + m * m) * n, p, data)


@inline
def _squares(increment, x, t, h, dW, work, p, data, ito):
    m, n = dW.shape
    v = _front(work, dW, 2 * m)
    for j in range(m):
        for b in range(n):
            v[m + j, b] = 0.5 * (dW[j, b] * dW[j, b] - (h[b] if ito else 0.0))
    _extended(increment, x, t, h, v, work, 2 * m * n, p, data)


@kernel(STEP)
def _symmetric_ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _products(increment, x, t, h, dW, work, p, data, True)


@kernel(STEP)
def _symmetric_stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _products(increment, x, t, h, dW, work, p, data, False)


@kernel(STEP)
def _diagonal_ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _squares(increment, x, t, h, dW, work, p, data, True)


@kernel(STEP)
def _diagonal_stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _squares(increment, x, t, h, dW, work, p, data, False)


symmetric_derivative = {"ito": _symmetric_ito, "stratonovich": _symmetric_stratonovich}
"""Columns that commute, one increment: u_jk = ½(ΔW^j ΔW^k − h δ_jk), or ½ΔW^j ΔW^k."""
diagonal_derivative = {"ito": _diagonal_ito, "stratonovich": _diagonal_stratonovich}
"""The same for a diagonal: u_j = ½(ΔW^j ΔW^j − h), or ½ΔW^j ΔW^j."""
