"""Discrete SGD of `MLP`, in place: loops over rows for a few samples, matrix products for many; and single gradients.

For few samples what is kept of one is a_1, …, a_{D-1}, o as vectors, layer after layer.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, STEP, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.activations import GELU, activate, chain
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_sample import axpy
from sgdsde.models.deep_linear_step import FEW, copy
from sgdsde.models.matrices import times
from sgdsde.models.mlp_passes import (
    ACTIVATION,
    BIASES,
    COLUMNS,
    SLOPE,
    add_gradient,
    chunk,
    depth,
    hidden,
    kept,
    loss_gradient,
    outputs,
    split,
    widest,
    width,
)
from sgdsde.models.model import SAMPLE

__all__ = ["pull", "sample", "step", "update"]


@kernel(SAMPLE)
def sample(out, theta, i, q, data, work):
    """out = ∇ℓ_i."""
    X, Y = split(data, q)
    n0, columns = width(q, 0), int(q[COLUMNS])
    one, work = vector(work, 0, 1), rest(work, 1)
    one[0] = 1.0
    for k in range(out.shape[0]):
        out[k] = 0.0
    add_gradient(out, theta, vector(X, i * n0, n0), vector(Y, i * columns, columns), one, 1, q, work)


@inline
def _forward(theta, x, q, acts, keep):
    """a_1, …, a_{D-1}, o of one sample."""
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    start = 0
    place = 0
    at = 0
    below = x
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        a = vector(acts, place, n)
        times(a, matrix(theta, start, n, m), below)
        start += n * m
        if q[BIASES] != 0.0:
            axpy(a, 1.0, vector(theta, start, n))
            start += n
        if l < depth(q):
            if kind == GELU:
                activate(kind, slope, a, vector(keep, at, n), vector(keep, at + n, n))
                at += 2 * n
            else:
                activate(kind, slope, a, keep, keep)
        place += n
        below = a


@inline
def pull(out, W, g):
    """out += Wᵀg."""
    n, m = W.shape
    for r in range(n):
        weight = g[r]
        for j in range(m):
            out[j] += weight * W[r, j]


@inline
def update(W, decay, g, a):
    """W = decay·W - g aᵀ."""
    n, m = W.shape
    for r in range(n):
        weight = g[r]
        for j in range(m):
            W[r, j] = decay * W[r, j] - weight * a[j]


@inline
def pull_and_update(out, W, decay, g, a):
    """Both in one pass over W: out += Wᵀg, and then W = decay·W - g aᵀ."""
    n, m = W.shape
    for r in range(n):
        weight = g[r]
        for j in range(m):
            out[j] += weight * W[r, j]
            W[r, j] = decay * W[r, j] - weight * a[j]


@kernel(types.void(VECTOR, VECTOR, VECTOR, BLOCK, types.int64, types.float64, types.float64, VECTOR, VECTOR))
def few_step(theta, X, Y, batch, b, weight, decay, q, work):
    """θ = decay·θ - weight·Σ_s ∇ℓ_s over the samples batch[:, b], layer by layer from the last.

    The old W_l first goes into the W_lᵀδ_l of every sample, then it takes every sample's update; the last sample does
    both at once, so that a single one goes over W_l once forward and once back.
    """
    size = batch.shape[0]
    last = size - 1
    n0, columns, total, more = width(q, 0), int(q[COLUMNS]), outputs(q), kept(q)
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    acts, keeps = vector(work, 0, size * total), vector(work, size * total, size * more)
    work = rest(work, size * (total + more))
    most = max(widest(q), 2)
    pulls, space, one = vector(work, 0, size * most), vector(work, size * most, 2), vector(work, size * most + 2, 1)
    one[0] = weight
    top = width(q, depth(q))
    place = hidden(q)
    for s in range(size):
        i = int(batch[s, b])
        a = vector(acts, s * total, total)
        _forward(theta, vector(X, i * n0, n0), q, a, vector(keeps, s * more, more))
        loss_gradient(matrix(a, place, top, 1), vector(Y, i * columns, columns), 0, one, q, space)
    start = theta.shape[0]
    at = more
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        if q[BIASES] != 0.0:
            start -= n
            bias = vector(theta, start, n)
            for r in range(n):
                bias[r] *= decay
            for s in range(size):
                axpy(bias, -1.0, vector(acts, s * total + place, n))
        start -= n * m
        W = matrix(theta, start, n, m)
        if l == 1:
            for s in range(size):
                x = vector(X, int(batch[s, b]) * n0, n0)
                update(W, decay if s == 0 else 1.0, vector(acts, s * total + place, n), x)
            return
        for k in range(size * m):
            pulls[k] = 0.0
        for s in range(size):
            g, a = vector(acts, s * total + place, n), vector(acts, s * total + place - m, m)
            if s < last:
                pull(vector(pulls, s * m, m), W, g)
            else:
                pull_and_update(vector(pulls, s * m, m), W, decay, g, a)
        for s in range(last):
            update(W, 1.0, vector(acts, s * total + place, n), vector(acts, s * total + place - m, m))
        place -= m
        if kind == GELU:
            at -= 2 * m
        for s in range(size):
            a = vector(acts, s * total + place, m)
            chain(kind, slope, a, vector(pulls, s * m, m), rest(keeps, s * more + at))


@inline
def many_step(theta, X, Y, batch, b, weight, decay, q, work):
    """θ = decay·θ - weight·Σ_s ∇ℓ_s by matrix products over gathered rows."""
    size, d = batch.shape[0], theta.shape[0]
    n0, columns = width(q, 0), int(q[COLUMNS])
    most = min(chunk(q), size)
    c, moved = vector(work, 0, most), vector(work, most, d)
    rows_x, rows_y = vector(work, most + d, most * n0), vector(work, most * (1 + n0) + d, most * columns)
    work = rest(work, most * (1 + n0 + columns) + d)
    for k in range(d):
        moved[k] = decay * theta[k]
    for s in range(most):
        c[s] = -weight
    for first in range(0, size, most):
        rows = min(most, size - first)
        for s in range(rows):
            i = int(batch[first + s, b])
            copy(vector(rows_x, s * n0, n0), vector(X, i * n0, n0))
            copy(vector(rows_y, s * columns, columns), vector(Y, i * columns, columns))
        add_gradient(moved, theta, rows_x, rows_y, c, rows, q, work)
    copy(theta, moved)


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """θ' = (1 - 2hγ)θ - h·(mean of ∇ℓ_i over the samples of aux[:, b]), h the learning rate, in place."""
    q = rest(p, 2)
    d, n_columns = x.shape
    size = aux.shape[0]
    X, Y = split(data, q)
    space, work = vector(work, 0, d), rest(work, d)
    for b in range(n_columns):
        theta = column(x, b, space)
        decay = 1.0 - 2.0 * h[b] * p[0]
        if size <= FEW:
            few_step(theta, X, Y, aux, b, h[b] / size, decay, q, work)
        else:
            many_step(theta, X, Y, aux, b, h[b] / size, decay, q, work)
        if n_columns > 1:
            for k in range(d):
                x[k, b] = theta[k]
