"""Chen's relation: increments, space-time areas and iterated integrals of a whole step from those of its parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["Increments", "coarsen"]


class Increments(NamedTuple):
    """What drives a run of steps: dW (..., n, m), and I (..., n, m, m) and H (..., n, m) where they were given."""

    dW: np.ndarray
    I: np.ndarray | None = None
    H: np.ndarray | None = None


def coarsen(dW: Any, I: Any = None, H: Any = None, *, factor: int = 2) -> Increments:
    """The same path on steps `factor` times as long.

    Parameters
    ----------
    dW : (..., n, m) array
        Increments of n equal steps; `factor` divides n.
    I : (..., n, m, m) array, optional
        Iterated integrals, first index the earlier one: Itô's or Stratonovich's, which they stay.
    H : (..., n, m) array, optional
        Space-time areas H = (1/h) ∫ (W − (u/h) dW) du of each step.

    Returns
    -------
    Increments
        dW = Σ_k dW_k;  I = Σ_k I_k + Σ_{k<l} dW_k ⊗ dW_l (K.-T. Chen, Ann. Math. 65 (1957) 163);
        H = mean_k (H_k + dW_k/2 + Σ_{l<k} dW_l) − dW/2. All exact but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> dW, I = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros((2, 2, 2))
    >>> coarsen(dW, I).I[0, 0, 1], coarsen(dW, I).I[0, 1, 0]  # W_1 moves first
    (np.float64(1.0), np.float64(0.0))
    """
    factor = _check.count("factor", factor)
    w = _check.array("dW", dW)
    if w.ndim < 2 or w.shape[-1] == 0:
        raise ShapeError(f"dW must have shape (..., n, m), got {w.shape}")
    n, m = w.shape[-2:]
    if n % factor:
        raise ArgumentError(f"factor must divide the number of steps {n}, got {factor}")
    parts = (n // factor, factor)
    w = w.reshape(*w.shape[:-2], *parts, m)
    before = np.cumsum(w, axis=-2) - w
    whole = w.sum(axis=-2)
    I_whole = H_whole = None
    if I is not None:
        area = _check.array("I", I)
        if area.shape != (*w.shape[:-3], n, m, m):
            raise ShapeError(f"I must have shape {(*w.shape[:-3], n, m, m)}, got {area.shape}")
        I_whole = area.reshape(*w.shape[:-3], *parts, m, m).sum(axis=-3) + np.swapaxes(before, -1, -2) @ w
    if H is not None:
        space = _check.array("H", H)
        if space.shape != (*w.shape[:-3], n, m):
            raise ShapeError(f"H must have shape {(*w.shape[:-3], n, m)}, got {space.shape}")
        H_whole = (space.reshape(w.shape) + (0.5 * w + before)).mean(axis=-2) - 0.5 * whole
    return Increments(whole, I_whole, H_whole)
