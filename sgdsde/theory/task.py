"""LinearTask: y = Vx + ε, the data of which linear networks have closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["LinearTask", "root", "spectrum"]

RANK = 1e-12
"""A singular or eigenvalue below this part of the largest is zero."""


@dataclass(frozen=True, eq=False)
class LinearTask:
    """y = Vx + ε, ε independent of x with mean 0, for linear networks with the loss scale·‖W_D … W_1 x - y‖².

    Parameters
    ----------
    V : (d_y, d_x) array_like
        What is to be learnt.
    Sigma_x : (d_x, d_x) array_like
        E xxᵀ, not centred; symmetric, positive semidefinite.
    Sigma_eps : (d_y, d_y) array_like
        E εεᵀ likewise.
    scale : float
        Multiplies the loss.

    Raises
    ------
    ShapeError, ArgumentError
        Shapes that do not fit, a matrix that is not symmetric and positive semidefinite.

    Examples
    --------
    >>> task = LinearTask([[2.0, 0.0]], [[1.0, 0.0], [0.0, 4.0]], [[0.25]])
    >>> task.noise, task.power, task.rank
    (0.25, 5.0, 1)
    >>> LinearTask.from_samples([[1.0], [-1.0]], [[3.0], [-1.0]]).V
    array([[2.]])
    """

    V: np.ndarray
    Sigma_x: np.ndarray
    Sigma_eps: np.ndarray
    scale: float = 1.0

    def __post_init__(self) -> None:
        V = _check.array("V", self.V, ("d_y", "d_x"))
        object.__setattr__(self, "V", V)
        for name, size in (("Sigma_x", V.shape[1]), ("Sigma_eps", V.shape[0])):
            object.__setattr__(self, name, semidefinite(name, getattr(self, name), size))
        object.__setattr__(self, "scale", _check.positive("scale", self.scale))

    @classmethod
    def from_samples(cls, X: Any, Y: Any, scale: float = 1.0) -> LinearTask:
        """The task that samples X (N, d_x), Y (N, d_y) look like: least squares, and the residuals' E rrᵀ.

        Closed forms are exact for it as far as ‖r‖² and rrᵀ do not depend on x; `theory.noise_matrices` needs no such
        thing.
        """
        x, y = samples(X, Y)
        V = np.linalg.lstsq(x, y, rcond=None)[0].T
        r = y - x @ V.T
        return cls(V, x.T @ x / len(x), r.T @ r / len(x), scale)

    @property
    def noise(self) -> float:
        """a = Tr Σ_ε."""
        return float(np.trace(self.Sigma_eps))

    @property
    def power(self) -> float:
        """b = Tr Σ_x."""
        return float(np.trace(self.Sigma_x))

    @property
    def rank(self) -> int:
        """Of V."""
        return int(np.linalg.matrix_rank(self.V, rtol=RANK))

    def noise_matrices(self, product: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """K_x (d_x, d_x), K_ε (d_y, d_y), the gradient noise of two layers: Tr Σ = 4(Tr[W_1K_xW_1ᵀ] + Tr[W_2ᵀK_εW_2]).

        At W_2W_1 = V, scale² times Tr(Σ_ε)Σ_x and Tr(Σ_x)Σ_ε for inputs of any law. At another `product` (d_y, d_x)
        those of Gaussian inputs: with D = product - V, scale² times (Tr[DΣ_xDᵀ] + Tr Σ_ε)Σ_x + Σ_xDᵀDΣ_x and
        Tr(Σ_x)(DΣ_xDᵀ + Σ_ε) + DΣ_x²Dᵀ.
        """
        s, X = self.scale**2, self.Sigma_x
        if product is None:
            return s * self.noise * X, s * self.power * self.Sigma_eps
        D = _check.array("product", product, self.V.shape) - self.V
        left = D @ X
        K_x = (float(np.sum(left * D)) + self.noise) * X + left.T @ left
        K_eps = self.power * (left @ D.T + self.Sigma_eps) + left @ left.T
        return s * K_x, s * K_eps


def samples(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """X (N, d_x) and Y (N, d_y), checked."""
    x, y = _check.array("X", X, ("N", "d_x")), _check.array("Y", Y)
    y = y[:, None] if y.ndim == 1 else y
    if y.ndim != 2 or len(x) != len(y) or not len(x):
        raise ShapeError(f"X and Y must be (N, d_x) and (N, d_y) with one N > 0, got {x.shape} and {y.shape}")
    return x, y


def semidefinite(name: str, value: Any, size: int, definite: bool = False) -> np.ndarray:
    """A symmetric positive (semi)definite matrix."""
    S = _check.array(name, value, (size, size))
    if not np.allclose(S, S.T, rtol=1e-10, atol=1e-12 * np.abs(S).max(initial=0.0)):
        off = np.abs(S - S.T).max()
        raise ArgumentError(f"{name} must be symmetric, got a difference of {off:.3g} to its transpose")
    S = 0.5 * (S + S.T)
    low, high = (float(e) for e in np.linalg.eigvalsh(S)[[0, -1]])
    if low < -RANK * max(abs(high), abs(low)):
        raise ArgumentError(f"{name} must be positive semidefinite, got the eigenvalue {low:.3g}")
    if definite and low <= RANK * high:
        raise ArgumentError(f"{name} must be positive definite, got eigenvalues from {low:.3g} to {high:.3g}")
    return S


def root(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S^{1/2} and its inverse, of a positive definite matrix."""
    e, Q = np.linalg.eigh(S)
    return (Q * np.sqrt(e)) @ Q.T, (Q / np.sqrt(e)) @ Q.T


def spectrum(M: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, S, R with M = P diag(S) Rᵀ and S > 0: the singular value decomposition without what is zero."""
    P, S, Rt = np.linalg.svd(M, full_matrices=False)
    r = int(np.sum(S > RANK * S[0])) if S.size else 0
    return P[:, :r], S[:r], Rt[:r].T
