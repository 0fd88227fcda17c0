"""One call from Python for all that is asked of a loss: values, gradients, and second derivatives along a direction."""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import BLOCK, VECTOR
from sgdsde._jit import kernel
from sgdsde.models.loss_kernels import curve, gradient, probabilities, values

__all__ = ["derivatives"]


@kernel(types.void(types.int64, VECTOR, BLOCK, BLOCK, BLOCK, BLOCK, VECTOR, types.int64, VECTOR, VECTOR))
def _derivatives(kind, value, slope, tangent, O, P, Y, columns, c, spare):
    """slope = O = P = outputs on entry. slope becomes ∂ℓ/∂o, tangent = v becomes (∂²ℓ/∂o²)v; O and P are spent."""
    gradient(kind, slope, Y, columns, 1.0, c, spare)
    probabilities(kind, P, spare)
    curve(kind, tangent, P, 1.0, c, spare)
    values(kind, value, O, Y, columns, 1.0, spare)


def derivatives(kind, value, slope, tangent, O, Y, columns, c):
    """As the kernel, with scratch."""
    _derivatives(kind, value, slope, tangent, O, O.copy(), Y, columns, c, np.empty(2 * c.size))
