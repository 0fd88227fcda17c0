"""The accelerated fixed point: Anderson's method, which is a secant method with as many secants as it remembers.

    u' = u + βg − Σ_i γ_i (Δu_i + βΔg_i),   γ = argmin |g − Σ_i γ_i Δg_i|,   g = F(u) − u

over the last differences Δu_i, Δg_i of iterates and residuals: D. G. Anderson 1965, J. ACM 12, 547; H. F. Walker, P. Ni
2011, SIAM J. Numer. Anal. 49, 1715. The least squares are solved by Gram-Schmidt from the newest difference to the
oldest, and a difference that adds nothing to the newer ones is left out. It starts at u = 0 with β = 1, so that the
first two iterates are the explicit Euler and midpoint increments. Where the second residual is q > 1 times the first
(a stiff step), β = 1/(1 + q/2) from there on, which is right for rates between 0 and −q.
"""

from __future__ import annotations

import math

from sgdsde._errors import OK
from sgdsde._jit import inline
from sgdsde._views import matrix, rest
from sgdsde.schemes._newton import DENSE
from sgdsde.schemes._residual import DONE, LEFT, LOOSE, OPEN, TIGHT, evaluate, measure

__all__ = ["WINDOW", "accelerate", "size"]

WINDOW, LONG_WINDOW = 5, 10
"""Differences remembered, d at most; the second where Newton cannot help."""
FLAT, FAST = 3, 0.25
"""Iterations without half the residual after which what is left is taken for rounding, where it is below LOOSE and has
fallen by FAST an iteration before."""
DEPENDENT = 1e-16
"""A difference is left out when this fraction of its square, or less, is at right angles to the newer ones."""


@inline
def _window(d):
    return min(d, WINDOW) if d <= DENSE else LONG_WINDOW


def size(d: int) -> int:
    w = _window.py_func(d)
    return (2 + 3 * w) * d + w * (w + 3)


@inline
def accelerate(
    increment, correction, out, base, theta, t, h, v, with_correction, p, data, y, c, u, f, u_best, columns, status,
    work,
):  # fmt: skip
    """Iterate from u = 0. u_best, out = F(u_best): the best point of each column; True if a column is not DONE."""
    d, n = base.shape
    w = _window(d)
    patience, limit = (6, 40) if d <= DENSE else (30, 400)
    u_old, g_old = matrix(work, 0, d, n), matrix(work, d * n, d, n)
    at = 2 * d * n
    moved = matrix(work, at, w * d, n)  # Δu
    turned = matrix(work, at + w * d * n, w * d, n)  # Δg
    Q = matrix(work, at + 2 * w * d * n, w * d, n)
    at += 3 * w * d * n
    R, inverse = matrix(work, at, w * w, n), matrix(work, at + w * w * n, w, n)
    gamma, before = matrix(work, at + (w * w + w) * n, w, n), matrix(work, at + (w * w + 2 * w) * n, w, n)
    tail = rest(work, at + w * (w + 3) * n)
    state, residual, scale, best = columns[0], columns[1], columns[2], columns[4]
    mark, since, at_best, beta, first = columns[5], columns[6], columns[8], columns[9], columns[10]
    for b in range(n):
        state[b] = OPEN if status[b] == OK else LEFT
        best[b], mark[b], since[b], beta[b] = math.inf, math.inf, 0.0, 1.0
    for i in range(d):
        for b in range(n):
            u[i, b] = 0.0
            u_best[i, b] = 0.0
    for k in range(limit):
        evaluate(increment, correction, f, u, base, theta, t, h, v, with_correction, p, data, y, c, tail)
        measure(f, u, base, columns)
        running = False
        for b in range(n):
            if state[b] != OPEN:
                continue
            if not math.isfinite(residual[b]):
                state[b] = LEFT
                continue
            if k == 0:
                first[b] = residual[b]
            if k == 1 and residual[b] > best[b]:
                beta[b] = 1.0 / (1.0 + 0.5 * residual[b] / best[b])
            if residual[b] < best[b]:
                best[b], at_best[b] = residual[b], scale[b]
                for i in range(d):
                    u_best[i, b] = u[i, b]
                    out[i, b] = f[i, b]
            if residual[b] < 0.5 * mark[b]:
                mark[b], since[b] = residual[b], k
            if residual[b] <= TIGHT * scale[b]:
                state[b] = DONE
                if beta[b] < 1.0:  # F enlarges what is left
                    for i in range(d):
                        out[i, b] = u[i, b]
            elif best[b] <= LOOSE * at_best[b] and k - since[b] >= FLAT and best[b] <= first[b] * FAST ** since[b]:
                state[b] = DONE
            elif k - since[b] >= patience:
                state[b] = DONE if d > DENSE and best[b] <= LOOSE * at_best[b] else LEFT
            running = running or state[b] == OPEN
        if not running:
            break
        _next(u, f, u_old, g_old, moved, turned, Q, R, inverse, gamma, before, beta, w, k)
    pending = False
    for b in range(n):
        if state[b] == OPEN:
            state[b] = LEFT
        pending = pending or state[b] != DONE
    return pending


@inline
def _next(u, f, u_old, g_old, moved, turned, Q, R, inverse, gamma, before, beta, w, k):
    """u = the next iterate, after iteration k; the loops run along the columns, all of which have the same history."""
    d, n = u.shape
    kept = min(k, w)
    if k > 0:
        new = ((k - 1) % w) * d
        for i in range(d):
            for b in range(n):
                g = f[i, b] - u[i, b]
                turned[new + i, b] = g - g_old[i, b]
                moved[new + i, b] = u[i, b] - u_old[i, b]
    for i in range(d):
        for b in range(n):
            u_old[i, b] = u[i, b]
            g_old[i, b] = f[i, b] - u[i, b]
            u[i, b] += beta[b] * g_old[i, b]
    for r in range(kept):  # newest first
        source = ((k - 1 - r) % w) * d
        q = r * d
        for b in range(n):
            before[r, b] = 0.0
        for i in range(d):
            for b in range(n):
                Q[q + i, b] = turned[source + i, b]
                before[r, b] += turned[source + i, b] ** 2
        for s in range(r):
            entry = s * w + r
            for b in range(n):
                R[entry, b] = 0.0
            for i in range(d):
                for b in range(n):
                    R[entry, b] += Q[s * d + i, b] * Q[q + i, b]
            for i in range(d):
                for b in range(n):
                    Q[q + i, b] -= R[entry, b] * Q[s * d + i, b]
        for b in range(n):
            inverse[r, b] = 0.0
            gamma[r, b] = 0.0
        for i in range(d):
            for b in range(n):
                inverse[r, b] += Q[q + i, b] ** 2
        for b in range(n):
            left = inverse[r, b]
            inverse[r, b] = 1.0 / math.sqrt(left) if left > DEPENDENT * before[r, b] and left > 1e-300 else 0.0
        for i in range(d):
            for b in range(n):
                Q[q + i, b] *= inverse[r, b]
                gamma[r, b] += Q[q + i, b] * g_old[i, b]
    for r in range(kept - 1, -1, -1):
        for s in range(r + 1, kept):
            for b in range(n):
                gamma[r, b] -= R[r * w + s, b] * gamma[s, b]
        source = ((k - 1 - r) % w) * d
        for b in range(n):
            gamma[r, b] *= inverse[r, b]
        for i in range(d):
            for b in range(n):
                u[i, b] -= gamma[r, b] * (moved[source + i, b] + beta[b] * turned[source + i, b])
