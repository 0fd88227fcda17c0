"""The charge law of `MLP` along a path, for generators that act on each array of θ as W ↦ L W + W R, b ↦ L b.

With g_{i,l} = δ_l a_{l-1}ᵀ for W_l and δ_l for b_l a sample's part of Tr[ΣA] needs no d numbers:

    g_iᵀ A g_i = Σ_l (δ_lᵀ L_l δ_l)‖a_{l-1}‖² + ‖δ_l‖² (a_{l-1}ᵀ R_l a_{l-1}) + δ_lᵀ L'_l δ_l

L'_l acts on b_l, and Tr[ΣA] = (1/N)Σ_i g_iᵀAg_i - ∇LᵀA∇L. A rescaling of one hidden unit is a diagonal of this form.

p = [γ, *q, ‖A‖, then for each array: kind of L, kind of R, L, R], kind ABSENT, SCALAR: one number, DIAGONAL: n numbers,
WHOLE: the matrix in C order. A vector b has shape (n, 1).
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, TRACK, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_step import copy
from sgdsde.models.matrices import PLAIN, TURNED, add_row_sums, column_norms, multiply, row
from sgdsde.models.mlp_passes import (
    BIASES,
    WIDTHS,
    chunk,
    depth,
    forward,
    kept,
    loss_gradient,
    outputs,
    split,
    width,
)
from sgdsde.models.mlp_tangent import deltas, input_norms

__all__ = ["ABSENT", "DIAGONAL", "SCALAR", "WHOLE", "charge_law"]

ABSENT, SCALAR, DIAGONAL, WHOLE = range(4)


@inline
def _length(kind, n):
    return kind if kind < DIAGONAL else (n if kind == DIAGONAL else n * n)


@inline
def _columns_form(out, D, a, at, kind, spare):
    """out_i = d_iᵀ M d_i for the columns d_i of D; M stands in `a` at `at`."""
    n, rows = D.shape
    if kind == WHOLE:
        moved = matrix(spare, 0, n, rows)
        multiply(moved, matrix(a, at, n, n), PLAIN, D, PLAIN, 0.0)
        for i in range(rows):
            out[i] = 0.0
        for j in range(n):
            x, y = row(D, j), row(moved, j)
            for i in range(rows):
                out[i] += x[i] * y[i]
    elif kind == DIAGONAL:
        for i in range(rows):
            out[i] = 0.0
        for j in range(n):
            x, mu = row(D, j), a[at + j]
            if mu != 0.0:
                for i in range(rows):
                    out[i] += mu * x[i] * x[i]
    else:
        column_norms(out, D, 0.0)
        for i in range(rows):
            out[i] *= a[at]


@inline
def _rows_form(out, X, a, at, kind, spare):
    """out_i = x_iᵀ M x_i for the rows x_i of X, the inputs."""
    rows, n = X.shape
    if kind == WHOLE:
        moved = matrix(spare, 0, rows, n)
        multiply(moved, X, PLAIN, matrix(a, at, n, n), TURNED, 0.0)
        for i in range(rows):
            out[i] = dot(row(X, i), row(moved, i))
    else:
        for i in range(rows):
            x = row(X, i)
            if kind == SCALAR:
                out[i] = a[at] * dot(x, x)
            else:
                out[i] = 0.0
                for j in range(n):
                    out[i] += a[at + j] * x[j] * x[j]


@inline
def _array_form(x, y, n, m, a, at, kind, is_left, spare):
    """Σ x·(M y) or Σ x·(y M) over the entries of an array of shape (n, m)."""
    if kind == SCALAR:
        return a[at] * dot(x, y)
    total = 0.0
    if kind == DIAGONAL:
        for j in range(n):
            u, v = vector(x, j * m, m), vector(y, j * m, m)
            if is_left:
                if a[at + j] != 0.0:
                    total += a[at + j] * dot(u, v)
            else:
                for k in range(m):
                    total += a[at + k] * u[k] * v[k]
        return total
    product, Y = matrix(spare, 0, n, m), matrix(y, 0, n, m)
    if is_left:
        multiply(product, matrix(a, at, n, n), PLAIN, Y, PLAIN, 0.0)
    else:
        multiply(product, Y, PLAIN, matrix(a, at, m, m), PLAIN, 0.0)
    return dot(x, vector(spare, 0, n * m))


@kernel(types.float64(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def _form(x, y, q, a, spare):
    """xᵀ A y."""
    at = 1
    start = 0
    total = 0.0
    for l in range(1, depth(q) + 1):
        for part in range(1 + int(q[BIASES])):
            n, m = width(q, l), (width(q, l - 1) if part == 0 else 1)
            left, right = int(a[at]), int(a[at + 1])
            at += 2
            u, v = vector(x, start, n * m), vector(y, start, n * m)
            if left != ABSENT:
                total += _array_form(u, v, n, m, a, at, left, True, spare)
            at += _length(left, n)
            if right != ABSENT:
                total += _array_form(u, v, n, m, a, at, right, False, spare)
            at += _length(right, m)
            start += n * m
    return total


@kernel(types.float64(VECTOR, VECTOR, BLOCK, VECTOR, VECTOR, VECTOR))
def _chunk_trace(q, a, X, acts, delta, spare):
    """Σ_i g_iᵀ A g_i over the samples of a pass."""
    rows = X.shape[0]
    first, second, spare = vector(spare, 0, rows), vector(spare, rows, rows), rest(spare, 2 * rows)
    at = 1
    place = 0
    total = 0.0
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        high = matrix(delta, place, n, rows)
        left, right = int(a[at]), int(a[at + 1])
        at += 2
        if left != ABSENT:
            _columns_form(first, high, a, at, left, spare)
            input_norms(second, X, acts, place, l, q)
            total += dot(first, second)
        at += _length(left, n)
        if right != ABSENT:
            column_norms(first, high, 0.0)
            if l == 1:
                _rows_form(second, X, a, at, right, spare)
            else:
                _columns_form(second, matrix(acts, place - m * rows, m, rows), a, at, right, spare)
            total += dot(first, second)
        at += _length(right, m)
        if q[BIASES] != 0.0:
            for side in range(2):
                kind = int(a[at + side])
                start = at + 2 + (0 if side == 0 else _length(int(a[at]), n))
                if kind != ABSENT:
                    if side == 0:
                        _columns_form(first, high, a, start, kind, spare)
                    else:
                        column_norms(first, high, 0.0)
                        for i in range(rows):
                            first[i] *= a[start]
                    for i in range(rows):
                        total += first[i]
            at += 2 + _length(int(a[at]), n) + _length(int(a[at + 1]), 1)
        place += n * rows
    return total


@inline
def _gradient_and_trace(out, theta, X, Y, n, q, a, c, work):
    """out = ∇L, c holding ones; returns (1/N)Σ_i g_iᵀ A g_i."""
    n0, n_out, most = width(q, 0), width(q, depth(q)), min(n, chunk(q))
    size = most * outputs(q)
    acts, delta, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    keep, spare = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    total = 0.0
    for k in range(out.shape[0]):
        out[k] = 0.0
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, q, acts, keep)
        copy(vector(delta, place, n_out * rows), vector(acts, place, n_out * rows))
        loss_gradient(matrix(delta, place, n_out, rows), Y, first, c, q, spare)
        deltas(theta, rows, q, acts, delta, keep, spare)
        total += _chunk_trace(q, a, samples, acts, delta, spare)
        start = 0
        place = 0
        for l in range(1, depth(q) + 1):
            n_l, m = width(q, l), width(q, l - 1)
            product, high = matrix(out, start, n_l, m), matrix(delta, place, n_l, rows)
            if l == 1:
                multiply(product, high, PLAIN, samples, PLAIN, 1.0)
            else:
                multiply(product, high, PLAIN, matrix(acts, place - m * rows, m, rows), TURNED, 1.0)
            start += n_l * m
            if q[BIASES] != 0.0:
                add_row_sums(vector(out, start, n_l), high)
                start += n_l
            place += n_l * rows
    for k in range(out.shape[0]):
        out[k] /= n
    return total / n


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`."""
    q = rest(p, 1)
    d, n_columns = x0.shape
    n = int(q[0])
    a = rest(q, WIDTHS + 1 + depth(q))
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
