"""X and Y checked, and laid one behind the other in one vector: what the kernels read."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ShapeError

__all__ = ["pack"]

_made: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""Vectors that `pack` made, by id: what looks like one by chance was neither checked nor copied."""


def pack(X: Any, Y: Any, n_inputs: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (N, n_inputs) and Y (N, n_outputs), or 1-D where that is 1, as views of one float64 vector, and that vector.

    Views that an earlier call made are taken as they are, without a copy; they cannot be written to.
    """
    if _packed(X, Y):
        _check_columns("X", X, "d_x", n_inputs)
        _check_columns("Y", Y, "d_y", n_outputs)
        return X, Y, X.base
    X = _check_columns("X", _check.array("X", X), "d_x", n_inputs)
    Y = _check_columns("Y", _check.array("Y", Y), "d_y", n_outputs)
    if X.shape[0] != Y.shape[0]:
        raise ShapeError(f"X and Y must hold the same number of samples, got X {X.shape} and Y {Y.shape}")
    if X.shape[0] == 0:
        raise ShapeError(f"X and Y must hold at least one sample, got X {X.shape} and Y {Y.shape}")
    data = np.empty(X.size + Y.size)
    data[: X.size] = X.ravel()
    data[X.size :] = Y.ravel()
    _made[id(data)] = data
    X, Y = data[: X.size].reshape(X.shape), data[X.size :].reshape(Y.shape)
    X.flags.writeable = Y.flags.writeable = False
    return X, Y, data


def _check_columns(name: str, value: np.ndarray, size_name: str, size: int) -> np.ndarray:
    if (value.ndim == 2 and value.shape[1] == size) or (value.ndim == 1 and size == 1):
        return value
    wanted = f"(n_samples, {size})" + (" or (n_samples,)" if size == 1 else "")
    hint = f"; labels 0..{size - 1} become rows by np.eye({size})[Y]" if name == "Y" and value.ndim == 1 else ""
    raise ShapeError(f"{name} must have shape {wanted} for this model ({size_name} = {size}), got {value.shape}{hint}")


def _packed(X: Any, Y: Any) -> bool:
    """Whether X and Y are the two views of a vector made here, side by side and in full."""
    if not isinstance(X, np.ndarray) or not isinstance(Y, np.ndarray):
        return False
    base = X.base
    if base is None or _made.get(id(base)) is not base or not X.flags.c_contiguous or not Y.flags.c_contiguous:
        return False
    if X.dtype != np.float64 or Y.dtype != np.float64 or X.shape[:1] != Y.shape[:1] or X.size + Y.size != base.size:
        return False
    start = base.__array_interface__["data"][0]
    return X.__array_interface__["data"][0] == start and Y.__array_interface__["data"][0] == start + X.nbytes
