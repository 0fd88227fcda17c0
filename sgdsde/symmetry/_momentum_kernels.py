"""What a step of heavy-ball momentum does to C = θᵀAθ and B = θᵀAv, beside what its exact law says.

p = [γ, β, ‖A‖, *A as `forms` has it]; h = η/(1 - β).
"""

from __future__ import annotations

import math

from sgdsde._abi import TRACK
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest
from sgdsde.symmetry.forms import quadratic

__all__ = ["CHARGE", "DEFECT_B", "DEFECT_C", "MIXED", "ROUNDING", "ROWS", "STEPS", "SUM_CHARGE", "SUM_SQUARE", "track"]

STEPS = 0  # steps
SUM_CHARGE = 1  # Σ C
SUM_SQUARE = 2  # Σ v'ᵀAv'
DEFECT_C = 3  # Σ |C' - C + 2η(βB + 2γC) - η²v'ᵀAv'|
DEFECT_B = 4  # Σ η|B' - βB - 2γC + ηv'ᵀAv'|
ROUNDING = 5  # Σ ‖A‖(‖θ‖ + η‖v'‖)², of which these are a few eps
CHARGE = 6  # C', assigned
MIXED = 7  # B', assigned
ROWS = 8


@kernel(TRACK)
def track(acc, x0, x1, t, h, p, data, work):
    rows, n = x0.shape
    d = rows // 2
    gamma, beta, norm, form = p[0], p[1], p[2], rest(p, 3)
    values = matrix(work, 0, 6, n)
    C0, C1, square, B0, B1, spare = values[0], values[1], values[2], values[3], values[4], values[5]
    one = matrix(work, 6 * n, d, n)
    quadratic(C0, matrix(x0, 0, d, n), form)
    quadratic(C1, matrix(x1, 0, d, n), form)
    quadratic(square, matrix(x1, d * n, d, n), form)
    for side in range(2):  # θᵀAv, from (θ ± ηv)ᵀA(θ ± ηv)
        x, B = (x0, B0) if side == 0 else (x1, B1)
        for b in range(n):
            B[b] = 0.0
        for sign in (1.0, -1.0):
            for i in range(d):
                for b in range(n):
                    one[i, b] = x[i, b] + sign * (1.0 - beta) * h[b] * x[d + i, b]
            quadratic(spare, one, form)
            for b in range(n):
                B[b] += sign * spare[b] / (4.0 * (1.0 - beta) * h[b])
    for b in range(n):
        eta = (1.0 - beta) * h[b]
        law_B = beta * B0[b] + 2.0 * gamma * C0[b]
        size = speed = 0.0
        for i in range(d):
            size += x0[i, b] * x0[i, b]
            speed += max(x0[d + i, b] * x0[d + i, b], x1[d + i, b] * x1[d + i, b])
        acc[STEPS, b] += 1.0
        acc[SUM_CHARGE, b] += C0[b]
        acc[SUM_SQUARE, b] += square[b]
        acc[DEFECT_C, b] += abs(C1[b] - C0[b] + 2.0 * eta * law_B - eta * eta * square[b])
        acc[DEFECT_B, b] += eta * abs(B1[b] - law_B + eta * square[b])
        acc[ROUNDING, b] += norm * (math.sqrt(size) + eta * math.sqrt(speed)) ** 2
        acc[CHARGE, b] = C1[b]
        acc[MIXED, b] = B1[b]
