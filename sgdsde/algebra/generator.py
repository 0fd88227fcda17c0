"""Generator: a matrix A that generates a one-parameter group e^{λA} on the parameters, kept in its structure."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra.block import Block, Dense, Diagonal, Zero
from sgdsde.algebra.combine import combine, cut
from sgdsde.algebra.sandwich import Sandwich, as_sandwich

__all__ = ["Generator"]


class Generator:
    """A d × d matrix A that acts on θ, as blocks along θ, with its group e^{λA}.

    Make one by `Generator.from_matrix`, `.diagonal`, `.layered`, `.blocks`, or take one from `model.symmetries()`.
    Generators can be added, subtracted and multiplied by numbers; the structure is kept where it can be.

    Attributes
    ----------
    dim : int
        d, the number of components of θ.
    name : str
        For tables and figures.
    parts : tuple of (int, Block)
        Non-zero blocks and where each starts, in order, without overlap.

    Examples
    --------
    >>> A = Generator.diagonal([1.0, -1.0], name="rescaling")
    >>> A.apply([3.0, 2.0])
    array([ 3., -2.])
    >>> A.exp(0.5, [1.0, 1.0])
    array([1.64872127, 0.60653066])
    >>> A.quadratic([3.0, 2.0])
    5.0
    """

    __array_ufunc__ = None  # so that numpy_number * generator comes here

    def __init__(self, dim: int, parts: Iterable[tuple[int, Block]], name: str = "") -> None:
        self.dim = _check.count("dim", dim)
        self.name = str(name)
        self.parts = tuple(sorted((p for p in parts if not isinstance(p[1], Zero) and p[1].size), key=lambda p: p[0]))
        end = 0
        for start, block in self.parts:
            if start < end or start + block.size > self.dim:
                raise ShapeError(f"parts must lie in 0..{self.dim} without overlap, got {block} at {start}")
            end = start + block.size

    # --- making -------------------------------------------------------------------------------------------------------

    @classmethod
    def from_matrix(cls, matrix: Any, name: str = "") -> Generator:
        """A dense A of shape (d, d); a diagonal one is recognised."""
        block = Dense(matrix)
        diagonal = np.diagonal(block.matrix)
        is_diagonal = np.array_equal(np.diag(diagonal), block.matrix)
        return cls(block.size, [(0, Diagonal(diagonal) if is_diagonal else block)], name)

    @classmethod
    def diagonal(cls, vector: Any, name: str = "") -> Generator:
        """A = diag(vector), vector of shape (d,)."""
        block = Diagonal(vector)
        return cls(block.size, [(0, block)], name)

    @classmethod
    def layered(
        cls, shapes: Sequence[tuple[int, int]], factors: Sequence[tuple[Any, Any]], name: str = ""
    ) -> Generator:
        """W_k ↦ L_k W_k + W_k R_k on the matrices of θ = [W_1, …, W_D], each raveled in C order.

        Parameters
        ----------
        shapes : sequence of (r, c)
            Shape of each matrix, in the order of θ.
        factors : sequence of (L or None, R or None)
            One pair for each matrix: L (r, r), R (c, c).

        Examples
        --------
        The pair (W, U) ↦ (-B W, U B) of a two-layer linear network:

        >>> B = np.eye(2)
        >>> A = Generator.layered([(2, 3), (1, 2)], [(-B, None), (None, B)], name="B=I")
        >>> A
        Generator('B=I', dim=8, symmetric: [0:6] Sandwich(2, 3) W -> L W, [6:8] Sandwich(1, 2) W -> W R)
        >>> A.eigenvalues
        array([-1., -1., -1., -1., -1., -1.,  1.,  1.])
        """
        for label, value in (("shapes", shapes), ("factors", factors)):
            if isinstance(value, str) or not isinstance(value, Iterable):
                raise ArgumentError(f"{label} must be a sequence of pairs, got {_check.show(value)}")
        shapes, factors = list(shapes), list(factors)
        if len(shapes) != len(factors):
            raise ShapeError(f"factors must hold a pair (L, R) for each of {len(shapes)} shapes, got {len(factors)}")
        made: list[Block] = []
        for shape, pair in zip(shapes, factors, strict=True):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ArgumentError(f"factors must hold pairs (L or None, R or None), got {_check.show(pair)}")
            block = Sandwich(shape, *pair)
            made.append(block if block._pairs() else Zero(block.size))
        return cls.blocks(made, name)

    @classmethod
    def blocks(cls, blocks: Sequence[Block], name: str = "") -> Generator:
        """Blocks side by side along θ: `Zero(n)`, `Diagonal(vector)`, `Sandwich`, `Scattered`, `Dense`."""
        if not isinstance(blocks, Iterable):
            raise ArgumentError(f"blocks must be a sequence of Zero, Diagonal, …, got {_check.show(blocks)}")
        blocks = list(blocks)
        for block in blocks:
            if not isinstance(block, Block):
                raise ArgumentError(f"blocks must hold Zero, Diagonal, Sandwich or Dense, got {_check.show(block)}")
        ends = list(accumulate((b.size for b in blocks), initial=0))
        return cls(ends[-1], zip(ends[:-1], blocks, strict=True), name)

    def named(self, name: str) -> Generator:
        """The same generator under another name."""
        return Generator(self.dim, self.parts, name)

    # --- acting -------------------------------------------------------------------------------------------------------

    @property
    def matrix(self) -> np.ndarray:
        """A as a dense (d, d) array, built at each call: 8d² bytes."""
        a = np.zeros((self.dim, self.dim))
        for start, block in self.parts:
            a[start : start + block.size, start : start + block.size] = block.matrix
        return a

    def _theta(self, theta: Any) -> np.ndarray:
        if type(theta) is not np.ndarray or theta.dtype != np.float64:
            theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}) for {self._label()}, got {theta.shape}")
        return theta

    def _label(self) -> str:
        return f"generator {self.name!r}" if self.name else "this generator"

    def _each(self, theta: np.ndarray, out: np.ndarray, act: Any) -> np.ndarray:
        for start, block in self.parts:
            stretch = slice(start, start + block.size)
            out[..., stretch] = act(block, theta[..., stretch])
        return out

    def apply(self, theta: Any) -> np.ndarray:
        """A θ for θ of shape (..., d)."""
        theta = self._theta(theta)
        return self._each(theta, np.zeros(theta.shape), lambda block, x: block.apply(x))

    def quadratic(self, theta: Any) -> Any:
        """θᵀ A θ, shape (...): a float for one θ. Identically zero, up to rounding, for an antisymmetric A."""
        theta = self._theta(theta)
        value = np.zeros(theta.shape[:-1])
        for start, block in self.parts:
            value += block.quadratic(theta[..., start : start + block.size])
        return float(value) if value.ndim == 0 else value

    def exp(self, lam: Any, theta: Any) -> np.ndarray:
        """e^{λA} θ: the group element applied to θ.

        Parameters
        ----------
        lam : float or array_like
            λ; an array broadcasts against theta.shape[:-1] (one λ for each θ).
        theta : array_like of shape (..., d)

        Notes
        -----
        Symmetric blocks go through their eigenbasis, where e^{λμ_k} and θ_k are multiplied as logarithms once
        |λμ_k| > 700: a large exponent on a small component does not overflow. Other blocks use scipy's `expm`.
        Rounding is of the size eps·e^{|λ|‖A‖}‖θ‖, the condition of the map itself.

        Raises
        ------
        ArgumentError
            When the result itself is beyond the finite numbers: never a silent inf or nan.

        Examples
        --------
        >>> Generator.diagonal([1.0, -1.0]).exp(800.0, [1e-300, 0.0])
        array([2.72637457e+47, 0.00000000e+00])
        """
        theta = self._theta(theta)
        lam = _check.array("lam", lam, finite=False)
        if not np.isfinite(lam).all():
            raise ArgumentError("lam must be finite; at λ* = ±inf the orbit has no end point")
        try:
            shape = (*np.broadcast_shapes(lam.shape, theta.shape[:-1]), self.dim)
        except ValueError:
            raise ShapeError(
                f"lam must have a shape that fits the states of theta, {theta.shape[:-1]}, got {lam.shape}"
            ) from None
        out = np.array(np.broadcast_to(theta, shape))
        with np.errstate(over="ignore", invalid="ignore"):
            self._each(theta, out, lambda block, x: block.exp(lam, x))
        if not np.isfinite(out).all() and np.isfinite(theta).all():
            reach = float(np.abs(lam).max(initial=0.0)) * self.norm
            raise ArgumentError(
                f"exp(lam, theta) is beyond the finite numbers: |lam|·‖A‖ = {reach:.3g} for {self._label()}"
            )
        return out

    def trace(self, sigma: Any) -> float:
        """Tr[ΣA] for a dense Σ of shape (d, d), over the blocks only."""
        sigma = _check.array("sigma", sigma, (self.dim, self.dim))
        total = 0.0
        for start, block in self.parts:
            stretch = slice(start, start + block.size)
            total += block.trace(sigma[stretch, stretch])
        return total

    # --- spectrum -----------------------------------------------------------------------------------------------------

    @cached_property
    def is_symmetric(self) -> bool:
        """A = Aᵀ within 64 eps of the largest entry, block by block."""
        return all(block.is_symmetric for _, block in self.parts)

    @cached_property
    def is_antisymmetric(self) -> bool:
        """A = -Aᵀ within 64 eps; then θᵀAθ is identically zero. The zero matrix is both."""
        return all(block.is_antisymmetric for _, block in self.parts)

    def _needs_symmetry(self, what: str) -> None:
        if not self.is_symmetric:
            raise ArgumentError(f"{what} needs a symmetric generator, and {self!r} is not")

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """μ of shape (d,), in the order of the components of `to_eigenbasis` (not sorted). Symmetric A only."""
        self._needs_symmetry("eigenvalues")
        mu = np.zeros(self.dim)
        for start, block in self.parts:
            mu[start : start + block.size] = block.eigenvalues
        mu.flags.writeable = False
        return mu

    def to_eigenbasis(self, theta: Any) -> np.ndarray:
        """Coordinates of θ (..., d) in an orthonormal eigenbasis of A, block by block. Symmetric A only."""
        self._needs_symmetry("to_eigenbasis")
        theta = self._theta(theta)
        return self._each(theta, np.array(theta), lambda block, x: block.to_eigenbasis(x))

    def from_eigenbasis(self, coordinates: Any) -> np.ndarray:
        """θ (..., d) from its coordinates in the eigenbasis: the inverse (and transpose) of `to_eigenbasis`."""
        self._needs_symmetry("from_eigenbasis")
        theta = self._theta(coordinates)
        return self._each(theta, np.array(theta), lambda block, x: block.from_eigenbasis(x))

    def mixed(self, theta: Any) -> np.ndarray:
        """Σ_j |Q_jk| |θ_j| (..., d), Q the eigenbasis: eps times this bounds the rounding of `to_eigenbasis`(θ)_k.

        Equal to |θ| where A is diagonal: such components carry no rounding of the others.
        """
        self._needs_symmetry("mixed")
        theta = self._theta(theta)
        return self._each(theta, np.abs(theta), lambda block, x: block.mixed(x))

    @cached_property
    def norm(self) -> float:
        """Spectral norm ‖A‖₂."""
        return max((block.norm for _, block in self.parts), default=0.0)

    # --- structure ----------------------------------------------------------------------------------------------------

    def layers(self, shapes: Sequence[tuple[int, int]]) -> list[tuple[np.ndarray | None, np.ndarray | None]] | None:
        """A as W_k ↦ L_k W_k + W_k R_k on the matrices of θ = [W_1, …, W_D].

        Parameters
        ----------
        shapes : sequence of (r, c)
            Shapes of the matrices in the order of θ; their sizes add up to d.

        Returns
        -------
        list of (L or None, R or None), one pair for each matrix, (None, None) where A does nothing; or None when A is
        not of that form.
        """
        ends = list(accumulate((int(r) * int(c) for r, c in shapes), initial=0))
        if ends[-1] != self.dim:
            raise ShapeError(f"shapes must add up to {self.dim} components for {self._label()}, got {ends[-1]}")
        slots = {(start, r * c): k for k, (start, (r, c)) in enumerate(zip(ends[:-1], shapes, strict=True))}
        found: list[tuple[np.ndarray | None, np.ndarray | None]] = [(None, None)] * len(shapes)
        for start, block in cut(self.parts, ends):
            k = slots.get((start, block.size))
            if k is None:
                return None
            if isinstance(block, Diagonal):
                block = as_sandwich(block, (int(shapes[k][0]), int(shapes[k][1]))) or block
            if not isinstance(block, Sandwich) or block.shape != tuple(shapes[k]):
                return None
            found[k] = (block.left, block.right)
        return found

    def __add__(self, other: Any) -> Generator:
        if not isinstance(other, Generator):
            return NotImplemented
        if other.dim != self.dim:
            raise ShapeError(f"generators must act on the same θ, got dim {self.dim} and {other.dim}")
        return Generator(self.dim, combine(self.parts, other.parts), _joined(self.name, "+", other.name))

    def __sub__(self, other: Any) -> Generator:
        if not isinstance(other, Generator):
            return NotImplemented
        return (self + (-1.0) * other).named(_joined(self.name, "-", other.name))

    def __mul__(self, factor: Any) -> Generator:
        if isinstance(factor, (bool, np.bool_)) or not isinstance(factor, numbers.Real):
            return NotImplemented
        factor = _check.number("factor", factor)
        name = f"{factor:g}*{self.name}" if self.name else ""
        return Generator(self.dim, [(start, block.scaled(factor)) for start, block in self.parts], name)

    __rmul__ = __mul__

    def __neg__(self) -> Generator:
        return ((-1.0) * self).named(f"-{self.name}" if self.name else "")

    def __repr__(self) -> str:
        kind = "symmetric" if self.is_symmetric else "antisymmetric" if self.is_antisymmetric else "not symmetric"
        parts = ", ".join(f"[{start}:{start + block.size}] {block!r}" for start, block in self.parts) or "zero"
        name = f"{self.name!r}, " if self.name else ""
        return f"Generator({name}dim={self.dim}, {kind}: {parts})"


def _joined(a: str, sign: str, b: str) -> str:
    return f"{a} {sign} {b}" if a and b else ""
