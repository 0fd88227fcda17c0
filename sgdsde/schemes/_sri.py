"""Rößler's stochastic Runge-Kutta methods for scalar and diagonal Itô noise (SRI): one step for every tableau.

    H⁰_i = Y + h Σ_j A⁰_ij a(t + c⁰_j h, H⁰_j) + u  Σ_j B⁰_ij b(t + c¹_j h, H¹_j)                              j < i
    H¹_i = Y + h Σ_j A¹_ij a(t + c⁰_j h, H⁰_j) + √h Σ_j B¹_ij b(t + c¹_j h, H¹_j)                              j < i
    Y'   = Y + h Σ_i α_i a(t + c⁰_i h, H⁰_i) + Σ_i [β¹_i ΔW + β²_i I₁₁/√h + β³_i u + β⁴_i I₁₁₁/h] b(t + c¹_i h, H¹_i)

    I₁₁ = ½(ΔW² − h), I₁₁₁ = (ΔW³ − 3hΔW)/6, u = I₁₀/h = ½ΔW + H, H the space-time area.

Scalar noise has one ΔW and H for all components, diagonal noise one of each for every component, and all columns are
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
from sgdsde.schemes._sra import at_time

__all__ = ["REFUSED", "SRI", "advance", "work"]

Row = tuple[float, ...]
Work = Callable[[int, int], tuple[int, int]]

STAGES = 4
DRIFTS, NOISES = 1, 1 + STAGES  # where the drifts and the noises of the stages are in the scratch, in blocks (d, n)
SIXTH = 1.0 / 6.0

REFUSED = {
    "commutative": "SRI methods are for one Brownian motion, or one for each component; use 'sri2' or 'milstein', or "
    "declare noise='diagonal' if G is diagonal and entry i a function of y_i alone (noise_structure measures it)",
    "general": "order 1.5 needs triple integrals of several Brownian motions, which cannot be had; use 'sri2'",
}


class SRI(NamedTuple):
    """A tableau of four stages: the matrices are zero on the diagonal and above."""

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


def work(other: Work) -> Work:
    """(d, m) -> scratch of `advance`, or of the step for additive noise if that needs more."""
    return lambda d, m: (0, max((NOISES + STAGES) * d + 3 * m + 3, other(d, m)[1]))


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
    for k in range(i + 1, STAGES):
        if tableau.A0[k][i] != 0.0 or tableau.A1[k][i] != 0.0:
            return True
    return i == 0


@inline
def _support(out, x, a_row, b_row, i, tableau, work, factor):
    """out = x + h Σ_j a_row[j] a_j + factor Σ_j b_row[j] b_j, j < i; `factor` has a row for all components, or each."""
    d, n = x.shape
    size = d * n
    a1, a2, a3 = a_row[0], a_row[1], a_row[2]
    b1, b2, b3 = b_row[0], b_row[1], b_row[2]
    drift1, noise1 = matrix(work, DRIFTS * size, d, n), matrix(work, NOISES * size, d, n)
    if a2 == 0.0 and a3 == 0.0 and b2 == 0.0 and b3 == 0.0:
        for k in range(d):
            w = k if factor.shape[0] > 1 else 0
            for b in range(n):
                out[k, b] = x[k, b] + a1 * drift1[k, b] + factor[w, b] * (b1 * noise1[k, b])
        return
    # A stage that is not there yet has weight 0, and is read as the first. More arrays in one loop, and it would not
    # be vectorised: the compiler compares few pairs of them for overlap.
    drift2 = matrix(work, (DRIFTS + (_stage(tableau, 1) if i > 1 else 0)) * size, d, n)
    drift3 = matrix(work, (DRIFTS + (_stage(tableau, 2) if i > 2 else 0)) * size, d, n)
    noise2 = matrix(work, (NOISES + (1 if i > 1 else 0)) * size, d, n)
    noise3 = matrix(work, (NOISES + (2 if i > 2 else 0)) * size, d, n)
    for k in range(d):
        w = k if factor.shape[0] > 1 else 0
        for b in range(n):
            drift = a1 * drift1[k, b] + a2 * drift2[k, b] + a3 * drift3[k, b]
            noise = b1 * noise1[k, b] + b2 * noise2[k, b] + b3 * noise3[k, b]
            out[k, b] = x[k, b] + drift + factor[w, b] * noise


@inline
def advance(tableau, increment, x, t, h, dW, aux, work, p, data):
    """One step: one increment for each drift that is read, and one for each noise."""
    d, n = x.shape
    m = dW.shape[0]
    size = d * n
    point = matrix(work, 0, d, n)
    at = (NOISES + STAGES) * size
    one, u = matrix(work, at, m, n), matrix(work, at + m * n, m, n)
    zeros(work, at + 2 * m * n, m * n)
    no_noise = matrix(work, at + 2 * m * n, m, n)
    at += 3 * m * n
    no_time, time, root = zeros(work, at, n), zeros(work, at + n, n), matrix(work, at + 2 * n, 1, n)
    tail = rest(work, at + 3 * n)
    for k in range(m):
        for b in range(n):
            one[k, b] = 1.0
            u[k, b] = 0.5 * dW[k, b] + aux[k, b]
    for b in range(n):
        root[0, b] = math.sqrt(h[b])
    for i in range(STAGES):
        if _wanted(tableau, i):
            if i > 0:
                _support(point, x, tableau.A0[i], tableau.B0[i], i, tableau, work, u)
            at_time(time, t, tableau.c0[i], h)
            drift = matrix(work, (DRIFTS + i) * size, d, n)
            increment(drift, point if i > 0 else x, time, h, no_noise, p, data, tail)
        if i > 0:
            _support(point, x, tableau.A1[i], tableau.B1[i], i, tableau, work, root)
        at_time(time, t, tableau.c1[i], h)
        noise = matrix(work, (NOISES + i) * size, d, n)
        increment(noise, point if i > 0 else x, time, no_time, one, p, data, tail)
    _sum(tableau, x, root, dW, u, work)


@inline
def _sum(tableau, x, root, dW, u, work):
    """The last line, in two loops for the same reason."""
    d, n = x.shape
    size = d * n
    a1, a2, a3, a4 = tableau.alpha
    drift1 = matrix(work, DRIFTS * size, d, n)
    drift2 = matrix(work, (DRIFTS + _stage(tableau, 1)) * size, d, n)
    drift3 = matrix(work, (DRIFTS + _stage(tableau, 2)) * size, d, n)
    drift4 = matrix(work, (DRIFTS + _stage(tableau, 3)) * size, d, n)
    for k in range(d):
        for b in range(n):
            x[k, b] += a1 * drift1[k, b] + a2 * drift2[k, b] + a3 * drift3[k, b] + a4 * drift4[k, b]
    p1, p2, p3, p4 = tableau.beta1
    q1, q2, q3, q4 = tableau.beta2
    r1, r2, r3, r4 = tableau.beta3
    s1, s2, s3, s4 = tableau.beta4
    noise1, noise2 = matrix(work, NOISES * size, d, n), matrix(work, (NOISES + 1) * size, d, n)
    noise3, noise4 = matrix(work, (NOISES + 2) * size, d, n), matrix(work, (NOISES + 3) * size, d, n)
    for k in range(d):
        w = k if dW.shape[0] > 1 else 0
        for b in range(n):
            b1, b2, b3, b4 = noise1[k, b], noise2[k, b], noise3[k, b], noise4[k, b]
            z = dW[w, b] / root[0, b]
            once = (p1 * b1 + p2 * b2 + p3 * b3 + p4 * b4) * z
            twice = (q1 * b1 + q2 * b2 + q3 * b3 + q4 * b4) * (0.5 * (z * z - 1.0))
            thrice = (s1 * b1 + s2 * b2 + s3 * b3 + s4 * b4) * (z * (z * z - 3.0) * SIXTH)
            in_time = (r1 * b1 + r2 * b2 + r3 * b3 + r4 * b4) * u[w, b]
            x[k, b] += root[0, b] * (once + twice + thrice) + in_time
