"""Infinitesimal actions J(θ) = dQ_λ(θ)/dλ at λ = 0 as vector fields: values, Jacobian, its quadratic form, the flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.algebra import Affine, Generator, linear_and_shift
from sgdsde.symmetry.charges import Charge

__all__ = ["AffineField", "Curl", "Field", "FunctionField", "as_field"]

EPS = float(np.finfo(float).eps)
STEP = EPS ** (1 / 3)
"""Of a central difference, relative to 1 + |θ_i|."""
EXACT, DIFFERENCED = 1e-10, 1e-6
"""How large a curl may be beside ∇J: of a Jacobian that was given, and of one from differences of J."""


class Curl(NamedTuple):
    """The pair of components whose ∂_iJ_j and ∂_jJ_i differ most at a state."""

    i: int
    j: int
    ij: float
    """∂_iJ_j."""
    ji: float
    """∂_jJ_i."""
    tolerance: float

    @property
    def vanishes(self) -> bool:
        return abs(self.ij - self.ji) <= self.tolerance


class Field:
    """Base of the fields: what charges and circulations ask of a J. θ is (..., d) in `apply`, (d,) elsewhere."""

    dim: int
    name: str
    slack: float = EXACT
    exact: bool = False
    """Whether J is affine, so that a charge is quadratic and its one-step mean is exact."""

    def apply(self, theta: Any) -> np.ndarray:
        """J(θ), shape (..., d)."""
        raise NotImplementedError

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """∇J, (d, d): row i, column j is ∂_jJ_i."""
        raise NotImplementedError

    def form(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """vᵀ∇J(θ)v for each row v of `rows` (n, d)."""
        return np.einsum("ni,ij,nj->n", rows, self.jacobian(theta), rows)

    def potential(self, theta: Any) -> Any:
        """C(θ) with ∇C = J in closed form, (...); None where there is none."""
        return None

    def flow(self, lam: float, theta: np.ndarray) -> np.ndarray:
        """Q_λ(θ): the solution of dθ/dλ = J(θ), by scipy's DOP853 to 1e-11 unless there is a closed form.

        A group of this kind may be defined near λ = 0 alone: ArgumentError when θ leaves the finite numbers before λ.
        """
        from scipy.integrate import solve_ivp

        def speed(_: float, x: np.ndarray) -> np.ndarray:
            return np.asarray(self.apply(x))

        with np.errstate(all="ignore"):
            end = solve_ivp(speed, (0.0, float(lam)), theta, method="DOP853", rtol=1e-11, atol=1e-12)
        if not end.success or not np.isfinite(end.y[:, -1]).all():
            raise ArgumentError(f"lam must be smaller: the flow of {self.name} ends before {lam:g} ({end.message})")
        return np.array(end.y[:, -1])

    def curl(self, theta: np.ndarray) -> Curl:
        """The worst pair (i, j) of ∂_iJ_j - ∂_jJ_i at a state."""
        slopes = self.jacobian(theta)
        if not np.isfinite(slopes).all():
            raise ModelError(f"the Jacobian of {self.name} is not finite at a state tried: give states= in its domain")
        apart = np.abs(slopes - slopes.T)
        i, j = sorted(int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))
        size = float(np.abs(slopes).max(initial=0.0))
        if self.slack > EXACT:  # rounding of the difference quotient
            size += float(np.abs(self.apply(theta)).max(initial=0.0)) / (1.0 + float(np.abs(theta).max(initial=0.0)))
        return Curl(i, j, float(slopes[j, i]), float(slopes[i, j]), self.slack * size)


class AffineField(Field):
    """J = Aθ + b of a `Generator` or `Affine`; C = ½θᵀAθ + bᵀθ where A is symmetric."""

    exact = True
    slack = 64 * EPS

    def __init__(self, generator: Generator | Affine) -> None:
        self.generator = generator
        self.dim, self.name = generator.dim, generator.name or "J"
        self._linear, self._shift = linear_and_shift(generator)

    def apply(self, theta: Any) -> np.ndarray:
        return self.generator.apply(theta)

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        return self.generator.matrix

    def form(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self._linear.quadratic(rows))

    def potential(self, theta: Any) -> Any:
        return 0.5 * self.generator.quadratic(theta)

    def flow(self, lam: float, theta: np.ndarray) -> np.ndarray:
        return self.generator.exp(lam, theta)

    def curl(self, theta: np.ndarray) -> Curl:
        if self.generator.is_symmetric:
            return Curl(0, 0, 0.0, 0.0, 0.0)
        return super().curl(theta)


class FunctionField(Field):
    """J as a function θ (d,) -> (d,), with its Jacobian or central differences of it."""

    def __init__(self, function: Callable[[np.ndarray], Any], dim: int, jacobian: Any = None, name: str = "J") -> None:
        if not callable(function):
            raise ArgumentError(f"J must be a function θ -> (d,), got {_check.show(function)}")
        if jacobian is not None and not callable(jacobian):
            raise ArgumentError(f"jacobian must be a function θ -> (d, d), got {_check.show(jacobian)}")
        self.function, self.slopes = function, jacobian
        self.dim, self.name = _check.count("dim", dim), name
        self.slack = DIFFERENCED if jacobian is None else EXACT

    def apply(self, theta: Any) -> np.ndarray:
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        rows = [self._call(self.function, x, (self.dim,), "J") for x in theta.reshape(-1, self.dim)]
        return np.array(rows).reshape(theta.shape)

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        if self.slopes is not None:
            return self._call(self.slopes, theta, (self.dim, self.dim), "jacobian")
        return self.differences(theta)

    def differences(self, theta: np.ndarray) -> np.ndarray:
        """∇J by central differences of J, 2d calls; relative error about 1e-10."""
        steps = np.diag(STEP * (1.0 + np.abs(theta)))
        return (self.apply(theta + steps) - self.apply(theta - steps)).T / (2.0 * np.diagonal(steps))

    def form(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if self.slopes is not None or len(rows) > self.dim:
            return super().form(theta, rows)
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = rows / np.where(size > 0, size, 1.0)
        step = STEP * (1.0 + float(np.linalg.norm(theta)))
        apart = self.apply(theta + step * unit) - self.apply(theta - step * unit)
        return size[:, 0] * np.einsum("nd,nd->n", rows, apart) / (2.0 * step)

    def check_jacobian(self, theta: np.ndarray) -> None:
        """A Jacobian that was given, against differences of J."""
        if self.slopes is None:
            return
        given, measured = self.jacobian(theta), self.differences(theta)
        apart = np.abs(given - measured)
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))
        size = float(np.abs(measured).max(initial=0.0) + np.abs(self.apply(theta)).max(initial=0.0))
        if not apart[i, j] <= 1e-5 * (size + EPS):
            raise ModelError(
                f"jacobian must have ∂J_i/∂θ_j in row i, column j: entry ({i}, {j}) is {given[i, j]:.6g}, "
                f"differences of J give {measured[i, j]:.6g} at θ = {_check.show(theta)}"
            )

    def _call(self, function: Any, x: np.ndarray, shape: tuple[int, ...], what: str) -> np.ndarray:
        with np.errstate(all="ignore"):
            value = function(x.copy())
        return _check.array(f"what {what} returns", value, shape, finite=False)


def as_field(
    J: Any, dim: int | None = None, jacobian: Any = None, name: str | None = None, *, otherwise: int | None = None
) -> Field:
    """A field from a Field, a Generator or Affine, a charge, a pair (A, b), a square matrix, or a function of θ.

    `dim` has to be that of the field; `otherwise` is that of a function where there is no `dim`.
    """
    J = J.generator if isinstance(J, Charge) else getattr(J, "field", J)
    dim_of_function = otherwise if dim is None else dim
    if not isinstance(J, Field) and callable(J) and not isinstance(J, (Generator, Affine)):
        if dim_of_function is None:
            raise ArgumentError("dim must be given for a J that is a function: the number of components of θ")
        return FunctionField(J, dim_of_function, jacobian, name or getattr(J, "__name__", "J").replace("<lambda>", "J"))
    if jacobian is not None:
        raise ArgumentError("jacobian is for a J that is a function; that of a generator or a field is known")
    if isinstance(J, (tuple, list)) and len(J) == 2 and not np.isscalar(J[0]) and np.ndim(J[1]) == 1:
        if isinstance(J[0], Generator) or np.ndim(J[0]) == 2:
            J = Affine(J[0], J[1])
    if isinstance(J, (np.ndarray, list, tuple)):
        J = Generator.from_matrix(_check.array("J", J, ("d", "d")))
    field = AffineField(J) if isinstance(J, (Generator, Affine)) else J
    if not isinstance(field, Field):
        raise ArgumentError(f"J must be a function, a Generator, a pair (A, b) or a matrix, got {_check.show(J)}")
    if dim is not None and dim != field.dim:
        raise ArgumentError(f"dim must be {field.dim} for {field.name}, got {dim}")
    return field
