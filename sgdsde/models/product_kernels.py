"""Compiled kernels of `Product`: f(x) = v·x, v = Σ_i Π_k u_i^(k), all paths of a block side by side.

θ = [u^(1), …, u^(D)], each (width,), so u_i^(k) is θ[(k - 1)·width + i] · q = [N, scale, width, D, β₁, β₂, α₁, α₂, α₃,
E y²] · data = [x (N), y (N)] raveled, empty for a population · an equation's p = [γ, s] followed by q.

∇ℓ_i = 2·scale·(x_i² v - x_i y_i)·∇v, so every gradient is along ∇v, and the noise is one number times ∇v.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import CORRECTION, INCREMENT, STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.model import LOSSES, SAMPLE, WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = ["correction", "increment", "losses", "rank_one", "sample", "step", "weighted"]

N, SCALE, WIDTH, DEPTH, BETA1, BETA2, ALPHA1, ALPHA2, ALPHA3 = range(9)


@inline
def variance(v, q):
    """q(v), not below zero."""
    return max(0.0, (q[ALPHA1] * v - 2.0 * q[ALPHA2]) * v + q[ALPHA3])


@inline
def value_and_slope(out, x, v, after, q):
    """v[b], and out = ∇v: products of the factors before and after, so that a factor of zero divides nothing."""
    n_columns = x.shape[1]
    width, depth = int(q[WIDTH]), int(q[DEPTH])
    for b in range(n_columns):
        v[b] = 0.0
    for i in range(width):
        for b in range(n_columns):
            out[i, b] = 1.0
        for k in range(1, depth):
            r = k * width + i
            for b in range(n_columns):
                out[r, b] = out[r - width, b] * x[r - width, b]
        for b in range(n_columns):
            after[b] = 1.0
        for k in range(depth - 1, -1, -1):
            r = k * width + i
            for b in range(n_columns):
                out[r, b] *= after[b]
                after[b] *= x[r, b]
        for b in range(n_columns):
            v[b] += after[b]


@inline
def pointwise(out, theta, q, work):
    """∇v of one θ, and v."""
    d = theta.shape[0]
    v = vector(work, 0, 1)
    value_and_slope(matrix(out, 0, d, 1), matrix(theta, 0, d, 1), v, vector(work, 1, 1), q)
    return v[0]


@kernel(WEIGHTED)
def weighted(out, theta, c, q, data, work):
    """out = Σ_i c_i ∇ℓ_i."""
    n = c.shape[0]
    v = pointwise(out, theta, q, work)
    total = 0.0
    for i in range(n):
        total += c[i] * data[i] * (v * data[i] - data[n + i])
    for r in range(out.shape[0]):
        out[r] *= 2.0 * q[SCALE] * total


@kernel(SAMPLE)
def sample(out, theta, i, q, data, work):
    """out = ∇ℓ_i."""
    n = int(q[N])
    v = pointwise(out, theta, q, work)
    for r in range(out.shape[0]):
        out[r] *= 2.0 * q[SCALE] * data[i] * (v * data[i] - data[n + i])


@kernel(LOSSES)
def losses(out, theta, q, data, work):
    """out_i = scale·(v x_i - y_i)²."""
    n = out.shape[0]
    v = pointwise(vector(work, 2, theta.shape[0]), theta, q, work)
    for i in range(n):
        out[i] = q[SCALE] * (v * data[i] - data[n + i]) ** 2


@inline
def move(out, x, h, y, p):
    """out = ∇v·y - 2γhθ, with ∇v in `out`."""
    for r in range(x.shape[0]):
        for b in range(x.shape[1]):
            out[r, b] = out[r, b] * y[b] - 2.0 * p[0] * h[b] * x[r, b]


@kernel(INCREMENT)
def rank_one(out, x, t, h, v, p, data, work):
    """The factor G = 2·scale·√q(v)·∇v, one noise: out = ∇v·dY - 2γhθ, dY = -2·scale·(β₁v - β₂)h + s·2·scale·√q·dW."""
    q = rest(p, 2)
    n_columns = x.shape[1]
    value, y = vector(work, 0, n_columns), vector(work, n_columns, n_columns)
    value_and_slope(out, x, value, y, q)
    noisy = v.shape[0] > 0
    for b in range(n_columns):
        y[b] = -2.0 * q[SCALE] * (q[BETA1] * value[b] - q[BETA2]) * h[b]
        if noisy:
            y[b] += 2.0 * q[SCALE] * p[1] * np.sqrt(variance(value[b], q)) * v[0, b]
    move(out, x, h, y, p)


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    """The per-sample factor, N noises: dY = -Σ_i c_i 2·scale·x_i(v x_i - y_i), c_i = h/N - s·(v_i - v̄)/√N."""
    q = rest(p, 2)
    n = int(q[N])
    n_columns = x.shape[1]
    value, y, c = vector(work, 0, n_columns), vector(work, n_columns, n_columns), vector(work, 2 * n_columns, n)
    value_and_slope(out, x, value, y, q)
    for b in range(n_columns):
        sde_weights(c, h[b], v, b, p[1])
        total = 0.0
        for i in range(n):
            total += c[i] * data[i] * (value[b] * data[i] - data[n + i])
        y[b] = 2.0 * q[SCALE] * total
    move(out, x, h, y, p)


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """(s²/4)∇Tr Σ = s²·scale²·(q'‖∇v‖²∇v + 2q∇²v∇v), for both factors: all columns of each are gradients of functions.

    ∇²v∇v = ½∇‖∇v‖², and ‖∇v‖² = Σ_i Σ_k (Π_{m≠k} u_i^(m))².
    """
    q = rest(p, 2)
    d, n_columns = x.shape
    width, depth = int(q[WIDTH]), int(q[DEPTH])
    value, norm, low = (
        vector(work, 0, n_columns),
        vector(work, n_columns, n_columns),
        matrix(work, 2 * n_columns, d, n_columns),
    )
    value_and_slope(low, x, value, norm, q)
    for b in range(n_columns):
        norm[b] = 0.0
    for r in range(d):
        for b in range(n_columns):
            norm[b] += low[r, b] * low[r, b]
    for r in range(d):
        j, i = r // width, r % width
        for b in range(n_columns):
            out[r, b] = 0.0
        for k in range(depth):
            if k != j:
                for b in range(n_columns):
                    product = low[k * width + i, b]
                    for m in range(depth):
                        if m != k and m != j:
                            product *= x[m * width + i, b]
                    out[r, b] += product
        for b in range(n_columns):
            v = value[b]
            slope = 2.0 * (q[ALPHA1] * v - q[ALPHA2])
            factor = (p[1] * q[SCALE]) ** 2
            out[r, b] = factor * (slope * norm[b] * low[r, b] + 2.0 * variance(v, q) * out[r, b])


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """θ' = (1 - 2hγ)θ - h·mean of ∇ℓ_i over aux[:, b], in place."""
    q = rest(p, 2)
    n = int(q[N])
    d, n_columns = x.shape
    size = aux.shape[0]
    value, y, slope = (
        vector(work, 0, n_columns),
        vector(work, n_columns, n_columns),
        matrix(work, 2 * n_columns, d, n_columns),
    )
    value_and_slope(slope, x, value, y, q)
    for b in range(n_columns):
        y[b] = 0.0
    for s in range(size):
        for b in range(n_columns):
            i = int(aux[s, b])
            y[b] += data[i] * (value[b] * data[i] - data[n + i])
    for b in range(n_columns):
        y[b] *= 2.0 * q[SCALE] * h[b] / size
    for r in range(d):
        for b in range(n_columns):
            x[r, b] = (1.0 - 2.0 * h[b] * p[0]) * x[r, b] - slope[r, b] * y[b]
