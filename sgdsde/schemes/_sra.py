"""Rößler's stochastic Runge-Kutta methods for additive noise (SRA): one step for every tableau.

    H_i = Y + h Σ_j A_ij a(t + c⁰_j h, H_j) + Σ_j B_ij b(t + c¹_j h) u,     u_k = I_(k,0)/h = ½ΔW_k + H_k,  j < i
    Y'  = Y + h Σ_i α_i a(t + c⁰_i h, H_i) + Σ_i b(t + c¹_i h)(β¹_i ΔW + β²_i u)

(H_k, with one index of a Brownian motion, is its space-time area; H_i, with one of a stage, a support.) Strong order
1.5, for any number of Brownian motions, asks that A e = c⁰ and

    αᵀe = 1    αᵀA e = ½    αᵀB e = 1    αᵀ(B e)² = 3/2    β¹ᵀe = 1    β²ᵀe = 0    β¹ᵀc¹ = 1    β²ᵀc¹ = −1

The last two are for noise that depends on time: ∫ b dW = b(t) ΔW + b_t(t) h (ΔW − u) + O(h^{5/2}).

A. Rößler, SIAM J. Numer. Anal. 48 (2010) 922.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sgdsde._jit import inline
from sgdsde._views import matrix, rest, zeros

__all__ = ["SRA", "advance", "at_time", "work"]

Row = tuple[float, ...]


class SRA(NamedTuple):
    """A tableau: `A` and `B` are square, and zero on the diagonal and above."""

    A: tuple[Row, ...]
    B: tuple[Row, ...]
    alpha: Row
    c0: Row
    c1: Row
    beta1: Row
    beta2: Row


def work(tableau: SRA) -> Callable[[int, int], tuple[int, int]]:
    """(d, m) -> scratch of `advance`."""
    s = len(tableau.alpha)
    return lambda d, m: (0, (2 * s + 2) * d + 3 * m + 2)


@inline
def _below(square, j):
    """Whether column j has an entry that is not zero."""
    for i in range(j + 1, len(square)):
        if square[i][j] != 0.0:
            return True
    return False


@inline
def at_time(time, t, c, h):
    """time = t + c h; an entry of a tableau is read once, outside the loop, or it keeps the loop from vectorising."""
    for b in range(t.shape[0]):
        time[b] = t[b] + c * h[b]


@inline
def _add(to, factor, source):
    if factor != 0.0:
        for i in range(to.shape[0]):
            for b in range(to.shape[1]):
                to[i, b] += factor * source[i, b]


@inline
def advance(tableau, increment, x, t, h, dW, aux, work, p, data):
    """One step. Noise that supports read is one increment with u; what only the sum reads, one with its weights."""
    d, n = x.shape
    m = dW.shape[0]
    s = len(tableau.alpha)
    y = matrix(work, 0, d, n)
    point = matrix(work, d * n, d, n)
    at = (2 * s + 2) * d * n  # in front of it the drift, then the noise, of all stages
    u, v = matrix(work, at, m, n), matrix(work, at + m * n, m, n)
    zeros(work, at + 2 * m * n, m * n)
    no_noise = matrix(work, at + 2 * m * n, m, n)
    at += 3 * m * n
    no_time, time = zeros(work, at, n), zeros(work, at + n, n)
    tail = rest(work, at + 2 * n)
    for k in range(m):
        for b in range(n):
            u[k, b] = 0.5 * dW[k, b] + aux[k, b]
    for i in range(d):
        for b in range(n):
            y[i, b] = 0.0
    for j in range(s):
        beta1, beta2 = tableau.beta1[j], tableau.beta2[j]
        at_time(time, t, tableau.c1[j], h)
        if _below(tableau.B, j):
            noise = matrix(work, (2 + s + j) * d * n, d, n)
            increment(noise, x, time, no_time, u, p, data, tail)
            _add(y, beta2, noise)
            beta2 = 0.0
        if beta1 != 0.0 or beta2 != 0.0:
            for k in range(m):
                for b in range(n):
                    v[k, b] = beta1 * dW[k, b] + beta2 * u[k, b]
            increment(point, x, time, no_time, v, p, data, tail)
            _add(y, 1.0, point)
    for i in range(s):
        for k in range(d):
            for b in range(n):
                point[k, b] = x[k, b]
        for j in range(i):
            _add(point, tableau.A[i][j], matrix(work, (2 + j) * d * n, d, n))
            _add(point, tableau.B[i][j], matrix(work, (2 + s + j) * d * n, d, n))
        at_time(time, t, tableau.c0[i], h)
        drift = matrix(work, (2 + i) * d * n, d, n)
        increment(drift, point, time, h, no_noise, p, data, tail)
        _add(y, tableau.alpha[i], drift)
    _add(x, 1.0, y)
