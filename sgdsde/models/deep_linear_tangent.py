"""Second derivatives of `DeepLinear` along a direction: Hessian times vector, correction of the per-sample factor.

H_i u is the derivative of ∇ℓ_i along u, by a tangent pass. For u_l = V_l, or u_l = κ_l δ_l a_{l-1}ᵀ + V_l, a multiple
of the sample's own gradient beside a direction that all samples share, it needs no d numbers per sample:

    ȧ_0 = 0,         ȧ_l     = W_l ȧ_{l-1} + V_l a_{l-1} + κ_l ‖a_{l-1}‖² δ_l
    δ̇_D = 2·scale·ȧ_D,  δ̇_{l-1} = W_lᵀ δ̇_l + V_lᵀ δ_l + κ_l ‖δ_l‖² a_{l-1}
    (H u)_l = δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ

The correction is ½Σ_j (b_j·∇)b_j = (s²/2)·(1/N)Σ_i H_i (g_i - ḡ): κ = 1 and V = -∇L.
"""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import CORRECTION, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import (
    CHUNK,
    add,
    add_gradient,
    column,
    depth,
    forward,
    is_collapsed,
    residual,
    row_norms,
    split,
    width,
)
from sgdsde.models.deep_linear_sample import n_outputs
from sgdsde.models.model import HESSIAN

__all__ = ["add_tangent", "correction", "deltas", "fill", "hessian"]


@inline
def fill(a, value):
    for k in range(a.shape[0]):
        a[k] = value


@inline
def _add_all(out, spare):
    """out += spare, number by number."""
    size = out.size
    to, of = vector(out, 0, size), vector(spare, 0, size)
    for k in range(size):
        to[k] += of[k]


@inline
def _spread(out, base, norms, own):
    """out += own·norms·base, row by row."""
    for i in range(out.shape[0]):
        o, b = out[i], base[i]
        weight = own * norms[i]
        for j in range(o.shape[0]):
            o[j] += weight * b[j]


@inline
def _forward_dots(theta, V, own, X, q, acts, delta, dots, spare, norms):
    """ȧ_1, …, ȧ_D into `dots`, laid out as `acts`; returns the place of ȧ_D."""
    rows = X.shape[0]
    start = place = 0
    below = X
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        if l > 1:
            place += rows * m
        dot, product = matrix(dots, place, rows, n), matrix(spare, 0, rows, n)
        if l > 1:
            np.dot(matrix(dots, place - rows * m, rows, m), matrix(theta, start, n, m).T, dot)
        else:
            fill(vector(dots, 0, rows * n), 0.0)
        np.dot(below, matrix(V, start, n, m).T, product)
        _add_all(dot, product)
        if own[l - 1] != 0.0:
            row_norms(below, norms)
            _spread(dot, matrix(delta, place, rows, n), norms, own[l - 1])
        start += n * m
        below = matrix(acts, place, rows, n)
    return place


@inline
def _backward_dots(out, theta, V, own, X, q, acts, delta, dots, spare, norms):
    """out += Σ_i δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ, from δ̇_D in the place of ȧ_D; each ȧ_l becomes δ̇_l."""
    rows = X.shape[0]
    start, place = theta.shape[0], rows * (n_outputs(q) - width(q, depth(q)))
    for l in range(depth(q), 0, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        high, dot = matrix(delta, place, rows, n), matrix(dots, place, rows, n)
        product = matrix(spare, 0, n, m)
        if l == 1:
            np.dot(dot.T, X, product)
            add(out, start, product)
            return
        place -= rows * m
        a = matrix(acts, place, rows, m)
        low = matrix(dots, place, rows, m)
        np.dot(dot.T, a, product)
        add(out, start, product)
        np.dot(high.T, low, product)
        add(out, start, product)
        np.dot(dot, matrix(theta, start, n, m), low)
        turned = matrix(spare, 0, rows, m)
        np.dot(high, matrix(V, start, n, m), turned)
        _add_all(low, turned)
        if own[l - 1] != 0.0:
            row_norms(high, norms)
            _spread(low, a, norms, own[l - 1])


@inline
def _weigh(dot, first, c, factor):
    """Row i of dot times factor·c[first + i]."""
    for i in range(dot.shape[0]):
        weight = factor * c[first + i]
        line = dot[i]
        for j in range(line.shape[0]):
            line[j] *= weight


@inline
def deltas(theta, rows, q, delta):
    """δ_{D-1}, …, δ_1 from δ_D, all kept."""
    start = theta.shape[0]
    place = rows * n_outputs(q)
    place -= rows * width(q, depth(q))
    for l in range(depth(q), 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        np.dot(matrix(delta, place, rows, n), matrix(theta, start, n, m), matrix(delta, place - rows * m, rows, m))
        place -= rows * m


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def add_tangent(out, theta, V, own, c, q, data, work):
    """out += Σ_i c_i H_i u_i, with u_i = own_l·c_i ∇ℓ_i + V in layer l."""
    X, Y = split(data, q)
    n, n0, n_out = c.shape[0], width(q, 0), width(q, depth(q))
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        size = rows * n_outputs(q)
        acts, delta, dots = vector(work, 0, size), vector(work, size, size), vector(work, 2 * size, size)
        norms, spare = vector(work, 3 * size, rows), rest(work, 3 * size + rows)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(theta, samples, rows, q, acts)
        for k in range(place, place + rows * n_out):
            delta[k] = acts[k]
        residual(matrix(delta, place, rows, n_out), Y, first, c, 2.0 * q[1])
        deltas(theta, rows, q, delta)
        _forward_dots(theta, V, own, samples, q, acts, delta, dots, spare, norms)
        _weigh(matrix(dots, place, rows, n_out), first, c, 2.0 * q[1])
        _backward_dots(out, theta, V, own, samples, q, acts, delta, dots, spare, norms)


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def _add_collapsed(out, theta, V, own, c, q, data, work):
    """out += Σ_i c_i H_i V, the samples touched by matrix products alone, as in `deep_linear_passes.add_gradient`.

    The n_0 unit vectors pass through the layers in place of the samples, with a_D = Pᵀ, ȧ_D = Ṗᵀ, δ_D = Mᵀ, δ̇_D = Ṁᵀ;
    M = Σ_i c_i δ_i x_iᵀ, and Ṁ the same of 2·scale·Ṗ x_i in place of δ_i.
    """
    X, Y = split(data, q)
    n, n0, n_out = c.shape[0], width(q, 0), width(q, depth(q))
    size, cut = n0 * n_outputs(q), n0 * n_out
    acts, delta, dots = vector(work, 0, size), vector(work, size, size), vector(work, 2 * size, size)
    work = rest(work, 3 * size)
    unit, product, work = matrix(work, 0, n0, n0), matrix(work, n0 * n0, n0, n_out), rest(work, n0 * n0 + cut)
    total, moved, spare = vector(work, 0, cut), vector(work, cut, cut), rest(work, 2 * cut)
    fill(vector(unit, 0, n0 * n0), 0.0)
    for k in range(n0):
        unit[k, k] = 1.0
    place = forward(theta, unit, n0, q, acts)
    _forward_dots(theta, V, own, unit, q, acts, delta, dots, spare, spare)
    fill(total, 0.0)
    fill(moved, 0.0)
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        samples, R = matrix(X, first * n0, rows, n0), matrix(spare, 0, rows, n_out)
        np.dot(samples, matrix(acts, place, n0, n_out), R)
        residual(R, Y, first, c, 2.0 * q[1])
        np.dot(samples.T, R, product)
        add(total, 0, product)
        np.dot(samples, matrix(dots, place, n0, n_out), R)
        _weigh(R, first, c, 2.0 * q[1])
        np.dot(samples.T, R, product)
        add(moved, 0, product)
    for k in range(cut):
        delta[place + k], dots[place + k] = total[k], moved[k]
    deltas(theta, n0, q, delta)
    _backward_dots(out, theta, V, own, unit, q, acts, delta, dots, spare, spare)


@kernel(HESSIAN)
def hessian(out, theta, v, c, q, data, work):
    """out = Σ_i c_i H_i v."""
    own, work = vector(work, 0, depth(q)), rest(work, depth(q))
    fill(own, 0.0)
    fill(out, 0.0)
    if is_collapsed(q, c.shape[0]):
        _add_collapsed(out, theta, v, own, c, q, data, work)
    else:
        add_tangent(out, theta, v, own, c, q, data, work)


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """out = (s²/2)(1/N)Σ_i H_i (g_i - ḡ) = (σ²ρ/2)∇Tr Σ."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[0])
    X, Y = split(data, q)
    own, work = vector(work, 0, depth(q)), rest(work, depth(q))
    c, space, V, sums = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d), vector(work, n + 2 * d, d)
    work = rest(work, n + 3 * d)
    fill(own, 1.0)
    for b in range(n_columns):
        theta = column(x, b, space)
        fill(V, 0.0)
        fill(sums, 0.0)
        fill(c, -1.0 / n)
        add_gradient(V, theta, X, Y, c, n, q, work)
        fill(c, 1.0)
        add_tangent(sums, theta, V, own, c, q, data, work)
        for k in range(d):
            out[k, b] = 0.5 * p[1] * p[1] / n * sums[k]
