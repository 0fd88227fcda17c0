"""The blocks a generator is made of: how a square matrix acts on one stretch of theta, in its own structure."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import expm

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["SYMMETRY_TOLERANCE", "Block", "Dense", "Diagonal", "Zero", "frozen", "symmetric"]

SYMMETRY_TOLERANCE = 64 * np.finfo(float).eps
"""A matrix counts as symmetric when max|A - Aᵀ| is below this times max|A|."""


def frozen(value: np.ndarray) -> np.ndarray:
    """The array, made read-only."""
    value.flags.writeable = False
    return value


def symmetric(a: np.ndarray, sign: float = 1.0) -> bool:
    """Whether a = sign·aᵀ within rounding."""
    return bool(np.abs(a - sign * a.T).max(initial=0.0) <= SYMMETRY_TOLERANCE * np.abs(a).max(initial=0.0))


def _grow(exponent: np.ndarray, x: np.ndarray) -> np.ndarray:
    """e^exponent · x, where neither factor may overflow on its own account (e^{800} · 1e-300 is finite)."""
    exponent, x = np.broadcast_arrays(exponent, x)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        near = np.exp(np.clip(exponent, -700.0, 700.0)) * x
        far = np.where(x == 0.0, 0.0, np.sign(x) * np.exp(exponent + np.log(np.abs(x))))
    return np.where(np.abs(exponent) <= 700.0, near, far)


def _phi(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(e^z - 1)/z · x, e^z as careful of overflow as in `_grow`."""
    z, x = np.broadcast_arrays(z, x)
    safe = np.where(z == 0.0, 1.0, z)
    near = np.where(z == 0.0, 1.0, np.expm1(np.clip(z, -700.0, 700.0)) / safe) * x
    return np.where(np.abs(z) <= 700.0, near, _grow(z, x / safe) - x / safe)


class Block:
    """An n × n matrix acting on n consecutive components: `Zero`, `Diagonal`, `Dense`, or `Sandwich`."""

    size: int

    @property
    def matrix(self) -> np.ndarray:
        """The (n, n) matrix."""
        raise NotImplementedError

    def apply(self, x: np.ndarray) -> np.ndarray:
        """A x for x of shape (..., n)."""
        raise NotImplementedError

    def quadratic(self, x: np.ndarray) -> np.ndarray:
        """xᵀ A x, shape (...)."""
        return np.einsum("...i,...i->...", x, self.apply(x))

    def exp(self, lam: np.ndarray, x: np.ndarray) -> np.ndarray:
        """e^{λA} x; λ broadcasts against x.shape[:-1]."""
        if self.is_symmetric:
            return self.from_eigenbasis(_grow(lam[..., None] * self.eigenvalues, self.to_eigenbasis(x)))
        return np.einsum("...ij,...j->...i", expm(lam[..., None, None] * self.matrix), x)

    def integral(self, lam: np.ndarray, b: np.ndarray) -> np.ndarray:
        """∫₀^λ e^{sA} b ds = λφ₁(λA)b for one b (n,) and every λ: where dx/dλ = Ax + b takes 0."""
        if self.is_symmetric:
            lam = lam[..., None]
            return self.from_eigenbasis(lam * _phi(lam * self.eigenvalues, self.to_eigenbasis(b)))
        wider = np.zeros((self.size + 1, self.size + 1))
        wider[:-1, :-1], wider[:-1, -1] = self.matrix, b
        return expm(lam[..., None, None] * wider)[..., :-1, -1]

    def trace(self, sigma: np.ndarray) -> float:
        """Tr[ΣA] for Σ of shape (n, n)."""
        return float(np.einsum("ij,ji->", sigma, self.matrix))

    @cached_property
    def is_symmetric(self) -> bool:
        """A = Aᵀ within rounding."""
        return symmetric(self.matrix)

    @cached_property
    def is_antisymmetric(self) -> bool:
        """A = -Aᵀ within rounding."""
        return symmetric(self.matrix, -1.0)

    @property
    def eigenvalues(self) -> np.ndarray:
        """μ (n,) in the order of the eigenbasis, not sorted; symmetric blocks only."""
        raise NotImplementedError

    def to_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        """Coordinates of x (..., n) in an orthonormal eigenbasis."""
        return x

    def from_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        """Inverse of `to_eigenbasis`."""
        return x

    def mixed(self, x: np.ndarray) -> np.ndarray:
        """Σ_j |Q_jk| |x_j|, Q the eigenvectors: eps times this bounds the rounding of `to_eigenbasis`(x)_k."""
        return np.abs(x)

    @property
    def norm(self) -> float:
        """Spectral norm."""
        return float(np.abs(self.eigenvalues).max(initial=0.0))

    def scaled(self, factor: float) -> Block:
        """factor · A, in the same structure."""
        raise NotImplementedError

    def plus(self, other: Block) -> Block:
        """A + B for a block of the same size, as structured as it can be."""
        if isinstance(other, Zero):
            return self
        return Dense(self.matrix + other.matrix)


class Zero(Block):
    """n components that do not move."""

    def __init__(self, size: int) -> None:
        self.size = _check.count("size", size, least=0)

    def __repr__(self) -> str:
        return f"Zero({self.size})"

    matrix = property(lambda self: np.zeros((self.size, self.size)))
    eigenvalues = property(lambda self: np.zeros(self.size))

    def apply(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def exp(self, lam: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (*np.broadcast_shapes(lam.shape, x.shape[:-1]), x.shape[-1]))

    def scaled(self, factor: float) -> Block:
        return self

    def plus(self, other: Block) -> Block:
        return other


class Diagonal(Block):
    """x ↦ vector ⊙ x, cost n."""

    is_symmetric = True

    def __init__(self, vector: Any) -> None:
        self.vector = frozen(_check.array("vector", vector, ("n",)))
        self.size = self.vector.size

    def __repr__(self) -> str:
        return f"Diagonal({self.size})"

    matrix = property(lambda self: np.diag(self.vector))
    eigenvalues = property(lambda self: self.vector)

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.vector * x

    def trace(self, sigma: np.ndarray) -> float:
        return float(np.diagonal(sigma) @ self.vector)

    def scaled(self, factor: float) -> Block:
        return Diagonal(factor * self.vector)

    def plus(self, other: Block) -> Block:
        if isinstance(other, Diagonal):
            return Diagonal(self.vector + other.vector)
        return self if isinstance(other, Zero) else other.plus(self)

    def cut(self, points: list[int]) -> list[Diagonal]:
        """The pieces between increasing cut points inside (0, n)."""
        return [Diagonal(piece) for piece in np.split(self.vector, points)]


class Dense(Block):
    """Any square matrix; cost n²."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = frozen(_check.array("matrix", matrix, ("n", "n")))
        self.size = self._matrix.shape[0]
        if self._matrix.shape[1] != self.size:
            raise ArgumentError(f"matrix must be square, got shape {self._matrix.shape}")

    def __repr__(self) -> str:
        return f"Dense({self.size})"

    matrix = property(lambda self: self._matrix)

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x @ self._matrix.T

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.eigh((self._matrix + self._matrix.T) / 2)

    eigenvalues = property(lambda self: self._eigen[0])

    def to_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        return x @ self._eigen[1]

    def from_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        return x @ self._eigen[1].T

    def mixed(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x) @ np.abs(self._eigen[1])

    @cached_property
    def norm(self) -> float:
        return float(np.linalg.norm(self._matrix, 2)) if self.size else 0.0

    def scaled(self, factor: float) -> Block:
        return Dense(factor * self._matrix)
