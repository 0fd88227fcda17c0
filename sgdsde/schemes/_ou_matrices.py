"""The matrices of dX = (BX + c)dt + G dW over one step: exponentials, and the covariance that (ΔW, H) leaves.

With A = Bh, φ₁ = ∫e^{Ay}dy, φ₂ = ∫e^{Ay}(1 − y)dy over [0, 1], H = ∫(½ − s/h)dW_s and Q = GGᵀ:

    X(h) = e^A X + h φ₁ c + φ₁ G ΔW + 6(φ₁ − 2φ₂) G H + S ξ,     ξ ~ N(0, I) independent of (ΔW, H)
    SSᵀ  = ∫₀ʰ e^{Bs} Q e^{Bᵀs} ds − h φ₁Qφ₁ᵀ − 3h (φ₁ − 2φ₂)Q(φ₁ − 2φ₂)ᵀ

The two terms with ΔW and H are the regression of the stochastic integral on the first two Legendre polynomials of the
path; what is left has the size |Bh|² √h. Everything is computed for h/2^s, where Taylor series converge at
once, and doubled s times.
"""

from __future__ import annotations

import math

from numba import types

from sgdsde._abi import VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._views import vector

__all__ = ["SCRATCH", "ou_matrices"]

SCRATCH = 6
"""Times d² doubles of scratch."""
TERMS = 24


@inline
def _product(out, a, b, d, factor):
    """out = factor·a b."""
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += a[i * d + k] * b[k * d + j]
            out[i * d + j] = factor * total


@inline
def _congruence(out, a, q, half, d):
    """out = a q aᵀ; half is scratch."""
    _product(half, a, q, d, 1.0)
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += half[i * d + k] * a[j * d + k]
            out[i * d + j] = total


@inline
def _one_plus(out, a, b, d):
    """out = I + a b."""
    _product(out, a, b, d, 1.0)
    for i in range(d):
        out[i * d + i] += 1.0


@inline
def _root(out, q, d, floor):
    """out outᵀ = q by Cholesky with the largest pivot first; q is destroyed. Pivots below `floor` are rounding."""
    for i in range(d * d):
        out[i] = 0.0
    for column in range(d):
        row = 0
        for i in range(1, d):
            if q[i * d + i] > q[row * d + row]:
                row = i
        pivot = q[row * d + row]
        if not pivot > floor:
            return
        scale = 1.0 / math.sqrt(pivot)
        for i in range(d):
            out[i * d + column] = q[i * d + row] * scale
        for i in range(d):
            for j in range(d):
                q[i * d + j] -= out[i * d + column] * out[j * d + column]
        for i in range(d):
            q[i * d + row] = 0.0
            q[row * d + i] = 0.0


@kernel(types.void(VECTOR, VECTOR, VECTOR, types.float64, types.int64, VECTOR))
def ou_matrices(out, B, Q, h, d, work):
    """out (4d²) = e^A, φ₁(A), 6(φ₁ − 2φ₂), S, each in C order, from B (d²), Q (d²), h; work: SCRATCH d² doubles."""
    dd = d * d
    E, P1, D, S = vector(out, 0, dd), vector(out, dd, dd), vector(out, 2 * dd, dd), vector(out, 3 * dd, dd)
    z, P2, V = vector(work, 0, dd), vector(work, dd, dd), vector(work, 2 * dd, dd)
    one, two, three = vector(work, 3 * dd, dd), vector(work, 4 * dd, dd), vector(work, 5 * dd, dd)
    norm = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += abs(B[i * d + j]) * h
        norm = max(norm, total)
    doublings = 0
    while norm > 0.5 and doublings < 1000:
        norm *= 0.5
        doublings += 1
    length = h * 0.5**doublings
    for i in range(dd):
        z[i] = B[i] * length
        P2[i] = 0.0
    for k in range(TERMS, 1, -1):  # φ₂(z) = ½(I + z/3 (I + z/4 (I + …)))
        _product(one, z, P2, d, 1.0)
        for i in range(d):
            one[i * d + i] += 1.0
        for i in range(dd):
            P2[i] = one[i] / k
    _one_plus(P1, z, P2, d)
    _one_plus(E, z, P1, d)
    for i in range(dd):  # V = length Σ_k L^k(Q) / (k + 1)!,  L(X) = zX + Xzᵀ
        two[i] = Q[i] * length
        V[i] = two[i]
    for k in range(2, TERMS):
        _product(one, z, two, d, 1.0 / k)
        for i in range(d):
            for j in range(d):
                two[i * d + j] = one[i * d + j] + one[j * d + i]
        for i in range(dd):
            V[i] += two[i]
    for _ in range(doublings):
        _congruence(one, E, V, two, d)
        _product(two, E, P2, d, 1.0)
        _product(three, E, P1, d, 1.0)
        for i in range(dd):
            V[i] += one[i]
            P2[i] = 0.25 * (two[i] + P1[i] + P2[i])
            P1[i] = 0.5 * (three[i] + P1[i])
        _product(one, E, E, d, 1.0)
        for i in range(dd):
            E[i] = one[i]
    floor = 0.0
    for i in range(d):
        floor = max(floor, V[i * d + i] * 1e-15)
    for i in range(dd):
        D[i] = 6.0 * (P1[i] - 2.0 * P2[i])
    _congruence(one, P1, Q, two, d)
    _congruence(three, D, Q, two, d)
    for i in range(d):
        for j in range(i + 1):
            left = V[i * d + j] - h * one[i * d + j] - h / 12.0 * three[i * d + j]
            z[i * d + j] = left
            z[j * d + i] = left
    _root(S, z, d, floor)
