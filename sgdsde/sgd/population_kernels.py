"""Discrete SGD on data made at each step: fresh samples of a Gaussian law, and samples whose labels get fresh noise.

The random numbers of a step come in `aux`; the batch is put together in scratch, laid out as the model's data are,
X (S, d_x) and then Y (S, d_y), and the model's own batch step is called on it, column by column, through its address.
q of the model stands in `p` behind [γ, 0]; what a kernel here needs beyond stands at the end of `data`.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import AUX, AUXILIARY, BATCH, STEP
from sgdsde._address import function_at
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_sample import axpy
from sgdsde.random.integers import fill_indices, fill_subsets
from sgdsde.random.normal import fill_normals
from sgdsde.sgd.batches import shuffled

__all__ = [
    "FRESH_TAIL",
    "NOISY_TAIL",
    "fresh",
    "fresh_step",
    "noisy_shuffled",
    "noisy_step",
    "noisy_with_replacement",
    "noisy_without_replacement",
]

FRESH_TAIL, NOISY_TAIL = 7, 6
_model_step = function_at(STEP)


@inline
def _one(increment, correction, step, theta, t, h, b, order, status, work, p, batch):
    """The model's step of one column on the batch that stands in `batch`."""
    d = theta.shape[0]
    none = matrix(work, 0, 0, 1)
    x, t1, h1 = matrix(theta, 0, d, 1), vector(t, b, 1), vector(h, b, 1)
    step(increment, correction, x, t1, h1, none, order, status, work, p, batch)


@inline
def _column(x, b, space):
    """Column b of x as a vector: x itself when it has one column, else a copy in `space`."""
    d, n = x.shape
    if n == 1:
        return vector(x, 0, d)
    copy = vector(space, 0, d)
    for i in range(d):
        copy[i] = x[i, b]
    return copy


@inline
def _put_back(x, b, theta):
    if x.shape[1] > 1:
        for i in range(theta.shape[0]):
            x[i, b] = theta[i]


@kernel(AUX)
def fresh(aux, dW, h, path, step, key, p, data, work):
    """The standard normal numbers of which the samples of a step are made."""
    fill_normals(aux, step * aux.shape[0], path, BATCH, key)


@kernel(STEP)
def fresh_step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """One step on S samples x = μ + Lz, y = Vx + Mε; aux holds z (k) and ε (r) of each, one sample after another.

    The end of data: μ (d_x), Lᵀ (k, d_x), Vᵀ (d_x, d_y), Mᵀ (r, d_y), d_x, d_y, k, r, the words of the model's step.
    """
    d, n_columns = x.shape
    end = data.shape[0] - FRESH_TAIL
    dx, dy, k, r = int(data[end]), int(data[end + 1]), int(data[end + 2]), int(data[end + 3])
    step = _model_step(np.int64(data[end + 4]), np.int64(data[end + 5]), np.int64(data[end + 6]))
    start = end - dx - dx * k - dy * dx - dy * r
    mean, L = vector(data, start, dx), matrix(data, start + dx, k, dx)
    V, M = matrix(data, start + dx + dx * k, dx, dy), matrix(data, end - dy * r, r, dy)
    size = aux.shape[0] // (k + r)
    batch, order = vector(work, 0, size * (dx + dy)), matrix(work, size * (dx + dy), size, 1)
    space, tail = vector(work, size * (dx + dy + 1), d), rest(work, size * (dx + dy + 1) + d)
    for s in range(size):
        order[s, 0] = s
    for b in range(n_columns):
        for s in range(size):
            own, labels, at = vector(batch, s * dx, dx), vector(batch, size * dx + s * dy, dy), s * (k + r)
            for i in range(dx):
                own[i] = mean[i]
            for i in range(dy):
                labels[i] = 0.0
            for j in range(k):
                axpy(own, aux[at + j, b], vector(L, j * dx, dx))
            for j in range(dx):
                axpy(labels, own[j], vector(V, j * dy, dy))
            for j in range(r):
                axpy(labels, aux[at + k + j, b], vector(M, j * dy, dy))
        theta = _column(x, b, space)
        _one(increment, correction, step, theta, t, h, b, order, status, tail, p, batch)
        _put_back(x, b, theta)


@kernel(STEP)
def noisy_step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """One step on the samples whose indices are aux[:S], their labels moved by std·aux[S:], d_y numbers each.

    p = [γ, 0, *q of N samples, *q of S samples, S, d_y]; data are X (N, d_x), Y (N, d_y), then std (d_y), d_x, d_y, N
    and the words of the model's step.
    """
    d, n_columns = x.shape
    end = data.shape[0] - NOISY_TAIL
    dx, dy, n = int(data[end]), int(data[end + 1]), int(data[end + 2])
    step = _model_step(np.int64(data[end + 3]), np.int64(data[end + 4]), np.int64(data[end + 5]))
    std = vector(data, end - dy, dy)
    size = aux.shape[0] // (1 + dy)
    batch, order = vector(work, 0, size * (dx + dy)), matrix(work, size * (dx + dy), size, 1)
    at = size * (dx + dy + 1)
    length = (p.shape[0] - 4) // 2
    own_p, at = vector(work, at, 2 + length), at + 2 + length
    space, tail = vector(work, at, d), rest(work, at + d)
    for i in range(2):
        own_p[i] = p[i]
    for i in range(length):
        own_p[2 + i] = p[2 + length + i]
    for s in range(size):
        order[s, 0] = s
    for b in range(n_columns):
        for s in range(size):
            i = int(aux[s, b])
            for j in range(dx):
                batch[s * dx + j] = data[i * dx + j]
            for j in range(dy):
                noise = std[j] * aux[size + s * dy + j, b]
                batch[size * dx + s * dy + j] = data[n * dx + i * dy + j] + noise
        theta = _column(x, b, space)
        _one(increment, correction, step, theta, t, h, b, order, status, tail, own_p, batch)
        _put_back(x, b, theta)


@inline
def _sizes(aux, p):
    """S and d_y, which end p, and how many batches a step has."""
    end = p.shape[0]
    size, dy = int(p[end - 2]), int(p[end - 1])
    return size, dy, aux.shape[0] // (size * (1 + dy))


@inline
def _half(aux, half, size, dy):
    """Rows of one batch: its indices, and its noise."""
    n_columns = aux.shape[1]
    at = half * size * (1 + dy) * n_columns
    return matrix(aux, at, size, n_columns), matrix(aux, at + size * n_columns, size * dy, n_columns)


@kernel(AUX)
def noisy_with_replacement(aux, dW, h, path, step, key, p, data, work):
    """The same indices as without label noise, and the noise of each label."""
    size, dy, halves = _sizes(aux, p)
    for half in range(halves):
        index, noise = _half(aux, half, size, dy)
        number = halves * step + half
        fill_indices(index, number * size, path, BATCH, key, int(p[2]))
        fill_normals(noise, number * size * dy, path, AUXILIARY, key)


@kernel(AUX)
def noisy_without_replacement(aux, dW, h, path, step, key, p, data, work):
    size, dy, halves = _sizes(aux, p)
    for half in range(halves):
        index, noise = _half(aux, half, size, dy)
        number = halves * step + half
        fill_subsets(index, number * size, path, BATCH, key, int(p[2]), work)
        fill_normals(noise, number * size * dy, path, AUXILIARY, key)


@kernel(AUX)
def noisy_shuffled(aux, dW, h, path, step, key, p, data, work):
    size, dy, _ = _sizes(aux, p)
    index, noise = _half(aux, 0, size, dy)
    shuffled(index, dW, h, path, step, key, p, data, work)
    fill_normals(noise, step * size * dy, path, AUXILIARY, key)
