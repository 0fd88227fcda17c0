"""Up to which learning rate a minimum is stable: gradient descent, and SGD in the second moment.

Near an interpolating minimum, with per-sample Hessians H_i, a step is θ' = (I - ηĤ)θ. Gradient descent needs ηλ_max <
2. For SGD with S samples, M = E θθᵀ becomes

    M - η(H̄M + MH̄) + η²[(1 - ρ/S) H̄MH̄ + (ρ/S) E H_iMH_i],

ρ = 1 with replacement and (N-S)/(N-1) without. This map keeps M ≥ 0, so that its largest eigenvalue is its spectral
radius, and it is below 1 exactly for η < 1/λ_max(E, A), the largest generalised eigenvalue of the bracket E against
A: M ↦ H̄M + MH̄. For ℓ_i = ½(a_iᵀθ)², a ~ N(0, I_d), S = 1 that is 2/(d + 2), about 2/Tr H. In general Tr H < 2/η is
a rule of thumb: samples whose Hessians have rank d_y bear up to d_y times more. L. Wu, C. Ma, W. E, NeurIPS 2018;
C. Ma, L. Ying, NeurIPS 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.theory.task import semidefinite

__all__ = ["gd_limit", "sgd_limit", "sgd_radius"]

MOST = 45
"""Components of θ, at most: the map on M is a matrix of d(d + 1)/2 rows."""


def gd_limit(hessian: Any) -> float:
    """2/λ_max of a Hessian (d, d): gradient descent is stable below.

    Examples
    --------
    >>> gd_limit([[4.0, 0.0], [0.0, 1.0]])
    0.5
    """
    H = _check.array("hessian", hessian, ("d", "d"))
    if H.size == 0:
        raise ArgumentError("hessian must not be empty")
    if np.abs(H - H.T).max() > 1e-9 * np.abs(H).max():
        raise ArgumentError(f"hessian must be symmetric, got entries that differ by {np.abs(H - H.T).max():.3g}")
    largest = float(np.linalg.eigvalsh(0.5 * (H + H.T))[-1])
    return 2.0 / largest if largest > 0 else np.inf


def sgd_limit(hessians: Any, batch_size: int = 1, *, weights: Any = None, replacement: bool = True) -> float:
    """The learning rate below which E‖θ‖² of SGD shrinks in all directions that any sample sees.

    Parameters
    ----------
    hessians : array_like of shape (N, d, d), or (N, d)
        Symmetric, positive semidefinite H_i; of a row a_i, H_i = a_ia_iᵀ. d <= 45.
    batch_size : int
        S.
    weights : array_like of shape (N,), optional
        Probabilities of the samples, equal by default (a quadrature rule for a law of samples).
    replacement : bool
        False needs equal weights.

    Returns
    -------
    float
        inf where nothing curves.

    Notes
    -----
    One generalised eigenproblem of d(d + 1)/2 rows: cost d⁶.

    Examples
    --------
    >>> sgd_limit([[1.0, 0.0], [0.0, 1.0]])  # two samples, two directions: each is seen every second step
    2.0
    """
    H, p, ratio = _read(hessians, batch_size, weights, replacement)
    A, E = _maps(H, p, ratio)
    lam, U = np.linalg.eigh(A)
    seen = lam > 1e-12 * lam[-1] if lam[-1] > 0 else np.zeros(lam.size, dtype=bool)
    if not seen.any():
        return np.inf
    half = U[:, seen] / np.sqrt(lam[seen])
    largest = float(scipy.linalg.eigvalsh(half.T @ E @ half)[-1])
    return 1.0 / largest


def sgd_radius(
    hessians: Any, learning_rate: float, batch_size: int = 1, *, weights: Any = None, replacement: bool = True
) -> float:
    """The spectral radius of the map of E θθᵀ in one step: E‖θ‖² grows or shrinks like its powers."""
    eta = _check.positive("learning_rate", learning_rate)
    H, p, ratio = _read(hessians, batch_size, weights, replacement)
    A, E = _maps(H, p, ratio)
    values = np.linalg.eigvalsh(np.eye(len(A)) - eta * A + eta * eta * E)
    return float(np.abs(values).max())


def _read(hessians: Any, batch_size: int, weights: Any, replacement: bool) -> tuple[np.ndarray, np.ndarray, float]:
    H = _check.array("hessians", hessians)
    if H.ndim == 2:
        H = H[:, :, None] * H[:, None, :]
    if H.ndim != 3 or H.shape[1] != H.shape[2] or not len(H):
        raise ArgumentError(f"hessians must be (N, d, d), or (N, d) for rows a_i, got {H.shape}")
    n, d = H.shape[:2]
    if d > MOST:
        raise ModelError(f"sgd_limit needs at most {MOST} components, got {d}")
    H = np.stack([semidefinite(f"hessians[{i}]", one, d) for i, one in enumerate(H)])
    S = _check.count("batch_size", batch_size)
    p = np.full(n, 1.0 / n) if weights is None else _check.array("weights", weights, (n,))
    if np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
        raise ArgumentError(f"weights must be probabilities with the sum 1, got {p.sum():g}")
    if _check.flag("replacement", replacement):
        return H, p, 1.0 / S
    if weights is not None or n < S or n < 2:
        raise ArgumentError("replacement=False needs equal weights and batch_size <= N, N >= 2")
    return H, p, (n - S) / (n - 1) / S


def _maps(H: np.ndarray, p: np.ndarray, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """A and E as matrices on symmetric M, in an orthonormal basis."""
    d = H.shape[1]
    i, j = np.tril_indices(d)
    basis = np.zeros((i.size, d, d))
    basis[np.arange(i.size), i, j] = basis[np.arange(i.size), j, i] = np.where(i == j, 1.0, np.sqrt(0.5))
    mean = np.einsum("n,nij->ij", p, H)
    flat = basis.reshape(i.size, -1)
    both = mean @ basis @ mean * (1 - ratio)
    for weight, one in zip(p, H):
        both += ratio * weight * (one @ basis @ one)
    linear = mean @ basis
    linear = linear + linear.transpose(0, 2, 1)
    A, E = flat @ linear.reshape(i.size, -1).T, flat @ both.reshape(i.size, -1).T
    return 0.5 * (A + A.T), 0.5 * (E + E.T)
