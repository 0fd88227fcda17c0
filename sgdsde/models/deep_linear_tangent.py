"""The correction of `DeepLinear`'s per-sample factor: ½Σ_j (b_j·∇)b_j = (s²/2)·(1/N)Σ_i H_i (g_i - ḡ).

H_i u is the derivative of ∇ℓ_i along u, by a tangent pass. Along u = g_i - ḡ, that is u_l = δ_l a_{l-1}ᵀ - V_l with
V = ∇L, it needs no d numbers per sample:

    ȧ_0 = 0,         ȧ_l     = W_l ȧ_{l-1} + ‖a_{l-1}‖² δ_l - V_l a_{l-1}
    δ̇_D = 2·scale·ȧ_D,  δ̇_{l-1} = W_lᵀ δ̇_l  + ‖δ_l‖² a_{l-1} - V_lᵀ δ_l
    (H u)_l = δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import CORRECTION
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import (
    CHUNK,
    add,
    add_gradient,
    column,
    depth,
    forward,
    residual,
    row_norms,
    split,
    width,
)
from sgdsde.models.deep_linear_sample import n_outputs

__all__ = ["correction"]


@inline
def fill(a, value):
    for k in range(a.shape[0]):
        a[k] = value


@inline
def _spread(out, base, norms, rows, spare, sign):
    """out = out + sign·spare + norms·base, row by row."""
    for i in range(rows):
        o, s, b = out[i], spare[i], base[i]
        for j in range(o.shape[0]):
            o[j] += norms[i] * b[j] + sign * s[j]


@inline
def _add_tangent(out, theta, V, X, rows, q, acts, delta, dots, spare, norms, factor):
    """out += Σ_i δ̇_l a_{l-1}ᵀ + δ_l ȧ_{l-1}ᵀ; `acts` holds a_l, `delta` δ_l, `dots` becomes ȧ_l and then δ̇_l."""
    top = depth(q)
    start = 0
    place = 0
    below = X
    for l in range(1, top + 1):
        n, m = width(q, l), width(q, l - 1)
        if l > 1:
            place += rows * m
        dot = matrix(dots, place, rows, n)
        if l > 1:
            np.dot(matrix(dots, place - rows * m, rows, m), matrix(theta, start, n, m).T, dot)
        else:
            fill(vector(dots, 0, rows * n), 0.0)
        product = matrix(spare, 0, rows, n)
        np.dot(below, matrix(V, start, n, m).T, product)
        row_norms(below, norms)
        _spread(dot, matrix(delta, place, rows, n), norms, rows, product, -1.0)
        start += n * m
        below = matrix(acts, place, rows, n)
    last = vector(dots, place, rows * width(q, top))
    for k in range(last.shape[0]):
        last[k] *= factor
    for l in range(top, 0, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        high = matrix(delta, place, rows, n)
        dot = matrix(dots, place, rows, n)
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
        row_norms(high, norms)
        _spread(low, a, norms, rows, turned, -1.0)


@inline
def _deltas(theta, rows, q, delta):
    """δ_{D-1}, …, δ_1 from δ_D, all kept."""
    start = theta.shape[0]
    place = rows * n_outputs(q)
    place -= rows * width(q, depth(q))
    for l in range(depth(q), 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        np.dot(matrix(delta, place, rows, n), matrix(theta, start, n, m), matrix(delta, place - rows * m, rows, m))
        place -= rows * m


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """out = (s²/2)(1/N)Σ_i H_i (g_i - ḡ) = (σ²ρ/2)∇Tr Σ."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n, n0, n_out = int(q[0]), width(q, 0), width(q, depth(q))
    X, Y = split(data, q)
    c, space, V, sums = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d), vector(work, n + 2 * d, d)
    work = rest(work, n + 3 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        fill(V, 0.0)
        fill(sums, 0.0)
        fill(c, 1.0 / n)
        add_gradient(V, theta, X, Y, c, n, q, work)
        fill(c, 1.0)
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
            _deltas(theta, rows, q, delta)
            _add_tangent(sums, theta, V, samples, rows, q, acts, delta, dots, spare, norms, 2.0 * q[1])
        for k in range(d):
            out[k, b] = 0.5 * p[1] * p[1] / n * sums[k]
