"""Scattered: a small dense matrix on a few of the components of θ, wherever they stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra.block import Block, Dense, Zero, frozen

__all__ = ["Scattered"]


class Scattered(Block):
    """x[index] ↦ matrix x[index], all other components of n left alone (A = 0 there); cost k² for k of them.

    Parameters
    ----------
    size : int
        n.
    index : sequence of int of shape (k,)
        Which components, no one twice.
    matrix : array_like of shape (k, k)

    Examples
    --------
    >>> block = Scattered(4, [0, 3], [[0.0, 1.0], [1.0, 0.0]])
    >>> block.apply(np.array([1.0, 2.0, 3.0, 4.0]))
    array([4., 0., 0., 1.])
    """

    def __init__(self, size: int, index: Any, matrix: Any) -> None:
        self.size = _check.count("size", size, least=0)
        self.inner = Dense(matrix)
        at = [_check.count("index", k, least=0, most=self.size - 1) for k in index]
        if len(at) != self.inner.size:
            raise ShapeError(f"index must have {self.inner.size} numbers, as the matrix has rows, got {len(at)}")
        if len(set(at)) != len(at):
            raise ArgumentError(f"index must name no component twice, got {at}")
        self.index = frozen(np.array(at, dtype=np.int64))

    def __repr__(self) -> str:
        return f"Scattered({self.size}: {self.inner.size} components)"

    is_symmetric = property(lambda self: self.inner.is_symmetric)
    is_antisymmetric = property(lambda self: self.inner.is_antisymmetric)
    norm = property(lambda self: self.inner.norm)

    @property
    def matrix(self) -> np.ndarray:
        a = np.zeros((self.size, self.size))
        a[np.ix_(self.index, self.index)] = self.inner.matrix
        return a

    def _within(self, out: np.ndarray, new: np.ndarray) -> np.ndarray:
        out[..., self.index] = new
        return out

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self._within(np.zeros_like(x), self.inner.apply(x[..., self.index]))

    def exp(self, lam: np.ndarray, x: np.ndarray) -> np.ndarray:
        shape = (*np.broadcast_shapes(lam.shape, x.shape[:-1]), x.shape[-1])
        return self._within(np.array(np.broadcast_to(x, shape)), self.inner.exp(lam, x[..., self.index]))

    def integral(self, lam: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._within(lam[..., None] * b, self.inner.integral(lam, b[self.index]))

    def trace(self, sigma: np.ndarray) -> float:
        return self.inner.trace(sigma[np.ix_(self.index, self.index)])

    @property
    def eigenvalues(self) -> np.ndarray:
        return self._within(np.zeros(self.size), self.inner.eigenvalues)

    def to_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        return self._within(np.array(x), self.inner.to_eigenbasis(x[..., self.index]))

    def from_eigenbasis(self, x: np.ndarray) -> np.ndarray:
        return self._within(np.array(x), self.inner.from_eigenbasis(x[..., self.index]))

    def mixed(self, x: np.ndarray) -> np.ndarray:
        return self._within(np.abs(x), self.inner.mixed(x[..., self.index]))

    def scaled(self, factor: float) -> Block:
        return Scattered(self.size, self.index, factor * self.inner.matrix)

    def plus(self, other: Block) -> Block:
        if isinstance(other, Zero):
            return self
        if not isinstance(other, Scattered):
            return super().plus(other)
        index = np.union1d(self.index, other.index)
        total = np.zeros((index.size, index.size))
        for one in (self, other):
            at = np.searchsorted(index, one.index)
            total[np.ix_(at, at)] += one.inner.matrix
        return Scattered(self.size, index, total)

    def placed(self, offset: int, size: int) -> Scattered:
        """The same within a stretch of `size` components, from `offset` on."""
        return Scattered(size, offset + self.index, self.inner.matrix)
