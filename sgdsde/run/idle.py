"""Kernels that a step may find in place of what its equation does not have."""

from __future__ import annotations

from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel


@kernel(INCREMENT)
def no_increment(out, x, t, h, v, p, data, work):
    """Nothing moves: for recursions, whose steps need no increment."""
    out[:] = 0.0


@kernel(CORRECTION)
def no_correction(out, x, t, p, data, work):
    """Not a number, so that a scheme which calls it without asking for it is found out."""
    for i in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[i, b] = 0.0 / 0.0
