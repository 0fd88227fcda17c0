"""Compiled gradients of `DiagonalLinear`: f(x) = Σ_j v_j x_j, v_j = Σ_i Π_k u_{ji}^(k), weighted and of batches.

θ = [u^(1), …, u^(D)], each (n, width) raveled, so that chain c = j·width + i has factor k at θ[(k - 1)·n·width + c] ·
q = [N, scale, n, width, D] · data = [X (N, n), Y (N)] raveled · an equation's p = [γ, s] followed by q.

    ∇ℓ_i = Σ_j a_ij ∇v_j,   a_ij = 2·scale·r_i x_ij,   r_i = v·x_i - y_i

A pass reads X once, row by row: the residual of a sample and its part of Σ_i c_i a_i, 2n multiplications. No two v_j
have a parameter in common, so each component of θ knows one j.
"""

from __future__ import annotations

from sgdsde._abi import INCREMENT, STEP
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import rest, vector
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_sample import axpy
from sgdsde.models.model import LOSSES, SAMPLE, WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = [
    "DEPTH",
    "INPUTS",
    "SCALE",
    "WIDTH",
    "increment",
    "losses",
    "residual",
    "sample",
    "slopes",
    "step",
    "weighted",
]

N, SCALE, INPUTS, WIDTH, DEPTH = range(5)


@inline
def slopes(out, theta, v, after, q):
    """out = ∂v_j/∂θ, of the one j of each component, and v. Products of the factors before and after: a factor of zero
    divides nothing. `after` holds a number for each chain."""
    n, width, depth = int(q[INPUTS]), int(q[WIDTH]), int(q[DEPTH])
    chains = n * width
    first = vector(out, 0, chains)
    for c in range(chains):
        first[c] = after[c] = 1.0
    for k in range(1, depth):
        low, here = vector(out, (k - 1) * chains, chains), vector(out, k * chains, chains)
        u = vector(theta, (k - 1) * chains, chains)
        for c in range(chains):
            here[c] = low[c] * u[c]
    for k in range(depth - 1, -1, -1):
        here, u = vector(out, k * chains, chains), vector(theta, k * chains, chains)
        for c in range(chains):
            here[c] *= after[c]
            after[c] *= u[c]
    for j in range(n):
        v[j] = 0.0
        for i in range(width):
            v[j] += after[j * width + i]


@inline
def residual(v, data, i, q):
    """r_i and the row x_i."""
    n = v.shape[0]
    x = vector(data, i * n, n)
    return dot(x, v) - data[int(q[N]) * n + i], x


@inline
def pull(out, slope, m, theta, decay, q):
    """out = decay·θ + Σ_j m_j ∇v_j; out may be θ or the slopes."""
    width = int(q[WIDTH])
    chains = m.shape[0] * width
    for k in range(int(q[DEPTH])):
        for j in range(m.shape[0]):
            for r in range(k * chains + j * width, k * chains + (j + 1) * width):
                out[r] = decay * theta[r] + slope[r] * m[j]


@inline
def _room(theta, q, work):
    """Scratch for `slopes`, and Σ c_i a_i: v, m, after, slope."""
    n = int(q[INPUTS])
    chains = n * int(q[WIDTH])
    d = theta.shape[0]
    return vector(work, 0, n), vector(work, n, n), vector(work, 2 * n, chains), vector(work, 2 * n + chains, d)


@kernel(WEIGHTED)
def weighted(out, theta, c, q, data, work):
    """out = Σ_i c_i ∇ℓ_i."""
    v, m, after, slope = _room(theta, q, work)
    slopes(slope, theta, v, after, q)
    for j in range(m.shape[0]):
        m[j] = 0.0
    for i in range(c.shape[0]):
        r, x = residual(v, data, i, q)
        axpy(m, 2.0 * q[SCALE] * c[i] * r, x)
    pull(out, slope, m, theta, 0.0, q)


@kernel(SAMPLE)
def sample(out, theta, i, q, data, work):
    """out = ∇ℓ_i."""
    v, m, after, slope = _room(theta, q, work)
    slopes(slope, theta, v, after, q)
    r, x = residual(v, data, i, q)
    for j in range(m.shape[0]):
        m[j] = 2.0 * q[SCALE] * r * x[j]
    pull(out, slope, m, theta, 0.0, q)


@kernel(LOSSES)
def losses(out, theta, q, data, work):
    """out_i = scale·r_i²."""
    v, _, after, slope = _room(theta, q, work)
    slopes(slope, theta, v, after, q)
    for i in range(out.shape[0]):
        r, _ = residual(v, data, i, q)
        out[i] = q[SCALE] * r * r


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    """out = -Σ_i c_i ∇ℓ_i - 2γhθ, c_i = h/N - s·(v_i - v̄)/√N: one pass over the samples, however many."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[N])
    c, space, work = vector(work, 0, n), vector(work, n, d), rest(work, n + d)
    value, m, after, slope = _room(space, q, work)
    for b in range(n_columns):
        theta = column(x, b, space)
        sde_weights(c, h[b], v, b, p[1])
        slopes(slope, theta, value, after, q)
        for j in range(m.shape[0]):
            m[j] = 0.0
        for i in range(n):
            r, row = residual(value, data, i, q)
            axpy(m, 2.0 * q[SCALE] * c[i] * r, row)
        pull(slope, slope, m, theta, -2.0 * p[0] * h[b], q)
        for k in range(d):
            out[k, b] = slope[k]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """θ' = (1 - 2hγ)θ - h·(mean of ∇ℓ_i over the samples of aux[:, b]), h the learning rate, in place."""
    q = rest(p, 2)
    d, n_columns = x.shape
    size = aux.shape[0]
    space, work = vector(work, 0, d), rest(work, d)
    v, m, after, slope = _room(space, q, work)
    for b in range(n_columns):
        theta = column(x, b, space)
        slopes(slope, theta, v, after, q)
        for j in range(m.shape[0]):
            m[j] = 0.0
        weight = -2.0 * q[SCALE] * h[b] / size
        for s in range(size):
            r, row = residual(v, data, int(aux[s, b]), q)
            axpy(m, weight * r, row)
        pull(theta, slope, m, theta, 1.0 - 2.0 * h[b] * p[0], q)
        if n_columns > 1:
            for k in range(d):
                x[k, b] = theta[k]
