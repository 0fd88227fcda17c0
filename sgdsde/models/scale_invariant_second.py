"""Second derivatives of `ScaleInvariant`, from those of the deep linear network at θ': all in closed form.

Block by block with ρ = 1/r², Π = 1 - θ'θ'ᵀ, g' and H' of the deep linear network at θ', w = Πv/r:

    H v = (ΠH'w - ⟨g', θ'⟩w - ⟨w, g'⟩θ')/r - ⟨θ', v⟩Πg'/r²

A step along θ' in one layer multiplies f by a number, so that with η = 2·scale·(f - y)·f each layer has
⟨g'_l, θ'_l⟩ = η, and the block ⟨g', θ'⟩ = κη, κ = 1 for a layer, D for all. With μ = Σ ρκ² over blocks

    ‖∇ℓ_i‖² = Σ_l ρ_l‖g'_{i,l}‖² - μη_i²,     Tr Σ = Σ_l ρ_l Tr Σ'_l - μ Var η
    Tr H_i = Σ ρ (Tr H'_i - θ'ᵀH'_iθ' - (size - 1)κη_i),   θ'ᵀH'_iθ' = 2·scale·κ²‖f‖² + κ(κ - 1)η_i   over blocks
"""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import CORRECTION, VECTOR
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import matrix, rest, vector
from sgdsde.models.deep_linear_kernels import weighted as linear_weighted
from sgdsde.models.deep_linear_passes import (
    CHUNK,
    add,
    backward,
    column,
    depth,
    forward,
    residual,
    row_norms,
    split,
    width,
)
from sgdsde.models.deep_linear_sample import n_outputs
from sgdsde.models.deep_linear_second import add_norms, add_traces
from sgdsde.models.deep_linear_tangent import add_tangent, deltas, fill
from sgdsde.models.deep_linear_tangent import hessian as linear_hessian
from sgdsde.models.model import HESSIAN, LOSSES
from sgdsde.models.scale_invariant_kernels import block, blocks, normalise, project

__all__ = ["correction", "gradient_norms", "hessian", "hessian_traces", "moments"]


@inline
def rates(rho, radii, q):
    """ρ of each layer; returns κ and μ."""
    each = blocks(q)
    kappa = 1.0 if q[4 + depth(q)] != 0.0 else float(depth(q))
    mu = 0.0
    for k in range(each):
        mu += kappa * kappa / (radii[k] * radii[k])
    for l in range(depth(q)):
        r = radii[l if each > 1 else 0]
        rho[l] = 1.0 / (r * r)
    return kappa, mu


@inline
def _product(R, Y, first, scale, i):
    """η and ‖f‖² from row i of the outputs."""
    n = R.shape[1]
    eta = size = 0.0
    for j in range(n):
        f = R[i, j]
        eta += 2.0 * scale * (f - Y[(first + i) * n + j]) * f
        size += f * f
    return eta, size


@inline
def _outer(out, start, high, low, spare):
    """out[start:] += highᵀ low."""
    product = matrix(spare, 0, high.shape[1], low.shape[1])
    np.dot(high.T, low, product)
    add(out, start, product)


@kernel(types.void(VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR))
def moments(mean, sums, unit, q, data, work):
    """Of the deep linear network at θ': mean = ∇L', sums = E‖g'_l‖² for each l, then Eη and Eη²."""
    X, Y = split(data, q)
    n, n0, top = int(q[0]), width(q, 0), depth(q)
    n_out, most = width(q, top), min(int(q[0]), CHUNK)
    ones, below, above = vector(work, 0, n), vector(work, n, most), vector(work, n + most, most)
    work = rest(work, n + 2 * most)
    fill(ones, 1.0 / n)
    fill(mean, 0.0)
    fill(sums, 0.0)
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        size = rows * n_outputs(q)
        acts, delta, spare = vector(work, 0, size), vector(work, size, size), rest(work, 2 * size)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(unit, samples, rows, q, acts)
        for k in range(place, place + rows * n_out):
            delta[k] = acts[k]
        R = matrix(delta, place, rows, n_out)
        for i in range(rows):
            eta, _ = _product(R, Y, first, q[1], i)
            sums[top] += eta / n
            sums[top + 1] += eta * eta / n
        residual(R, Y, first, ones, 2.0 * q[1])
        deltas(unit, rows, q, delta)
        start = place = 0
        for l in range(1, top + 1):
            n_l, m = width(q, l), width(q, l - 1)
            low = samples if l == 1 else matrix(acts, place - rows * m, rows, m)
            high = matrix(delta, place, rows, n_l)
            row_norms(low, below)
            row_norms(high, above)
            for i in range(rows):
                sums[l - 1] += above[i] * below[i] * n
            _outer(mean, start, high, low, spare)
            start += n_l * m
            place += rows * n_l


@kernel(types.void(VECTOR, types.float64, types.float64, VECTOR, VECTOR, VECTOR, VECTOR))
def _add_spread(out, factor, mean, unit, q, data, work):
    """out += factor·Σ_i (η_i - η̄)∇η_i: a backward pass from 2·scale·(2f - y)."""
    X, Y = split(data, q)
    n, n0, top = int(q[0]), width(q, 0), depth(q)
    n_out = width(q, top)
    most = 0
    for l in range(1, top + 1):
        most = max(most, width(q, l) * width(q, l - 1))
    spare, acts = vector(work, 0, most), rest(work, most)
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        samples = matrix(X, first * n0, rows, n0)
        place = forward(unit, samples, rows, q, acts)
        R = matrix(acts, place, rows, n_out)
        for i in range(rows):
            eta, _ = _product(R, Y, first, q[1], i)
            weight = 2.0 * q[1] * factor * (eta - mean)
            for j in range(n_out):
                R[i, j] = weight * (2.0 * R[i, j] - Y[(first + i) * n_out + j])
        backward(out, unit, samples, rows, q, acts, spare)


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """out = (s²/4)∇Tr Σ. With G the gradient of Σ_l ρ_l Tr Σ'_l - μ Var η in θ' alone, and T the Tr Σ'_b - κ² Var η:

    ∇Tr Σ = (ΠG - 2ρTθ')/r    in each block.
    """
    q = rest(p, 2)
    d, n_columns = x.shape
    n, top = int(q[0]), depth(q)
    radii, rho, sums, work = (
        vector(work, 0, top),
        vector(work, top, top),
        vector(work, 2 * top, top + 2),
        rest(work, 3 * top + 2),
    )
    c, space, unit = vector(work, 0, n), vector(work, n, d), vector(work, n + d, d)
    mean, G, work = vector(work, n + 2 * d, d), vector(work, n + 3 * d, d), rest(work, n + 4 * d)
    fill(c, 1.0)
    for b in range(n_columns):
        normalise(unit, radii, column(x, b, space), q)
        kappa, mu = rates(rho, radii, q)
        moments(mean, sums, unit, q, data, work)
        start = 0
        for l in range(top):
            size = width(q, l + 1) * width(q, l)
            here = vector(mean, start, size)
            sums[l] -= dot(here, here)
            for k in range(size):
                here[k] *= -rho[l]
            start += size
        variance = sums[top + 1] - sums[top] * sums[top]
        fill(G, 0.0)
        add_tangent(G, unit, mean, rho, c, q, data, work)
        _add_spread(G, -mu, sums[top], unit, q, data, work)
        project(G, unit, radii, q)
        start = 0
        for k in range(blocks(q)):
            size = block(q, k, d)
            total = -kappa * kappa * variance
            for l in range(top):
                if blocks(q) == 1 or l == k:
                    total += sums[l]
            pull = total / radii[k] ** 3
            for i in range(start, start + size):
                out[i, b] = 0.5 * p[1] * p[1] * (G[i] / n - pull * unit[i])
            start += size


@kernel(HESSIAN)
def hessian(out, theta, v, c, q, data, work):
    """out = Σ_i c_i H_i v."""
    d, top = theta.shape[0], depth(q)
    radii, unit, g = vector(work, 0, top), vector(work, top, d), vector(work, top + d, d)
    w, work = vector(work, top + 2 * d, d), rest(work, top + 3 * d)
    normalise(unit, radii, theta, q)
    for k in range(d):
        w[k] = v[k]
    project(w, unit, radii, q)
    linear_weighted(g, unit, c, q, data, work)
    linear_hessian(out, unit, w, c, q, data, work)
    start = 0
    for k in range(blocks(q)):
        size = block(q, k, d)
        u, here, moved = vector(unit, start, size), vector(g, start, size), vector(w, start, size)
        result = vector(out, start, size)
        along, radial = dot(u, vector(v, start, size)), dot(u, here)
        turned, kept = dot(moved, here), dot(u, result)
        for i in range(size):
            tangent = result[i] - kept * u[i] - radial * moved[i] - turned * u[i]
            result[i] = (tangent - along / radii[k] * (here[i] - radial * u[i])) / radii[k]
        start += size


@kernel(types.void(VECTOR, types.float64, types.float64, types.float64, VECTOR, VECTOR, VECTOR, VECTOR))
def _add_radial(out, square, one, size, unit, q, data, work):
    """out_i += square·η_i² + one·η_i + size·‖f_i‖²."""
    X, Y = split(data, q)
    n, n0, n_out = int(q[0]), width(q, 0), width(q, depth(q))
    for first in range(0, n, CHUNK):
        rows = min(CHUNK, n - first)
        R = matrix(work, forward(unit, matrix(X, first * n0, rows, n0), rows, q, work), rows, n_out)
        for i in range(rows):
            eta, length = _product(R, Y, first, q[1], i)
            out[first + i] += (square * eta + one) * eta + size * length


@kernel(LOSSES)
def gradient_norms(out, theta, q, data, work):
    """out_i = ‖∇ℓ_i‖²."""
    d, top = theta.shape[0], depth(q)
    radii, rho, unit, work = (
        vector(work, 0, top),
        vector(work, top, top),
        vector(work, 2 * top, d),
        rest(work, 2 * top + d),
    )
    normalise(unit, radii, theta, q)
    _, mu = rates(rho, radii, q)
    fill(out, 0.0)
    add_norms(out, rho, unit, q, data, work)
    _add_radial(out, -mu, 0.0, 0.0, unit, q, data, work)
    for i in range(out.shape[0]):
        out[i] = max(0.0, out[i])  # but for rounding it is


@kernel(LOSSES)
def hessian_traces(out, theta, q, data, work):
    """out_i = Tr H_i."""
    d, top = theta.shape[0], depth(q)
    radii, rho, unit, work = (
        vector(work, 0, top),
        vector(work, top, top),
        vector(work, 2 * top, d),
        rest(work, 2 * top + d),
    )
    normalise(unit, radii, theta, q)
    kappa, mu = rates(rho, radii, q)
    one = 0.0
    for k in range(blocks(q)):
        one -= kappa * (block(q, k, d) + kappa - 2.0) / (radii[k] * radii[k])
    fill(out, 0.0)
    add_traces(out, rho, unit, q, data, work)
    _add_radial(out, 0.0, one, -2.0 * q[1] * mu, unit, q, data, work)
