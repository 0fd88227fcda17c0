"""The steps of `population_kernels` for `Product`: all paths side by side, with no batch put together in between.

A sample's gradient is 2·scale·x(vx - y)·∇v, so that a step needs Σ_s x_s(vx_s - y_s) of each path alone. `aux` and the
ends of p and data are those of `population_kernels`.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.product_kernels import SCALE, value_and_slope
from sgdsde.sgd.population_kernels import FRESH_TAIL, NOISY_TAIL

__all__ = ["fresh_step", "noisy_step"]


@inline
def _move(x, h, slope, y, gamma, factor):
    """x = (1 - 2hγ)x - h·factor·y·∇v."""
    d, n_columns = x.shape
    for b in range(n_columns):
        y[b] *= factor * h[b]
    for r in range(d):
        for b in range(n_columns):
            x[r, b] = (1.0 - 2.0 * h[b] * gamma) * x[r, b] - slope[r, b] * y[b]


@kernel(STEP)
def fresh_step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """One step on S samples x = μ + aξ, y = kx + sε; aux holds ξ and ε of one sample after another."""
    q = rest(p, 2)
    d, n_columns = x.shape
    start = data.shape[0] - FRESH_TAIL - 4
    mean, spread, slope_y, noise = data[start], data[start + 1], data[start + 2], data[start + 3]
    size = aux.shape[0] // 2
    value, y = vector(work, 0, n_columns), vector(work, n_columns, n_columns)
    slope = matrix(work, 2 * n_columns, d, n_columns)
    value_and_slope(slope, x, value, y, q)
    for b in range(n_columns):
        y[b] = 0.0
    for s in range(size):
        for b in range(n_columns):
            own = mean + spread * aux[2 * s, b]
            y[b] += own * ((value[b] - slope_y) * own - noise * aux[2 * s + 1, b])
    _move(x, h, slope, y, p[0], 2.0 * q[SCALE] / size)


@kernel(STEP)
def noisy_step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """One step on the samples whose indices are aux[:S], their labels moved by std·aux[S:]."""
    q = rest(p, 2)
    d, n_columns = x.shape
    end = data.shape[0] - NOISY_TAIL
    n, std = int(data[end + 2]), data[end - 1]
    size = aux.shape[0] // 2
    value, y = vector(work, 0, n_columns), vector(work, n_columns, n_columns)
    slope = matrix(work, 2 * n_columns, d, n_columns)
    value_and_slope(slope, x, value, y, q)
    for b in range(n_columns):
        y[b] = 0.0
    for s in range(size):
        for b in range(n_columns):
            i = int(aux[s, b])
            y[b] += data[i] * (value[b] * data[i] - data[n + i] - std * aux[size + s, b])
    _move(x, h, slope, y, p[0], 2.0 * q[SCALE] / size)
