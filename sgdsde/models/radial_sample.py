"""What `RadialNetwork` knows of single samples without their gradients: ‖∇ℓ_i‖² and Tr H_i.

    ‖∇ℓ_i‖² = Σ_l ‖δ_l‖² (‖a_{l-1}‖² + 1),      Tr H_i = Σ_l Tr M_l (‖a_{l-1}‖² + 1)

without the 1 where there are no biases. M_l = ∂²ℓ/∂z_l². With the Jacobian S = φ + 2φ' zzᵀ of a hidden layer and what
comes back to it, e = W_{l+1}ᵀδ_{l+1},

    M_l = S W_{l+1}ᵀ M_{l+1} W_{l+1} S + 2φ'((z·e) + z eᵀ + e zᵀ) + 4φ''(z·e) zzᵀ,   of the lowest the trace alone.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_step import copy
from sgdsde.models.loss_kernels import probabilities
from sgdsde.models.matrices import PLAIN, TURNED, column_norms, multiply, row
from sgdsde.models.mlp_passes import (
    BIASES,
    LOSS,
    chunk,
    depth,
    hidden,
    loss_gradient,
    outputs,
    split,
    widest,
    width,
)
from sgdsde.models.mlp_sample import output_curvature
from sgdsde.models.mlp_tangent import input_norms
from sgdsde.models.model import LOSSES
from sgdsde.models.radial_passes import forward, kept
from sgdsde.models.radial_second import deltas

__all__ = ["both_ways", "gradient_norms", "hessian_traces", "room"]


@inline
def room(q, most, work):
    """Scratch of a pass over `most` samples: acts, pre, delta, pulls, keep, and what is left."""
    size = most * outputs(q)
    keep, left = vector(work, 4 * size, most * kept(q)), rest(work, 4 * size + most * kept(q))
    acts, pre = vector(work, 0, size), vector(work, size, size)
    return acts, pre, vector(work, 2 * size, size), vector(work, 3 * size, size), keep, left


@kernel(types.void(VECTOR, BLOCK, VECTOR, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def both_ways(theta, X, Y, first, ones, q, acts, pre, delta, pulls, keep, spare):
    """a_l, z_l, δ_l and e_l of the samples from number `first` on."""
    rows, n_out = X.shape[0], width(q, depth(q))
    place = forward(theta, X, q, acts, pre, keep)
    copy(vector(delta, place, n_out * rows), vector(acts, place, n_out * rows))
    loss_gradient(matrix(delta, place, n_out, rows), Y, first, ones, q, spare)
    deltas(theta, rows, q, pre, delta, pulls, keep, spare)


@kernel(LOSSES)
def gradient_norms(out, theta, q, data, work):
    """out_i = ‖∇ℓ_i‖²."""
    X, Y = split(data, q)
    n, n0, most = out.shape[0], width(q, 0), min(out.shape[0], chunk(q))
    ones, work = vector(work, 0, n), rest(work, n)
    acts, pre, delta, pulls, keep, spare = room(q, most, work)
    for i in range(n):
        ones[i], out[i] = 1.0, 0.0
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        both_ways(theta, samples, Y, first, ones, q, acts, pre, delta, pulls, keep, spare)
        below, above = vector(spare, 0, rows), vector(spare, rows, rows)
        place = 0
        for l in range(1, depth(q) + 1):
            input_norms(below, samples, acts, place, l, q)
            column_norms(above, matrix(delta, place, width(q, l), rows), 0.0)
            for i in range(rows):
                out[first + i] += above[i] * (below[i] + q[BIASES])
            place += width(q, l) * rows


@inline
def _sample_trace(theta, q, i, rows, pre, pulls, keep, P, factors, work):
    """Tr H_i of column i of a pass over `rows` samples; factors[(l - 1)·rows + i] = ‖a_{l-1}‖² + q[BIASES]."""
    most, top = widest(q), depth(q)
    square = most * most
    M, T, work = vector(work, 0, square), vector(work, square, square), rest(work, 2 * square)
    n = width(q, top)
    here = matrix(M, 0, n, n)
    output_curvature(here, P, i, q)
    total = 0.0
    for j in range(n):
        total += here[j, j] * factors[(top - 1) * rows + i]
    start = theta.shape[0]
    place, at = rows * hidden(q), rows * kept(q)
    for l in range(top, 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * (m + int(q[BIASES]))
        place -= m * rows
        at -= 3 * rows
        first, second, third = keep[at + i], 2.0 * keep[at + rows + i], 4.0 * keep[at + 2 * rows + i]
        z, e, turned = vector(work, 0, m), vector(work, m, m), vector(work, 2 * m, m)
        for j in range(m):
            z[j], e[j] = pre[place + j * rows + i], pulls[place + j * rows + i]
        W, product = matrix(theta, start, n, m), matrix(T, 0, n, m)
        multiply(product, matrix(M, 0, n, n), PLAIN, W, PLAIN, 0.0)
        ahead, length, inner, curve = dot(z, e), dot(z, z), 0.0, 0.0  # z·e, ‖z‖², Tr K, zᵀKz for K = WᵀMW
        for j in range(m):
            turned[j] = 0.0
        for k in range(n):
            w, moved = row(W, k), row(product, k)
            inner += dot(w, moved)
            along = dot(moved, z)
            curve += dot(w, z) * along
            for j in range(m):
                turned[j] += w[j] * along  # K z
        if l > 2:
            lower = matrix(M, 0, m, m)
            multiply(lower, W, TURNED, product, PLAIN, 0.0)
            for j in range(m):
                line = row(lower, j)
                for k in range(m):
                    both = z[j] * z[k]
                    line[k] = (
                        first * (first * line[k] + second * (z[j] * turned[k] + turned[j] * z[k]))
                        + (second * second * curve + third * ahead) * both
                        + second * (z[j] * e[k] + e[j] * z[k])
                    )
                line[j] += second * ahead
        trace = first * first * inner + second * (2.0 * first + second * length) * curve
        trace += ahead * (second * (m + 2.0) + third * length)
        total += trace * factors[(l - 2) * rows + i]
    return total


@kernel(LOSSES)
def hessian_traces(out, theta, q, data, work):
    """out_i = Tr H_i."""
    X, Y = split(data, q)
    n, n0, n_out, most = out.shape[0], width(q, 0), width(q, depth(q)), min(out.shape[0], chunk(q))
    ones, P, work = vector(work, 0, n), vector(work, n, most * n_out), rest(work, n + most * n_out)
    acts, pre, delta, pulls, keep, work = room(q, most, work)
    factors, spare = vector(work, 0, depth(q) * most), rest(work, depth(q) * most)
    for i in range(n):
        ones[i] = 1.0
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples, chances = matrix(X, first * n0, rows, n0), matrix(P, 0, n_out, rows)
        both_ways(theta, samples, Y, first, ones, q, acts, pre, delta, pulls, keep, spare)
        copy(vector(P, 0, n_out * rows), vector(acts, rows * hidden(q), n_out * rows))
        probabilities(int(q[LOSS]), chances, spare)
        place = 0
        for l in range(1, depth(q) + 1):
            norms = vector(factors, (l - 1) * rows, rows)
            input_norms(norms, samples, acts, place, l, q)
            for i in range(rows):
                norms[i] += q[BIASES]
            place += width(q, l) * rows
        for i in range(rows):
            out[first + i] = _sample_trace(theta, q, i, rows, pre, pulls, keep, chances, factors, spare)
