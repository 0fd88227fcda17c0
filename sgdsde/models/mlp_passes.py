"""Forward and backward passes of a multilayer perceptron over many samples at once, by matrix products.

θ = [W_1, b_1, …, W_D, b_D], W_l of shape (n_l, n_{l-1}), without the b_l where there are none. With a_0 = x,

    a_l = φ(W_l a_{l-1} + b_l),  o = W_D a_{D-1} + b_D,     δ_D = ∂ℓ/∂o,  δ_{l-1} = φ'_{l-1}·W_lᵀδ_l
    ∇_{W_l} ℓ = δ_l a_{l-1}ᵀ,    ∇_{b_l} ℓ = δ_l

A pass takes `rows` samples. What it keeps of a layer is a matrix (n_l, rows), one column for each sample: loops over it
run along samples and are packed for every width. The layers stand one after another in `acts`. Nothing has N·d numbers.

q = [N, scale, loss, columns of Y, activation, slope of leaky_relu, biases, D, n_0, …, n_D]
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.activations import GELU, activate, chain
from sgdsde.models.loss_kernels import gradient
from sgdsde.models.matrices import PLAIN, TURNED, add_row_sums, add_to_rows, multiply

__all__ = [
    "ACTIVATION",
    "BIASES",
    "COLUMNS",
    "DEPTH",
    "LOSS",
    "SCALE",
    "SLOPE",
    "WIDTHS",
    "add_gradient",
    "backward",
    "chunk",
    "depth",
    "forward",
    "hidden",
    "kept",
    "layer",
    "loss_gradient",
    "outputs",
    "split",
    "widest",
    "width",
]

SCALE, LOSS, COLUMNS, ACTIVATION, SLOPE, BIASES, DEPTH, WIDTHS = range(1, 9)
"""Places in q; q[0] = N."""


@inline
def depth(q):
    return int(q[DEPTH])


@inline
def width(q, l):
    """n_l."""
    return int(q[WIDTHS + l])


@inline
def outputs(q):
    """n_1 + … + n_D, the numbers that `forward` keeps of a sample."""
    total = 0
    for l in range(1, depth(q) + 1):
        total += width(q, l)
    return total


@inline
def hidden(q):
    """n_1 + … + n_{D-1}."""
    return outputs(q) - width(q, depth(q))


@inline
def widest(q):
    """max(n_1, …, n_D)."""
    most = 1
    for l in range(1, depth(q) + 1):
        most = max(most, width(q, l))
    return most


@inline
def chunk(q):
    """Samples that a pass takes at once: what it keeps of narrow layers stays near the processor, and adding to the
    gradient, which costs as much as 2·n_l samples of a product, is rare for wide ones."""
    return min(1024, max(128, 64 * (widest(q) // 64)))


@inline
def kept(q):
    """Numbers that the activation keeps of a sample beside a_l: φ' and φ'' of gelu."""
    return 2 * hidden(q) if int(q[ACTIVATION]) == GELU else 0


@inline
def split(data, q):
    """X and Y, flat."""
    cut = int(q[0]) * width(q, 0)
    return vector(data, 0, cut), rest(data, cut)


@inline
def layer(q, l):
    """Where W_l starts in θ; b_l follows it."""
    start = 0
    biases = int(q[BIASES])
    for k in range(1, l):
        start += width(q, k) * (width(q, k - 1) + biases)
    return start


@kernel(types.int64(VECTOR, BLOCK, VECTOR, VECTOR, VECTOR))
def forward(theta, X, q, acts, keep):
    """a_1, …, a_{D-1}, o of the rows of X into `acts`; returns the place of o."""
    rows = X.shape[0]
    top = depth(q)
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    start = 0
    place = 0
    at = 0
    for l in range(1, top + 1):
        n, m = width(q, l), width(q, l - 1)
        a, W = matrix(acts, place, n, rows), matrix(theta, start, n, m)
        if l == 1:
            multiply(a, W, PLAIN, X, TURNED, 0.0)
        else:
            multiply(a, W, PLAIN, matrix(acts, place - m * rows, m, rows), PLAIN, 0.0)
        start += n * m
        if q[BIASES] != 0.0:
            add_to_rows(a, vector(theta, start, n))
            start += n
        if l == top:
            return place
        size = n * rows
        if kind == GELU:
            activate(kind, slope, vector(acts, place, size), vector(keep, at, size), vector(keep, at + size, size))
            at += 2 * size
        else:
            activate(kind, slope, vector(acts, place, size), keep, keep)
        place += size
    return place


@kernel(types.void(BLOCK, VECTOR, types.int64, VECTOR, VECTOR, VECTOR))
def loss_gradient(O, Y, first, c, q, spare):
    """O, outputs of the samples from number `first` on, becomes δ_D times c_first, c_{first+1}, …"""
    columns = int(q[COLUMNS])
    rows = O.shape[1]
    gradient(int(q[LOSS]), O, rest(Y, first * columns), columns, q[SCALE], vector(c, first, rows), spare)


@kernel(types.void(VECTOR, VECTOR, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR))
def backward(out, theta, X, q, acts, keep, spare):
    """Add Σ_i δ_l a_{l-1}ᵀ and Σ_i δ_l to the blocks of `out`, from δ_D in the place of o. Each a_l becomes δ_l."""
    rows = X.shape[0]
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    start = theta.shape[0]
    place = rows * hidden(q)
    at = rows * kept(q)
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
        size = m * rows
        place -= size
        multiply(product, delta, PLAIN, matrix(acts, place, m, rows), TURNED, 1.0)
        multiply(matrix(spare, 0, m, rows), matrix(theta, start, n, m), TURNED, delta, PLAIN, 0.0)
        if kind == GELU:
            at -= 2 * size
        chain(kind, slope, vector(acts, place, size), vector(spare, 0, size), rest(keep, at))


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, types.int64, VECTOR, VECTOR))
def add_gradient(out, theta, X, Y, c, n, q, work):
    """out += Σ_{i<n} c_i ∇ℓ_i; X and Y are flat, n samples each."""
    n0, most = width(q, 0), min(n, chunk(q))
    acts, work = vector(work, 0, most * outputs(q)), rest(work, most * outputs(q))
    keep, spare = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, q, acts, keep)
        loss_gradient(matrix(acts, place, width(q, depth(q)), rows), Y, first, c, q, spare)
        backward(out, theta, samples, q, acts, keep, spare)
