"""Rows of the TRACK kernel of a charge C(θ) = θᵀAθ, the same for every model, and the sum of one step.

A step goes from x0 to x1 with decay = 1 - 2γh; v = x1 - decay·x0 is the step without decay, g, Σ and L are at x0, and
cross = 2·decay·x0ᵀAv is zero for a symmetry, for SGD and for Euler-Maruyama.
"""

from __future__ import annotations

import numpy as np

from sgdsde._jit import inline

__all__ = [
    "CHARGE",
    "CHARGE_ROWS",
    "SUM_ABS_CROSS",
    "SUM_CROSS",
    "SUM_H2_CHARGE",
    "SUM_H2_GRADIENT",
    "SUM_H2_TRACE",
    "SUM_H_CHARGE",
    "SUM_H_TRACE",
    "SUM_QUADRATIC",
    "SUM_SCALE",
    "add_step",
]

SUM_H_CHARGE = 0  # Σ h C(x0)
SUM_H2_CHARGE = 1  # Σ h² C(x0)
SUM_H2_GRADIENT = 2  # Σ h² ∇LᵀA∇L
SUM_H_TRACE = 3  # Σ h Tr[ΣA]
SUM_CROSS = 4  # Σ cross
SUM_ABS_CROSS = 5  # Σ |cross|
SUM_QUADRATIC = 6  # Σ vᵀAv
CHARGE = 7  # C(x1), assigned and not added
SUM_SCALE = 8  # Σ ‖A‖‖x0‖(‖x0‖ + ‖v‖): rounding in cross is a few eps of it, for v is itself a difference of rounded x
SUM_H2_TRACE = 9  # Σ h² Tr[ΣA]: the noise term where the learning rate, and with it σ², changes
CHARGE_ROWS = 10


@inline
def add_step(acc, b, h, charge, gradient, trace, cross, quadratic, moved, norm, length0, length):
    """Adds a step of length h to column b of acc: C(x0), ∇LᵀA∇L, Tr[ΣA], cross, vᵀAv, C(x1), ‖A‖, ‖x0‖² and ‖v‖²."""
    acc[SUM_H_CHARGE, b] += h * charge
    acc[SUM_H2_CHARGE, b] += h * h * charge
    acc[SUM_H2_GRADIENT, b] += h * h * gradient
    acc[SUM_H_TRACE, b] += h * trace
    acc[SUM_H2_TRACE, b] += h * h * trace
    acc[SUM_CROSS, b] += cross
    acc[SUM_ABS_CROSS, b] += abs(cross)
    acc[SUM_QUADRATIC, b] += quadratic
    acc[CHARGE, b] = moved
    acc[SUM_SCALE, b] += norm * (length0 + np.sqrt(length0 * length))
