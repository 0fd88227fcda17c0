"""X and Y checked, and laid one behind the other in one vector: what the kernels read."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ShapeError

__all__ = ["pack"]


def pack(X: Any, Y: Any, n_inputs: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (N, n_inputs) and Y (N, n_outputs), or 1-D where that is 1, as views of one float64 vector, and that vector.

    Arrays that are such views already are taken as they are, without a copy.
    """
    if _packed(X, Y):
        return X, Y, X.base
    X = _columns("X", X, "d_x", n_inputs)
    Y = _columns("Y", Y, "d_y", n_outputs)
    if X.shape[0] != Y.shape[0]:
        raise ShapeError(f"X and Y must hold the same number of samples, got X {X.shape} and Y {Y.shape}")
    if X.shape[0] == 0:
        raise ShapeError(f"X and Y must hold at least one sample, got X {X.shape} and Y {Y.shape}")
    data = np.empty(X.size + Y.size)
    data[: X.size] = X.ravel()
    data[X.size :] = Y.ravel()
    return data[: X.size].reshape(X.shape), data[X.size :].reshape(Y.shape), data


def _columns(name: str, value: Any, size_name: str, size: int) -> np.ndarray:
    wanted = f"(n_samples, {size})" + (" or (n_samples,)" if size == 1 else "")
    clean = _check.array(name, value)
    if not (clean.ndim == 2 and clean.shape[1] == size) and not (clean.ndim == 1 and size == 1):
        raise ShapeError(f"{name} must have shape {wanted} for this model ({size_name} = {size}), got {clean.shape}")
    return clean


def _packed(X: Any, Y: Any) -> bool:
    if not isinstance(X, np.ndarray) or not isinstance(Y, np.ndarray):
        return False
    base = X.base
    if not isinstance(base, np.ndarray) or base.ndim != 1 or base.dtype != np.float64:
        return False
    if not X.flags.c_contiguous or not Y.flags.c_contiguous or X.size + Y.size != base.size:
        return False
    start = base.__array_interface__["data"][0]
    return X.__array_interface__["data"][0] == start and Y.__array_interface__["data"][0] == start + X.nbytes
