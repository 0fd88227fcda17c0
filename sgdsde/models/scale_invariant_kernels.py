"""Compiled gradients of `ScaleInvariant`: those of `DeepLinear` at the direction of θ, projected on its tangent space.

ℓ(θ) = ℓ'(θ'), ℓ' the loss of a deep linear network and θ' = θ/r block by block, r the norm of a block: all of θ is one
block, or every W_l is. With g' = ∇ℓ'(θ'),

    ∇ℓ = (g' - ⟨g', θ'⟩θ')/r    in each block, which is orthogonal to θ.

q = [N, scale, D, n_0, …, n_D, whether each layer is a block] · data = [X (N, n_0), Y (N, n_D)] raveled, both as
`DeepLinear` has them · an equation's p = [γ, s] followed by q. At a block of zeros all is NaN.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import INCREMENT, STEP
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import rest, vector
from sgdsde.models import deep_linear_kernels as linear
from sgdsde.models.deep_linear_passes import add_gradient, column, depth, split, width
from sgdsde.models.deep_linear_sample import axpy, few_step
from sgdsde.models.deep_linear_step import FEW, copy, many_step
from sgdsde.models.model import LOSSES, SAMPLE, WEIGHTED
from sgdsde.models.weights import sde_weights

__all__ = ["block", "blocks", "increment", "losses", "normalise", "project", "sample", "step", "weighted"]

linear_losses, linear_sample, linear_weighted = linear.losses, linear.sample, linear.weighted


@inline
def blocks(q):
    """How many blocks there are."""
    return depth(q) if q[4 + depth(q)] != 0.0 else 1


@inline
def block(q, k, d):
    """The size of block k."""
    return width(q, k + 1) * width(q, k) if q[4 + depth(q)] != 0.0 else d


@inline
def length(x):
    """‖x‖, also where its square would underflow or overflow."""
    square = dot(x, x)
    if 1e-280 < square < 1e280:
        return np.sqrt(square)
    largest, total = 0.0, 0.0
    for i in range(x.shape[0]):
        largest = max(largest, abs(x[i]))
    for i in range(x.shape[0]):
        total += (x[i] / largest) * (x[i] / largest)
    return largest * np.sqrt(total)


@inline
def normalise(unit, radii, theta, q):
    """unit = θ', and radii its r, one for each block."""
    d = theta.shape[0]
    start = 0
    for k in range(blocks(q)):
        size = block(q, k, d)
        here, to = vector(theta, start, size), vector(unit, start, size)
        radii[k] = length(here)
        for i in range(size):
            to[i] = here[i] / radii[k]
        start += size


@inline
def project(g, unit, radii, q):
    """g' becomes (g' - ⟨g', θ'⟩θ')/r."""
    d = g.shape[0]
    start = 0
    for k in range(blocks(q)):
        size = block(q, k, d)
        here, u = vector(g, start, size), vector(unit, start, size)
        axpy(here, -dot(here, u), u)
        for i in range(size):
            here[i] /= radii[k]
        start += size


@inline
def _room(q, d, work):
    """θ', its r, and what is left of the scratch."""
    top = depth(q)
    return vector(work, top, d), vector(work, 0, top), rest(work, top + d)


@kernel(WEIGHTED)
def weighted(out, theta, c, q, data, work):
    """out = Σ_i c_i ∇ℓ_i."""
    unit, radii, work = _room(q, theta.shape[0], work)
    normalise(unit, radii, theta, q)
    linear_weighted(out, unit, c, q, data, work)
    project(out, unit, radii, q)


@kernel(SAMPLE)
def sample(out, theta, i, q, data, work):
    """out = ∇ℓ_i."""
    unit, radii, work = _room(q, theta.shape[0], work)
    normalise(unit, radii, theta, q)
    linear_sample(out, unit, i, q, data, work)
    project(out, unit, radii, q)


@kernel(LOSSES)
def losses(out, theta, q, data, work):
    """out_i = ℓ_i."""
    unit, radii, work = _room(q, theta.shape[0], work)
    normalise(unit, radii, theta, q)
    linear_losses(out, unit, q, data, work)


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    """out = -Σ_i c_i ∇ℓ_i - 2γhθ, c_i = h/N - s·(v_i - v̄)/√N: one weighted gradient, however many samples."""
    q = rest(p, 2)
    d, n_columns = x.shape
    n = int(q[0])
    X, Y = split(data, q)
    unit, radii, work = _room(q, d, work)
    c, space, g, work = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d), rest(work, n + 2 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        normalise(unit, radii, theta, q)
        sde_weights(c, h[b], v, b, p[1])
        for k in range(d):
            g[k] = 0.0
        add_gradient(g, unit, X, Y, c, n, q, work)
        project(g, unit, radii, q)
        for k in range(d):
            out[k, b] = g[k] - 2.0 * p[0] * h[b] * theta[k]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """θ' = (1 - 2hγ)θ - h·(mean of ∇ℓ_i over the samples of aux[:, b]), h the learning rate, in place."""
    q = rest(p, 2)
    d, n_columns = x.shape
    size = aux.shape[0]
    X, Y = split(data, q)
    unit, radii, work = _room(q, d, work)
    space, g, work = vector(work, 0, d), vector(work, d, d), rest(work, 2 * d)
    for b in range(n_columns):
        theta = column(x, b, space)
        normalise(unit, radii, theta, q)
        copy(g, unit)  # a step of the deep linear network that keeps nothing of where it starts: minus its gradient
        if size <= FEW:
            few_step(g, X, Y, aux, b, 2.0 * q[1] / size, 0.0, q, work)
        else:
            many_step(g, X, Y, aux, b, -1.0 / size, 0.0, q, work)
        project(g, unit, radii, q)
        for k in range(d):
            x[k, b] = (1.0 - 2.0 * h[b] * p[0]) * theta[k] + h[b] * g[k]
