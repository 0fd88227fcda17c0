"""Compiled orbit projection, one column: along its orbit until its charges are what they must be.

p = [K, 4γ, 2σ²ρ, 1 for the average of two rates, 1 for one diagonal generator (its form one vector of d numbers), 1
for traces of all generators from one TRACK kernel (that of the first), then for each of K generators the row (‖A‖,
where its form starts, where the numbers of its TRACK kernel start, how many, three words of its address), then forms
(as `forms.encode` writes them) and numbers]. Addresses are zero where 2σ²ρ is.

Newton's method on the group. At y, a small element exp(Σ δ_a A_a) changes C_a = yᵀA_a y by 2Σ_b K_ab δ_b,
K_ab = ⟨A_a y, A_b y⟩; y is replaced by exp(Σ δ_a A_a)y with Kδ = ½(target - C), and all starts again from there. The
exponential is a Taylor series of products A·v, of as many terms as its norm asks for; no matrix of d × d is formed.
One diagonal generator is simpler: C(e^{λA}y) = Σ_i a_i e^{2λa_i} y_i² grows with λ, and has one root at most.
"""

from __future__ import annotations

import numpy as np

from sgdsde._errors import NOT_CONVERGED, OK
from sgdsde._jit import inline
from sgdsde._views import matrix, rest, vector
from sgdsde.symmetry.forms import DENSE, DIAGONAL, LEFT, RIGHT

__all__ = ["AVERAGE", "HEADER", "ROW", "TOGETHER", "directions", "form_of", "moved", "solve", "solver_size"]

HEADER, ROW = 6, 7
AVERAGE, ONE_DIAGONAL, TOGETHER = 3, 4, 5
EPS = 2.0**-52
STOP = 4 * EPS
"""Errors of all charges below this times ‖A‖‖θ‖² are rounding."""
ITERATIONS = 100
HALVINGS = 30
LEAST_TERM = 2.0**-56


@inline
def _add(out, v, factor, form):
    """out += factor·A v, with A as written by `forms.encode`."""
    at = 1
    for _ in range(int(form[0])):
        kind, start, r, c = int(form[at]), int(form[at + 1]), int(form[at + 2]), int(form[at + 3])
        at += 4
        if kind == DIAGONAL:
            for k in range(c):
                out[start + k] += factor * form[at + k] * v[start + k]
            at += c
        elif kind == LEFT:
            for i in range(r):
                for k in range(r):
                    a = factor * form[at + i * r + k]
                    if a != 0.0:
                        for j in range(c):
                            out[start + i * c + j] += a * v[start + k * c + j]
            at += r * r
        elif kind == RIGHT:
            for i in range(r):
                for k in range(c):
                    a = factor * v[start + i * c + k]
                    for j in range(c):
                        out[start + i * c + j] += a * form[at + k * c + j]
            at += c * c
        elif kind == DENSE:
            for i in range(r):
                for j in range(r):
                    out[start + i] += factor * form[at + i * r + j] * v[start + j]
            at += r * r


@inline
def form_of(p, a):
    return rest(p, int(p[HEADER + ROW * a + 1]))


@inline
def directions(J, miss, y, target, p):
    """J[a] = A_a y and miss[a] = target[a] - C_a; returns the largest |miss[a]| over ‖A_a‖‖y‖²."""
    k, d = J.shape
    length = 0.0
    for i in range(d):
        length += y[i] * y[i]
    worst = 0.0
    for a in range(k):
        row = vector(J, a * d, d)
        for i in range(d):
            row[i] = 0.0
        _add(row, y, 1.0, form_of(p, a))
        charge = 0.0
        for i in range(d):
            charge += y[i] * row[i]
        miss[a] = target[a] - charge
        if miss[a] != 0.0:
            worst = max(worst, abs(miss[a]) / (p[HEADER + ROW * a] * length))
    return worst


@inline
def _merit(miss, p):
    total = 0.0
    for a in range(miss.shape[0]):
        total += (miss[a] / p[HEADER + ROW * a]) ** 2
    return total


@inline
def solve(delta, miss, J, K):
    """K δ = ½ miss, K = J Jᵀ, by LDLᵀ; a direction that the ones before it contain gets δ = 0."""
    k, d = J.shape
    if k < 4:
        for a in range(k):
            for b in range(a + 1):
                total = 0.0
                for i in range(d):
                    total += J[a, i] * J[b, i]
                K[a, b] = total
    else:
        np.dot(J, J.T, K)
    for a in range(k):
        size = K[a, a]
        for b in range(a):
            for c in range(b):
                K[a, b] -= K[a, c] * K[b, c] * K[c, c]
            K[a, b] = K[a, b] / K[b, b] if K[b, b] > 0.0 else 0.0
            K[a, a] -= K[a, b] * K[a, b] * K[b, b]
        if not K[a, a] > 16.0 * k * EPS * size:
            K[a, a] = 0.0
    for a in range(k):
        delta[a] = 0.5 * miss[a]
        for b in range(a):
            delta[a] -= K[a, b] * delta[b]
    for a in range(k - 1, -1, -1):
        delta[a] = delta[a] / K[a, a] if K[a, a] > 0.0 else 0.0
        for c in range(a + 1, k):
            delta[a] -= K[c, a] * delta[c]


@inline
def _move(out, y, delta, share, p, v, w):
    """out = exp(share·Σ δ_a A_a) y."""
    d, k = y.shape[0], delta.shape[0]
    norm = 0.0
    for a in range(k):
        norm += share * abs(delta[a]) * p[HEADER + ROW * a]
    for i in range(d):
        v[i] = y[i]
        out[i] = 0.0
    term, bound = 0.0, 1.0
    while bound > LEAST_TERM:
        term += 1.0
        bound *= norm / term
        for i in range(d):
            w[i] = 0.0
        for a in range(k):
            if delta[a] != 0.0:
                _add(w, v, share * delta[a] / term, form_of(p, a))
        for i in range(d):
            v[i] = w[i]
            out[i] += w[i]
    for i in range(d):
        out[i] += y[i]


@inline
def solver_size(d, k):
    """Doubles that `_column` takes."""
    return k * d + k * k + 3 * k + 4 * d


@inline
def _column(x, b, target, p, work):
    """`moved` for generators of any kind."""
    d, k = x.shape[0], int(p[0])
    J, K = matrix(work, 0, k, d), matrix(work, k * d, k, k)
    at = k * (d + k)
    goal, miss, delta = vector(work, at, k), vector(work, at + k, k), vector(work, at + 2 * k, k)
    at += 3 * k
    y, trial = vector(work, at, d), vector(work, at + d, d)
    v, w = vector(work, at + 2 * d, d), vector(work, at + 3 * d, d)
    for a in range(k):
        goal[a] = target[a, b]
    for i in range(d):
        y[i] = x[i, b]
    rounding = (32.0 + np.sqrt(d)) * EPS
    error = directions(J, miss, y, goal, p)
    for _ in range(ITERATIONS):
        if error <= STOP:
            break
        merit = _merit(miss, p)
        solve(delta, miss, J, K)
        reach = 0.0
        for a in range(k):
            reach += abs(delta[a]) * p[HEADER + ROW * a]
        if not (0.0 < reach < np.inf):
            break
        share = min(1.0, 1.0 / reach)
        better = False
        for _ in range(HALVINGS):
            _move(trial, y, delta, share, p, v, w)
            found = directions(J, miss, trial, goal, p)
            better = _merit(miss, p) < merit
            if better or error <= rounding:
                break
            share *= 0.5
        if not better:
            break
        error = found
        for i in range(d):
            y[i] = trial[i]
    if not error <= rounding:
        return NOT_CONVERGED
    for i in range(d):
        x[i, b] = y[i]
    return OK


@inline
def _charge_on(a, x, b, lam):
    """Σ a e^{2λa} x², its derivative 2Σ a² e^{2λa} x², and Σ e^{2λa} x²."""
    charge = slope = length = 0.0
    last, grown = 0.0, 1.0
    for i in range(x.shape[0]):
        if a[i] != last:
            last, grown = a[i], np.exp(2.0 * lam * a[i])
        term = grown * x[i, b] * x[i, b]
        charge += a[i] * term
        slope += 2.0 * a[i] * a[i] * term
        length += term
    return charge, slope, length


@inline
def _diagonal_column(x, b, goal, p):
    """`moved` for one diagonal generator. The slope of C(e^{λA}x) is convex in λ, so that Newton's method ends."""
    norm, a = p[HEADER], vector(p, int(p[HEADER + 1]) + 5, x.shape[0])
    rounding = (32.0 + np.sqrt(x.shape[0])) * EPS
    lam, error = 0.0, np.inf
    for _ in range(ITERATIONS):
        charge, slope, length = _charge_on(a, x, b, lam)
        miss = goal - charge
        before = error
        error = abs(miss) / (norm * length) if miss != 0.0 else 0.0
        if error <= STOP or (error <= rounding and error >= 0.5 * before):
            break
        lam += min(max(miss / slope, -1.0 / norm), 1.0 / norm)
    if not error <= rounding:
        return NOT_CONVERGED
    last, grown = 0.0, 0.0
    for i in range(x.shape[0]):
        if a[i] != last:
            last, grown = a[i], np.expm1(lam * a[i])
        x[i, b] += grown * x[i, b]
    return OK


@inline
def moved(x, b, target, p, work):
    """Moves column b of x to the charges target[:, b]; leaves it alone, and says so, where that cannot be done."""
    if p[ONE_DIAGONAL] != 0.0:
        return _diagonal_column(x, b, target[0, b], p)
    return _column(x, b, target, p, work)
