"""Second moments of the gradients of `DeepLinear` on a Gaussian law: the gradient of Tr Σ, and the charge law.

With a_l = A_l L (n_l, k), C = (W_D … W_1 - V)L, K = CCᵀ + Σ_ε, b_l = W_D … W_{l+1}, by Isserlis' theorem

    Σ restricted to W_l:  E[g_l gᵀ_l] - ḡ_l ḡ_lᵀ = 4·scale²·(‖a_{l-1}‖² b_lᵀKb_l + Q_l Q_lᵀ),    Q_l = b_lᵀ C a_{l-1}ᵀ,
                          E[gᵀ_l g_l] - ḡ_lᵀ ḡ_l = 4·scale²·(Tr[b_lᵀKb_l] a_{l-1}a_{l-1}ᵀ + Q_lᵀ Q_l),

as matrices (n_l, n_l) and (n_{l-1}, n_{l-1}); Tr Σ = 4·scale²·Σ_l (‖a_{l-1}‖² Tr[b_lᵀKb_l] + ‖Q_l‖²). For the factor of
`gaussian_kernels`, as for the per-sample one, ½Σ_j (G_j·∇)G_j = ¼∇Tr Σ, because g - ḡ is a combination of its columns.
p, q and data as there; of the charge law p = [γ, *q, ‖A‖, kinds and factors of each layer] as in `deep_linear_charge`.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import CORRECTION, TRACK
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.deep_linear_charge import ABSENT, WHOLE, _form, _length, _next
from sgdsde.models.deep_linear_passes import add, backward, column, depth, width
from sgdsde.models.gaussian_kernels import largest, misfit, parts, ranks

__all__ = ["charge_law", "correction"]


@inline
def _square(A):
    """‖A‖²."""
    flat = vector(A, 0, A.size)
    return dot(flat, flat)


@inline
def _below(X, acts, l, k, q):
    """a_{l-1}ᵀ (k, n_{l-1})."""
    if l == 1:
        return X
    place = 0
    for j in range(1, l - 1):
        place += k * width(q, j)
    return matrix(acts, place, k, width(q, l - 1))


@inline
def _upper_place(l, q):
    """Where b_l stands: b_1, …, b_D one after another."""
    place = 0
    for j in range(1, l):
        place += width(q, depth(q)) * width(q, j)
    return place


@inline
def _upper(uppers, l, q):
    """b_l (n_D, n_l)."""
    return matrix(uppers, _upper_place(l, q), width(q, depth(q)), width(q, l))


@inline
def _uppers(uppers, theta, q):
    """b_D = I, b_{l-1} = b_l W_l."""
    n_out = width(q, depth(q))
    top = _upper(uppers, depth(q), q)
    for i in range(n_out):
        for j in range(n_out):
            top[i, j] = 1.0 if i == j else 0.0
    start = theta.shape[0]
    for l in range(depth(q), 1, -1):
        n, m = width(q, l), width(q, l - 1)
        start -= n * m
        np.dot(_upper(uppers, l, q), matrix(theta, start, n, m), _upper(uppers, l - 1, q))


@inline
def _kept(q, k):
    """Numbers of all a_l, and of all b_l."""
    acts = uppers = 0
    for l in range(1, depth(q) + 1):
        acts += k * width(q, l)
        uppers += width(q, depth(q)) * width(q, l)
    return acts, uppers


@inline
def _widest(q):
    most = 0
    for l in range(depth(q) + 1):
        most = max(most, width(q, l))
    return most


@inline
def _add_scaled(A, factor, B):
    """A += factor·B."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] += factor * B[i, j]


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """(s²/4)∇Tr Σ, by going back through Tr Σ as a function of the a_l, the b_l and C."""
    q = rest(p, 2)
    d, n_columns = x.shape
    k, r = ranks(q)
    D, n_out, widest = depth(q), width(q, depth(q)), _widest(q)
    X, Y, M = parts(data, q)
    n_acts, n_uppers = _kept(q, k)
    space, grad = vector(work, 0, d), vector(work, d, d)
    acts, at = vector(work, 2 * d, n_acts), 2 * d + n_acts
    d_acts, at = vector(work, at, n_acts), at + n_acts
    uppers, at = vector(work, at, n_uppers), at + n_uppers
    d_uppers, at = vector(work, at, n_uppers), at + n_uppers
    one, at = vector(work, at, (k + r) * widest), at + (k + r) * widest
    two, at = vector(work, at, k * widest), at + k * widest
    three = vector(work, at, max(largest(q), widest * widest))
    for b in range(n_columns):
        theta = column(x, b, space)
        place = misfit(theta, X, Y, q, acts)
        C = matrix(acts, place, k, n_out)
        _uppers(uppers, theta, q)
        for i in range(n_acts):
            d_acts[i] = 0.0
        for i in range(n_uppers):
            d_uppers[i] = 0.0
        for i in range(d):
            grad[i] = 0.0
        dC = matrix(d_acts, place, k, n_out)
        for l in range(1, D + 1):
            n, m = width(q, l), width(q, l - 1)
            a, upper = _below(X, acts, l, k, q), _upper(uppers, l, q)
            size = _square(a)
            P, N = matrix(one, 0, k, n), matrix(one, k * n, r, n)
            np.dot(C, upper, P)
            if r > 0:
                np.dot(M, upper, N)
            trace = _square(P) + _square(N)
            Q = matrix(three, 0, n, m)
            np.dot(P.T, a, Q)
            if l > 1:  # Tr Σ by a_{l-1}: 2·trace·a + 2PQ
                dA = _below(X, d_acts, l, k, q)
                spare = matrix(two, 0, k, m)
                np.dot(P, Q, spare)
                _add_scaled(dA, 2.0 * trace, a)
                _add_scaled(dA, 2.0, spare)
            U = matrix(two, 0, k, n)  # Tr Σ by P, U = 2(‖a‖²P + aQᵀ)
            np.dot(a, Q.T, U)
            _add_scaled(U, size, P)
            dB = _upper(d_uppers, l, q)  # by b_l: CᵀU + 2‖a‖²Σ_ε b_l
            spare = matrix(three, 0, n_out, n)
            np.dot(C.T, U, spare)
            _add_scaled(dB, 2.0, spare)
            if r > 0:
                np.dot(M.T, N, spare)
                _add_scaled(dB, 2.0 * size, spare)
            back = matrix(one, 0, k, n_out)
            np.dot(U, upper.T, back)
            _add_scaled(dC, 2.0, back)
        start = 0
        for l in range(2, D + 1):  # b_{l-1} = b_l W_l
            n, m = width(q, l), width(q, l - 1)
            start += m * width(q, l - 2)
            low = _upper(d_uppers, l - 1, q)
            product = matrix(three, 0, n, m)
            np.dot(_upper(uppers, l, q).T, low, product)
            add(grad, start, product)
            lifted = matrix(three, 0, n_out, n)
            np.dot(low, matrix(theta, start, n, m).T, lifted)
            _add_scaled(_upper(d_uppers, l, q), 1.0, lifted)
        start = d
        for l in range(D, 0, -1):  # a_l = W_l a_{l-1}
            n, m = width(q, l), width(q, l - 1)
            start -= n * m
            here = _below(X, d_acts, l + 1, k, q)
            product = matrix(three, 0, n, m)
            np.dot(here.T, _below(X, acts, l, k, q), product)
            add(grad, start, product)
            if l > 1:
                spare = matrix(two, 0, k, m)
                np.dot(here, matrix(theta, start, n, m), spare)
                _add_scaled(_below(X, d_acts, l, k, q), 1.0, spare)
        factor = (p[1] * q[1]) ** 2
        for i in range(d):
            out[i, b] = factor * grad[i]


@inline
def _rows_form(A, a, at, kind, spare):
    """Σ_i r_iᵀ F r_i over the rows of A; F stands in `a` at `at`."""
    n, m = A.shape
    if kind != WHOLE:
        return a[at] * _square(A)
    moved = matrix(spare, 0, n, m)
    np.dot(A, matrix(a, at, m, m), moved)
    return dot(vector(A, 0, n * m), vector(moved, 0, n * m))


@inline
def _trace(theta, X, M, C, acts, uppers, q, a, work):
    """Tr[ΣA]/(4·scale²)."""
    k, r = C.shape[0], M.shape[0]
    widest = _widest(q)
    N_all, Q_all = vector(work, 0, (k + r) * widest), vector(work, (k + r) * widest, widest * widest)
    turned = vector(work, (k + r + widest) * widest, widest * widest)
    spare = rest(work, (k + r + 2 * widest) * widest)
    total = 0.0
    at = 1
    for l in range(1, depth(q) + 1):
        n, m = width(q, l), width(q, l - 1)
        left, right = int(a[at]), int(a[at + 1])
        if left != ABSENT or right != ABSENT:
            below, upper = _below(X, acts, l, k, q), _upper(uppers, l, q)
            N = matrix(N_all, 0, k + r, n)
            np.dot(C, upper, matrix(N_all, 0, k, n))
            if r > 0:
                np.dot(M, upper, matrix(N_all, k * n, r, n))
            Q = matrix(Q_all, 0, n, m)
            np.dot(matrix(N_all, 0, k, n).T, below, Q)
            if left != ABSENT:
                Qt = matrix(turned, 0, m, n)
                for i in range(n):
                    for j in range(m):
                        Qt[j, i] = Q[i, j]
                total += _square(below) * _rows_form(N, a, at + 2, left, spare)
                total += _rows_form(Qt, a, at + 2, left, spare)
            if right != ABSENT:
                place = at + 2 + _length(left, n)
                total += _square(N) * _rows_form(below, a, place, right, spare)
                total += _rows_form(Q, a, place, right, spare)
        at = _next(a, at, n, m)
    return total


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`."""
    q = rest(p, 1)
    d, n_columns = x0.shape
    k, _ = ranks(q)
    n_out = width(q, depth(q))
    a = rest(q, 6 + depth(q))
    X, Y, M = parts(data, q)
    n_acts, n_uppers = _kept(q, k)
    before, after, gradient, v = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, d), vector(work, 3 * d, d)
    at = 4 * d
    acts, at = vector(work, at, n_acts), at + n_acts
    uppers, at = vector(work, at, n_uppers), at + n_uppers
    work = rest(work, at)
    for b in range(n_columns):
        theta, moved = column(x0, b, before), column(x1, b, after)
        decay = 1.0 - 2.0 * p[0] * h[b]
        for i in range(d):
            v[i] = moved[i] - decay * theta[i]
            gradient[i] = 0.0
        place = misfit(theta, X, Y, q, acts)
        C = matrix(acts, place, k, n_out)
        _uppers(uppers, theta, q)
        trace = 4.0 * q[1] * q[1] * _trace(theta, X, M, C, acts, uppers, q, a, work)
        for i in range(k):
            for j in range(n_out):
                C[i, j] *= 2.0 * q[1]
        backward(gradient, theta, X, k, q, acts, work)
        push = _form(gradient, gradient, q, a, work)
        charge = _form(theta, theta, q, a, work)
        cross = 2.0 * decay * _form(theta, v, q, a, work)
        quadratic, end = _form(v, v, q, a, work), _form(moved, moved, q, a, work)
        add_step(acc, b, h[b], charge, push, trace, cross, quadratic, end, a[0], dot(theta, theta), dot(v, v))
