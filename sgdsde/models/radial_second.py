"""Second derivatives of `RadialNetwork` along a direction: Hessian times vector, correction of the per-sample factor.

H_i u is the derivative of ∇ℓ_i along u, u_l = V_l, or u_l = δ_l a_{l-1}ᵀ + V_l. With the terms of `radial_passes`,

    ż_l = W_l ȧ_{l-1} + V_l a_{l-1} + v_l [+ (‖a_{l-1}‖² + 1) δ_l],   ȧ_0 = 0,  ȧ_l = φ ż + 2φ'(z·ż) z
    δ̇_D = (∂²ℓ/∂o²) ȯ,   ė_{l-1} = W_lᵀδ̇_l + V_lᵀδ_l [+ ‖δ_l‖² a_{l-1}]
    δ̇_l = φ ė + 2φ'(z·ė) z + 2φ'((ż·e) z + (z·e) ż + (z·ż) e) + 4φ''(z·e)(z·ż) z
    (H u)_l = δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ  for W_l, δ̇_l for b_l

v_l is V's part for b_l, and the 1 is there with biases. The correction is (s²/2)(1/N)Σ_i H_i(g_i - ḡ): V = -∇L.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import CORRECTION, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_step import copy
from sgdsde.models.loss_kernels import curve, probabilities
from sgdsde.models.matrices import PLAIN, TURNED, add_row_sums, add_to_rows, column_norms, multiply, row
from sgdsde.models.mlp_passes import BIASES, LOSS, SCALE, chunk, depth, hidden, loss_gradient, outputs, split, width
from sgdsde.models.mlp_tangent import input_norms
from sgdsde.models.model import HESSIAN
from sgdsde.models.radial_passes import add_gradient, column_dots, forward, kept, pull_back

__all__ = ["correction", "deltas", "hessian"]


@kernel(types.void(VECTOR, types.int64, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def deltas(theta, rows, q, pre, delta, pulls, keep, dots):
    """δ_{D-1}, …, δ_1 into `delta` and e_{D-1}, …, e_1 into `pulls`, from δ_D, all laid out as `acts`."""
    start = theta.shape[0]
    place, at = rows * hidden(q), rows * kept(q)
    for l in range(depth(q), 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * (m + int(q[BIASES]))
        high = matrix(delta, place, n, rows)
        place -= m * rows
        at -= 3 * rows
        e = matrix(pulls, place, m, rows)
        multiply(e, matrix(theta, start, n, m), TURNED, high, PLAIN, 0.0)
        pull_back(matrix(delta, place, m, rows), e, matrix(pre, place, m, rows), keep, at, vector(dots, 0, rows))


@inline
def _spread(out, base, norms):
    """out_ji += norms_i·base_ji."""
    for j in range(out.shape[0]):
        o, b = row(out, j), row(base, j)
        for i in range(norms.shape[0]):
            o[i] += norms[i] * b[i]


@inline
def _forward_dots(theta, V, own, X, q, acts, pre, delta, keep, moves, dots, norms):
    """ż_1, …, ż_{D-1} into `moves`; ȧ_1, …, ȧ_{D-1}, ȯ into `dots`."""
    rows, top = X.shape[0], depth(q)
    start = place = at = 0
    for l in range(1, top + 1):
        n, m = width(q, l), width(q, l - 1)
        z = matrix(dots if l == top else moves, place, n, rows)
        if l == 1:
            multiply(z, matrix(V, start, n, m), PLAIN, X, TURNED, 0.0)
        else:
            low = place - m * rows
            multiply(z, matrix(V, start, n, m), PLAIN, matrix(acts, low, m, rows), PLAIN, 0.0)
            multiply(z, matrix(theta, start, n, m), PLAIN, matrix(dots, low, m, rows), PLAIN, 1.0)
        start += n * m
        if q[BIASES] != 0.0:
            add_to_rows(z, vector(V, start, n))
            start += n
        if own:
            input_norms(norms, X, acts, place, l, q)
            for i in range(rows):
                norms[i] += q[BIASES]
            _spread(z, matrix(delta, place, n, rows), norms)
        if l < top:
            pull_back(matrix(dots, place, n, rows), z, matrix(pre, place, n, rows), keep, at, norms)
            at += 3 * rows
            place += n * rows


@inline
def _turn(dot, back, Z, E, move, keep, at, scalars):
    """dot = δ̇ from back = ė, column by column; `scalars` holds four numbers a sample."""
    m, rows = Z.shape
    second, third = vector(keep, at + rows, rows), vector(keep, at + 2 * rows, rows)
    along, ahead = vector(scalars, 0, rows), vector(scalars, rows, rows)  # z·ė and z·e
    sides, turned = vector(scalars, 2 * rows, rows), vector(scalars, 3 * rows, rows)  # ż·e and z·ż
    pull_back(dot, back, Z, keep, at, along)
    column_dots(ahead, Z, E)
    column_dots(sides, move, E)
    column_dots(turned, Z, move)
    for i in range(rows):
        sides[i] = 2.0 * second[i] * sides[i] + 4.0 * third[i] * ahead[i] * turned[i]
        ahead[i] *= 2.0 * second[i]
        turned[i] *= 2.0 * second[i]
    for j in range(m):
        o, z, e, w = row(dot, j), row(Z, j), row(E, j), row(move, j)
        for i in range(rows):
            o[i] += sides[i] * z[i] + ahead[i] * w[i] + turned[i] * e[i]


@inline
def _backward_dots(out, theta, V, own, X, q, acts, pre, delta, pulls, keep, moves, dots, spare, scalars):
    """Add Σ_i δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ and Σ_i δ̇_l to `out`, from δ̇_D in the place of ȯ; each ȧ_l becomes δ̇_l."""
    rows = X.shape[0]
    start = theta.shape[0]
    place, at = rows * hidden(q), rows * kept(q)
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
        place -= m * rows
        at -= 3 * rows
        a, low, back = matrix(acts, place, m, rows), matrix(dots, place, m, rows), matrix(spare, 0, m, rows)
        multiply(product, dot, PLAIN, a, TURNED, 1.0)
        multiply(product, high, PLAIN, low, TURNED, 1.0)
        multiply(back, matrix(theta, start, n, m), TURNED, dot, PLAIN, 0.0)
        multiply(back, matrix(V, start, n, m), TURNED, high, PLAIN, 1.0)
        if own:
            norms = vector(scalars, 0, rows)
            column_norms(norms, high, 0.0)
            _spread(back, a, norms)
        Z, E, move = matrix(pre, place, m, rows), matrix(pulls, place, m, rows), matrix(moves, place, m, rows)
        _turn(low, back, Z, E, move, keep, at, scalars)


@kernel(types.void(VECTOR, VECTOR, VECTOR, types.boolean, VECTOR, VECTOR, VECTOR, VECTOR))
def add_tangent(out, theta, V, own, c, q, data, work):
    """out += Σ_i c_i H_i u_i, u_i = V, and with `own` u_i = c_i ∇ℓ_i + V."""
    X, Y = split(data, q)
    n, n0, n_out = c.shape[0], width(q, 0), width(q, depth(q))
    loss, most = int(q[LOSS]), min(n, chunk(q))
    size = most * outputs(q)
    acts, pre, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    delta, pulls, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    moves, dots, work = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
    keep, work = vector(work, 0, most * kept(q)), rest(work, most * kept(q))
    P, scalars = vector(work, 0, most * n_out), vector(work, most * n_out, 4 * most)
    spare = rest(work, most * (n_out + 4))
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, q, acts, pre, keep)
        top, chances = matrix(delta, place, n_out, rows), matrix(P, 0, n_out, rows)
        copy(vector(delta, place, n_out * rows), vector(acts, place, n_out * rows))
        copy(vector(P, 0, n_out * rows), vector(acts, place, n_out * rows))
        loss_gradient(top, Y, first, c, q, spare)
        probabilities(loss, chances, spare)
        deltas(theta, rows, q, pre, delta, pulls, keep, scalars)
        norms = vector(scalars, 0, rows)
        _forward_dots(theta, V, own, samples, q, acts, pre, delta, keep, moves, dots, norms)
        curve(loss, matrix(dots, place, n_out, rows), chances, q[SCALE], vector(c, first, rows), spare)
        _backward_dots(out, theta, V, own, samples, q, acts, pre, delta, pulls, keep, moves, dots, spare, scalars)


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
