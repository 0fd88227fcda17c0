"""Steps of Milstein's method: with Lévy areas and without derivatives, and with the derivative in one evaluation.

The formulas are on the page `milstein`.
"""

from __future__ import annotations

import math

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, zeros

__all__ = ["diagonal_derivative", "general_derivative", "ito", "stratonovich", "symmetric_derivative"]


@inline
def _column(increment, g, v, j, x, t, no_time, p, data, work):
    """g = b^j(t, x)."""
    for k in range(v.shape[0]):
        for b in range(v.shape[1]):
            v[k, b] = 1.0 if k == j else 0.0
    increment(g, x, t, no_time, v, p, data, work)


@kernel(STEP)
def ito(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """2m + 1 increments: b(Y; ΔW − Σ_j I_j· / √h) with the drift, and b^j, b(Υ^j; I_j· / √h) for every j."""
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    v = matrix(work, 3 * d * n, m, n)
    no_time = zeros(work, (3 * d + m) * n, n)
    root = zeros(work, (3 * d + m + 1) * n, n)
    tail = rest(work, (3 * d + m + 2) * n)
    for b in range(n):
        root[b] = math.sqrt(h[b])
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.0
        for j in range(m):
            for b in range(n):
                v[k, b] += aux[j * m + k, b]
        for b in range(n):
            v[k, b] = dW[k, b] - v[k, b] / root[b]
    increment(y, x, t, h, v, p, data, tail)
    for j in range(m):
        _column(increment, g, v, j, x, t, no_time, p, data, tail)
        for i in range(d):
            for b in range(n):
                support[i, b] = x[i, b] + g[i, b] * root[b]
        for k in range(m):
            for b in range(n):
                v[k, b] = aux[j * m + k, b] / root[b]
        increment(g, support, t, no_time, v, p, data, tail)
        for i in range(d):
            for b in range(n):
                y[i, b] += g[i, b]
    for i in range(d):
        for b in range(n):
            x[i, b] += y[i, b]


@kernel(STEP)
def stratonovich(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """2m + 2 increments: b(Y; ½ΔW − Σ_j A_j· / √h) with the drift, b^j, b(Υ^j; A_j· / √h), and ½b(Y + b(Y; ΔW); ΔW)."""
    d, n = x.shape
    m = dW.shape[0]
    y = matrix(work, 0, d, n)
    g = matrix(work, d * n, d, n)
    support = matrix(work, 2 * d * n, d, n)
    whole = matrix(work, 3 * d * n, d, n)
    v = matrix(work, 4 * d * n, m, n)
    no_time = zeros(work, (4 * d + m) * n, n)
    root = zeros(work, (4 * d + m + 1) * n, n)
    tail = rest(work, (4 * d + m + 2) * n)
    for b in range(n):
        root[b] = math.sqrt(h[b])
    for k in range(m):
        for b in range(n):
            v[k, b] = 0.0
        for j in range(m):
            for b in range(n):
                v[k, b] += aux[j * m + k, b] - aux[k * m + j, b]
        for b in range(n):
            v[k, b] = 0.5 * (dW[k, b] - v[k, b] / root[b])
    increment(y, x, t, h, v, p, data, tail)
    for i in range(d):
        for b in range(n):
            whole[i, b] = x[i, b]
    for j in range(m):
        _column(increment, g, v, j, x, t, no_time, p, data, tail)
        for i in range(d):
            for b in range(n):
                whole[i, b] += g[i, b] * dW[j, b]
                support[i, b] = x[i, b] + g[i, b] * root[b]
        for k in range(m):
            for b in range(n):
                v[k, b] = 0.5 * (aux[j * m + k, b] - aux[k * m + j, b]) / root[b]
        increment(g, support, t, no_time, v, p, data, tail)
        for i in range(d):
            for b in range(n):
                y[i, b] += g[i, b]
    increment(g, whole, t, no_time, dW, p, data, tail)  # b at the support Y + b(Y; ΔW), the same ΔW
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
