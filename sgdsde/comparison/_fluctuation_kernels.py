"""What the fluctuation-dissipation relations sum along a run; any generator, as a list of its entries."""

from __future__ import annotations

from sgdsde._abi import TRACK
from sgdsde._jit import kernel

__all__ = ["HEAD", "PER_GENERATOR", "heavy_ball", "plain"]

HEAD = 3
"""Rows 0 Σ h, 1 Σ 2h θ·ĝ_γ, 2 Σ h²‖ĝ_γ‖²; then for each generator Σ h C, Σ h² C, Σ vᵀAv."""
PER_GENERATOR = 3


@kernel(TRACK)
def plain(acc, x0, x1, t, h, p, data, work):
    """Steps θ' = θ - hĝ_γ; v = θ' - (1 - 2γh)θ = -hĝ.

    p = [γ, β, how many entries each generator has]; data = the rows, columns and values of each.
    """
    d, n = x0.shape
    generators = p.shape[0] - 2
    for b in range(n):
        along, square = 0.0, 0.0
        for i in range(d):
            move = x0[i, b] - x1[i, b]
            along += x0[i, b] * move
            square += move * move
        acc[0, b] += h[b]
        acc[1, b] += 2.0 * along
        acc[2, b] += square
    start = 0
    for g in range(generators):
        row, count = HEAD + PER_GENERATOR * g, int(p[2 + g])
        for b in range(n):
            keep = 1.0 - 2.0 * p[0] * h[b]
            charge, quadratic = 0.0, 0.0
            for e in range(count):
                i, j, a = int(data[start + e]), int(data[start + count + e]), data[start + 2 * count + e]
                charge += a * x0[i, b] * x0[j, b]
                quadratic += a * (x1[i, b] - keep * x0[i, b]) * (x1[j, b] - keep * x0[j, b])
            acc[row, b] += h[b] * charge
            acc[row + 1, b] += h[b] * h[b] * charge
            acc[row + 2, b] += quadratic
        start += 3 * count


@kernel(TRACK)
def heavy_ball(acc, x0, x1, t, h, p, data, work):
    """x = [θ, v]: Σ h C(θ), 0, Σ h² vᵀAv with the new v."""
    d, n = x0.shape[0] // 2, x0.shape[1]
    generators = p.shape[0] - 2
    for b in range(n):
        acc[0, b] += h[b]
    start = 0
    for g in range(generators):
        row, count = HEAD + PER_GENERATOR * g, int(p[2 + g])
        for b in range(n):
            charge, quadratic = 0.0, 0.0
            for e in range(count):
                i, j, a = int(data[start + e]), int(data[start + count + e]), data[start + 2 * count + e]
                charge += a * x0[i, b] * x0[j, b]
                quadratic += a * x1[d + i, b] * x1[d + j, b]
            acc[row, b] += h[b] * charge
            acc[row + 2, b] += h[b] * h[b] * quadratic
        start += 3 * count
