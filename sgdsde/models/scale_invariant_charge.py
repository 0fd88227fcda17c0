"""The charge law of `ScaleInvariant` along a path, for generators that multiply each layer by a number α_l.

With the moments of the deep linear network at θ' (`scale_invariant_second`), ν_l = ‖θ'_l‖², and Σ_l the block of W_l,

    Tr Σ_l = ρ_l (E‖g'_l‖² - ‖∇_l L'‖² + (κ²ν_l - 2κ) Var η),      Tr[ΣA] = Σ_l α_l Tr Σ_l

p = [γ, *q, ‖A‖, α_1, …, α_D]. For α = 1 on a block the charge is its squared norm, which only grows without decay.
"""

from __future__ import annotations

from sgdsde._abi import TRACK
from sgdsde._jit import kernel
from sgdsde._sums import dot
from sgdsde._views import rest, vector
from sgdsde.models.charge_rows import add_step
from sgdsde.models.deep_linear_passes import column, depth, width
from sgdsde.models.scale_invariant_kernels import normalise, project
from sgdsde.models.scale_invariant_second import moments, rates

__all__ = ["charge_law"]


@kernel(TRACK)
def charge_law(acc, x0, x1, t, h, p, data, work):
    """Adds one step to the rows of `charge_rows`."""
    q = rest(p, 1)
    d, n_columns = x0.shape
    top = depth(q)
    a = rest(q, 5 + top)
    radii, rho, sums = vector(work, 0, top), vector(work, top, top), vector(work, 2 * top, top + 2)
    work = rest(work, 3 * top + 2)
    before, after, unit = vector(work, 0, d), vector(work, d, d), vector(work, 2 * d, d)
    mean, work = vector(work, 3 * d, d), rest(work, 4 * d)
    for b in range(n_columns):
        theta, moved = column(x0, b, before), column(x1, b, after)
        normalise(unit, radii, theta, q)
        kappa, _ = rates(rho, radii, q)
        moments(mean, sums, unit, q, data, work)
        variance = max(0.0, sums[top + 1] - sums[top] * sums[top])
        decay = 1.0 - 2.0 * p[0] * h[b]
        push = trace = charge = end = cross = quadratic = length0 = length = 0.0
        start = 0
        for l in range(top):
            size = width(q, l + 1) * width(q, l)
            u, g = vector(unit, start, size), vector(mean, start, size)
            spread = sums[l] - dot(g, g) + (kappa * dot(u, u) - 2.0) * kappa * variance
            trace += a[1 + l] * rho[l] * spread
            start += size
        project(mean, unit, radii, q)
        start = 0
        for l in range(top):
            size = width(q, l + 1) * width(q, l)
            old, new, g = vector(theta, start, size), vector(moved, start, size), vector(mean, start, size)
            v = vector(unit, start, size)
            for k in range(size):
                v[k] = new[k] - decay * old[k]
            along = dot(v, v)
            push += a[1 + l] * dot(g, g)
            charge += a[1 + l] * dot(old, old)
            end += a[1 + l] * dot(new, new)
            cross += 2.0 * decay * a[1 + l] * dot(old, v)
            quadratic += a[1 + l] * along
            length0 += dot(old, old)
            length += along
            start += size
        add_step(acc, b, h[b], charge, push, trace, cross, quadratic, end, a[0], length0, length)
