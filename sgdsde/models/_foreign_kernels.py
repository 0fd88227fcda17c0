"""The kernels of a model that somebody else wrote, in one of two ways, as the first numbers of q say.

q = [N, number, three words of a SAMPLE kernel, three of a LOSS kernel, …]. A number above zero: the passes over all
samples are methods of an object of Python that is registered under it (`_foreign_passes`), one call for each. Zero: the
user's functions of one sample were compiled, the words are their addresses, and the loops over samples are here;
samples of weight zero are not looked at. A θ that is not finite gives NaN: users' functions never see one.

LOSS(theta[d], i, q, data, work) -> ℓ_i
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from sgdsde._abi import CORRECTION, INCREMENT, STEP, VECTOR
from sgdsde._address import function_at
from sgdsde._jit import inline, kernel
from sgdsde._views import all_zero, rest, vector
from sgdsde.models import _foreign_passes as python
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.model import DIFFERENCE, HESSIAN, LOSSES, SAMPLE, WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = ["LOSS", "OWN", "correction", "hessian", "increment", "losses", "sample", "sample_by_differences", "step"]

LOSS = types.float64(VECTOR, types.int64, VECTOR, VECTOR, VECTOR)
OWN = 8
"""Where the numbers of the functions begin in q."""
SCRATCH = 6
"""Vectors of d numbers that a kernel needs beside the weights."""

_sample_at, _loss_at = function_at(SAMPLE), function_at(LOSS)
_weighted_in_python, _losses_in_python, _single_in_python = python.weighted, python.losses, python.single
_batch_in_python, _hessian_in_python, _bend_in_python = python.batch, python.hessian, python.bend


@inline
def _in_python(q):
    return q[1] > 0.0


@inline
def _finite(theta):
    total = 0.0
    for k in range(theta.shape[0]):
        total += theta[k] * 0.0
    return total == 0.0


@inline
def _fill(out, value):
    for k in range(out.shape[0]):
        out[k] = value


@inline
def _sample_of(q):
    return _sample_at(np.int64(q[2]), np.int64(q[3]), np.int64(q[4]))


@inline
def _loss_of(q):
    return _loss_at(np.int64(q[5]), np.int64(q[6]), np.int64(q[7]))


@kernel(WEIGHTED, nogil=False)
def weighted(out, theta, c, q, data, work):
    """out = Σ_i c_i ∇ℓ_i; d numbers of scratch."""
    if not _finite(theta):
        _fill(out, np.nan)
    elif all_zero(c):
        _fill(out, 0.0)
    elif _in_python(q):
        with numba.objmode():
            _weighted_in_python(out, theta, c, q)
    else:
        one, d = _sample_of(q), theta.shape[0]
        g, tail = vector(work, 0, d), rest(work, d)
        _fill(out, 0.0)
        for i in range(c.shape[0]):
            if c[i] != 0.0:
                one(g, theta, i, q, data, tail)
                for k in range(d):
                    out[k] += c[i] * g[k]


@kernel(SAMPLE, nogil=False)
def sample(out, theta, i, q, data, work):
    """out = ∇ℓ_i."""
    if not _finite(theta):
        _fill(out, np.nan)
    elif _in_python(q):
        with numba.objmode():
            _single_in_python(out, theta, i, q)
    else:
        _sample_of(q)(out, theta, i, q, data, work)


@kernel(LOSSES, nogil=False)
def losses(out, theta, q, data, work):
    """out_i = ℓ_i."""
    if not _finite(theta):
        _fill(out, np.nan)
    elif _in_python(q):
        with numba.objmode():
            _losses_in_python(out, theta, q)
    else:
        one = _loss_of(q)
        for i in range(out.shape[0]):
            out[i] = one(theta, i, q, data, work)


@kernel(SAMPLE)
def sample_by_differences(out, theta, i, q, data, work):
    """out = ∇ℓ_i by central differences of the loss; d numbers of scratch."""
    loss, d = _loss_of(q), theta.shape[0]
    moved, tail = vector(work, 0, d), rest(work, d)
    for k in range(d):
        moved[k] = theta[k]
    for k in range(d):
        h = DIFFERENCE * (1.0 + abs(theta[k]))
        moved[k] = theta[k] + h
        ahead, width = loss(moved, i, q, data, tail), moved[k]
        moved[k] = theta[k] - h
        out[k] = (ahead - loss(moved, i, q, data, tail)) / (width - moved[k])
        moved[k] = theta[k]


@kernel(INCREMENT, nogil=False)
def increment(out, x, t, h, v, p, data, work):
    """out = -Σ_i c_i ∇ℓ_i - 2γhθ, c_i = h/N - s·(v_i - v̄)/√N: one weighted gradient for each path."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[0])
    c, space, moved = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d)
    tail = rest(work, n + 2 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        sde_weights(c, h[b], v, b, p[1])
        weighted(moved, theta, c, q, data, tail)
        decay = 2.0 * p[0] * h[b]
        for k in range(d):
            out[k, b] = moved[k] - decay * theta[k]


@kernel(STEP, nogil=False)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """θ' = (1 - 2hγ)θ - h·(mean of ∇ℓ_i over the samples of aux[:, b]), in place; no other sample is looked at."""
    q = rest(p, 2)
    d, n_columns = x.shape
    size = aux.shape[0]
    index, space, mean = vector(work, 0, size), vector(work, size, d), vector(work, size + d, d)
    g, tail = vector(work, size + 2 * d, d), rest(work, size + 3 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        decay = 1.0 - 2.0 * h[b] * p[0]
        if not _finite(theta):
            _fill(mean, np.nan)
        elif _in_python(q):
            for s in range(size):
                index[s] = aux[s, b]
            with numba.objmode():
                _batch_in_python(mean, theta, index, q)
        else:
            one = _sample_of(q)
            _fill(mean, 0.0)
            for s in range(size):
                one(g, theta, int(aux[s, b]), q, data, tail)
                for k in range(d):
                    mean[k] += g[k]
            for k in range(d):
                mean[k] /= size
        for k in range(d):
            x[k, b] = decay * theta[k] - h[b] * mean[k]


@inline
def _norm(a):
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * a[k]
    return math.sqrt(total)


@kernel(HESSIAN, nogil=False)
def hessian(out, theta, v, c, q, data, work):
    """out = Σ_i c_i H_i v: the model's own, or a central difference of gradients where the functions were compiled."""
    d, length = theta.shape[0], _norm(v)
    if not (_finite(theta) and _finite(v)):
        _fill(out, np.nan)
    elif length == 0.0:
        _fill(out, 0.0)
    elif _in_python(q):
        with numba.objmode():
            _hessian_in_python(out, theta, v, c, q)
    else:
        moved, behind, tail = vector(work, 0, d), vector(work, d, d), rest(work, 2 * d)
        h = DIFFERENCE * (1.0 + _norm(theta)) / length
        for k in range(d):
            moved[k] = theta[k] - h * v[k]
        weighted(behind, moved, c, q, data, tail)
        for k in range(d):
            moved[k] = theta[k] + h * v[k]
        weighted(out, moved, c, q, data, tail)
        for k in range(d):
            out[k] = (out[k] - behind[k]) / (2.0 * h)


@inline
def _bend(out, theta, c, q, data, work):
    """out = (1/N)Σ_i H_i(g_i - ḡ), each H_i δ_i a central difference of ∇ℓ_i along δ_i."""
    d, n = theta.shape[0], c.shape[0]
    one = _sample_of(q)
    mean, delta, moved, g = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, d), vector(work, 3 * d, d)
    tail, size = rest(work, 4 * d), 1.0 + _norm(theta)
    _fill(c, 1.0 / n)
    weighted(mean, theta, c, q, data, tail)
    _fill(out, 0.0)
    for i in range(n):
        one(delta, theta, i, q, data, tail)
        for k in range(d):
            delta[k] -= mean[k]
        length = _norm(delta)
        if length > 0.0:
            h = DIFFERENCE * size / length
            for sign in (1.0, -1.0):
                for k in range(d):
                    moved[k] = theta[k] + sign * h * delta[k]
                one(g, moved, i, q, data, tail)
                for k in range(d):
                    out[k] += sign * g[k] / (2.0 * h * n)


@kernel(CORRECTION, nogil=False)
def correction(out, x, t, p, data, work):
    """(σ²ρ/2)∇Tr Σ = (s²/2)(1/N)Σ_i H_i(g_i - ḡ)."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[0])
    c, space, moved, tail = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d), rest(work, n + 2 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        if not _finite(theta):
            _fill(moved, np.nan)
        elif _in_python(q):
            with numba.objmode():
                _bend_in_python(moved, theta, q)
        else:
            _bend(moved, theta, c, q, data, tail)
        for k in range(d):
            out[k, b] = 0.5 * p[1] * p[1] * moved[k]
