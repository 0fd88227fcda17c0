"""Discrete SGD of `DeepLinear`: the batch step in place, sample by sample for few, by matrix products for many."""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import rest, vector
from sgdsde.models.deep_linear_passes import CHUNK, add_gradient, column, depth, split, width
from sgdsde.models.deep_linear_sample import few_step

__all__ = ["step"]

FEW = 4
"""Batches up to this size go sample by sample, larger ones by matrix products."""


@inline
def copy(target, source):
    for k in range(target.shape[0]):
        target[k] = source[k]


@inline
def many_step(theta, X, Y, batch, b, weight, decay, q, work):
    """As `few_step`, by matrix products over gathered rows: θ = decay·θ + weight·Σ_s ∇ℓ_s."""
    size = batch.shape[0]
    n0, n_out = width(q, 0), width(q, depth(q))
    d = theta.shape[0]
    most = min(CHUNK, size)
    c, update = vector(work, 0, most), vector(work, most, d)
    rows_x, rows_y = vector(work, most + d, most * n0), vector(work, most * (1 + n0) + d, most * n_out)
    work = rest(work, most * (1 + n0 + n_out) + d)
    for k in range(d):
        update[k] = decay * theta[k]
    for s in range(most):
        c[s] = weight
    for first in range(0, size, most):
        rows = min(most, size - first)
        for s in range(rows):
            i = int(batch[first + s, b])
            copy(vector(rows_x, s * n0, n0), vector(X, i * n0, n0))
            copy(vector(rows_y, s * n_out, n_out), vector(Y, i * n_out, n_out))
        add_gradient(update, theta, rows_x, rows_y, c, rows, q, work)
    copy(theta, update)


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
            few_step(theta, X, Y, aux, b, 2.0 * q[1] * h[b] / size, decay, q, work)
        else:
            many_step(theta, X, Y, aux, b, -h[b] / size, decay, q, work)
        if n_columns > 1:
            for k in range(d):
                x[k, b] = theta[k]
