"""Compiled gradients of `DeepLinear`: weighted over all samples, of one sample, the losses, and the SDE's increment.

θ = [W_1, …, W_D], each raveled in C order · q = [N, scale, D, n_0, …, n_D] · data = [X (N, n_0), Y (N, n_D)] raveled ·
an equation's p = [γ, s] followed by q.
"""

from __future__ import annotations

from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import CHUNK, add_gradient, column, depth, forward, split, width
from sgdsde.models.deep_linear_sample import sample_gradient
from sgdsde.models.model import LOSSES, SAMPLE, WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = ["increment", "losses", "sample", "weighted"]


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
    n0, n_out = width(q, 0), width(q, depth(q))
    sample_gradient(out, theta, vector(X, i * n0, n0), vector(Y, i * n_out, n_out), q, work)


@kernel(LOSSES)
def losses(out, theta, q, data, work):
    """out_i = ℓ_i = scale·‖W_D … W_1 x_i - y_i‖²."""
    X, Y = split(data, q)
    n0, n_out = width(q, 0), width(q, depth(q))
    n = out.shape[0]
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        place = forward(theta, matrix(X, first * n0, rows, n0), rows, q, work)
        R = matrix(work, place, rows, n_out)
        for i in range(rows):
            total = 0.0
            for j in range(n_out):
                r = R[i, j] - Y[(first + i) * n_out + j]
                total += r * r
            out[first + i] = q[1] * total


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
        decay = -2.0 * p[0] * h[b]
        target = vector(out, 0, d) if n_columns == 1 else moved
        for k in range(d):
            target[k] = decay * theta[k]
        add_gradient(target, theta, X, Y, c, n, q, work)
        if n_columns > 1:
            for k in range(d):
                out[k, b] = target[k]
