"""Compiled gradients of `MLP`: weighted over all samples, the losses, and the SDE's increment.

θ, q and the passes are those of `mlp_passes` · data = [X (N, n_0), Y (N, columns)] raveled · an equation's p = [γ, s]
followed by q.
"""

from __future__ import annotations

from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.loss_kernels import values
from sgdsde.models.mlp_passes import (
    COLUMNS,
    LOSS,
    SCALE,
    add_gradient,
    chunk,
    depth,
    forward,
    kept,
    outputs,
    split,
    width,
)
from sgdsde.models.model import LOSSES, WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = ["increment", "losses", "weighted"]


@kernel(WEIGHTED)
def weighted(out, theta, c, q, data, work):
    """out = Σ_i c_i ∇ℓ_i."""
    X, Y = split(data, q)
    for k in range(out.shape[0]):
        out[k] = 0.0
    add_gradient(out, theta, X, Y, c, c.shape[0], q, work)


@kernel(LOSSES)
def losses(out, theta, q, data, work):
    """out_i = ℓ_i."""
    X, Y = split(data, q)
    n, n0, columns = out.shape[0], width(q, 0), int(q[COLUMNS])
    most = min(n, chunk(q))
    acts, work = vector(work, 0, most * outputs(q)), rest(work, most * outputs(q))
    keep, spare = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    for first in range(0, n, most):
        rows = min(most, n - first)
        place = forward(theta, matrix(X, first * n0, rows, n0), q, acts, keep)
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
        decay = -2.0 * p[0] * h[b]
        target = vector(out, 0, d) if n_columns == 1 else moved
        for k in range(d):
            target[k] = decay * theta[k]
        add_gradient(target, theta, X, Y, c, n, q, work)
        if n_columns > 1:
            for k in range(d):
                out[k, b] = target[k]
