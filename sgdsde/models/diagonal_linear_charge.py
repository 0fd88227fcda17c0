"""What a path of `DiagonalLinear` says of charges, for diagonal generators A, and how far a step of its SDE may go.

    Tr[ΣA] = Σ_j α_j Var_i a_ij,   ∇LᵀA∇L = Σ_j α_j ā_j²,   α_j = Σ_r A_r (∂v_j/∂θ_r)² over the components r of v_j

One pass over the samples, whatever the number of generators.
"""

from __future__ import annotations

from sgdsde._abi import OBSERVE, TRACK
from sgdsde._jit import inline, kernel
from sgdsde._views import rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.deep_linear_passes import column
from sgdsde.models.diagonal_linear_kernels import DEPTH, INPUTS, SCALE, WIDTH, residual, slopes
from sgdsde.models.diagonal_linear_second import lengths

__all__ = ["NUMBERS", "charge_law", "step_size", "traces"]

NUMBERS = 5
"""Length of q."""


@inline
def moments(v, mean, spread, data, q):
    """ā_j and Var_i a_ij."""
    n, inputs = int(q[0]), v.shape[0]
    for j in range(inputs):
        mean[j] = spread[j] = 0.0
    for i in range(n):
        r, x = residual(v, data, i, q)
        r *= 2.0 * q[SCALE]
        for j in range(inputs):
            a = r * x[j]
            mean[j] += a / n
            spread[j] += a * a / n
    for j in range(inputs):
        spread[j] = max(0.0, spread[j] - mean[j] * mean[j])


@inline
def _along(diagonal, slope, j, q):
    """α_j."""
    inputs, width = int(q[INPUTS]), int(q[WIDTH])
    total = 0.0
    for k in range(int(q[DEPTH])):
        for i in range(width):
            r = (k * inputs + j) * width + i
            total += diagonal[r] * slope[r] * slope[r]
    return total


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`. p = [γ, *q, ‖A‖, diagonal of A (d)]."""
    q = rest(p, 1)
    a = rest(q, NUMBERS)
    diagonal = rest(a, 1)
    d, n_columns = x0.shape
    inputs = int(q[INPUTS])
    space, slope, work = vector(work, 0, d), vector(work, d, d), rest(work, 2 * d)
    value, mean, spread = vector(work, 0, inputs), vector(work, inputs, inputs), vector(work, 2 * inputs, inputs)
    after = rest(work, 3 * inputs)
    for b in range(n_columns):
        slopes(slope, column(x0, b, space), value, after, q)
        moments(value, mean, spread, data, q)
        decay = 1.0 - 2.0 * p[0] * h[b]
        push = trace = charge = moved = cross = quadratic = length0 = length = 0.0
        for j in range(inputs):
            along = _along(diagonal, slope, j, q)
            push += along * mean[j] * mean[j]
            trace += along * spread[j]
        for r in range(d):
            v = x1[r, b] - decay * x0[r, b]
            charge += diagonal[r] * x0[r, b] * x0[r, b]
            moved += diagonal[r] * x1[r, b] * x1[r, b]
            cross += 2.0 * decay * diagonal[r] * x0[r, b] * v
            quadratic += diagonal[r] * v * v
            length0 += x0[r, b] * x0[r, b]
            length += v * v
        add_step(acc, b, h[b], charge, push, trace, cross, quadratic, moved, a[0], length0, length)


@kernel(TRACK)
def traces(acc, x0, x1, t, h, p, data, work):
    """acc[a] += h·Tr[ΣA_a], Σ at x0. p = [*q, diagonal of each A (d)]."""
    d, n_columns = x0.shape
    inputs = int(p[INPUTS])
    space, slope, work = vector(work, 0, d), vector(work, d, d), rest(work, 2 * d)
    value, mean, spread = vector(work, 0, inputs), vector(work, inputs, inputs), vector(work, 2 * inputs, inputs)
    after = rest(work, 3 * inputs)
    for b in range(n_columns):
        slopes(slope, column(x0, b, space), value, after, p)
        moments(value, mean, spread, data, p)
        for a in range(acc.shape[0]):
            diagonal = vector(p, NUMBERS + a * d, d)
            for j in range(inputs):
                acc[a, b] += h[b] * _along(diagonal, slope, j, p) * spread[j]


@kernel(OBSERVE)
def step_size(out, x, t, p, data, work):
    """δ = 1/(1 + R·η/ε), R a local bound of how fast the coefficients change, as in `product_steps`:

        R = max_j |ā_j|·‖∇²v_j‖ + 2·scale·λ max_j ν_j + 2γ + s²(max_j Var a_j·‖∇²v_j‖² + 4·scale²·κ max_j ν_j²)

    λ = ‖E xxᵀ‖, κ = ‖E ‖x‖²xxᵀ - (E xxᵀ)²‖, and ‖∇²v_j‖² <= 2(1 - 1/D)·max of e_{D-2}(u²) over the chains of j.
    p = [η/ε, γ, s², λ, κ, *q].
    """
    q = rest(p, 5)
    d, n_columns = x.shape
    inputs, width, depth = int(q[INPUTS]), int(q[WIDTH]), int(q[DEPTH])
    space, slope, work = vector(work, 0, d), vector(work, d, d), rest(work, 2 * d)
    value, mean, spread = vector(work, 0, inputs), vector(work, inputs, inputs), vector(work, 2 * inputs, inputs)
    nu, after = vector(work, 3 * inputs, inputs), rest(work, 4 * inputs)
    for b in range(n_columns):
        theta = column(x, b, space)
        slopes(slope, theta, value, after, q)
        lengths(nu, slope, q)
        moments(value, mean, spread, data, q)
        drift = noise = longest = 0.0
        for j in range(inputs):
            curve = 0.0
            for i in range(width):
                top, one, two = 1.0, 0.0, 0.0
                for k in range(depth):
                    u = theta[(k * inputs + j) * width + i]
                    two = two * u * u + one
                    one = one * u * u + top
                    top *= u * u
                curve = max(curve, two)
            bend = 2.0 * (1.0 - 1.0 / depth) * curve
            drift, noise = max(drift, abs(mean[j]) * bend**0.5), max(noise, spread[j] * bend)
            longest = max(longest, nu[j])
        drift += 2.0 * q[SCALE] * p[3] * longest
        noise += 4.0 * q[SCALE] * q[SCALE] * p[4] * longest * longest
        out[0, b] = 1.0 / (1.0 + p[0] * (drift + 2.0 * p[1] + p[2] * noise))
