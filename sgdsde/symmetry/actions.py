"""Linear actions (V, U) ↦ (gV, Uπ(g)⁻¹) of a group on a hidden layer, where σ(gz) = π(g)σ(z); their charges Q_M."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import expm

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.algebra.block import Block, Zero
from sgdsde.algebra.sandwich import Sandwich
from sgdsde.symmetry.actions_layers import hidden_layer, units_of

__all__ = ["Equivariance", "LayerAction"]

EPS = float(np.finfo(float).eps)
GROUPS = {
    "linear": "every invertible g, π(g) = g: linear units",
    "homogeneous": "diagonal g > 0, π(g) = g^α: units of degree α",
    "radial": "orthogonal g, π(g) = g: σ(z) = z f(|z|)",
}


class Equivariance(NamedTuple):
    """An activation with σ(gz) = π(g)σ(z) for the g of some group, π a representation of one's own.

    Examples
    --------
    Two hidden units as a complex number, σ(z) = z²: multiples of rotations pass it squared.

    >>> def sigma(z):
    ...     return np.array([z[0] ** 2 - z[1] ** 2, 2 * z[0] * z[1]])
    >>> square = Equivariance(lambda g: g @ g, lambda M: 2 * M, sigma)
    """

    pi: Callable[[np.ndarray], Any]
    """π: g (h, h) -> (h, h)."""
    dpi: Callable[[np.ndarray], Any]
    """dπ: M (h, h) -> (h, h), π(e^{λM}) = e^{λ dπ(M)}."""
    sigma: Callable[[np.ndarray], Any] | None = None
    """σ: (h,) -> (h,). Where it is given, each g is tried on it."""


class LayerAction:
    """g·θ: V ↦ gV, U ↦ Uπ(g)⁻¹ on a hidden layer l, V = W_l with its bias, U = W_{l+1}. Every loss keeps its value.

    Source: Zhao, Ganev, Walters, Yu, Dehmamy 2023 (arXiv 2210.17216). The generator of M is (MV, -U dπ(M)), and its
    charge, for symmetric M,

        Q_M = Tr[VVᵀM] - Tr[UᵀU dπ(M)],

    is θᵀAθ of `Charge`, A the generator. For antisymmetric M it is zero, and what is left is `angular_momentum`.

    Parameters
    ----------
    model : Model
        With matrices W1, W2, … and, if it has one, an `activation`.
    layer : int
        l >= 1.
    group : {"linear", "homogeneous", "radial"} or Equivariance, optional
        Which g, and which π; by default what suits the units of the model: "linear" for `DeepLinear`, "homogeneous"
        for ReLU and leaky ReLU, "radial" for `RadialNetwork` and `ScaleInvariant`.
    alpha : float
        Degree of a homogeneous activation.

    Examples
    --------
    >>> from sgdsde.models import DeepLinear
    >>> action = LayerAction(DeepLinear([1, 2, 1]))
    >>> action.act([[2.0, 0.0], [0.0, 1.0]], [3.0, 1.0, 4.0, 5.0])
    array([6., 1., 2., 5.])
    """

    def __init__(self, model: Any, layer: int = 1, group: str | None = None, alpha: float = 1.0) -> None:
        below = hidden_layer(model, layer).below
        self.layer = int(layer)
        known = units_of(model)
        suits = {"identity": "linear", "relu": "homogeneous", "leaky_relu": "homogeneous"}
        suits |= {"radial": "radial", "scale-invariant": "radial"}
        if group is None:
            group = suits.get(str(known))
            if group is None:
                raise ArgumentError(
                    f"group must be given for activation {known!r}: "
                    + "; ".join(f"{name!r} ({what})" for name, what in GROUPS.items())
                )
        self._own = group if isinstance(group, Equivariance) else None
        self.group = "own" if self._own else _check.choice("group", group, GROUPS)
        if not self._own and known is not None and known != "identity" and suits.get(known) != self.group:
            raise ArgumentError(f"group must be one that {known!r} units commute with, got {self.group!r}")
        self.alpha = _check.positive("alpha", alpha) if self.group == "homogeneous" else 1.0
        self.model, self.dim, self.width = model, int(model.dim), int(model.shapes[below][0])

    def __repr__(self) -> str:
        return f"LayerAction({self.model!r}, layer={self.layer}, group={self.group!r})"

    # --- the group ----------------------------------------------------------------------------------------------------

    def element(self, g: Any) -> np.ndarray:
        """g (h, h), checked to be of the group."""
        g = _check.array("g", g, (self.width, self.width))
        if self.group == "homogeneous" and (np.any(g != np.diag(np.diagonal(g))) or np.diagonal(g).min() <= 0):
            raise ArgumentError("g must be diagonal with positive entries for homogeneous units")
        if self.group == "radial" and np.abs(g @ g.T - np.eye(self.width)).max() > 1e-12:
            raise ArgumentError("g must be orthogonal for radial units")
        if self.group in ("linear", "own") and np.linalg.cond(g) > 1.0 / EPS:
            raise ArgumentError("g must be invertible")
        if self._own and self._own.sigma is not None:
            z = np.random.default_rng(0).standard_normal(self.width)
            one, other = np.asarray(self._own.sigma(g @ z)), self._pi(g) @ np.asarray(self._own.sigma(z))
            if np.abs(one - other).max() > 1e-9 * (np.abs(one).max() + np.abs(other).max()):
                raise ArgumentError(f"g must have σ(gz) = π(g)σ(z), got {one} and {other}")
        return g

    def algebra(self, M: Any) -> np.ndarray:
        """M (h, h), checked to generate elements of the group."""
        M = _check.array("M", M, (self.width, self.width))
        if self.group == "homogeneous" and np.any(M != np.diag(np.diagonal(M))):
            raise ArgumentError("M must be diagonal for homogeneous units")
        if self.group == "radial" and np.abs(M + M.T).max(initial=0.0) > 64 * EPS * np.abs(M).max(initial=0.0):
            raise ArgumentError("M must be antisymmetric for radial units")
        return M

    def act(self, g: Any, theta: Any) -> np.ndarray:
        """g·θ for θ (..., d)."""
        g = self.element(g)
        return self._moved(theta, g, None)

    def generator(self, M: Any, name: str = "") -> Generator:
        """The `Generator` of M: V ↦ MV, U ↦ -U dπ(M)."""
        M = self.algebra(M)
        blocks: list[Block] = []
        for array, shape in self.model.shapes.items():
            size = int(np.prod(shape))
            grid = shape if len(shape) == 2 else (size, 1)
            if array in (f"W{self.layer}", f"b{self.layer}"):
                blocks.append(Sandwich(grid, M, None) if M.any() else Zero(size))
            elif array == f"W{self.layer + 1}":
                blocks.append(Sandwich(grid, None, -self._dpi(M)) if M.any() else Zero(size))
            else:
                blocks.append(Zero(size))
        return Generator.blocks(blocks, name)

    def infinitesimal(self, M: Any, theta: Any) -> np.ndarray:
        """M·θ = d/dλ e^{λM}·θ at λ = 0, (..., d): orthogonal to the gradient of every sample."""
        return self.generator(M).apply(theta)

    def orbit(self, M: Any, lams: Any, theta: Any) -> np.ndarray:
        """e^{λM}·θ for each λ of `lams` (k,): (k, d): points of one loss with other gradients and curvature."""
        M, lams = self.algebra(M), _check.array("lams", lams, ("k",))
        theta = _check.array("theta", theta, (self.dim,))
        points = []
        for lam in lams:
            points.append(self._moved(theta, expm(lam * M), expm(-lam * self._dpi(M))))
        return np.array(points).reshape(-1, self.dim)

    # --- charges ------------------------------------------------------------------------------------------------------

    def charge(self, M: Any, theta: Any) -> Any:
        """Q_M = Tr[VVᵀM] - Tr[UᵀU dπ(M)], shape (...); M enters by its symmetric part, and a charge is what that has.

        With an `Equivariance` of one's own, where M and dπ(M) are symmetric.
        """
        M = _check.array("M", M, (self.width, self.width))
        if self.group != "radial":  # there all M are antisymmetric, and Q_M of any M is shown to be no charge
            self.algebra(M)
        return self._pair(theta, M, self._dpi(M))

    def charge_after(self, g: Any, M: Any, theta: Any) -> Any:
        """Q_M(g·θ) = Tr[VVᵀ gᵀMg] - Tr[UᵀU π(g)⁻¹dπ(M)π(g)⁻ᵀ], shape (...), from θ itself.

        The two matrices are different ones. Zhao et al. 2023 print Q_M(g·θ) = Q_{gᵀMg}(θ), with one matrix for both;
        that holds for orthogonal g alone, where g⁻¹ = gᵀ.
        """
        g, M = self.element(g), _check.array("M", M, (self.width, self.width))
        back = self._power_inverse(g)
        return self._pair(theta, g.T @ M @ g, back @ self._dpi(M) @ back.T)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _pi(self, g: np.ndarray) -> np.ndarray:
        """π(g)."""
        if self._own:
            return _check.array("what pi returns", self._own.pi(g), g.shape)
        return np.diag(np.diagonal(g) ** self.alpha) if self.group == "homogeneous" else g

    def _dpi(self, M: np.ndarray) -> np.ndarray:
        """dπ(M)."""
        return _check.array("what dpi returns", self._own.dpi(M), M.shape) if self._own else self.alpha * M

    def _power_inverse(self, g: np.ndarray) -> np.ndarray:
        """π(g)⁻¹."""
        if self._own:
            return np.linalg.inv(self._pi(g))
        if self.group == "homogeneous":
            return np.diag(np.diagonal(g) ** -self.alpha)
        return g.T if self.group == "radial" else np.linalg.inv(g)

    def _arrays(self, theta: Any) -> tuple[np.ndarray, np.ndarray]:
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        arrays = self.model.unflatten(theta)
        v = arrays[f"W{self.layer}"]
        if f"b{self.layer}" in arrays:
            v = np.concatenate([v, arrays[f"b{self.layer}"][..., None]], axis=-1)
        return v, arrays[f"W{self.layer + 1}"]

    def _pair(self, theta: Any, below: np.ndarray, above: np.ndarray) -> Any:
        v, u = self._arrays(theta)
        value = np.einsum("...ia,ij,...ja->...", v, below, v) - np.einsum("...ai,ij,...aj->...", u, above, u)
        return float(value) if np.ndim(value) == 0 else value

    def _moved(self, theta: Any, g: np.ndarray, back: np.ndarray | None) -> np.ndarray:
        """V ↦ gV and U ↦ U·back, or Uπ(g)⁻¹ where that is not given."""
        theta = np.array(_check.array("theta", theta, finite=False))
        self._arrays(theta)
        for name, at in self.model.places().items():
            shape = self.model.shapes[name]
            part = theta[..., at].reshape(*theta.shape[:-1], *shape)
            if name == f"W{self.layer}":
                part = g @ part
            elif name == f"b{self.layer}":
                part = part @ g.T
            elif name != f"W{self.layer + 1}":
                continue
            elif back is not None:
                part = part @ back
            elif self.group == "linear":
                part = np.swapaxes(np.linalg.solve(g.T, np.swapaxes(part, -1, -2)), -1, -2)
            else:
                part = part @ self._power_inverse(g)
            theta[..., at] = part.reshape(*theta.shape[:-1], -1)
        return theta
