"""The angular momentum of a hidden layer: what rotations of its units keep, h(h - 1)/2 identities at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ShapeError
from sgdsde.symmetry.actions_layers import hidden_layer

__all__ = ["angular_momentum", "layer_angular_momentum"]


def angular_momentum(U: Any, V: Any, dU: Any, dV: Any) -> np.ndarray:
    """UᵀΔU - ΔUᵀU + VΔVᵀ - ΔVVᵀ, antisymmetric, of shape (..., h, h).

    It is zero in every step of SGD and of Euler-Maruyama, with weight decay too, and with velocities in place of steps
    in gradient flow and the SDE, when every sample's loss is kept by (U, V) ↦ (Ug⁻¹, gV) for all rotations g: linear
    layers, and radial activations σ(z) = z f(|z|). U and V are those at the *start* of the step; from the middle it is
    off by nothing, because ΔUᵀΔU and ΔVΔVᵀ are symmetric. Entry (k, l) is Σ r²Δφ over the rows of U and the columns of
    V, each seen in the plane of units k and l. Source: Zhao et al. 2023 (arXiv 2210.17216), for gradient flow.

    Parameters
    ----------
    U, dU : (..., m, h) array_like
    V, dV : (..., h, n) array_like

    Examples
    --------
    >>> angular_momentum([[1.0, 0.0]], [[0.0], [0.0]], [[0.0, 0.1]], [[0.0], [0.0]])
    array([[ 0. ,  0.1],
           [-0.1,  0. ]])
    """
    U, V, dU, dV = (
        _check.array(name, value, finite=False) for name, value in (("U", U), ("V", V), ("dU", dU), ("dV", dV))
    )
    if min(U.ndim, V.ndim) < 2 or U.shape != dU.shape or V.shape != dV.shape or U.shape[-1] != V.shape[-2]:
        raise ShapeError(
            f"U, dU must have shape (..., m, h) and V, dV (..., h, n), got {U.shape}, {dU.shape}, {V.shape}, {dV.shape}"
        )
    moment = np.swapaxes(U, -1, -2) @ dU + V @ np.swapaxes(dV, -1, -2)
    return moment - np.swapaxes(moment, -1, -2)


def layer_angular_momentum(model: Any, trajectory: Any, layer: int = 1) -> np.ndarray:
    """`angular_momentum` of a hidden layer in every increment of a run, (..., n_times - 1, h, h).

    Parameters
    ----------
    model : Model
        With matrices W1, W2, …; biases b1, … count as one more column of V.
    trajectory : Solution or (..., n_times, d) array_like
        Saved at every step, for the identity to be that of single steps.
    layer : int
        l: U = W_{l+1}, V = W_l.
    """
    below, above, bias = hidden_layer(model, layer)
    states = np.asarray(trajectory.y if hasattr(trajectory, "y") else trajectory)
    if states.ndim < 2:
        raise ShapeError(f"trajectory must have shape (..., n_times, {model.dim}), got {states.shape}")
    arrays = model.unflatten(states)
    U, V = arrays[above], arrays[below]
    if bias:
        V = np.concatenate([V, arrays[bias][..., None]], axis=-1)
    return angular_momentum(U[..., :-1, :, :], V[..., :-1, :, :], np.diff(U, axis=-3), np.diff(V, axis=-3))
