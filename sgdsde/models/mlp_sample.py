"""What `MLP` knows of single samples without their gradients: ‖∇ℓ_i‖² and Tr H_i, from a_{l-1} and δ_l.

    ‖∇ℓ_i‖² = Σ_l ‖δ_l‖² (‖a_{l-1}‖² + 1),      Tr H_i = Σ_l Tr M_l (‖a_{l-1}‖² + 1)

without the 1 where there are no biases. M_l = ∂²ℓ/∂z_l², by the layer above it, e = W_lᵀδ_l:

    M_D = ∂²ℓ/∂o²,   M_{l-1} = Φ' W_lᵀ M_l W_l Φ' + diag(φ''·e),   of which the lowest is needed on its diagonal alone

That is exact, and costs Σ_{l>2} n_l n_{l-1}(n_l + n_{l-1}) + n_2² n_1 multiplications a sample.
"""

from __future__ import annotations

from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.activations import GELU, bend, chain
from sgdsde.models.deep_linear_step import copy
from sgdsde.models.loss_kernels import LOGISTIC, SOFTMAX, probabilities
from sgdsde.models.matrices import PLAIN, TURNED, column_norms, multiply, row
from sgdsde.models.mlp_passes import (
    ACTIVATION,
    BIASES,
    LOSS,
    SCALE,
    SLOPE,
    chunk,
    depth,
    forward,
    hidden,
    kept,
    loss_gradient,
    outputs,
    split,
    widest,
    width,
)
from sgdsde.models.mlp_tangent import deltas, input_norms
from sgdsde.models.model import LOSSES

__all__ = ["gradient_norms", "hessian_traces", "output_curvature"]


@inline
def output_curvature(M, P, i, q):
    """M = ∂²ℓ/∂o² of sample i, P from `probabilities`."""
    n = M.shape[0]
    kind, scale = int(q[LOSS]), q[SCALE]
    for j in range(n):
        for k in range(n):
            M[j, k] = -scale * P[j, i] * P[k, i] if kind == SOFTMAX else 0.0
        M[j, j] += scale * (P[j, i] if kind == SOFTMAX or kind == LOGISTIC else 2.0)


@kernel(LOSSES)
def gradient_norms(out, theta, q, data, work):
    """out_i = ‖∇ℓ_i‖²."""
    X, Y = split(data, q)
    n, n0, n_out = out.shape[0], width(q, 0), width(q, depth(q))
    most = min(n, chunk(q))
    size = most * outputs(q)
    c, work = vector(work, 0, n), rest(work, n)
    acts, delta, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    keep, work = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    norms, spare = vector(work, 0, 2 * most), rest(work, 2 * most)
    for i in range(n):
        c[i] = 1.0
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, q, acts, keep)
        copy(vector(delta, place, n_out * rows), vector(acts, place, n_out * rows))
        loss_gradient(matrix(delta, place, n_out, rows), Y, first, c, q, spare)
        deltas(theta, rows, q, acts, delta, keep, spare)
        found, below, above = vector(out, first, rows), vector(norms, 0, rows), vector(norms, rows, rows)
        for i in range(rows):
            found[i] = 0.0
        place = 0
        for l in range(1, depth(q) + 1):
            input_norms(below, samples, acts, place, l, q)
            column_norms(above, matrix(delta, place, width(q, l), rows), 0.0)
            for i in range(rows):
                found[i] += above[i] * (below[i] + q[BIASES])
            place += width(q, l) * rows


@inline
def _gather(out, source, place, rows, i):
    """Column i of the matrix at `place` of `source`."""
    for j in range(out.shape[0]):
        out[j] = source[place + j * rows + i]


@inline
def _sample_trace(theta, q, i, rows, acts, delta, keep, P, factors, work):
    """Tr H_i of column i of a pass over `rows` samples; factors[(l - 1)·rows + i] = ‖a_{l-1}‖² + q[BIASES]."""
    kind, slope, most = int(q[ACTIVATION]), q[SLOPE], widest(q)
    M, T, work = vector(work, 0, most * most), vector(work, most * most, most * most), rest(work, 2 * most * most)
    top = depth(q)
    n = width(q, top)
    here = matrix(M, 0, n, n)
    output_curvature(here, P, i, q)
    total = 0.0
    for j in range(n):
        total += here[j, j] * factors[(top - 1) * rows + i]
    start = theta.shape[0]
    place = rows * hidden(q)
    at = rows * kept(q)
    for l in range(top, 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * (m + int(q[BIASES]))
        place -= m * rows
        W, product = matrix(theta, start, n, m), matrix(T, 0, n, m)
        multiply(product, matrix(M, 0, n, n), PLAIN, W, PLAIN, 0.0)
        slopes, own, curves = vector(work, 0, m), vector(work, m, m), vector(work, 2 * m, m)
        ones, first, second = vector(work, 3 * m, m), vector(work, 4 * m, m), vector(work, 5 * m, m)
        _gather(slopes, acts, place, rows, i)
        _gather(own, delta, place, rows, i)
        if kind == GELU:
            at -= 2 * m * rows
            _gather(first, keep, at, rows, i)
            _gather(second, keep, at + m * rows, rows, i)
        for j in range(m):
            curves[j] = ones[j] = 1.0
        bend(kind, curves, slopes, own, second)
        chain(kind, slope, slopes, ones, first)
        if l > 2:
            lower = matrix(M, 0, m, m)
            multiply(lower, W, TURNED, product, PLAIN, 0.0)
            for j in range(m):
                line = row(lower, j)
                for k in range(m):
                    line[k] *= slopes[j] * slopes[k]
                line[j] += curves[j]
                curves[j] = line[j]
        else:
            for j in range(m):
                ones[j] = 0.0
            for k in range(n):
                for j in range(m):
                    ones[j] += W[k, j] * product[k, j]
            for j in range(m):
                curves[j] += slopes[j] * slopes[j] * ones[j]
        for j in range(m):
            total += curves[j] * factors[(l - 2) * rows + i]
    return total


@kernel(LOSSES)
def hessian_traces(out, theta, q, data, work):
    """out_i = Tr H_i."""
    X, Y = split(data, q)
    loss, n, n0, n_out = int(q[LOSS]), out.shape[0], width(q, 0), width(q, depth(q))
    most = min(n, chunk(q))
    size = most * outputs(q)
    c, P, work = vector(work, 0, n), vector(work, n, most * n_out), rest(work, n + most * n_out)
    acts, delta, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    keep, work = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    factors, spare = vector(work, 0, depth(q) * most), rest(work, depth(q) * most)
    for i in range(n):
        c[i] = 1.0
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples, chances = matrix(X, first * n0, rows, n0), matrix(P, 0, n_out, rows)
        place = forward(theta, samples, q, acts, keep)
        copy(vector(delta, place, n_out * rows), vector(acts, place, n_out * rows))
        copy(vector(P, 0, n_out * rows), vector(acts, place, n_out * rows))
        loss_gradient(matrix(delta, place, n_out, rows), Y, first, c, q, spare)
        probabilities(loss, chances, spare)
        deltas(theta, rows, q, acts, delta, keep, spare)
        place = 0
        for l in range(1, depth(q) + 1):
            norms = vector(factors, (l - 1) * rows, rows)
            input_norms(norms, samples, acts, place, l, q)
            for i in range(rows):
                norms[i] += q[BIASES]
            place += width(q, l) * rows
        for i in range(rows):
            out[first + i] = _sample_trace(theta, q, i, rows, acts, delta, keep, chances, factors, spare)
