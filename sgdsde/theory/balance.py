"""Two linear layers at their noise equilibrium: which W_2, W_1 of one product the noise of SGD selects.

At W_2W_1 = P the loss is the same for all factors. The noise drives Q = W_2ᵀW_2 - W_1W_1ᵀ (no martingale part),

    dQ/dt = -4γQ + 8σ²(W_1 K_x W_1ᵀ - W_2ᵀ K_ε W_2),   K_x = E‖r‖²xxᵀ - MᵀM,   K_ε = E‖x‖²rrᵀ - MMᵀ,   M = E rxᵀ,

r = Px - y, and with K̃_x = γI + 2σ²K_x, K̃_ε = γI + 2σ²K_ε the fixed point is W_1 K̃_x W_1ᵀ = W_2ᵀ K̃_ε W_2, the minimum
of F = 2γ‖θ‖² + σ²Tr Σ on the orbit. With K̃_ε^{1/2} P K̃_x^{1/2} = A S Rᵀ,

    W_2 = K̃_ε^{-1/2} A S^{1/2} Oᵀ,    W_1 = O S^{1/2} Rᵀ K̃_x^{-1/2},    OᵀO = I, otherwise free.

For y = Vx + ε at P = V, K_x = Tr(Σ_ε)Σ_x and K_ε = Tr(Σ_x)Σ_ε. L. Ziyin, M. Wang, H. Li, L. Wu, arXiv:2402.07193, in
outline; two points differ from how it is quoted. WΣ_xWᵀ = UᵀΣ_εU holds for covariances *divided by their traces*
(scaling ε must not change a balance); and with weight decay the matrices are the ones above, so that the equilibrium
depends on γ/σ², from UᵀU = WWᵀ for γ ≫ σ² (what gradient descent with weight decay has) to the noise's own for γ → 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.theory.task import LinearTask, root, samples, semidefinite, spectrum

__all__ = [
    "TwoLayers",
    "balance_decay",
    "balance_residual",
    "noise_matrices",
    "relaxation_rates",
    "two_layer_equilibrium",
]


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """Two layers at equilibrium.

    Attributes
    ----------
    W1, W2 : (h, d_x), (d_y, h) arrays
    singular_values : (r,) array
        S, of K̃_ε^{1/2} P K̃_x^{1/2}; both sides of the balance are O S Oᵀ.
    gamma, sigma2 : float
        With sigma2 = 1 at γ = 0, where it does not matter.
    K_x, K_eps : (d_x, d_x), (d_y, d_y) arrays
    """

    W1: np.ndarray
    W2: np.ndarray
    singular_values: np.ndarray
    gamma: float
    sigma2: float
    K_x: np.ndarray
    K_eps: np.ndarray

    @property
    def theta(self) -> np.ndarray:
        """[W1, W2] raveled, as `DeepLinear` has it."""
        return np.concatenate([self.W1.ravel(), self.W2.ravel()])

    @property
    def norms(self) -> tuple[float, float]:
        """‖W1‖² and ‖W2‖²."""
        return float(np.sum(self.W1**2)), float(np.sum(self.W2**2))

    @property
    def potential(self) -> float:
        """F = 2γ‖θ‖² + σ²Tr Σ, at its minimum on the orbit: 4 Tr S."""
        return 4.0 * float(self.singular_values.sum())

    @property
    def noise_trace(self) -> float:
        """Tr Σ(θ) = 4(Tr[W1 K_x W1ᵀ] + Tr[W2ᵀ K_ε W2])."""
        return 4.0 * float(np.sum((self.W1 @ self.K_x) * self.W1) + np.sum(self.W2 * (self.K_eps @ self.W2)))

    def alignment(self) -> np.ndarray:
        """cos² between the left singular vectors of W2 (columns) and those of its product (rows): I if they agree.

        The outer factors share their singular vectors with V where the covariances are isotropic, not in general.
        """
        P, _, _ = spectrum(self.W2 @ self.W1)
        A, _, _ = spectrum(self.W2)
        return (P.T @ A) ** 2


def noise_matrices(X: Any, Y: Any, product: Any, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """K_x (d_x, d_x) and K_ε (d_y, d_y) of samples at a product, exactly: nothing is assumed of the residuals.

    Parameters
    ----------
    X, Y : array_like of shape (N, d_x), (N, d_y)
    product : (d_y, d_x) array_like
        P = W_2 W_1.
    scale : float
        Multiplies the loss ‖r‖².
    """
    x, y = samples(X, Y)
    r = x @ _check.array("product", product, (y.shape[1], x.shape[1])).T - y
    n, s = len(x), _check.positive("scale", scale) ** 2
    M = r.T @ x / n
    K_x = (x * np.sum(r * r, axis=1)[:, None]).T @ x / n - M.T @ M
    K_eps = (r * np.sum(x * x, axis=1)[:, None]).T @ r / n - M @ M.T
    return s * K_x, s * K_eps


def _weighted(K: np.ndarray, gamma: float, sigma2: float) -> np.ndarray:
    return gamma * np.eye(len(K)) + 2.0 * sigma2 * K


def two_layer_equilibrium(
    task: LinearTask | tuple[Any, Any],
    product: Any = None,
    *,
    gamma: float = 0.0,
    sigma2: float = 1.0,
    hidden: int | None = None,
    rotation: Any = None,
) -> TwoLayers:
    """The factors of a product at which weight decay and gradient noise balance, in closed form.

    Parameters
    ----------
    task : LinearTask, or pair (K_x, K_eps)
        What the noise comes from: y = Vx + ε, or the two matrices of `noise_matrices` for any samples.
    product : (d_y, d_x) array_like, optional
        P; V of the task by default. With weight decay it is shrunk: give the product that a run has (for a LinearTask
        inputs are Gaussian then).
    gamma, sigma2 : float
        γ and σ² = η/2S, `problem.noise_scale`. At γ = 0 the equilibrium does not depend on σ².
    hidden : int, optional
        h, at least the rank r of P (the default).
    rotation : (h, r) array_like, optional
        O with orthonormal columns; the first columns of the identity by default.

    Returns
    -------
    TwoLayers

    Raises
    ------
    ArgumentError
        A width below the rank; K̃_x or K̃_ε not positive definite (no noise in some direction and no weight decay: then
        factors run away, or nothing selects them). O without orthonormal columns.

    Notes
    -----
    At P = V, γ = 0, with a = Tr Σ_ε, b = Tr Σ_x and Σ_ε^{1/2}VΣ_x^{1/2} = A S Rᵀ: W_1 = (b/a)^{1/4} O S^{1/2} Rᵀ
    Σ_x^{-1/2} and W_2 = (a/b)^{1/4} Σ_ε^{-1/2} A S^{1/2} Oᵀ. Without noise (Σ_ε = 0) every point of the valley is at
    rest.

    Examples
    --------
    >>> task = LinearTask(np.eye(2), np.diag([1.0, 4.0]), np.eye(2))
    >>> layers = two_layer_equilibrium(task)
    >>> [round(n, 4) for n in layers.norms]  # twice the noise on inputs of the first layer: a smaller first layer
    [2.3717, 1.8974]
    >>> np.allclose(layers.W2 @ layers.W1, task.V)
    True
    """
    gamma, sigma2 = _check.number("gamma", gamma, least=0.0), _check.positive("sigma2", sigma2)
    if isinstance(task, LinearTask):
        K_x, K_eps = task.noise_matrices(product)
        product = task.V if product is None else product
    else:
        if product is None:
            raise ArgumentError("product must be given with matrices K_x and K_eps")
        K_x, K_eps = (_check.array(name, K) for name, K in zip(("K_x", "K_eps"), task))
    P = _check.array("product", product, ("d_y", "d_x"))
    K_x, K_eps = semidefinite("K_x", K_x, P.shape[1]), semidefinite("K_eps", K_eps, P.shape[0])
    right = semidefinite("gamma·I + 2·sigma2·K_x", _weighted(K_x, gamma, sigma2), P.shape[1], definite=True)
    left = semidefinite("gamma·I + 2·sigma2·K_eps", _weighted(K_eps, gamma, sigma2), P.shape[0], definite=True)
    W1, W2, S = split(P, right, left, hidden, rotation)
    return TwoLayers(W1, W2, S, gamma, sigma2, K_x, K_eps)


def split(
    P: np.ndarray, right: np.ndarray, left: np.ndarray, hidden: int | None = None, rotation: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W1, W2, S: the minimum of Tr[W1 right W1ᵀ] + Tr[W2ᵀ left W2] over W2 W1 = P."""
    (x, x_inverse), (e, e_inverse) = root(right), root(left)
    A, S, R = spectrum(e @ P @ x)
    r = S.size
    h = max(r, 1) if hidden is None else _check.count("hidden", hidden, least=max(r, 1))
    O = np.eye(h, r) if rotation is None else _check.array("rotation", rotation, (h, r))
    if not np.allclose(O.T @ O, np.eye(r), atol=1e-10):
        raise ArgumentError("rotation must have orthonormal columns")
    half = np.sqrt(S)
    return O @ (half[:, None] * R.T) @ x_inverse, e_inverse @ (A * half) @ O.T, S


def balance_residual(
    W1: Any, W2: Any, K_x: Any, K_eps: Any, gamma: float = 0.0, sigma2: float = 1.0
) -> tuple[np.ndarray, float]:
    """W_1 K̃_x W_1ᵀ - W_2ᵀ K̃_ε W_2, (h, h), and its norm over the norm of the sum: 0 at equilibrium, at most 1.

    The ratio is also the one to use for nonlinear networks: correlations are high for any two covariance-like matrices.
    """
    W1, W2 = _check.array("W1", W1, ("h", "d_x")), _check.array("W2", W2, ("d_y", "h"))
    if W1.shape[0] != W2.shape[1]:
        raise ShapeError(f"W1 and W2 must share the hidden width, got {W1.shape} and {W2.shape}")
    gamma, sigma2 = _check.number("gamma", gamma, least=0.0), _check.positive("sigma2", sigma2)
    first = W1 @ _weighted(semidefinite("K_x", K_x, W1.shape[1]), gamma, sigma2) @ W1.T
    second = W2.T @ _weighted(semidefinite("K_eps", K_eps, W2.shape[0]), gamma, sigma2) @ W2
    total = float(np.linalg.norm(first + second))
    return first - second, float(np.linalg.norm(first - second)) / total if total > 0 else 0.0


def balance_decay(d: int, s_x: float, s_eps: float, sigma2: float, gamma: float = 0.0) -> float:
    """The rate of Q(t) = Q(0)e^{-rate·t}, entry by entry, at P = V for Σ_x = s_x I, Σ_ε = s_ε I, d_x = d_y = d.

    4γ + 8σ²d s_x s_ε, per unit of time t = η·step.

    Examples
    --------
    >>> balance_decay(4, 1.0, 1.0, sigma2=0.001)
    0.032
    """
    d, gamma = _check.count("d", d), _check.number("gamma", gamma, least=0.0)
    s_x, s_eps = _check.number("s_x", s_x, least=0.0), _check.number("s_eps", s_eps, least=0.0)
    return 4.0 * gamma + 8.0 * _check.number("sigma2", sigma2, least=0.0) * d * s_x * s_eps


def relaxation_rates(layers: TwoLayers) -> np.ndarray:
    """All rates of Q about the equilibrium with the product held, ascending; h(h + 1)/2 of them, per unit of time.

    With E = W_2ᵀW_2 + W_1W_1ᵀ and N = W_2ᵀK_εW_2 + W_1K_xW_1ᵀ a small B in (W_2B, -BW_1) has δQ = EB + BE and
    d(δQ)/dt = -4γδQ - 8σ²(NB + BN): the rates are 4γ and more, from a symmetric pencil. Needs h = rank P. Cost h⁶.
    """
    if not isinstance(layers, TwoLayers):
        raise ArgumentError(f"layers must be what two_layer_equilibrium returns, got {_check.show(layers)}")
    h = layers.W1.shape[0]
    if h != layers.singular_values.size:
        r = layers.singular_values.size
        raise ArgumentError(f"layers must have as many hidden units as the product has rank, got {h} for rank {r}")
    E = layers.W2.T @ layers.W2 + layers.W1 @ layers.W1.T
    N = layers.W2.T @ layers.K_eps @ layers.W2 + layers.W1 @ layers.K_x @ layers.W1.T
    i, j = np.tril_indices(h)
    basis = np.zeros((i.size, h, h))
    basis[np.arange(i.size), i, j] = basis[np.arange(i.size), j, i] = 1.0

    def operator(S: np.ndarray) -> np.ndarray:
        return np.einsum("aij,bij->ab", basis, S @ basis + basis @ S)

    rates = scipy.linalg.eigh(operator(N), operator(E), eigvals_only=True)
    return 4.0 * layers.gamma + 8.0 * layers.sigma2 * rates
