"""Compiled gradients of `RadialNetwork`: weighted over all samples, single, and of batches in place; the increment.

θ, q and the passes are those of `radial_passes` · data = [X (N, n_0), Y (N, columns)] raveled · an equation's p is
[γ, s] followed by q.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, INCREMENT, STEP, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_sample import axpy
from sgdsde.models.deep_linear_step import FEW, copy
from sgdsde.models.loss_kernels import values
from sgdsde.models.matrices import times
from sgdsde.models.mlp_passes import (
    ACTIVATION,
    BIASES,
    COLUMNS,
    LOSS,
    SCALE,
    chunk,
    depth,
    hidden,
    loss_gradient,
    outputs,
    split,
    widest,
    width,
)
from sgdsde.models.mlp_step import pull, update
from sgdsde.models.model import LOSSES, SAMPLE, WEIGHTED
from sgdsde.models.radial_functions import profile
from sgdsde.models.radial_passes import add_gradient, forward, kept
from sgdsde.models.weights import sde_weights

__all__ = ["increment", "losses", "sample", "step", "weighted"]


@kernel(WEIGHTED)
def weighted(out, theta, c, q, data, work):
    """out = Σ_i c_i ∇ℓ_i."""
    X, Y = split(data, q)
    for k in range(out.shape[0]):
        out[k] = 0.0
    add_gradient(out, theta, X, Y, c, c.shape[0], q, work)


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


@kernel(LOSSES)
def losses(out, theta, q, data, work):
    """out_i = ℓ_i."""
    X, Y = split(data, q)
    n, n0, columns = out.shape[0], width(q, 0), int(q[COLUMNS])
    most = min(n, chunk(q))
    acts, work = vector(work, 0, most * outputs(q)), rest(work, most * outputs(q))
    pre, work = vector(work, 0, most * hidden(q)), rest(work, most * hidden(q))
    keep, spare = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    for first in range(0, n, most):
        rows = min(most, n - first)
        place = forward(theta, matrix(X, first * n0, rows, n0), q, acts, pre, keep)
        O = matrix(acts, place, width(q, depth(q)), rows)
        values(int(q[LOSS]), vector(out, first, rows), O, rest(Y, first * columns), columns, q[SCALE], spare)


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    """out = -Σ_i c_i ∇ℓ_i - 2γhθ, c_i = h/N - s·(v_i - v̄)/√N: one weighted gradient, however many samples."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[0])
    X, Y = split(data, q)
    c, space, moved = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d)
    work = rest(work, n + 2 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        sde_weights(c, h[b], v, b, p[1])
        for k in range(d):
            moved[k] = -2.0 * p[0] * h[b] * theta[k]
        add_gradient(moved, theta, X, Y, c, n, q, work)
        for k in range(d):
            out[k, b] = moved[k]


@inline
def _forward(theta, x, q, acts, pre, keep):
    """a_l, z_l, and φ and φ' of one sample, which stand where those of a layer do."""
    kind, top = int(q[ACTIVATION]), depth(q)
    start = place = 0
    below = x
    for l in range(1, top + 1):
        n, m = width(q, l), width(q, l - 1)
        z, a = vector(acts if l == top else pre, place, n), vector(acts, place, n)
        times(z, matrix(theta, start, n, m), below)
        start += n * m
        if q[BIASES] != 0.0:
            axpy(z, 1.0, vector(theta, start, n))
            start += n
        if l < top:
            at = 3 * (l - 1)
            keep[at], keep[at + 1], keep[at + 2] = profile(kind, dot(z, z))
            for j in range(n):
                a[j] = keep[at] * z[j]
        place += n
        below = a


@kernel(types.void(VECTOR, VECTOR, VECTOR, BLOCK, types.int64, types.float64, types.float64, VECTOR, VECTOR))
def few_step(theta, X, Y, batch, b, weight, decay, q, work):
    """θ = decay·θ - weight·Σ_s ∇ℓ_s over the samples batch[:, b], layer by layer from the last."""
    size = batch.shape[0]
    n0, columns, total, more, top = width(q, 0), int(q[COLUMNS]), outputs(q), kept(q), depth(q)
    acts, pre = vector(work, 0, size * total), vector(work, size * total, size * total)
    keep, work = vector(work, 2 * size * total, size * more), rest(work, size * (2 * total + more))
    most = max(widest(q), 2)
    pulls, space, one = vector(work, 0, size * most), vector(work, size * most, 2), vector(work, size * most + 2, 1)
    one[0] = weight
    place = hidden(q)
    for s in range(size):
        i = int(batch[s, b])
        a = vector(acts, s * total, total)
        _forward(theta, vector(X, i * n0, n0), q, a, vector(pre, s * total, total), vector(keep, s * more, more))
        loss_gradient(matrix(a, place, width(q, top), 1), vector(Y, i * columns, columns), 0, one, q, space)
    start = theta.shape[0]
    for l in range(top, 0, -1):
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
        if l > 1:
            for k in range(size * m):
                pulls[k] = 0.0
            for s in range(size):
                pull(vector(pulls, s * m, m), W, vector(acts, s * total + place, n))
        for s in range(size):
            low = vector(X, int(batch[s, b]) * n0, n0) if l == 1 else vector(acts, s * total + place - m, m)
            update(W, decay if s == 0 else 1.0, vector(acts, s * total + place, n), low)
        if l == 1:
            return
        place -= m
        for s in range(size):
            a, z, e = vector(acts, s * total + place, m), vector(pre, s * total + place, m), vector(pulls, s * m, m)
            at = s * more + 3 * (l - 2)
            along = 2.0 * keep[at + 1] * dot(z, e)
            for j in range(m):
                a[j] = keep[at] * e[j] + along * z[j]


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
