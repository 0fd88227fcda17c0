"""Affine: a generator θ ↦ Aθ + b, a matrix and a constant: translations, and linear groups around other points."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra.block import frozen
from sgdsde.algebra.generator import Generator

__all__ = ["Affine", "linear_and_shift"]


class Affine:
    """The generator J(θ) = Aθ + b of the affine group θ ↦ e^{λA}θ + λφ₁(λA)b, φ₁(z) = (e^z - 1)/z.

    Parameters
    ----------
    linear : Generator or (d, d) array_like
        A, in its structure.
    shift : array_like of shape (d,)
        b.
    name : str, optional
        For tables and figures; default that of A.

    Attributes
    ----------
    dim : int
        d.
    linear : Generator
    shift : ndarray of shape (d,)
    name : str

    Notes
    -----
    Where A is symmetric, J is half the gradient of `quadratic`, C(θ) = θᵀAθ + 2bᵀθ: the charge of that symmetry.

    Examples
    --------
    >>> import numpy as np
    >>> around = Affine([[0.0, -1.0], [1.0, 0.0]], [0.0, -1.0])  # the rotation that leaves (1, 0) where it is
    >>> around.exp(np.pi / 2, [2.0, 0.0]).round(12)
    array([1., 1.])
    >>> Affine(Generator.diagonal([1.0, 0.0]), [0.0, 1.0]).quadratic([3.0, 2.0])
    13.0
    """

    __array_ufunc__ = None  # so that numpy_number * generator comes here

    def __init__(self, linear: Any, shift: Any, name: str | None = None) -> None:
        self.linear = linear if isinstance(linear, Generator) else Generator.from_matrix(linear)
        self.dim = self.linear.dim
        self.shift = frozen(_check.array("shift", shift, (self.dim,)))
        self.name = self.linear.name if name is None else str(name)

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        if not self.linear.parts:
            return f"Affine({name}dim={self.dim}, translation)"
        return f"Affine({name}A = {self.linear!r}, |b| = {np.linalg.norm(self.shift):.3g})"

    def named(self, name: str) -> Affine:
        """The same generator under another name."""
        return Affine(self.linear, self.shift, name)

    # --- acting -------------------------------------------------------------------------------------------------------

    @property
    def matrix(self) -> np.ndarray:
        """A as a dense (d, d) array, built at each call."""
        return self.linear.matrix

    def apply(self, theta: Any) -> np.ndarray:
        """Aθ + b for θ of shape (..., d)."""
        return self.linear.apply(theta) + self.shift

    def quadratic(self, theta: Any) -> Any:
        """θᵀAθ + 2bᵀθ, shape (...): a float for one θ. Its gradient is 2(Aθ + b) where A is symmetric."""
        value = self.linear.quadratic(theta) + 2.0 * (np.asarray(theta, dtype=np.float64) @ self.shift)
        return float(value) if np.ndim(value) == 0 else value

    def exp(self, lam: Any, theta: Any) -> np.ndarray:
        """e^{λA}θ + λφ₁(λA)b: the group element applied to θ (..., d); λ broadcasts against theta.shape[:-1].

        Diagonal and other symmetric blocks go through their eigenbasis; W ↦ LW + WR through one exponential of the size
        of L and R together, dense blocks through one of a row more. ArgumentError when the result is beyond the finite
        numbers.
        """
        out = self.linear.exp(lam, theta)
        lam = np.asarray(lam, dtype=np.float64)
        moved = np.array(np.broadcast_to(lam[..., None] * self.shift, (*lam.shape, self.dim)))
        with np.errstate(over="ignore", invalid="ignore"):
            for start, block in self.linear.parts:
                stretch = slice(start, start + block.size)
                moved[..., stretch] = block.integral(lam, self.shift[stretch])
        if not np.isfinite(moved).all():
            raise ArgumentError(
                f"exp(lam, theta) is beyond the finite numbers: |lam| = {np.abs(lam).max(initial=0.0):.3g} for {self!r}"
            )
        return out + moved

    def trace(self, sigma: Any) -> float:
        """Tr[ΣA] for a dense Σ of shape (d, d)."""
        return self.linear.trace(sigma)

    # --- spectrum of A ------------------------------------------------------------------------------------------------

    @property
    def is_symmetric(self) -> bool:
        """A = Aᵀ: then J is a gradient, and there is a charge."""
        return self.linear.is_symmetric

    @property
    def is_antisymmetric(self) -> bool:
        """A = -Aᵀ; that of a translation, A = 0, is both."""
        return self.linear.is_antisymmetric

    @property
    def eigenvalues(self) -> np.ndarray:
        """Those of A, (d,); symmetric A only."""
        return self.linear.eigenvalues

    def to_eigenbasis(self, theta: Any) -> np.ndarray:
        """Coordinates of θ (..., d) in an orthonormal eigenbasis of A; symmetric A only."""
        return self.linear.to_eigenbasis(theta)

    @property
    def norm(self) -> float:
        """‖A‖₂, without b."""
        return self.linear.norm

    # --- sums ---------------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Affine:
        if not isinstance(other, (Affine, Generator)):
            return NotImplemented
        if other.dim != self.dim:
            raise ShapeError(f"generators must act on the same θ, got dim {self.dim} and {other.dim}")
        linear, shift = linear_and_shift(other)
        name = f"{self.name} + {other.name}" if self.name and other.name else ""
        return Affine(self.linear + linear, self.shift if shift is None else self.shift + shift, name)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Affine:
        return self + (-1.0) * other if isinstance(other, (Affine, Generator)) else NotImplemented

    def __mul__(self, factor: Any) -> Affine:
        if isinstance(factor, (bool, np.bool_)) or not isinstance(factor, numbers.Real):
            return NotImplemented
        factor = _check.number("factor", factor)
        return Affine(factor * self.linear, factor * self.shift, f"{factor:g}*{self.name}" if self.name else "")

    __rmul__ = __mul__

    def __neg__(self) -> Affine:
        return ((-1.0) * self).named(f"-{self.name}" if self.name else "")


def linear_and_shift(generator: Generator | Affine) -> tuple[Generator, np.ndarray | None]:
    """(A, b) of a generator; b is None for a linear one."""
    if isinstance(generator, Affine):
        return generator.linear, generator.shift
    return generator, None
