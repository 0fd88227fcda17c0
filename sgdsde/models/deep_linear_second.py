"""What `DeepLinear` knows of single samples without their gradients, layer by layer: ‖∇ℓ_i‖² and Tr H_i.

    ‖∇_{W_l} ℓ_i‖² = ‖δ_l‖² ‖a_{l-1}‖²,      Tr of the block of W_l in H_i = 2·scale·‖B_l‖² ‖a_{l-1}‖²

The norms of B_l = W_D … W_{l+1} are those of matrices that all samples share.
"""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import CHUNK, depth, forward, residual, row_norms, split, width
from sgdsde.models.deep_linear_sample import n_outputs
from sgdsde.models.deep_linear_tangent import deltas, fill
from sgdsde.models.model import LOSSES

__all__ = ["add_norms", "add_traces", "gradient_norms", "hessian_traces"]


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def add_norms(out, factors, theta, q, data, work):
    """out_i += Σ_l factors_l ‖∇_{W_l} ℓ_i‖²; the factor of layer l is number l - 1."""
    X, Y = split(data, q)
    n, n0, n_out = out.shape[0], width(q, 0), width(q, depth(q))
    most = min(n, CHUNK)
    ones, below, above, work = (
        vector(work, 0, n),
        vector(work, n, most),
        vector(work, n + most, most),
        rest(work, n + 2 * most),
    )
    fill(ones, 1.0)
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        size = rows * n_outputs(q)
        acts, delta = vector(work, 0, size), vector(work, size, size)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, rows, q, acts)
        for k in range(place, place + rows * n_out):
            delta[k] = acts[k]
        residual(matrix(delta, place, rows, n_out), Y, first, ones, 2.0 * q[1])
        deltas(theta, rows, q, delta)
        place = 0
        for l in range(1, depth(q) + 1):
            here, m = rows * width(q, l), width(q, l - 1)
            row_norms(samples if l == 1 else matrix(acts, place - rows * m, rows, m), below)
            row_norms(matrix(delta, place, rows, width(q, l)), above)
            for i in range(rows):
                out[first + i] += factors[l - 1] * above[i] * below[i]
            place += here


@inline
def _upper(found, theta, q, work):
    """found_l = ‖B_l‖², number l - 1; work holds two matrices of n_D rows."""
    top = depth(q)
    n_out = width(q, top)
    widest = 0
    for l in range(1, top):
        widest = max(widest, width(q, l))
    found[top - 1] = n_out
    start = theta.shape[0]
    for l in range(top, 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        at = (l % 2) * n_out * widest
        B, W = matrix(work, at, n_out, m), matrix(theta, start, n, m)
        if l == top:
            flat = vector(theta, start, n * m)
            for k in range(n * m):
                work[at + k] = flat[k]
        else:
            np.dot(matrix(work, ((l + 1) % 2) * n_out * widest, n_out, n), W, B)
        found[l - 2] = 0.0
        for k in range(n_out * m):
            found[l - 2] += work[at + k] * work[at + k]


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def add_traces(out, factors, theta, q, data, work):
    """out_i += Σ_l factors_l·(trace of the block of W_l in H_i)."""
    X, _ = split(data, q)
    n, n0, top = out.shape[0], width(q, 0), depth(q)
    most = min(n, CHUNK)
    upper, norms, work = vector(work, 0, top), vector(work, top, most), rest(work, top + most)
    _upper(upper, theta, q, work)
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        samples = matrix(X, first * n0, rows, n0)
        if top > 1:
            forward(theta, samples, rows, q, work)
        place = 0
        for l in range(1, top + 1):
            m = width(q, l - 1)
            row_norms(samples if l == 1 else matrix(work, place - rows * m, rows, m), norms)
            for i in range(rows):
                out[first + i] += 2.0 * q[1] * factors[l - 1] * upper[l - 1] * norms[i]
            place += rows * width(q, l)


@kernel(LOSSES)
def gradient_norms(out, theta, q, data, work):
    """out_i = ‖∇ℓ_i‖²."""
    factors, work = vector(work, 0, depth(q)), rest(work, depth(q))
    fill(factors, 1.0)
    fill(out, 0.0)
    add_norms(out, factors, theta, q, data, work)


@kernel(LOSSES)
def hessian_traces(out, theta, q, data, work):
    """out_i = Tr H_i."""
    factors, work = vector(work, 0, depth(q)), rest(work, depth(q))
    fill(factors, 1.0)
    fill(out, 0.0)
    add_traces(out, factors, theta, q, data, work)
