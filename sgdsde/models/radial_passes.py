"""Passes of a network with radial activations over many samples at once, by matrix products.

θ = [W_1, b_1, …, W_D, b_D] and q as in `mlp_passes`, the activation numbered by `radial_functions`. With a_0 = x,

    z_l = W_l a_{l-1} + b_l,  a_l = φ(τ_l) z_l,  τ = ‖z‖²,     e_{l-1} = W_lᵀδ_l,  δ_l = φ e_l + 2φ'(z_l·e_l) z_l
    ∇_{W_l} ℓ = δ_l a_{l-1}ᵀ,    ∇_{b_l} ℓ = δ_l,    o = z_D,  δ_D = ∂ℓ/∂o

Kept of a layer are matrices (n_l, rows), one column for each sample: `acts` holds a_l and at last o, `pre` z_l, both of
all layers one after another; `keep` holds φ, φ' and φ'' of each sample, hidden layer after hidden layer.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.matrices import PLAIN, TURNED, add_row_sums, add_to_rows, column_norms, multiply, row
from sgdsde.models.mlp_passes import ACTIVATION, BIASES, chunk, depth, hidden, loss_gradient, outputs, width
from sgdsde.models.radial_functions import profile

__all__ = ["add_gradient", "backward", "column_dots", "forward", "kept", "profiles", "pull_back"]


@inline
def kept(q):
    """Numbers that the activations keep of a sample: φ, φ' and φ'' of each hidden layer."""
    return 3 * (depth(q) - 1)


@inline
def profiles(keep, at, Z, kind):
    """φ, φ', φ'' of each column of Z, at number `at` of `keep` and on."""
    rows = Z.shape[1]
    first, second, third = vector(keep, at, rows), vector(keep, at + rows, rows), vector(keep, at + 2 * rows, rows)
    column_norms(first, Z, 0.0)
    for i in range(rows):
        first[i], second[i], third[i] = profile(kind, first[i])


@inline
def column_dots(out, A, B):
    """out_i = Σ_j a_ji b_ji."""
    m, rows = A.shape
    for i in range(rows):
        out[i] = 0.0
    for j in range(m):
        a, b = row(A, j), row(B, j)
        for i in range(rows):
            out[i] += a[i] * b[i]


@inline
def pull_back(out, E, Z, keep, at, dots):
    """out = φE + 2φ'(z·e)z column by column, the Jacobian times E; `dots` becomes z·e."""
    m, rows = Z.shape
    first, second = vector(keep, at, rows), vector(keep, at + rows, rows)
    column_dots(dots, Z, E)
    for j in range(m):
        o, e, z = row(out, j), row(E, j), row(Z, j)
        for i in range(rows):
            o[i] = first[i] * e[i] + 2.0 * second[i] * dots[i] * z[i]


@kernel(types.int64(VECTOR, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR))
def forward(theta, X, q, acts, pre, keep):
    """a_1, …, a_{D-1}, o of the rows of X into `acts`; returns the place of o."""
    rows, top, kind = X.shape[0], depth(q), int(q[ACTIVATION])
    start = place = at = 0
    for l in range(1, top + 1):
        n, m = width(q, l), width(q, l - 1)
        z, W = matrix(acts if l == top else pre, place, n, rows), matrix(theta, start, n, m)
        if l == 1:
            multiply(z, W, PLAIN, X, TURNED, 0.0)
        else:
            multiply(z, W, PLAIN, matrix(acts, place - m * rows, m, rows), PLAIN, 0.0)
        start += n * m
        if q[BIASES] != 0.0:
            add_to_rows(z, vector(theta, start, n))
            start += n
        if l < top:
            profiles(keep, at, z, kind)
            a, first = matrix(acts, place, n, rows), vector(keep, at, rows)
            for j in range(n):
                to, of = row(a, j), row(z, j)
                for i in range(rows):
                    to[i] = first[i] * of[i]
            at += 3 * rows
            place += n * rows
    return place


@kernel(types.void(VECTOR, VECTOR, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def backward(out, theta, X, q, acts, pre, keep, spare):
    """Add Σ_i δ_l a_{l-1}ᵀ and Σ_i δ_l to the blocks of `out`, from δ_D in the place of o. Each a_l becomes δ_l."""
    rows = X.shape[0]
    dots, spare = vector(spare, 0, rows), rest(spare, rows)
    start = theta.shape[0]
    place, at = rows * hidden(q), rows * kept(q)
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        delta = matrix(acts, place, n, rows)
        if q[BIASES] != 0.0:
            start -= n
            add_row_sums(vector(out, start, n), delta)
        start -= n * m
        product = matrix(out, start, n, m)
        if l == 1:
            multiply(product, delta, PLAIN, X, PLAIN, 1.0)
            return
        place -= m * rows
        at -= 3 * rows
        a, e = matrix(acts, place, m, rows), matrix(spare, 0, m, rows)
        multiply(product, delta, PLAIN, a, TURNED, 1.0)
        multiply(e, matrix(theta, start, n, m), TURNED, delta, PLAIN, 0.0)
        pull_back(a, e, matrix(pre, place, m, rows), keep, at, dots)


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, types.int64, VECTOR, VECTOR))
def add_gradient(out, theta, X, Y, c, n, q, work):
    """out += Σ_{i<n} c_i ∇ℓ_i; X and Y are flat, n samples each."""
    n0, most = width(q, 0), min(n, chunk(q))
    acts, work = vector(work, 0, most * outputs(q)), rest(work, most * outputs(q))
    pre, work = vector(work, 0, most * hidden(q)), rest(work, most * hidden(q))
    keep, spare = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, q, acts, pre, keep)
        loss_gradient(matrix(acts, place, width(q, depth(q)), rows), Y, first, c, q, spare)
        backward(out, theta, samples, q, acts, pre, keep, spare)
