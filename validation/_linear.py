"""Linear networks in closed form: data on which the formulas are exact, and the equilibria they give.

Independent of the package, on purpose: the claims hold one against the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np


def root(S: np.ndarray, power: float = 0.5) -> np.ndarray:
    """S^power of a symmetric positive matrix."""
    values, vectors = np.linalg.eigh(S)
    return (vectors * values**power) @ vectors.T


def orthogonal(n: int, seed: int) -> np.ndarray:
    """A random rotation or reflection of n dimensions."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    return q * np.sign(np.diag(r))


def corners(S: np.ndarray, seed: int) -> np.ndarray:
    """2d points ±√d S^{1/2} q_k, q_k orthonormal: mean zero and covariance S exactly."""
    d = len(S)
    half = np.sqrt(d) * root(S) @ orthogonal(d, seed)
    return np.concatenate([half.T, -half.T])


def every_pair(V: np.ndarray, Sigma_x: np.ndarray, Sigma_eps: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X (N, d_x), Y = X Vᵀ + ε (N, d_y), N = 4 d_x d_y: each x of a few with each ε of a few.

    So x and ε are independent *exactly*: E[‖ε‖²xxᵀ] = Tr Σ_ε·Σ_x, E[‖x‖²εεᵀ] = Tr Σ_x·Σ_ε and E[εxᵀ] = 0 to rounding,
    where N random samples have them up to 1/√N. SGD sees a data set like any other.
    """
    x, eps = corners(Sigma_x, 2 * seed), corners(Sigma_eps, 2 * seed + 1)
    X = np.repeat(x, len(eps), axis=0)
    return X, X @ V.T + np.tile(eps, (len(x), 1))


def theta_of(*layers: np.ndarray) -> np.ndarray:
    """θ = [W_1, …, W_D], each raveled in C order."""
    return np.concatenate([np.ravel(W) for W in layers])


def two_layers(
    V: np.ndarray, Sigma_x: np.ndarray, Sigma_eps: np.ndarray, O: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(W, U), UW = V, at the noise equilibrium without weight decay: Tr Σ_ε·WΣ_xWᵀ = Tr Σ_x·UᵀΣ_εU."""
    a, b = np.trace(Sigma_eps), np.trace(Sigma_x)
    return two_layers_weighted(V, a * Sigma_x, b * Sigma_eps, O)


def two_layers_weighted(
    V: np.ndarray, M_x: np.ndarray, M_eps: np.ndarray, O: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(W, U) with UW = V and W M_x Wᵀ = Uᵀ M_ε U; with weight decay M_x = γ + 2σ²aΣ_x, M_ε = γ + 2σ²bΣ_ε.

    U = M_ε^{-1/2} P S^{1/2} Oᵀ and W = O S^{1/2} Rᵀ M_x^{-1/2} with P S Rᵀ = M_ε^{1/2} V M_x^{1/2}, O any orthonormal
    columns; by default as many as V has rank.
    """
    P, S, Rt = np.linalg.svd(root(M_eps) @ V @ root(M_x), full_matrices=False)
    rank = int((S > 1e-10 * S[0]).sum())
    P, S, Rt = P[:, :rank], np.sqrt(S[:rank]), Rt[:rank]
    O = np.eye(rank) if O is None else O
    return O @ (S[:, None] * Rt) @ root(M_x, -0.5), root(M_eps, -0.5) @ (P * S) @ O.T


def deep(V: np.ndarray, Sigma_x: np.ndarray, Sigma_eps: np.ndarray, depth: int) -> tuple[list[np.ndarray], float]:
    """Layers W_1 … W_D at the noise equilibrium without decay, hidden widths the rank of V; and κ.

    κ = (τ²/ab)^{1/D}, τ = Tr S: the layers between are √κ times rotations (here 1), ‖W_i‖² = rκ.
    """
    a, b = np.trace(Sigma_eps), np.trace(Sigma_x)
    P, S, Rt = np.linalg.svd(root(Sigma_eps) @ V @ root(Sigma_x), full_matrices=False)
    rank = int((S > 1e-10 * S[0]).sum())
    P, S, Rt = P[:, :rank], S[:rank], Rt[:rank]
    kappa = float((S.sum() ** 2 / (a * b)) ** (1 / depth))
    first = np.sqrt(b * kappa / S.sum()) * (np.sqrt(S)[:, None] * Rt) @ root(Sigma_x, -0.5)
    last = np.sqrt(a * kappa / S.sum()) * root(Sigma_eps, -0.5) @ (P * np.sqrt(S))
    return [first, *[np.sqrt(kappa) * np.eye(rank)] * (depth - 2), last], kappa


def mismatch(W: np.ndarray, U: np.ndarray, M_x: np.ndarray, M_eps: np.ndarray) -> np.ndarray:
    """‖W M_x Wᵀ - Uᵀ M_ε U‖ / ‖W M_x Wᵀ + Uᵀ M_ε U‖ for W (..., h, d_x), U (..., d_y, h)."""
    left, right = W @ M_x @ np.swapaxes(W, -1, -2), np.swapaxes(U, -1, -2) @ M_eps @ U
    return np.linalg.norm(left - right, axis=(-1, -2)) / np.linalg.norm(left + right, axis=(-1, -2))


def trace_hessian(W: np.ndarray, U: np.ndarray, Sigma_x: np.ndarray) -> np.ndarray:
    """Tr ∇²L = 2(d_y Tr[WΣ_xWᵀ] + Tr Σ_x‖U‖²)."""
    d_y = U.shape[-2]
    return 2 * (d_y * np.einsum("...ij,jk,...ik", W, Sigma_x, W) + np.trace(Sigma_x) * np.sum(U**2, axis=(-1, -2)))


def split(theta: np.ndarray, dims: Sequence[int]) -> list[np.ndarray]:
    """The matrices W_1 … W_D of θ (..., d)."""
    found, start = [], 0
    for m, n in pairwise(dims):
        found.append(theta[..., start : start + n * m].reshape(*theta.shape[:-1], n, m))
        start += n * m
    return found


def late_mean(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard error over paths of each path's mean over time, from (n_paths, n_times)."""
    per_path = np.asarray(values).mean(axis=1)
    return float(per_path.mean()), float(per_path.std(ddof=1) / np.sqrt(per_path.size))
