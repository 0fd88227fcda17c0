"""Factors F of the gradient covariance, FFᵀ = Σ: the model's own, the two that need linear algebra, and the user's.

The law of the SDE depends on Σ alone, but a path, and what rounding does to a charge, depend on F: it should not leak
along a symmetry, FᵀAθ = 0. `leak` measures it: per-sample and Gram 1e-16, Cholesky √jitter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba.cloudpickle
import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError

__all__ = ["Factor", "cholesky", "gram", "leak", "read_factor"]

JITTER = 1e-12
MOST_JITTER = 1e-6


class Factor(NamedTuple):
    """A factor that has been read: by name, as an array, or as a function of θ."""

    name: str
    kind: str
    """'native' (a kernel of the model), 'constant' (an array) or 'function'."""
    value: Any
    """The name, the array (d, m), or a function θ (d,) -> (d, m)."""


def read_factor(problem: Any, factor: Any) -> Factor:
    """None, a name, an array (d, m) or (d,), or a callable, as a `Factor`; errors name what is wrong."""
    model = problem.model
    if factor is None:
        factor = model.factors[0]
    if isinstance(factor, str):
        name = _check.choice("factor", factor, [*model.factors, "gram", "cholesky"])
        if name in model.factors:
            return Factor(name, "native", name)
        return Factor(name, "function", getattr(_Roots(problem), name))
    if callable(factor):
        return Factor(getattr(factor, "__name__", type(factor).__name__), "function", _Checked(factor, model.dim))
    array = _check.array("factor", factor)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != model.dim or array.shape[1] == 0:
        raise ShapeError(f"factor must have shape ({model.dim}, m) or ({model.dim},), got {np.shape(factor)}")
    return Factor("constant", "constant", array)


class _Roots:
    """The square roots of a problem's Σ as functions of θ."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    def gram(self, theta: np.ndarray) -> np.ndarray:
        samples = self.problem.samples
        return gram(self.problem.model.factor(theta, samples))

    def cholesky(self, theta: np.ndarray) -> np.ndarray:
        return cholesky(self.problem.covariance(theta))


class _Checked:
    """A user's function θ -> F, its result checked at each call."""

    def __init__(self, function: Callable[[np.ndarray], Any], dim: int) -> None:
        self.function, self.dim = function, dim

    def __reduce__(self) -> Any:
        """By value, so that a lambda too reaches the workers of an executor."""
        return _checked, (numba.cloudpickle.dumps(self.function), self.dim)

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        found = np.asarray(self.function(theta.copy()))
        if found.dtype.kind not in "biuf":
            raise ModelError(f"factor must return real numbers, got dtype {found.dtype}")
        if found.ndim != 2 or found.shape[0] != self.dim or found.shape[1] == 0:
            raise ShapeError(f"factor must return shape ({self.dim}, m), got {found.shape}")
        return found.astype(np.float64, copy=False)


def _checked(content: bytes, dim: int) -> _Checked:
    return _Checked(numba.cloudpickle.loads(content), dim)


def gram(G: np.ndarray) -> np.ndarray:
    """Σ^{1/2} = G (GᵀG)^{-1/2} Gᵀ (d, d), the symmetric square root of Σ = GGᵀ from the smaller Gram matrix (m, m).

    Eigenvalues below m·eps of the largest are taken as zero. Unlike an eigendecomposition of Σ it has no columns
    outside the span of G, so that it leaks along a symmetry no more than G does. Costs m³ + d²m.
    """
    w, v = np.linalg.eigh(G.T @ G)
    keep = w > w.size * np.finfo(float).eps * w[-1]
    half = (G @ v[:, keep]) * w[keep] ** -0.25
    return half @ half.T


def cholesky(sigma: np.ndarray) -> np.ndarray:
    """Lower triangular F (d, d) with FFᵀ = Σ + jitter·(Tr Σ/d)·I.

    Σ is singular in the direction of every symmetry, and of rank N - 1 at most, so that it has no Cholesky factor as it
    is. `jitter` is 1e-12, times ten until the factorisation exists, at most 1e-6; F leaks along a symmetry by about
    its square root. Costs d³/3.
    """
    d = sigma.shape[0]
    size = float(np.trace(sigma)) / d
    if size == 0.0:
        return np.zeros((d, d))
    jitter = JITTER
    while True:
        try:
            return np.linalg.cholesky(sigma + jitter * size * np.eye(d))
        except np.linalg.LinAlgError:
            jitter *= 10.0
            if jitter > MOST_JITTER:
                raise ModelError(
                    f"the covariance has no Cholesky factor, even with a jitter of {MOST_JITTER:g}"
                ) from None


def leak(F: np.ndarray, A: Any, theta: np.ndarray) -> float:
    """‖FᵀAθ‖/(‖F‖‖Aθ‖), Frobenius norm of F: 0 where F has no part along Aθ, at most 1."""
    if hasattr(A, "apply"):
        direction = np.asarray(A.apply(theta))
    else:
        matrix = _check.array("A", A)
        if matrix.shape != (theta.size, theta.size):
            raise ArgumentError(
                f"A must be a Generator or a matrix of shape ({theta.size}, {theta.size}), got shape {matrix.shape}"
            )
        direction = matrix @ theta
    scale = float(np.linalg.norm(F) * np.linalg.norm(direction))
    return float(np.linalg.norm(F.T @ direction)) / scale if scale > 0.0 else 0.0
