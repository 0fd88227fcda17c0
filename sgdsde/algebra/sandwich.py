"""Sandwich: a matrix of parameters acted on from the left and from the right, W ↦ L W + W R."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.sparse.linalg import LinearOperator, svds

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra.block import SYMMETRY_TOLERANCE, Block, Diagonal, frozen, symmetric

__all__ = ["Sandwich", "as_sandwich"]


class Sandwich(Block):
    """W ↦ L W + W R on an (r, c) matrix raveled in C order; the matrix is kron(L, I_c) + kron(I_r, Rᵀ).

    Parameters
    ----------
    shape : (int, int)
        Rows r and columns c of W.
    left, right : array_like of shape (r, r), (c, c), or None
        L and R; None is zero.

    Costs r²c + rc² at most; no (rc)² array is formed except by `matrix`.
    """

    def __init__(self, shape: tuple[int, int], left: Any = None, right: Any = None) -> None:
        if not isinstance(shape, (tuple, list)) or len(shape) != 2:
            raise ArgumentError(f"shape must be a pair (rows, columns), got {_check.show(shape)}")
        r, c = (_check.count("shape", n) for n in shape)
        self.shape = (r, c)
        self.size = r * c
        self.left = None if left is None else frozen(_check.array("left", left, (r, r)))
        self.right = None if right is None else frozen(_check.array("right", right, (c, c)))

    def __repr__(self) -> str:
        terms = [t for t, m in (("L W", self.left), ("W R", self.right)) if m is not None]
        return f"Sandwich{self.shape} W -> {' + '.join(terms) or '0'}"

    def _pairs(self) -> list[np.ndarray]:
        return [m for m in (self.left, self.right) if m is not None]

    @property
    def matrix(self) -> np.ndarray:
        r, c = self.shape
        a = np.zeros((r, c, r, c))
        if self.left is not None:
            a += np.einsum("ik,jl->ijkl", self.left, np.eye(c))
        if self.right is not None:
            a += np.einsum("ik,lj->ijkl", np.eye(r), self.right)
        return a.reshape(self.size, self.size)

    def apply(self, x: np.ndarray) -> np.ndarray:
        w = x.reshape(x.shape[:-1] + self.shape)
        out = np.zeros_like(w)
        if self.left is not None:
            out += self.left @ w
        if self.right is not None:
            out += w @ self.right
        return out.reshape(x.shape)

    def exp(self, lam: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.is_symmetric:
            return super().exp(lam, x)
        w = x.reshape(x.shape[:-1] + self.shape)
        if self.left is not None:
            w = expm(lam[..., None, None] * self.left) @ w
        if self.right is not None:
            w = w @ expm(lam[..., None, None] * self.right)
        return w.reshape((*w.shape[:-2], self.size))

    def integral(self, lam: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.is_symmetric:
            return super().integral(lam, b)
        # expm(λ[[L, b], [0, -R]]) = [[e^{λL}, X], [0, e^{-λR}]], X e^{λR} = ∫₀^λ e^{sL} b e^{sR} ds
        r, c = self.shape
        both = np.zeros((r + c, r + c))
        both[:r, r:] = b.reshape(r, c)
        if self.left is not None:
            both[:r, :r] = self.left
        if self.right is not None:
            both[r:, r:] = -self.right
        out = expm(lam[..., None, None] * both)[..., :r, r:]
        if self.right is not None:
            out = out @ expm(lam[..., None, None] * self.right)
        return out.reshape(*lam.shape, self.size)

    def trace(self, sigma: np.ndarray) -> float:
        s = sigma.reshape(self.shape + self.shape)
        value = 0.0
        if self.left is not None:
            value += np.einsum("ikjk,ji->", s, self.left)
        if self.right is not None:
            value += np.einsum("kikj,ij->", s, self.right)
        return float(value)

    @cached_property
    def is_symmetric(self) -> bool:
        return all(symmetric(m) for m in self._pairs())

    @cached_property
    def is_antisymmetric(self) -> bool:
        return all(symmetric(m, -1.0) for m in self._pairs())

    @cached_property
    def _eigen(self) -> tuple[tuple[np.ndarray, np.ndarray] | None, ...]:
        return tuple(None if m is None else np.linalg.eigh((m + m.T) / 2) for m in (self.left, self.right))

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        mu = np.zeros(self.shape)
        left, right = self._eigen
        if left is not None:
            mu += left[0][:, None]
        if right is not None:
            mu += right[0]
        return frozen(mu.ravel())

    def to_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        return self._turn(x, [None if e is None else e[1] for e in self._eigen])

    def from_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        return self._turn(x, [None if e is None else e[1].T for e in self._eigen])

    def mixed(self, x: np.ndarray) -> np.ndarray:
        return self._turn(np.abs(x), [None if e is None else np.abs(e[1]) for e in self._eigen])

    def _turn(self, x: np.ndarray, bases: list[np.ndarray | None]) -> np.ndarray:
        w = x.reshape(x.shape[:-1] + self.shape)
        if bases[0] is not None:
            w = bases[0].T @ w
        if bases[1] is not None:
            w = w @ bases[1]
        return w.reshape(x.shape)

    @cached_property
    def norm(self) -> float:
        if self.is_symmetric:
            return float(np.abs(self.eigenvalues).max(initial=0.0))
        if len(self._pairs()) == 1:
            return float(np.linalg.norm(self._pairs()[0], 2))
        if self.size <= 400:
            return float(np.linalg.norm(self.matrix, 2))
        turned = Sandwich(self.shape, self.left.T, self.right.T)  # type: ignore[union-attr]
        action = LinearOperator(
            (self.size, self.size),
            matvec=lambda v: self.apply(np.ravel(v)),
            rmatvec=lambda v: turned.apply(np.ravel(v)),
            dtype=float,
        )
        return float(svds(action, k=1, return_singular_vectors=False, v0=np.ones(self.size))[0])

    def scaled(self, factor: float) -> Block:
        return Sandwich(self.shape, *(None if m is None else factor * m for m in (self.left, self.right)))

    def plus(self, other: Block) -> Block:
        if isinstance(other, Diagonal):
            other = as_sandwich(other, self.shape) or other
        if not isinstance(other, Sandwich) or other.shape != self.shape:
            return super().plus(other)
        both = zip((self.left, self.right), (other.left, other.right), strict=True)
        return Sandwich(self.shape, *(b if a is None else a if b is None else a + b for a, b in both))


def as_sandwich(diagonal: Diagonal, shape: tuple[int, int]) -> Sandwich | None:
    """The diagonal block as W -> L W + W R with diagonal L, R, or None where it is not of that form."""
    grid = diagonal.vector.reshape(shape)
    columns = grid[0] - grid[0, 0]
    rows = grid[:, 0]
    if np.abs(grid - rows[:, None] - columns).max() > SYMMETRY_TOLERANCE * np.abs(grid).max():
        return None
    if not columns.any():
        return Sandwich(shape, np.diag(rows))
    return Sandwich(shape, np.diag(rows) if rows.any() else None, np.diag(columns))
