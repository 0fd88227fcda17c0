"""Forward, backward and tangent passes of f(x) = W_D … W_1 x over many samples at once, by matrix products.

A pass sees `rows` samples as a matrix (rows, n_0). What it keeps is rows × (n_1 + … + n_D) numbers, the outputs of the
layers, one after another in `acts`; nothing has N·d or d² numbers. θ and q are as in `deep_linear`: θ = [W_1, …, W_D],
W_l of shape (n_l, n_{l-1}); q = [N, scale, D, n_0, …, n_D]. Sample i has ℓ = scale·‖r‖², r = f(x) - y, and

    δ_D = 2·scale·r,   δ_{l-1} = W_lᵀ δ_l,   ∇_{W_l} ℓ = δ_l a_{l-1}ᵀ,   a_0 = x, a_l = W_l a_{l-1}.
"""

from __future__ import annotations

import numpy as np

from sgdsde._jit import inline
from sgdsde._views import matrix, rest, vector

__all__ = [
    "CHUNK",
    "add_gradient",
    "backward",
    "column",
    "depth",
    "forward",
    "residual",
    "row_norms",
    "split",
    "width",
]

CHUNK = 1024
"""Samples that a pass takes at once: scratch does not grow with N, and what a pass keeps stays near the cache."""


@inline
def depth(q):
    return int(q[2])


@inline
def width(q, l):
    """n_l."""
    return int(q[3 + l])


@inline
def split(data, q):
    """X and Y, flat."""
    cut = int(q[0]) * width(q, 0)
    return vector(data, 0, cut), rest(data, cut)


@inline
def column(x, b, space):
    """Column b of x as a contiguous vector: x itself when it has one column, else a copy in `space`."""
    d, n = x.shape
    if n == 1:
        return vector(x, 0, d)
    copy = vector(space, 0, d)
    for i in range(d):
        copy[i] = x[i, b]
    return copy


@inline
def forward(theta, X, rows, q, acts):
    """a_1, …, a_D of the rows of X into `acts`; returns the place of a_D. X with no row stands for the unit matrix."""
    start = 0
    place = 0
    below = X
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        if l > 1:
            place += rows * m
        a = matrix(acts, place, rows, n)
        W = matrix(theta, start, n, m)
        if below.shape[0] > 0:
            np.dot(below, W.T, a)
        else:
            for i in range(m):
                for j in range(n):
                    a[i, j] = W[j, i]
        start += n * m
        below = a
    return place


@inline
def residual(R, Y, first, c, factor):
    """In place: row i of R, an output of the network, becomes factor·c[first + i]·(R - y)."""
    rows, n = R.shape
    for i in range(rows):
        weight = factor * c[first + i]
        r = R[i]
        y = vector(Y, (first + i) * n, n)
        for j in range(n):
            r[j] = weight * (r[j] - y[j])


@inline
def backward(out, theta, X, rows, q, acts, spare):
    """Add Σ_i δ_l a_{l-1}ᵀ to the blocks of `out`, from δ_D in the place of a_D. Each a_l is replaced by δ_l."""
    start = out.shape[0]
    place = 0
    for l in range(1, depth(q)):
        place += rows * width(q, l)
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        delta = matrix(acts, place, rows, n)
        product = matrix(spare, 0, n, m)
        if l > 1:
            place -= rows * m
            below = matrix(acts, place, rows, m)
            np.dot(delta.T, below, product)
            np.dot(delta, matrix(theta, start, n, m), below)
        elif X.shape[0] > 0:
            np.dot(delta.T, X, product)
        else:
            for j in range(n):
                for i in range(m):
                    product[j, i] = delta[i, j]
        add(out, start, product)


@inline
def add(out, start, product):
    """out[start:] += product."""
    size = product.size
    flat = vector(product, 0, size)
    block = vector(out, start, size)
    for k in range(size):
        block[k] += flat[k]


@inline
def row_norms(A, out):
    """‖row‖² of each row of A."""
    for i in range(A.shape[0]):
        a = A[i]
        total = 0.0
        for j in range(a.shape[0]):
            total += a[j] * a[j]
        out[i] = total


@inline
def is_collapsed(q, n):
    """Whether a pass over n samples is cheaper through the product W_D … W_1 than layer by layer."""
    layers = 0.0
    upper = 0.0
    for l in range(1, depth(q) + 1):
        size = q[3 + l] * q[2 + l]
        layers += size
        if l > 1:
            upper += size
    n0 = q[3]
    return 2.0 * n * n0 * q[3 + depth(q)] + 3.0 * n0 * upper < n * (2.0 * layers + upper)


@inline
def add_gradient(out, theta, X, Y, c, n, q, work):
    """out += Σ_{i<n} c_i ∇ℓ_i; X and Y are flat, n rows each.

    Layer by layer a pass costs Σ_l n_l n_{l-1} multiplications a sample forward, as many for the gradient, and once
    more without the first layer for δ. In a linear network all of it goes through P = W_D … W_1 and
    M = Σ_i c_i δ_i x_iᵀ. Without a bottleneck it is cheaper to touch the samples by two matrix products only, R = X Pᵀ
    and Mᵀ = XᵀR, and to pass the n_0 unit vectors through the layers in place of the samples, with δ_D = Mᵀ.
    """
    n0, n_out = width(q, 0), width(q, depth(q))
    most = 0
    for l in range(1, depth(q) + 1):
        most = max(most, width(q, l) * width(q, l - 1))
    spare, work = vector(work, 0, most), rest(work, most)
    factor = 2.0 * q[1]
    if not is_collapsed(q, n):
        for first in range(0, n, CHUNK):
            rows = min(CHUNK, n - first)
            samples = matrix(X, first * n0, rows, n0)
            place = forward(theta, samples, rows, q, work)
            residual(matrix(work, place, rows, n_out), Y, first, c, factor)
            backward(out, theta, samples, rows, q, work, spare)
        return
    unit = matrix(X, 0, 0, n0)
    place = forward(theta, unit, n0, q, work)
    through = matrix(work, place, n0, n_out)  # Pᵀ
    place += n0 * n_out
    total = vector(work, place, n0 * n_out)  # Mᵀ
    product = matrix(work, place + n0 * n_out, n0, n_out)
    for k in range(n0 * n_out):
        total[k] = 0.0
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        samples = matrix(X, first * n0, rows, n0)
        R = matrix(work, place + 2 * n0 * n_out, rows, n_out)
        np.dot(samples, through, R)
        residual(R, Y, first, c, factor)
        np.dot(samples.T, R, product)
        add(total, 0, product)
    flat = vector(through, 0, n0 * n_out)
    for k in range(n0 * n_out):
        flat[k] = total[k]
    backward(out, theta, unit, n0, q, work, spare)
