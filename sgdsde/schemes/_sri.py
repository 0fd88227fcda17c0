"""Rößler's stochastic Runge-Kutta methods for scalar and diagonal Itô noise (SRI): one step for every tableau.

    H⁰_i = Y + h Σ_j A⁰_ij a(t + c⁰_j h, H⁰_j) + u  Σ_j B⁰_ij b(t + c¹_j h, H¹_j)                              j < i
    H¹_i = Y + h Σ_j A¹_ij a(t + c⁰_j h, H⁰_j) + √h Σ_j B¹_ij b(t + c¹_j h, H¹_j)                              j < i
    Y'   = Y + h Σ_i α_i a(t + c⁰_i h, H⁰_i) + Σ_i [β¹_i ΔW + β²_i I₁₁/√h + β³_i u + β⁴_i I₁₁₁/h] b(t + c¹_i h, H¹_i)

    I₁₁ = ½(ΔW² − h), I₁₁₁ = (ΔW³ − 3hΔW)/6, u = I₁₀/h = ½ΔW + H, H the space-time area.

Scalar noise has one ΔW and H for all components; diagonal noise has one of each for every component, and all columns are
taken at once: component i of b is a function of y_i alone. Strong order 1.5 asks for 25 equations between the
coefficients, and A⁰e = c⁰, A¹e = c¹.

A. Rößler, SIAM J. Numer. Anal. 48 (2010) 922.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from sgdsde._jit import inline
from sgdsde._views import matrix, rest, zeros

__all__ = ["REFUSED", "SRI", "advance", "work"]

Row = tuple[float, ...]
Work = Callable[[int, int], tuple[int, int]]

REFUSED = {
    "commutative": "SRI methods are for one Brownian motion, or one for each component; use 'sri2' or 'milstein', or "
    "declare noise='diagonal' if G is diagonal and entry i a function of y_i alone (noise_structure measures it)",
    "general": "order 1.5 needs triple integrals of several Brownian motions, which cannot be had; use 'sri2'",
}


class SRI(NamedTuple):
    """A tableau: the matrices are square, and zero on the diagonal and above."""

    A0: tuple[Row, ...]
    A1: tuple[Row, ...]
    B0: tuple[Row, ...]
    B1: tuple[Row, ...]
    alpha: Row
    c0: Row
    c1: Row
    beta1: Row
    beta2: Row
    beta3: Row
    beta4: Row


def work(tableau: SRI, other: Work) -> Work:
    """(d, m) -> scratch of `advance`, or of the step for additive noise if that needs more."""
    s = len(tableau.alpha)
    return lambda d, m: (0, max((2 * s + 3) * d + 2 * m + 3, other(d, m)[1]))


@inline
def _stage(tableau, i):
    """The stage whose drift is that of stage i: the first where nothing moves the support, else i."""
    moved = tableau.c0[i] != 0.0
    for j in range(i):
        moved = moved or tableau.A0[i][j] != 0.0 or tableau.B0[i][j] != 0.0
    return i if moved else 0


@inline
def _wanted(tableau, i):
    """Whether the drift of stage i is read, and is not that of the first stage."""
    if i > 0 and _stage(tableau, i) == 0:
        return False
    if tableau.alpha[i] != 0.0:
        return True
    for k in range(i + 1, len(tableau.alpha)):
        if tableau.A0[k][i] != 0.0 or tableau.A1[k][i] != 0.0:
            return True
    return i == 0


@inline
def _add(to, factor, source):
    if factor != 0.0:
        for i in range(to.shape[0]):
            for b in range(to.shape[1]):
                to[i, b] += factor * source[i, b]


@inline
def advance(tableau, increment, x, t, h, dW, aux, work, p, data):
    """One step: one increment for each drift that is read, and one for each noise."""
    d, n = x.shape
    m = dW.shape[0]
    s = len(tableau.alpha)
    y, point, moved = matrix(work, 0, d, n), matrix(work, d * n, d, n), matrix(work, 2 * d * n, d, n)
    at = (2 * s + 3) * d * n  # in front of it the drift, then the noise, of all stages
    one = matrix(work, at, m, n)
    zeros(work, at + m * n, m * n)
    no_noise = matrix(work, at + m * n, m, n)
    at += 2 * m * n
    no_time, time, root = zeros(work, at, n), zeros(work, at + n, n), zeros(work, at + 2 * n, n)
    tail = rest(work, at + 3 * n)
    for k in range(m):
        for b in range(n):
            one[k, b] = 1.0
    for b in range(n):
        root[b] = math.sqrt(h[b])
    for i in range(d):
        for b in range(n):
            y[i, b] = 0.0
    for i in range(s):
        if _wanted(tableau, i):
            for k in range(d):
                for b in range(n):
                    moved[k, b] = 0.0
                    point[k, b] = x[k, b]
            for j in range(i):
                _add(moved, tableau.B0[i][j], matrix(work, (3 + s + j) * d * n, d, n))
                _add(point, tableau.A0[i][j], matrix(work, (3 + _stage(tableau, j)) * d * n, d, n))
            for k in range(d):
                w = k if m > 1 else 0
                for b in range(n):
                    point[k, b] += moved[k, b] * (0.5 * dW[w, b] + aux[w, b])
            for b in range(n):
                time[b] = t[b] + tableau.c0[i] * h[b]
            drift = matrix(work, (3 + i) * d * n, d, n)
            increment(drift, point, time, h, no_noise, p, data, tail)
        _add(y, tableau.alpha[i], matrix(work, (3 + _stage(tableau, i)) * d * n, d, n))
        for k in range(d):
            for b in range(n):
                moved[k, b] = 0.0
                point[k, b] = x[k, b]
        for j in range(i):
            _add(moved, tableau.B1[i][j], matrix(work, (3 + s + j) * d * n, d, n))
            _add(point, tableau.A1[i][j], matrix(work, (3 + _stage(tableau, j)) * d * n, d, n))
        for k in range(d):
            for b in range(n):
                point[k, b] += moved[k, b] * root[b]
        for b in range(n):
            time[b] = t[b] + tableau.c1[i] * h[b]
        noise = matrix(work, (3 + s + i) * d * n, d, n)
        increment(noise, point, time, no_time, one, p, data, tail)
        beta1, beta2, beta3, beta4 = tableau.beta1[i], tableau.beta2[i], tableau.beta3[i], tableau.beta4[i]
        for k in range(d):
            w = k if m > 1 else 0
            for b in range(n):
                z = dW[w, b] / root[b]
                weight = beta1 * z + beta2 * 0.5 * (z * z - 1.0) + beta4 * z * (z * z - 3.0) / 6.0
                y[k, b] += (weight * root[b] + beta3 * (0.5 * dW[w, b] + aux[w, b])) * noise[k, b]
    _add(x, 1.0, y)
