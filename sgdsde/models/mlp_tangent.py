"""Second derivatives of `MLP` along a direction: Hessian times vector, and the correction of the per-sample factor.

H_i u is the derivative of ∇ℓ_i along u. For u_l = V_l, or u_l = δ_l a_{l-1}ᵀ + V_l, the sample's own gradient beside a
direction that all samples share, it needs no d numbers per sample. With e_l = W_{l+1}ᵀδ_{l+1}, so that δ_l = φ'_l·e_l,

    ż_l = W_l ȧ_{l-1} + V_l a_{l-1} + v_l [+ (‖a_{l-1}‖² + 1) δ_l],   ȧ_0 = 0,  ȧ_l = φ'_l·ż_l
    δ̇_D = (∂²ℓ/∂o²) ȯ,   δ̇_{l-1} = φ'·(W_lᵀδ̇_l + V_lᵀδ_l [+ ‖δ_l‖² a_{l-1}]) + φ''·e_{l-1}·ż_{l-1}
    (H u)_l = δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ  for W_l, δ̇_l for b_l

v_l is V's part for b_l, and the 1 is there with biases. The correction is (s²/2)(1/N)Σ_i H_i(g_i - ḡ): V = -∇L.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import CORRECTION, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.activations import GELU, bend, chain
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_step import copy
from sgdsde.models.loss_kernels import curve, probabilities
from sgdsde.models.matrices import PLAIN, TURNED, add_row_sums, add_to_rows, column_norms, multiply, row
from sgdsde.models.mlp_passes import (
    ACTIVATION,
    BIASES,
    LOSS,
    SCALE,
    SLOPE,
    add_gradient,
    chunk,
    depth,
    forward,
    hidden,
    kept,
    loss_gradient,
    outputs,
    split,
    width,
)
from sgdsde.models.model import HESSIAN

__all__ = ["correction", "deltas", "hessian", "input_norms"]


@kernel(types.void(VECTOR, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def deltas(theta, rows, q, acts, delta, keep, spare):
    """δ_{D-1}, …, δ_1 into `delta`, laid out as `acts`, from δ_D; the a_l stay. Bends of gelu become φ''·e."""
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    start = theta.shape[0]
    place = rows * hidden(q)
    at = rows * kept(q)
    for l in range(depth(q), 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * (m + int(q[BIASES]))
        high = matrix(delta, place, n, rows)
        size = m * rows
        place -= size
        e = vector(spare, 0, size)
        multiply(matrix(spare, 0, m, rows), matrix(theta, start, n, m), TURNED, high, PLAIN, 0.0)
        here = vector(delta, place, size)
        copy(here, vector(acts, place, size))
        if kind == GELU:
            at -= 2 * size
            bends = vector(keep, at + size, size)
            for k in range(size):
                bends[k] *= e[k]
        chain(kind, slope, here, e, rest(keep, at))


@inline
def input_norms(out, X, acts, place, l, q):
    """‖a_{l-1}‖² of each sample; `place` is that of a_l."""
    rows, m = X.shape[0], width(q, l - 1)
    if l > 1:
        column_norms(out, matrix(acts, place - m * rows, m, rows), 0.0)
    else:
        for i in range(rows):
            x = row(X, i)
            out[i] = dot(x, x)


@inline
def _spread(out, base, norms):
    """out_ji += norms_i·base_ji."""
    for j in range(out.shape[0]):
        o, b = row(out, j), row(base, j)
        for i in range(norms.shape[0]):
            o[i] += norms[i] * b[i]


@inline
def _forward_dots(theta, V, own, X, q, acts, delta, keep, dots, kicks, spare, norms):
    """ȧ_1, …, ȧ_{D-1}, ȯ into `dots`, and φ''·e·ż of the hidden layers into `kicks`."""
    rows, top = X.shape[0], depth(q)
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    start = 0
    place = 0
    at = 0
    for l in range(1, top + 1):
        n, m = width(q, l), width(q, l - 1)
        size = n * rows
        dot = matrix(spare, 0, n, rows) if l < top else matrix(dots, place, n, rows)
        if l == 1:
            multiply(dot, matrix(V, start, n, m), PLAIN, X, TURNED, 0.0)
        else:
            low = place - m * rows
            multiply(dot, matrix(V, start, n, m), PLAIN, matrix(acts, low, m, rows), PLAIN, 0.0)
            multiply(dot, matrix(theta, start, n, m), PLAIN, matrix(dots, low, m, rows), PLAIN, 1.0)
        start += n * m
        if q[BIASES] != 0.0:
            add_to_rows(dot, vector(V, start, n))
            start += n
        if own:
            input_norms(norms, X, acts, place, l, q)
            for i in range(rows):
                norms[i] += q[BIASES]
            _spread(dot, matrix(delta, place, n, rows), norms)
        if l < top:
            z, a = vector(spare, 0, size), vector(acts, place, size)
            here, kick = vector(dots, place, size), vector(kicks, place, size)
            copy(kick, z)
            copy(here, a)
            if kind == GELU:
                bend(kind, kick, a, vector(delta, place, size), vector(keep, at + size, size))
                chain(kind, slope, here, z, vector(keep, at, size))
                at += 2 * size
            else:
                bend(kind, kick, a, vector(delta, place, size), keep)
                chain(kind, slope, here, z, keep)
        place += size


@inline
def _backward_dots(out, theta, V, own, X, q, acts, delta, keep, dots, kicks, spare, norms):
    """Add Σ_i δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ and Σ_i δ̇_l to `out`, from δ̇_D in the place of ȯ; each ȧ_l becomes δ̇_l."""
    rows = X.shape[0]
    kind, slope = int(q[ACTIVATION]), q[SLOPE]
    start = theta.shape[0]
    place = rows * hidden(q)
    at = rows * kept(q)
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        high, dot = matrix(delta, place, n, rows), matrix(dots, place, n, rows)
        if q[BIASES] != 0.0:
            start -= n
            add_row_sums(vector(out, start, n), dot)
        start -= n * m
        product = matrix(out, start, n, m)
        if l == 1:
            multiply(product, dot, PLAIN, X, PLAIN, 1.0)
            return
        size = m * rows
        place -= size
        a, pull = matrix(acts, place, m, rows), matrix(spare, 0, m, rows)
        multiply(product, dot, PLAIN, a, TURNED, 1.0)
        multiply(product, high, PLAIN, matrix(dots, place, m, rows), TURNED, 1.0)
        multiply(pull, matrix(theta, start, n, m), TURNED, dot, PLAIN, 0.0)
        multiply(pull, matrix(V, start, n, m), TURNED, high, PLAIN, 1.0)
        if own:
            column_norms(norms, high, 0.0)
            _spread(pull, a, norms)
        here, kick = vector(dots, place, size), vector(kicks, place, size)
        copy(here, vector(acts, place, size))
        if kind == GELU:
            at -= 2 * size
        chain(kind, slope, here, vector(spare, 0, size), rest(keep, at))
        for k in range(size):
            here[k] += kick[k]


@kernel(types.void(VECTOR, VECTOR, VECTOR, types.boolean, VECTOR, VECTOR, VECTOR, VECTOR))
def add_tangent(out, theta, V, own, c, q, data, work):
    """out += Σ_i c_i H_i u_i, u_i = V, and with `own` u_i = c_i ∇ℓ_i + V."""
    X, Y = split(data, q)
    n, n0, n_out = c.shape[0], width(q, 0), width(q, depth(q))
    loss, most = int(q[LOSS]), min(n, chunk(q))
    size = most * outputs(q)
    acts, delta, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    dots, kicks, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    keep, work = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    P, norms = vector(work, 0, most * n_out), vector(work, most * n_out, most)
    spare = rest(work, most * (n_out + 1))
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, q, acts, keep)
        top, chances = matrix(delta, place, n_out, rows), matrix(P, 0, n_out, rows)
        copy(vector(delta, place, n_out * rows), vector(acts, place, n_out * rows))
        copy(vector(P, 0, n_out * rows), vector(acts, place, n_out * rows))
        loss_gradient(top, Y, first, c, q, spare)
        probabilities(loss, chances, spare)
        deltas(theta, rows, q, acts, delta, keep, spare)
        weights = vector(norms, 0, rows)
        _forward_dots(theta, V, own, samples, q, acts, delta, keep, dots, kicks, spare, weights)
        curve(loss, matrix(dots, place, n_out, rows), chances, q[SCALE], vector(c, first, rows), spare)
        _backward_dots(out, theta, V, own, samples, q, acts, delta, keep, dots, kicks, spare, weights)


@kernel(HESSIAN)
def hessian(out, theta, v, c, q, data, work):
    """out = Σ_i c_i H_i v."""
    for k in range(out.shape[0]):
        out[k] = 0.0
    add_tangent(out, theta, v, False, c, q, data, work)


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """out = (s²/2)(1/N)Σ_i H_i (g_i - ḡ) = (σ²ρ/2)∇Tr Σ."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[0])
    X, Y = split(data, q)
    c, space, V, sums = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d), vector(work, n + 2 * d, d)
    work = rest(work, n + 3 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        for k in range(d):
            V[k] = sums[k] = 0.0
        for i in range(n):
            c[i] = -1.0 / n
        add_gradient(V, theta, X, Y, c, n, q, work)
        for i in range(n):
            c[i] = 1.0
        add_tangent(sums, theta, V, True, c, q, data, work)
        for k in range(d):
            out[k, b] = 0.5 * p[1] * p[1] / n * sums[k]
