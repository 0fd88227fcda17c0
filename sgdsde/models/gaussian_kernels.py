"""Compiled increment of `DeepLinear` on a Gaussian law of the data, exact, matrix-free and without a sample.

With x = Lz, y = Vx + Mε for standard normal z (k) and ε (r), and C = (W_D … W_1 - V)L,

    ∇_{W_l} ℓ = 2·scale·B_lᵀ (Czzᵀ - Mεzᵀ) (A_{l-1}L)ᵀ,    A_l = W_l … W_1,  B_l = W_D … W_{l+1}.

The variables z_i z_j (i < j), (z_i² - 1)/√2 and ε_a z_i have mean 0, variance 1 and no correlations (L. Isserlis 1918),
and a gradient is linear in them and 1. So its coefficients are columns of an exact factor G, GGᵀ = Σ(θ), and

    ∇L·h:  -C h      G·v:  C S(v) - M E(v)      in place of Czzᵀ - Mεzᵀ,

S(v) symmetric (k, k) with entries v_ij off and √2·v_ii on the diagonal, E(v) (r, k): m = k(k + 1)/2 + rk. What moves θ
is one pass of the k columns of L through the layers. Where v takes the values of those variables at some z and ε,
-∇L + G·v is that sample's gradient itself, up to the sign of the mean.

q = [0, scale, D, n_0, …, n_D, k, r] · data = [Lᵀ (k, n_0), (VL)ᵀ (k, n_D), Mᵀ (r, n_D)] raveled · p = [γ, s, *q].
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import INCREMENT
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_passes import backward, column, depth, forward, width

__all__ = ["increment", "largest", "misfit", "parts", "ranks"]


@inline
def ranks(q):
    """k and r."""
    return int(q[4 + depth(q)]), int(q[5 + depth(q)])


@inline
def parts(data, q):
    """Lᵀ, (VL)ᵀ, Mᵀ."""
    k, r = ranks(q)
    n0, n_out = width(q, 0), width(q, depth(q))
    return matrix(data, 0, k, n0), matrix(data, k * n0, k, n_out), matrix(data, k * (n0 + n_out), r, n_out)


@inline
def largest(q):
    """Entries of the largest W_l."""
    most = 0
    for l in range(1, depth(q) + 1):
        most = max(most, width(q, l) * width(q, l - 1))
    return most


@inline
def misfit(theta, X, Y, q, acts):
    """(A_l L)ᵀ of all layers into `acts`, the last one replaced by Cᵀ; returns its place."""
    k, n_out = Y.shape
    place = forward(theta, X, k, q, acts)
    C = matrix(acts, place, k, n_out)
    for i in range(k):
        for j in range(n_out):
            C[i, j] -= Y[i, j]
    return place


@inline
def _noise(out, v, b, C, M, S, E, factor):
    """out = factor·(S(v) Cᵀ - E(v)ᵀ Mᵀ) for column b of v; C is Cᵀ (k, n_D), M is Mᵀ; S (k, k), E (k, r): scratch."""
    k, n_out = C.shape
    r = M.shape[0]
    at = 0
    for i in range(k):
        S[i, i] = factor * np.sqrt(2.0) * v[at, b]
        at += 1
        for j in range(i + 1, k):
            S[i, j] = S[j, i] = factor * v[at, b]
            at += 1
    np.dot(S, C, out)
    for a in range(r):
        for i in range(k):
            E[i, a] = factor * v[at, b]
            at += 1
    for i in range(k):
        for a in range(r):
            for j in range(n_out):
                out[i, j] -= E[i, a] * M[a, j]


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    """out = -h(∇L + 2γθ) + s·G·v."""
    q = rest(p, 2)
    d, n_columns = x.shape
    k, r = ranks(q)
    n_out = width(q, depth(q))
    X, Y, M = parts(data, q)
    space, moved = vector(work, 0, d), vector(work, d, d)
    at = 2 * d
    spare, at = vector(work, at, largest(q)), at + largest(q)
    S, at = matrix(work, at, k, k), at + k * k
    E, at = matrix(work, at, k, r), at + k * r
    T, at = matrix(work, at, k, n_out), at + k * n_out
    acts = rest(work, at)
    for b in range(n_columns):
        theta = column(x, b, space)
        place = misfit(theta, X, Y, q, acts)
        C = matrix(acts, place, k, n_out)
        if v.shape[0] > 0:
            _noise(T, v, b, C, M, S, E, 2.0 * q[1] * p[1])
        else:
            for i in range(k):
                for j in range(n_out):
                    T[i, j] = 0.0
        factor = 2.0 * q[1] * h[b]
        for i in range(k):
            for j in range(n_out):
                C[i, j] = T[i, j] - factor * C[i, j]
        decay = -2.0 * p[0] * h[b]
        target = vector(out, 0, d) if n_columns == 1 else moved
        for i in range(d):
            target[i] = decay * theta[i]
        backward(target, theta, X, k, q, acts, spare)
        if n_columns > 1:
            for i in range(d):
                out[i, b] = target[i]
