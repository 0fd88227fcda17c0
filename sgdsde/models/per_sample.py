"""Gradients of single samples, row by row, for any model's SAMPLE kernel."""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, VECTOR
from sgdsde._jit import kernel
from sgdsde.models.model import SAMPLE

__all__ = ["sample_rows"]


@kernel(types.void(BLOCK, types.FunctionType(SAMPLE), VECTOR, types.int64, VECTOR, VECTOR, VECTOR))
def sample_rows(out, sample, theta, first, q, data, work):
    """out[i] = ∇ℓ_{first + i}."""
    for i in range(out.shape[0]):
        sample(out[i], theta, first + i, q, data, work)
