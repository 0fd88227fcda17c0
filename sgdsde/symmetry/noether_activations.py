"""The non-linear symmetry of Uσ(Vx) with orthogonal inputs: J = (U, -σ(V)/σ'(V)), elementwise, and its charge.

    C = ½‖U‖² - Σ P(V),   P' = σ/σ'

    identity, leaky_relu   P = ½v²               P' = v            P'' = 1
    relu                   P = ½max(v, 0)²       P' = max(v, 0)    P'' = 1 where v > 0
    tanh                   P = ½sinh²v           P' = ½sinh 2v     P'' = cosh 2v
    sigmoid                P = v + e^v           P' = 1 + e^v      P'' = e^v

Moving U by e^λ and V so that σ becomes e^{-λ}σ leaves every Uσ(Vx_i) where it is. With inputs x_i that are orthogonal
(one-hot after whitening), each z_i = Vx_i can be moved alone, V ↦ V - Σ_i P'(z_i)x_iᵀ/‖x_i‖², and that is the gradient
of -Σ_i P(z_i)/‖x_i‖². Source: Zhao, Ganev, Walters, Yu, Dehmamy 2023 (arXiv 2210.17216), for one-hot inputs. The code
that came with it, `compute_Q`, returns 2C for linear, relu and tanh networks and C for sigmoid; here it is always C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.symmetry.actions_layers import hidden_layer, units_of
from sgdsde.symmetry.noether_fields import Field

__all__ = ["POTENTIALS", "ElementwiseField", "elementwise_field"]

EPS = float(np.finfo(float).eps)


class Potential(NamedTuple):
    """P with P' = σ/σ', and what the flow σ ↦ e^{-λ}σ does to v."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    bend: Callable[[np.ndarray], np.ndarray]
    shrunk: Callable[[np.ndarray, float], np.ndarray]
    """σ⁻¹(e^{-λ}σ(v)); NaN where there is none."""
    zero: bool
    """Whether σ(0) = 0."""


def _tanh_flow(v: np.ndarray, lam: float) -> np.ndarray:
    # sinh v ↦ sinh v·e^{-λ}/√(1 + (1 - e^{-2λ})sinh²v): arctanh(e^{-λ}tanh v) without the rounding of tanh v near ±1.
    s = np.sinh(v)
    return np.arcsinh(s * np.exp(-lam) / np.sqrt(1.0 - np.expm1(-2.0 * lam) * s**2))


def _sigmoid_flow(v: np.ndarray, lam: float) -> np.ndarray:
    # e^{-v} ↦ e^λ(1 + e^{-v}) - 1.
    return -np.log(np.expm1(lam) + np.exp(lam - v))


_LINEAR = Potential(
    lambda v: 0.5 * v**2, lambda v: 1.0 * v, lambda v: np.ones_like(v), lambda v, lam: np.exp(-lam) * v, True
)
POTENTIALS = {
    "identity": _LINEAR,
    "leaky_relu": _LINEAR,
    "relu": Potential(
        lambda v: 0.5 * np.maximum(v, 0.0) ** 2, lambda v: np.maximum(v, 0.0), lambda v: np.where(v > 0, 1.0, 0.0),
        lambda v, lam: np.where(v > 0, np.exp(-lam) * v, v), True,
    ),
    "tanh": Potential(
        lambda v: 0.5 * np.sinh(v) ** 2, lambda v: 0.5 * np.sinh(2.0 * v), lambda v: np.cosh(2.0 * v), _tanh_flow, True
    ),
    "sigmoid": Potential(lambda v: v + np.exp(v), lambda v: 1.0 + np.exp(v), lambda v: np.exp(v), _sigmoid_flow, False),
}  # fmt: skip
"""By the names of `models.MLP`; not gelu, whose σ' vanishes at v = -0.7518, where σ/σ' has a pole."""


class ElementwiseField(Field):
    """J = (U, -P'(Vx_i)x_iᵀ/‖x_i‖², zero elsewhere) on some hidden units.

    Parameters
    ----------
    dim : int
    v, u : (start, (rows, columns))
        Where V (h, n) and U (m, h) stand in θ, each raveled in C order.
    inputs : (k, n) array
        Orthogonal, none of them zero.
    activation : str
    units : sequence of int
        Hidden units that move; each alone is a symmetry.
    """

    slack = 64 * EPS

    def __init__(
        self, dim: int, v: tuple[int, Any], u: tuple[int, Any], inputs: np.ndarray, activation: str, units: Any
    ) -> None:
        self.dim, self.activation, self.units = dim, activation, np.asarray(units)
        self.name = f"elementwise[{activation}]"
        self._potential = POTENTIALS[activation]
        self.inputs = inputs
        self._scaled = inputs / np.sum(inputs**2, axis=1, keepdims=True)
        self._squares = np.sum(inputs**2, axis=1)
        self._v, self._u = (slice(at, at + shape[0] * shape[1]) for at, shape in (v, u))
        self._v_shape, self._u_shape = v[1], u[1]

    def _parts(self, theta: Any) -> tuple[np.ndarray, np.ndarray]:
        """V (..., units, n) and U (..., m, units)."""
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        v = theta[..., self._v].reshape(*theta.shape[:-1], *self._v_shape)
        u = theta[..., self._u].reshape(*theta.shape[:-1], *self._u_shape)
        return v[..., self.units, :], u[..., self.units]

    def _joined(self, theta: np.ndarray, v: np.ndarray, u: np.ndarray, base: np.ndarray) -> np.ndarray:
        out = np.array(base)
        lead = out.shape[:-1]
        whole_v = out[..., self._v].reshape(*lead, *self._v_shape)
        whole_u = out[..., self._u].reshape(*lead, *self._u_shape)
        whole_v[..., self.units, :], whole_u[..., self.units] = v, u
        out[..., self._v], out[..., self._u] = whole_v.reshape(*lead, -1), whole_u.reshape(*lead, -1)
        return out

    def apply(self, theta: Any) -> np.ndarray:
        v, u = self._parts(theta)
        with np.errstate(over="ignore"):
            moved = -self._potential.slope(v @ self.inputs.T) @ self._scaled
        return self._joined(theta, moved, u, np.zeros(np.shape(theta)))

    def potential(self, theta: Any) -> Any:
        v, u = self._parts(theta)
        with np.errstate(over="ignore"):
            taken = np.sum(self._potential.value(v @ self.inputs.T) / self._squares, axis=(-2, -1))
        value = 0.5 * np.sum(u**2, axis=(-2, -1)) - taken
        return float(value) if np.ndim(value) == 0 else value

    def form(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        v, _ = self._parts(theta)
        dv, du = self._parts(rows)
        bend = self._potential.bend(v @ self.inputs.T) / self._squares
        return np.sum(du**2, axis=(-2, -1)) - np.einsum("ui,nui->n", bend, (dv @ self.inputs.T) ** 2)

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        v, _ = self._parts(theta)
        bend = self._potential.bend(v @ self.inputs.T) / self._squares
        out = np.zeros((self.dim, self.dim))
        places = np.arange(self.dim)
        grid_v, grid_u = places[self._v].reshape(self._v_shape), places[self._u].reshape(self._u_shape)
        for unit, b in zip(self.units, bend, strict=True):
            out[np.ix_(grid_v[unit], grid_v[unit])] = -(self.inputs.T * b) @ self.inputs
            out[grid_u[:, unit], grid_u[:, unit]] = 1.0
        return out

    def flow(self, lam: float, theta: np.ndarray) -> np.ndarray:
        v, u = self._parts(theta)
        z = v @ self.inputs.T
        with np.errstate(all="ignore"):
            moved = self._potential.shrunk(z, float(lam))
        if not np.isfinite(moved).all():
            raise ArgumentError(
                f"lam must be larger: e^(-λ)σ(v) leaves the range of {self.activation} before λ = {lam:g}"
            )
        return self._joined(theta, v + (moved - z) @ self._scaled, np.exp(lam) * u, theta)


def elementwise_field(model: Any, X: Any = None, unit: int | None = None, activation: str | None = None) -> Field:
    """The field of the first hidden layer of a model with arrays W1, W2 and an `activation`.

    `X` are the inputs, (N, n); None stands for the unit vectors. Different ones have to be orthogonal; each may come
    any number of times.
    """
    layer, shapes = hidden_layer(model), model.shapes
    if layer.bias:
        raise ArgumentError(
            f"model must have no bias b1, got {model!r}: J = (U, -σ(Vx + b)/σ'(Vx + b), 0) is a symmetry of every loss "
            "still, but its V part depends on b and its b part is zero, so it is no gradient; use circulation"
        )
    name = units_of(model) if activation is None else activation
    if name is None:
        raise ArgumentError(f"activation must be given for {model!r}: one of {', '.join(POTENTIALS)}")
    if name == "gelu":
        raise ArgumentError("activation must not be 'gelu': its slope is zero at v = -0.7518, where σ/σ' has a pole")
    name = _check.choice("activation", name, POTENTIALS)
    inputs = _orthogonal(np.eye(shapes["W1"][1]) if X is None else X, shapes["W1"][1], name)
    h = shapes["W1"][0]
    units = range(h) if unit is None else [_check.count("unit", unit, least=0, most=h - 1)]
    places = model.places()
    v, u = ((places[k].start, shapes[k]) for k in ("W1", "W2"))
    return ElementwiseField(model.dim, v, u, inputs, name, list(units))


def _orthogonal(X: Any, n: int, activation: str) -> np.ndarray:
    """The different rows of X."""
    rows = np.unique(_check.array("X", X, ("N", n)), axis=0)
    size = np.linalg.norm(rows, axis=1)
    if (size == 0).any() and not POTENTIALS[activation].zero:
        raise ArgumentError(f"X must have no row of zeros for {activation!r}: σ(0) is not 0 and cannot be moved")
    rows, size = rows[size > 0], size[size > 0]
    products = np.abs(rows @ rows.T) / np.outer(size, size)
    np.fill_diagonal(products, 0.0)
    if products.max(initial=0.0) > 64 * n * EPS:
        i, j = (int(k) for k in np.unravel_index(int(np.argmax(products)), products.shape))
        raise ArgumentError(
            f"X must have orthogonal rows (whitened or one-hot inputs): {rows[i]} and {rows[j]} have the product "
            f"{rows[i] @ rows[j]:.3g}. Where they are independent, J is a symmetry still, but no gradient: circulation"
        )
    return rows
