"""Second derivatives of `DiagonalLinear` in closed form: correction, Hessian times vector, traces, norms.

With ν_j = ‖∇v_j‖² and a_ij = 2·scale·r_i x_ij, and because no two v_j have a parameter in common,

    Tr Σ = Σ_j ν_j Var_i a_ij,   ‖∇ℓ_i‖² = Σ_j ν_j a_ij²,   Tr H_i = 2·scale·Σ_j ν_j x_ij²
    Σ_i c_i H_i w = Jᵀ(Σ_i c_i 2·scale·x_i x_iᵀ)J w + Σ_j (Σ_i c_i a_ij) ∇²v_j w,   J = ∂v/∂θ.

For one chain of factors u_k, ν is e_{D-1}(u_1², …, u_D²), an elementary symmetric polynomial, whose derivative along
u_k is 2u_k e_{D-2} of the others. Nothing is divided by a factor.
"""

from __future__ import annotations

from sgdsde._abi import CORRECTION
from sgdsde._jit import inline, kernel
from sgdsde._sums import dot
from sgdsde._views import rest, vector
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.deep_linear_sample import axpy
from sgdsde.models.diagonal_linear_kernels import DEPTH, INPUTS, SCALE, WIDTH, residual, slopes
from sgdsde.models.model import HESSIAN, LOSSES

__all__ = ["correction", "gradient_norms", "hessian", "hessian_traces", "lengths"]


@inline
def lengths(nu, slope, q):
    """ν_j = ‖∇v_j‖²."""
    n, width, depth = nu.shape[0], int(q[WIDTH]), int(q[DEPTH])
    for j in range(n):
        nu[j] = 0.0
    for k in range(depth):
        for j in range(n):
            for i in range(width):
                s = slope[(k * n + j) * width + i]
                nu[j] += s * s


@inline
def _length_slope(out, k, theta, top, q):
    """out = ∂ν/∂u_k of each chain: 2u_k e_{D-2} of the squares of its other factors. `top`: a number a chain."""
    chains, depth = out.shape[0], int(q[DEPTH])
    for c in range(chains):
        out[c], top[c] = 0.0, 1.0
    for m in range(depth):
        if m != k:
            u = vector(theta, m * chains, chains)
            for c in range(chains):
                a = u[c] * u[c]
                out[c] = out[c] * a + top[c]
                top[c] *= a
    u = vector(theta, k * chains, chains)
    for c in range(chains):
        out[c] *= 2.0 * u[c]


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    """out = (s²/4)∇Tr Σ, Tr Σ = Σ_j ν_j V_j, V_j = Var_i a_ij:

    ∂Tr Σ/∂θ_r = V_j ∂ν_j/∂θ_r + w_j ∂v_j/∂θ_r,   w_l = (4·scale/N) Σ_i x_il Σ_j ν_j x_ij (a_ij - ā_j).
    """
    q = rest(p, 2)
    d, n_columns = x.shape
    n, inputs, width = int(q[0]), int(q[INPUTS]), int(q[WIDTH])
    chains = inputs * width
    space, slope, r, work = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, n), rest(work, 2 * d + n)
    v, mean, spread = vector(work, 0, inputs), vector(work, inputs, inputs), vector(work, 2 * inputs, inputs)
    push, nu, work = vector(work, 3 * inputs, inputs), vector(work, 4 * inputs, inputs), rest(work, 5 * inputs)
    after, bend = vector(work, 0, chains), vector(work, chains, chains)
    for b in range(n_columns):
        theta = column(x, b, space)
        slopes(slope, theta, v, after, q)
        lengths(nu, slope, q)
        for j in range(inputs):
            mean[j] = spread[j] = push[j] = 0.0
        for i in range(n):
            r[i], row = residual(v, data, i, q)
            r[i] *= 2.0 * q[SCALE]
            axpy(mean, r[i] / n, row)
        for i in range(n):
            row = vector(data, i * inputs, inputs)
            along = 0.0
            for j in range(inputs):
                off = r[i] * row[j] - mean[j]
                spread[j] += off * off / n
                along += nu[j] * row[j] * off
            axpy(push, 4.0 * q[SCALE] * along / n, row)
        factor = 0.25 * p[1] * p[1]
        for k in range(int(q[DEPTH])):
            _length_slope(bend, k, theta, after, q)
            for j in range(inputs):
                for i in range(width):
                    c = j * width + i
                    out[k * chains + c, b] = factor * (spread[j] * bend[c] + push[j] * slope[k * chains + c])


@kernel(HESSIAN)
def hessian(out, theta, v, c, q, data, work):
    """out = Σ_i c_i H_i v."""
    inputs, width, depth = int(q[INPUTS]), int(q[WIDTH]), int(q[DEPTH])
    chains = inputs * width
    slope, work = vector(work, 0, theta.shape[0]), rest(work, theta.shape[0])
    value, moved = vector(work, 0, inputs), vector(work, inputs, inputs)  # v and Jv
    m, z, work = vector(work, 2 * inputs, inputs), vector(work, 3 * inputs, inputs), rest(work, 4 * inputs)
    product, bend = vector(work, 0, chains), vector(work, chains, chains)
    slopes(slope, theta, value, product, q)
    for j in range(inputs):
        moved[j] = m[j] = z[j] = 0.0
    for k in range(depth):
        for j in range(inputs):
            for r in range(k * chains + j * width, k * chains + (j + 1) * width):
                moved[j] += slope[r] * v[r]
    for i in range(c.shape[0]):
        r, x = residual(value, data, i, q)
        weight = 2.0 * q[SCALE] * c[i]
        axpy(m, weight * r, x)
        axpy(z, weight * dot(x, moved), x)
    for k in range(depth):
        for a in range(chains):  # Π_{l≠k} u_l and its derivative along v
            product[a], bend[a] = 1.0, 0.0
        for l in range(depth):
            if l != k:
                u, w = vector(theta, l * chains, chains), vector(v, l * chains, chains)
                for a in range(chains):
                    bend[a] = bend[a] * u[a] + product[a] * w[a]
                    product[a] *= u[a]
        for j in range(inputs):
            for i in range(width):
                a = j * width + i
                out[k * chains + a] = slope[k * chains + a] * z[j] + m[j] * bend[a]


@inline
def _room(theta, q, work):
    """v, ν, and the slopes' scratch."""
    n = int(q[INPUTS])
    chains = n * int(q[WIDTH])
    v, nu, after = vector(work, 0, n), vector(work, n, n), vector(work, 2 * n, chains)
    slope = vector(work, 2 * n + chains, theta.shape[0])
    slopes(slope, theta, v, after, q)
    lengths(nu, slope, q)
    return v, nu


@kernel(LOSSES)
def gradient_norms(out, theta, q, data, work):
    """out_i = ‖∇ℓ_i‖²."""
    v, nu = _room(theta, q, work)
    for i in range(out.shape[0]):
        r, x = residual(v, data, i, q)
        total = 0.0
        for j in range(nu.shape[0]):
            total += nu[j] * x[j] * x[j]
        out[i] = 4.0 * (q[SCALE] * r) ** 2 * total


@kernel(LOSSES)
def hessian_traces(out, theta, q, data, work):
    """out_i = Tr H_i."""
    v, nu = _room(theta, q, work)
    for i in range(out.shape[0]):
        _, x = residual(v, data, i, q)
        total = 0.0
        for j in range(nu.shape[0]):
            total += nu[j] * x[j] * x[j]
        out[i] = 2.0 * q[SCALE] * total
