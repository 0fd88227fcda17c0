"""Tr[ΣA] of many generators of `DeepLinear` in one pass over the samples; `deep_linear_charge` takes one for each.

A generator acts as W_l ↦ L_l W_l + W_l R_l, and a sample's gradient is δ_l a_{l-1}ᵀ, so that all there is to know of Σ
are one or two small matrices for each layer, Tr[ΣA] = Σ_l ⟨L_l, Λ_l⟩ + ⟨R_l, P_l⟩ with

    Λ_l = (1/N)Σ_i ‖a_i‖² δ_i δ_iᵀ - ḡ_l ḡ_lᵀ,   P_l = (1/N)Σ_i ‖δ_i‖² a_i a_iᵀ - ḡ_lᵀ ḡ_l,   a_i = a_{l-1} of sample i.

p = [*q, then for each layer whether an L and whether an R acts on it, then for each generator and layer: kind of L,
kind of R, L, R, as in `deep_linear_charge`].
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import TRACK
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_charge import SCALAR, WHOLE
from sgdsde.models.deep_linear_passes import CHUNK, add, column, depth, forward, residual, split, width
from sgdsde.models.deep_linear_sample import n_outputs

__all__ = ["traces"]


@inline
def _square(rows_of, other, out, spare):
    """out += Σ_i ‖o_i‖² r_i r_iᵀ for the rows r, o of two matrices."""
    count, n = rows_of.shape
    scaled, product = matrix(spare, 0, count, n), matrix(spare, count * n, n, n)
    for i in range(count):
        r, o, s = rows_of[i], other[i], scaled[i]
        length = 0.0
        for j in range(o.shape[0]):
            length += o[j] * o[j]
        for j in range(n):
            s[j] = length * r[j]
    np.dot(rows_of.T, scaled, product)
    add(out, 0, product)


@inline
def _centre(square, n, G, left, spare):
    """square / n - G Gᵀ (left) or Gᵀ G."""
    size = G.shape[0] if left else G.shape[1]
    product = matrix(spare, 0, size, size)
    if left:
        np.dot(G, G.T, product)
    else:
        np.dot(G.T, G, product)
    flat = vector(product, 0, size * size)
    for k in range(size * size):
        square[k] = square[k] / n - flat[k]


@inline
def _moments(squares, mean, theta, X, Y, n, q, used, c, work):
    """Λ_l and P_l, of the layers that have a use for them, one after another; `mean` becomes ∇L."""
    n0, n_out = width(q, 0), width(q, depth(q))
    for k in range(mean.shape[0]):
        mean[k] = 0.0
    for k in range(squares.shape[0]):
        squares[k] = 0.0
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        samples = matrix(X, first * n0, rows, n0)
        acts, spare = vector(work, 0, rows * n_outputs(q)), rest(work, rows * n_outputs(q))
        place = forward(theta, samples, rows, q, acts)
        residual(matrix(acts, place, rows, n_out), Y, first, c, 2.0 * q[1])
        start, at = mean.shape[0], squares.shape[0]
        for l in range(depth(q), 0, -1):
            n_l, m = width(q, l), width(q, l - 1)
            start -= n_l * m
            delta = matrix(acts, place, rows, n_l)
            below = samples
            if l > 1:
                place -= rows * m
                below = matrix(acts, place, rows, m)
            if used[2 * l - 1] != 0.0:
                at -= m * m
                _square(below, delta, vector(squares, at, m * m), spare)
            if used[2 * l - 2] != 0.0:
                at -= n_l * n_l
                _square(delta, below, vector(squares, at, n_l * n_l), spare)
            product = matrix(spare, 0, n_l, m)
            np.dot(delta.T, below, product)
            add(mean, start, product)
            if l > 1:
                np.dot(delta, matrix(theta, start, n_l, m), below)
    for k in range(mean.shape[0]):
        mean[k] /= n
    start = at = 0
    for l in range(1, depth(q) + 1):
        n_l, m = width(q, l), width(q, l - 1)
        G = matrix(mean, start, n_l, m)
        start += n_l * m
        if used[2 * l - 2] != 0.0:
            _centre(vector(squares, at, n_l * n_l), n, G, True, work)
            at += n_l * n_l
        if used[2 * l - 1] != 0.0:
            _centre(vector(squares, at, m * m), n, G, False, work)
            at += m * m


@inline
def _inner(kind, factor, square, size):
    """⟨M, square⟩ for M of a kind."""
    total = 0.0
    if kind == WHOLE:
        for k in range(size * size):
            total += factor[k] * square[k]
    elif kind == SCALAR:
        for k in range(size):
            total += factor[0] * square[k * size + k]
    return total


@kernel(TRACK)
def traces(acc, x0, x1, t, h, p, data, work):
    """acc[a] += h·Tr[ΣA_a], Σ at x0."""
    layers = depth(p)
    used = vector(p, 4 + layers, 2 * layers)
    d, n_columns = x0.shape
    n = int(p[0])
    X, Y = split(data, p)
    c = vector(work, 0, n)
    for i in range(n):
        c[i] = 1.0
    size = 0
    for l in range(1, layers + 1):
        size += int(used[2 * l - 2]) * width(p, l) ** 2 + int(used[2 * l - 1]) * width(p, l - 1) ** 2
    work = rest(work, n)
    space, mean, squares = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, size)
    work = rest(work, 2 * d + size)
    for b in range(n_columns):
        _moments(squares, mean, column(x0, b, space), X, Y, n, p, used, c, work)
        at = 4 + 3 * layers
        for a in range(acc.shape[0]):
            place = 0
            total = 0.0
            for l in range(1, layers + 1):
                left, right = int(p[at]), int(p[at + 1])
                at += 2
                for side in range(2):
                    kind, m = (left, width(p, l)) if side == 0 else (right, width(p, l - 1))
                    total += _inner(kind, rest(p, at), rest(squares, place), m)
                    at += m * m if kind == WHOLE else (1 if kind == SCALAR else 0)
                    if used[2 * l - 2 + side] != 0.0:
                        place += m * m
            acc[a, b] += h[b] * total
