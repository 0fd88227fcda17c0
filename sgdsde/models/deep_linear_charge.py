"""The charge law of `DeepLinear` along a path, for generators that act on each layer as W_l ↦ L_l W_l + W_l R_l.

With g_{i,l} = δ_l a_{l-1}ᵀ a sample's part of Tr[ΣA] needs no d numbers:

    g_iᵀ A g_i = Σ_l (δ_lᵀ L_l δ_l)‖a_{l-1}‖² + ‖δ_l‖² (a_{l-1}ᵀ R_l a_{l-1}),    Tr[ΣA] = (1/N)Σ_i g_iᵀAg_i - ∇LᵀA∇L.

p = [γ, *q, ‖A‖, then for each layer: kind of L, kind of R, L, R], kind 0: absent, 1: one number times the unit matrix,
2: the whole matrix in C order.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import TRACK
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.deep_linear_passes import CHUNK, add, column, depth, forward, residual, split, width
from sgdsde.models.deep_linear_sample import n_outputs

__all__ = ["ABSENT", "SCALAR", "WHOLE", "charge_law"]

ABSENT, SCALAR, WHOLE = 0, 1, 2


@inline
def _length(kind, n):
    return 0 if kind == ABSENT else (1 if kind == SCALAR else n * n)


@inline
def _next(a, at, n, m):
    """Where the next layer's factors stand after those of a layer of shape (n, m) at `at`."""
    return at + 2 + _length(int(a[at]), n) + _length(int(a[at + 1]), m)


@inline
def _weighted(rows_of, other, a, at, kind, spare):
    """Σ_i (r_iᵀ M r_i)·‖o_i‖² for the rows r, o of two matrices; M stands in `a` at `at`."""
    count, n = rows_of.shape
    moved = rows_of
    factor = 1.0
    if kind == WHOLE:
        moved = matrix(spare, 0, count, n)
        np.dot(rows_of, matrix(a, at, n, n), moved)
    else:
        factor = a[at]
    total = 0.0
    for i in range(count):
        r, s, o = rows_of[i], moved[i], other[i]
        first = 0.0
        for j in range(n):
            first += r[j] * s[j]
        second = 0.0
        for j in range(o.shape[0]):
            second += o[j] * o[j]
        total += first * second
    return factor * total


@inline
def _form(x, y, q, a, spare):
    """xᵀ A y."""
    at = 1
    start = 0
    total = 0.0
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        left, right = int(a[at]), int(a[at + 1])
        place = at + 2
        W = matrix(y, start, n, m)
        for side in range(2):
            kind = left if side == 0 else right
            if kind == WHOLE:
                product = matrix(spare, 0, n, m)
                if side == 0:
                    np.dot(matrix(a, place, n, n), W, product)
                else:
                    np.dot(W, matrix(a, place, m, m), product)
                total += dot(vector(x, start, n * m), vector(product, 0, n * m))
            elif kind == SCALAR:
                total += a[place] * dot(vector(x, start, n * m), vector(y, start, n * m))
            place += _length(kind, n if side == 0 else m)
        at = place
        start += n * m
    return total


@inline
def _gradient_and_trace(out, theta, X, Y, n, q, a, c, work):
    """out = ∇L; returns (1/N)Σ_i g_iᵀ A g_i."""
    n0, n_out = width(q, 0), width(q, depth(q))
    total = 0.0
    for k in range(out.shape[0]):
        out[k] = 0.0
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        samples = matrix(X, first * n0, rows, n0)
        acts, spare = vector(work, 0, rows * n_outputs(q)), rest(work, rows * n_outputs(q))
        place = forward(theta, samples, rows, q, acts)
        residual(matrix(acts, place, rows, n_out), Y, first, c, 2.0 * q[1])
        start = out.shape[0]
        for l in range(depth(q), 0, -1):
            n_l, m = width(q, l), width(q, l - 1)
            start -= n_l * m
            at = 1
            for k in range(1, l):
                at = _next(a, at, width(q, k), width(q, k - 1))
            left, right = int(a[at]), int(a[at + 1])
            delta = matrix(acts, place, rows, n_l)
            below = samples
            if l > 1:
                place -= rows * m
                below = matrix(acts, place, rows, m)
            if left != ABSENT:
                total += _weighted(delta, below, a, at + 2, left, spare)
            if right != ABSENT:
                total += _weighted(below, delta, a, at + 2 + _length(left, n_l), right, spare)
            product = matrix(spare, 0, n_l, m)
            np.dot(delta.T, below, product)
            add(out, start, product)
            if l > 1:
                np.dot(delta, matrix(theta, start, n_l, m), below)
    for k in range(out.shape[0]):
        out[k] /= n
    return total / n


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`."""
    q = rest(p, 1)
    d, n_columns = x0.shape
    n = int(q[0])
    a = rest(q, 4 + depth(q))
    X, Y = split(data, q)
    c = vector(work, 0, n)
    for i in range(n):
        c[i] = 1.0
    work = rest(work, n)
    before, after, gradient, v = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, d), vector(work, 3 * d, d)
    work = rest(work, 4 * d)
    for b in range(n_columns):
        theta, moved = column(x0, b, before), column(x1, b, after)
        decay = 1.0 - 2.0 * p[0] * h[b]
        for k in range(d):
            v[k] = moved[k] - decay * theta[k]
        trace = _gradient_and_trace(gradient, theta, X, Y, n, q, a, c, work)
        push = _form(gradient, gradient, q, a, work)
        charge = _form(theta, theta, q, a, work)
        cross = 2.0 * decay * _form(theta, v, q, a, work)
        lengths = dot(theta, theta), dot(v, v)
        quadratic, end = _form(v, v, q, a, work), _form(moved, moved, q, a, work)
        add_step(acc, b, h[b], charge, push, trace - push, cross, quadratic, end, a[0], lengths[0], lengths[1])
