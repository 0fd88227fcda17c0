"""f(x) = W_D … W_1 x for one or a few samples: loops over rows in place of matrix products, whose calls cost more.

Activations and δ of one sample are vectors of n_1 + … + n_D numbers, layer after layer.
"""

from __future__ import annotations

import numpy as np

from sgdsde._jit import inline
from sgdsde._views import matrix, vector
from sgdsde.models.deep_linear_passes import depth, width

__all__ = ["few_step", "n_outputs", "sample_gradient"]

LOOP = 400
"""Matrices smaller than this are multiplied by loops, larger ones by BLAS."""


@inline
def n_outputs(q):
    """n_1 + … + n_D."""
    total = 0
    for l in range(1, depth(q) + 1):
        total += width(q, l)
    return total


@inline
def multiply(W, x, out):
    """out = W x, four rows at a time: four sums that do not wait for each other."""
    n, m = W.shape
    if W.size >= LOOP:
        np.dot(W, x, out)
        return
    quads = n // 4
    for k in range(quads):
        w0, w1, w2, w3 = W[4 * k], W[4 * k + 1], W[4 * k + 2], W[4 * k + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(m):
            s0 += w0[j] * x[j]
            s1 += w1[j] * x[j]
            s2 += w2[j] * x[j]
            s3 += w3[j] * x[j]
        out[4 * k], out[4 * k + 1], out[4 * k + 2], out[4 * k + 3] = s0, s1, s2, s3
    for r in range(4 * quads, n):
        w = W[r]
        s = 0.0
        for j in range(m):
            s += w[j] * x[j]
        out[r] = s


@inline
def sample_forward(theta, x, y, factor, q, acts, delta):
    """a_1, …, a_D of one sample, and δ_D = factor·(a_D - y)."""
    start = 0
    place = 0
    below = x
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        a = vector(acts, place, n)
        multiply(matrix(theta, start, n, m), below, a)
        start += n * m
        place += n
        below = a
    top = vector(delta, place - below.shape[0], below.shape[0])
    for j in range(y.shape[0]):
        top[j] = factor * (below[j] - y[j])


@inline
def sample_gradient(out, theta, x, y, q, work):
    """out = ∇ℓ of one sample."""
    total = n_outputs(q)
    acts, delta = vector(work, 0, total), vector(work, total, total)
    sample_forward(theta, x, y, 2.0 * q[1], q, acts, delta)
    start = out.shape[0]
    place = total
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        place -= n
        W = matrix(theta, start, n, m)
        G = matrix(out, start, n, m)
        here = vector(delta, place, n)
        if l > 1:
            a, below = vector(acts, place - m, m), vector(delta, place - m, m)
            for j in range(m):
                below[j] = 0.0
            for r in range(n):
                w = W[r]
                for j in range(m):
                    below[j] += here[r] * w[j]
        else:
            a = x
        for r in range(n):
            g = G[r]
            for j in range(m):
                g[j] = here[r] * a[j]


@inline
def few_step(theta, X, Y, batch, b, factor, decay, q, work):
    """In place: θ = decay·θ - Σ_s δ_l a_{l-1}ᵀ over the samples batch[:, b], with δ_D = factor·(a_D - y).

    Row by row of each W_l: its old value first goes into the δ_{l-1} of every sample, then it takes every sample's
    update, the last sample doing both at once.
    """
    size = batch.shape[0]
    total = n_outputs(q)
    n0, n_out = width(q, 0), width(q, depth(q))
    acts, deltas = vector(work, 0, size * total), vector(work, size * total, size * total)
    for s in range(size):
        i = int(batch[s, b])
        x, y = vector(X, i * n0, n0), vector(Y, i * n_out, n_out)
        at = s * total
        sample_forward(theta, x, y, factor, q, vector(acts, at, total), vector(deltas, at, total))
    last = size - 1
    end = last * total
    start = theta.shape[0]
    place = total
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        place -= n
        W = matrix(theta, start, n, m)
        here = vector(deltas, end + place, n)
        if l > 1:
            for s in range(size):
                low = vector(deltas, s * total + place - m, m)
                for j in range(m):
                    low[j] = 0.0
            a, below = vector(acts, end + place - m, m), vector(deltas, end + place - m, m)
            for r in range(n):
                w = W[r]
                for s in range(last):
                    at = s * total + place
                    axpy(vector(deltas, at - m, m), deltas[at + r], w)
                g = here[r]
                for j in range(m):
                    below[j] += g * w[j]
                    w[j] = decay * w[j] - g * a[j]
                for s in range(last):
                    at = s * total + place
                    axpy(w, -deltas[at + r], vector(acts, at - m, m))
        else:
            i = int(batch[last, b])
            a = vector(X, i * n0, n0)
            for r in range(n):
                w = W[r]
                g = here[r]
                for j in range(m):
                    w[j] = decay * w[j] - g * a[j]
                for s in range(last):
                    i = int(batch[s, b])
                    axpy(w, -deltas[s * total + place + r], vector(X, i * n0, n0))


@inline
def axpy(y, a, x):
    """y += a·x."""
    for j in range(y.shape[0]):
        y[j] += a * x[j]
