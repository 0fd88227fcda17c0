"""Losses of a network's outputs, compiled: values, gradients and second derivatives, for many samples side by side.

The outputs O stand one row for each output and one column for each sample, so that every loop runs along samples. Y are
the targets as `losses` lays them out, sample by sample, `columns` numbers each.

    squared   ‖o - y‖²                        SQUARED    y real numbers
    logistic  Σ_j log(1 + e^{-y_j o_j})       LOGISTIC   y_j = ±1
    softmax   log Σ_j e^{o_j} - Σ_j y_j o_j   SOFTMAX    y >= 0 with sum 1, or with one column the number of the class
"""

from __future__ import annotations

import math

import numba

from sgdsde._jit import OPTIONS
from sgdsde._views import vector
from sgdsde.models.elementary import exp_down, logistic
from sgdsde.models.matrices import row

__all__ = ["LOGISTIC", "SOFTMAX", "SQUARED", "curve", "gradient", "probabilities", "values"]

SQUARED, LOGISTIC, SOFTMAX = range(3)

inline = numba.njit(**{**OPTIONS, "forceinline": True})


@inline
def _log_sum(O, top, total):
    """Per sample top = max_j o_j and total = Σ_j e^{o_j - top}; O becomes e^{o - top}."""
    m, n = O.shape
    o = row(O, 0)
    for i in range(n):
        top[i] = o[i]
        total[i] = 0.0
    for j in range(1, m):
        o = row(O, j)
        for i in range(n):
            top[i] = o[i] if o[i] > top[i] else top[i]
    for j in range(m):
        o = row(O, j)
        for i in range(n):
            o[i] = exp_down(o[i] - top[i])
        for i in range(n):
            total[i] += o[i]


@inline
def values(kind, out, O, Y, columns, scale, spare):
    """out_i = scale·ℓ(o_i, y_i), and O is worthless after; `spare` holds two numbers a sample."""
    m, n = O.shape
    for i in range(n):
        out[i] = 0.0
    if kind == SQUARED:
        for j in range(m):
            o = row(O, j)
            for i in range(n):
                r = o[i] - Y[i * m + j]
                out[i] += r * r
    elif kind == LOGISTIC:
        for j in range(m):
            o = row(O, j)
            for i in range(n):
                margin = o[i] * Y[i * m + j]
                out[i] += math.log1p(math.exp(-abs(margin))) - (margin if margin < 0.0 else 0.0)
    else:
        top, total = vector(spare, 0, n), vector(spare, n, n)
        for i in range(n):
            if columns == 1:
                out[i] = -O[int(Y[i]), i]
            else:
                for j in range(m):
                    out[i] -= Y[i * m + j] * O[j, i]
        _log_sum(O, top, total)
        for i in range(n):
            out[i] += top[i] + math.log(total[i])
    for i in range(n):
        out[i] *= scale


@inline
def gradient(kind, O, Y, columns, scale, c, spare):
    """O becomes scale·c_i ∂ℓ/∂o; `spare` holds two numbers a sample."""
    m, n = O.shape
    if kind == SQUARED:
        for i in range(n):
            spare[i] = 2.0 * scale * c[i]
        for j in range(m):
            o = row(O, j)
            for i in range(n):
                o[i] = spare[i] * (o[i] - Y[i * m + j])
    elif kind == LOGISTIC:
        for j in range(m):
            o = row(O, j)
            for i in range(n):
                y = Y[i * m + j]
                o[i] = -scale * c[i] * y * logistic(-y * o[i])
    else:
        top, total = vector(spare, 0, n), vector(spare, n, n)
        _log_sum(O, top, total)
        for i in range(n):
            top[i] = scale * c[i] / total[i]
        for j in range(m):
            o = row(O, j)
            for i in range(n):
                o[i] *= top[i]
        for i in range(n):
            if columns == 1:
                O[int(Y[i]), i] -= scale * c[i]
            else:
                for j in range(m):
                    O[j, i] -= scale * c[i] * Y[i * m + j]


@inline
def probabilities(kind, P, spare):
    """P, the outputs, become what `curve` needs: the probabilities of softmax, or σ(o)(1 - σ(o)) of logistic."""
    m, n = P.shape
    if kind == LOGISTIC:
        for j in range(m):
            p = row(P, j)
            for i in range(n):
                p[i] = logistic(p[i]) * logistic(-p[i])
    elif kind == SOFTMAX:
        top, total = vector(spare, 0, n), vector(spare, n, n)
        _log_sum(P, top, total)
        for j in range(m):
            p = row(P, j)
            for i in range(n):
                p[i] /= total[i]


@inline
def curve(kind, V, P, scale, c, spare):
    """V becomes scale·c_i·(∂²ℓ/∂o²)v; P from `probabilities`, `spare` one number a sample."""
    m, n = V.shape
    if kind == SOFTMAX:
        for i in range(n):
            spare[i] = 0.0
        for j in range(m):
            p, v = row(P, j), row(V, j)
            for i in range(n):
                spare[i] += p[i] * v[i]
        for j in range(m):
            p, v = row(P, j), row(V, j)
            for i in range(n):
                v[i] = scale * c[i] * p[i] * (v[i] - spare[i])
    else:
        for j in range(m):
            p, v = row(P, j), row(V, j)
            for i in range(n):
                v[i] *= scale * c[i] * (p[i] if kind == LOGISTIC else 2.0)
