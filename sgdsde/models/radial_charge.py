"""The charge law of `RadialNetwork` along a path, for generators that multiply each array of θ by a number α.

    Tr[ΣA] = Σ α (E‖g‖² - ‖E g‖²) over the arrays W_l and b_l,   ‖g‖² = ‖δ_l‖²‖a_{l-1}‖² of W_l, ‖δ_l‖² of b_l

p = [γ, *q, ‖A‖, α of W_1, α of b_1, …, α of b_D], zeros where there are no b_l.
"""

from __future__ import annotations

from sgdsde._abi import TRACK
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.matrices import PLAIN, TURNED, add_row_sums, column_norms, multiply
from sgdsde.models.mlp_passes import BIASES, WIDTHS, chunk, depth, split, width
from sgdsde.models.mlp_tangent import input_norms
from sgdsde.models.radial_sample import both_ways, room

__all__ = ["charge_law"]


@inline
def _moments(mean, sums, theta, X, Y, q, ones, work):
    """mean = ∇L, sums = E‖g‖² of each array W_1, b_1, …"""
    n, n0, top, most = ones.shape[0], width(q, 0), depth(q), min(ones.shape[0], chunk(q))
    acts, pre, delta, pulls, keep, spare = room(q, most, work)
    for k in range(mean.shape[0]):
        mean[k] = 0.0
    for k in range(2 * top):
        sums[k] = 0.0
    for first in range(0, n, most):
        rows = min(most, n - first)
        samples = matrix(X, first * n0, rows, n0)
        both_ways(theta, samples, Y, first, ones, q, acts, pre, delta, pulls, keep, spare)
        below, above = vector(spare, 0, rows), vector(spare, rows, rows)
        start = place = 0
        for l in range(1, top + 1):
            n_l, m = width(q, l), width(q, l - 1)
            product, high = matrix(mean, start, n_l, m), matrix(delta, place, n_l, rows)
            if l == 1:
                multiply(product, high, PLAIN, samples, PLAIN, 1.0)
            else:
                multiply(product, high, PLAIN, matrix(acts, place - m * rows, m, rows), TURNED, 1.0)
            input_norms(below, samples, acts, place, l, q)
            column_norms(above, high, 0.0)
            sums[2 * l - 2] += dot(above, below) / n
            start += n_l * m
            if q[BIASES] != 0.0:
                add_row_sums(vector(mean, start, n_l), high)
                for i in range(rows):
                    sums[2 * l - 1] += above[i] / n
                start += n_l
            place += n_l * rows
    for k in range(mean.shape[0]):
        mean[k] /= n


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`."""
    q = rest(p, 1)
    d, n_columns = x0.shape
    n, top = int(q[0]), depth(q)
    a = rest(q, WIDTHS + 1 + top)
    X, Y = split(data, q)
    ones, sums, work = vector(work, 0, n), vector(work, n, 2 * top), rest(work, n + 2 * top)
    before, after, mean, v = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, d), vector(work, 3 * d, d)
    work = rest(work, 4 * d)
    for i in range(n):
        ones[i] = 1.0
    for b in range(n_columns):
        theta, moved = column(x0, b, before), column(x1, b, after)
        _moments(mean, sums, theta, X, Y, q, ones, work)
        decay = 1.0 - 2.0 * p[0] * h[b]
        for k in range(d):
            v[k] = moved[k] - decay * theta[k]
        push = trace = charge = end = cross = quadratic = 0.0
        start = 0
        for l in range(1, top + 1):
            for part in range(1 + int(q[BIASES])):
                size = width(q, l) * (width(q, l - 1) if part == 0 else 1)
                alpha = a[1 + 2 * (l - 1) + part]
                g, old, new = vector(mean, start, size), vector(theta, start, size), vector(moved, start, size)
                step = vector(v, start, size)
                here = dot(g, g)
                push += alpha * here
                trace += alpha * (sums[2 * (l - 1) + part] - here)
                charge += alpha * dot(old, old)
                end += alpha * dot(new, new)
                cross += 2.0 * decay * alpha * dot(old, step)
                quadratic += alpha * dot(step, step)
                start += size
        add_step(acc, b, h[b], charge, push, trace, cross, quadratic, end, a[0], dot(theta, theta), dot(v, v))
