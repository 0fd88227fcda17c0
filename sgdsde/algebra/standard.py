"""Generators with a name of their own: scaling, rescaling of two groups of parameters, rotation, translation."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra.affine import Affine
from sgdsde.algebra.block import Dense
from sgdsde.algebra.generator import Generator

__all__ = ["rescaling", "rotation", "scaling", "translation"]


def _indices(name: str, value: Any, dim: int) -> np.ndarray:
    """Components named by a slice, an integer or a sequence of integers, each once, inside 0..dim-1."""
    if isinstance(value, slice):
        chosen = np.arange(dim)[value]
        if not chosen.size:
            raise ArgumentError(f"{name} must name at least one of the components 0..{dim - 1}, got {value}")
        return chosen
    raw = np.atleast_1d(np.asarray(value))
    if raw.dtype.kind not in "iu" or raw.ndim != 1:
        raise ArgumentError(f"{name} must be a slice or integers, got {_check.show(value)}")
    if raw.size == 0 or raw.min() < 0 or raw.max() >= dim or np.unique(raw).size != raw.size:
        raise ArgumentError(f"{name} must name components 0..{dim - 1}, each once, got {_check.show(value)}")
    return raw


def scaling(dim: int, block: Any = None, name: str = "scaling") -> Generator:
    """θ ↦ e^λ θ on `block` (a slice or indices; default: every component). A = I there, zero elsewhere.

    The symmetry of losses with ℓ(cθ) = ℓ(θ); its charge is the squared norm of the block.

    Examples
    --------
    >>> scaling(3).quadratic([1.0, 2.0, 2.0])
    9.0
    >>> scaling(3, block=slice(0, 2)).apply([1.0, 1.0, 1.0])
    array([1., 1., 0.])
    """
    dim = _check.count("dim", dim)
    vector = np.zeros(dim)
    vector[slice(None) if block is None else _indices("block", block, dim)] = 1.0
    return Generator.diagonal(vector, name)


def rescaling(dim: int, up: Any = None, down: Any = None, name: str = "rescaling") -> Generator:
    """(u, w) ↦ (e^λ u, e^{-λ} w): A = +1 on `up`, -1 on `down`, zero elsewhere.

    Parameters
    ----------
    dim : int
        Number of components of θ; must be even when neither group is given.
    up, down : slice or integers, optional
        The two groups, by default the first and the second half of θ. They may not overlap.

    Its charge is ‖u‖² - ‖w‖².

    Examples
    --------
    >>> rescaling(4).eigenvalues
    array([ 1.,  1., -1., -1.])
    >>> rescaling(3, up=0, down=[2]).quadratic([3.0, 7.0, 1.0])
    8.0
    """
    dim = _check.count("dim", dim)
    if (up is None) != (down is None):
        raise ArgumentError("up and down must be given together, or both left out")
    if up is None:
        if dim % 2:
            raise ArgumentError(f"dim must be even when up and down are left out, got {dim}")
        up, down = slice(0, dim // 2), slice(dim // 2, dim)
    first, second = _indices("up", up, dim), _indices("down", down, dim)
    if np.intersect1d(first, second).size:
        raise ArgumentError("up and down must not overlap")
    vector = np.zeros(dim)
    vector[first], vector[second] = 1.0, -1.0
    return Generator.diagonal(vector, name)


def rotation(dim: int, i: int, j: int, name: str = "") -> Generator:
    """Rotation in the plane of components i and j: θ_i' = -θ_j, θ_j' = +θ_i. Antisymmetric, so θᵀAθ is zero.

    Examples
    --------
    >>> rotation(2, 0, 1).exp(np.pi / 2, [1.0, 0.0]).round(12)
    array([0., 1.])
    """
    dim = _check.count("dim", dim, least=2)
    i, j = _check.count("i", i, least=0, most=dim - 1), _check.count("j", j, least=0, most=dim - 1)
    if i == j:
        raise ArgumentError(f"i and j must differ, got {i} twice")
    first, size = min(i, j), abs(i - j) + 1
    a = np.zeros((size, size))
    a[i - first, j - first], a[j - first, i - first] = -1.0, 1.0
    return Generator(dim, [(first, Dense(a))], name or f"rotation({i},{j})")


def translation(direction: Any, name: str = "translation") -> Affine:
    """θ ↦ θ + λb: the generator J = b, constant.

    Parameters
    ----------
    direction : array_like of shape (d,)
        b, not zero. `MLP.translations()` has those of the softmax loss.
    name : str

    Its charge is 2bᵀθ. No noise moves that: a step of SGD takes it to 1 - 2ηγ times what it was.

    Examples
    --------
    >>> b = translation([0.0, 1.0, 1.0], name="both outputs")
    >>> b, b.exp(0.5, [1.0, 2.0, 3.0])
    (Affine('both outputs', dim=3, translation), array([1. , 2.5, 3.5]))
    """
    b = _check.array("direction", direction, ("d",))
    if not b.any():
        raise ArgumentError("direction must not be zero: a translation by nothing moves nothing")
    return Affine(Generator(b.size, ()), b, name)
