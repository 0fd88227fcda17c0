"""R_z: a multiple of a rotation with first column z, for each z in R^h; and the cocycle c(g, z) made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["cocycle", "radial_rotation", "spherical_angles"]


def spherical_angles(z: Any) -> np.ndarray:
    """α_1, …, α_{h-1} of z (..., h): z_i = |z| cos α_i Π_{k<i} sin α_k, with α_h = 0; shape (..., h - 1).

    All but the last are in [0, π]. The last is atan2(z_h, z_{h-1}) in (-π, π]: an arccos in its place, as in the code
    that came with Zhao et al. 2023 (arXiv 2210.17216), loses the sign of z_h. Where the rest of z is zero an angle is
    not defined, and 0 is given.

    Examples
    --------
    >>> spherical_angles([0.0, 0.0, -1.0]).round(6)
    array([ 1.570796, -1.570796])
    """
    cos, sin, _ = _turns(z)
    return np.arctan2(sin, cos)


def radial_rotation(z: Any) -> np.ndarray:
    """R_z of shape (..., h, h) for z (..., h): R_zR_zᵀ = |z|²·1, det R_z = |z|^h, R_ze_1 = z, hence R_z⁻¹z = e_1.

    With angles α_k of `spherical_angles`, a = (0, α_1, …, α_{h-1}, 0) and rows and columns from 0,

        R_ij = |z| cos a_j (Π_{k=j+1}^{i} sin a_k) cos a_{i+1} for i >= j,   R_{i,i+1} = -|z| sin a_{i+1},   else 0.

    For h = 2 it is [[z_1, -z_2], [z_2, z_1]]. For h = 1 it is [z_1], whose sign is that of z_1 (the code that came with
    Zhao et al. 2023, arXiv 2210.17216, has |z_1|, which breaks R_ze_1 = z). The paper says that the first column is
    z/|z| and that R_z is |z| times a rotation: these two cannot both be, and here the first column is z.

    R_z is not continuous where a tail z_i, …, z_h passes zero.

    Raises
    ------
    ArgumentError
        z is zero, or not finite.

    Examples
    --------
    >>> radial_rotation([3.0, 4.0])
    array([[ 3., -4.],
           [ 4.,  3.]])
    """
    cos, sin, r = _turns(z)
    *lead, h = np.shape(z)
    if h == 1:
        return np.array(z, dtype=np.float64)[..., None]
    one, nil = np.ones((*lead, 1)), np.zeros((*lead, 1))
    c = np.concatenate([one, cos, one], axis=-1)
    s = np.concatenate([nil, sin, nil], axis=-1)
    out = np.zeros((*lead, h, h))
    for j in range(h):
        product = np.ones(tuple(lead))
        for i in range(j, h):
            if i > j:
                product = product * s[..., i]
            out[..., i, j] = c[..., j] * product * c[..., i + 1]
        if j:
            out[..., j - 1, j] = -s[..., j]
    return out * r[..., None, None]


def cocycle(g: Any, z: Any, activation: Any = None) -> np.ndarray:
    """c(g, z) = R_{σ(gz)}R_{σ(z)}⁻¹, (h, h): takes σ(z) to σ(gz).

    c(1, z) = 1 and c(g_1, g_2z)c(g_2, z) = c(g_1g_2, z). Rounding grows with |σ(gz)|/|σ(z)|, at most cond(g) where σ
    is the identity.

    Parameters
    ----------
    g : (h, h) array_like
    z : (h,) array_like
    activation : callable, optional
        σ, of whole arrays; the identity without. σ(z) and σ(gz) must not be zero.
    """
    z = _check.array("z", z, ("h",))
    g = _check.array("g", g, (z.size, z.size))
    before, after = (z, g @ z) if activation is None else (np.asarray(activation(v)) for v in (z, g @ z))
    return radial_rotation(after) @ inverse(radial_rotation(before))


def inverse(R: np.ndarray) -> np.ndarray:
    """R⁻¹ = Rᵀ/|z|²; |z| is the length of the first column."""
    r = np.linalg.norm(R[..., :, 0], axis=-1)[..., None, None]
    return np.swapaxes(R, -1, -2) / r / r


def _turns(z: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """cos α_k, sin α_k (..., h - 1), |z| (...)."""
    z = _check.array("z", z)
    if z.ndim == 0 or z.shape[-1] == 0:
        raise ShapeError(f"z must have shape (..., h), got {z.shape}")
    tails = np.zeros(z.shape)  # |(z_k, …, z_h)|, the last with its sign
    tails[..., -1] = z[..., -1]
    for k in range(z.shape[-1] - 2, -1, -1):
        tails[..., k] = np.hypot(z[..., k], tails[..., k + 1])
    r = np.abs(tails[..., 0])
    if not r.all():
        raise ArgumentError("z must not be zero: there is no direction to turn to (of tanh and ReLU units, σ(Vx) = 0)")
    size = tails[..., :-1]
    there = size > 0
    safe = np.where(there, size, 1.0)
    return np.where(there, z[..., :-1] / safe, 1.0), np.where(there, tails[..., 1:] / safe, 0.0), r
