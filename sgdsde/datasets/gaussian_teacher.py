"""GaussianTeacher: the law of data x ~ N(0, Σ_x), y = Vx + ε, ε ~ N(0, Σ_ε), in place of a list of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["DATA", "GaussianTeacher", "covariance_matrix", "teacher_matrix"]

DATA = 6
"""Purpose (`sgdsde._abi`) of the random numbers of data that are drawn ahead of a run; sample i is path i."""
LARGEST = 1e150
BLOCK = 256
"""Samples drawn at a time."""


class GaussianTeacher:
    """x ~ N(0, Σ_x), y = Vx + ε with ε ~ N(0, Σ_ε) independent of x: a law that `SGD` takes in place of X and Y.

    Discrete SGD then draws fresh samples at every step. For `models.DeepLinear` loss, gradient, Σ(θ), its factor, its
    correction and the charge laws are the closed forms of the law. For another model they are means over `n_estimate`
    samples drawn once, an estimate with a relative error of about 1/√n_estimate, while its SGD draws fresh samples too.

    Parameters
    ----------
    V : (d_y, d_x) array_like
    Sigma_x : (d_x, d_x) array_like, or (d_x,) for a diagonal one, or a number times the unit matrix
        Symmetric, no eigenvalue below zero; singular ones are taken.
    Sigma_eps : (d_y, d_y), (d_y,) or number
        Likewise; 0 is no label noise.
    n_estimate : int
        Samples of the estimate.
    estimate_seed : int
        Seed of the estimate.

    Examples
    --------
    >>> law = GaussianTeacher([[1.0, 0.0]], Sigma_x=[1.0, 4.0], Sigma_eps=0.25)
    >>> law
    GaussianTeacher(d_x=2, d_y=1)
    >>> X, Y = law.draw(3, rng=0)
    >>> X.shape, Y.shape
    ((3, 2), (3, 1))
    """

    def __init__(
        self,
        V: Any,
        Sigma_x: Any = 1.0,
        Sigma_eps: Any = 0.0,
        *,
        n_estimate: int = 10_000,
        estimate_seed: int = 0,
    ) -> None:
        self.V = teacher_matrix(V)
        d_y, d_x = self.V.shape
        self.Sigma_x = covariance_matrix("Sigma_x", Sigma_x, d_x)
        self.Sigma_eps = covariance_matrix("Sigma_eps", Sigma_eps, d_y)
        self.n_estimate = _check.count("n_estimate", n_estimate)
        self.estimate_seed = _check.count("estimate_seed", estimate_seed, least=0, most=2**64 - 1)
        self.root_x, self.root_eps = _root(self.Sigma_x), _root(self.Sigma_eps)
        """(d_x, k) and (d_y, r) with root·rootᵀ = Σ, k and r the ranks."""
        for array in (self.V, self.Sigma_x, self.Sigma_eps, self.root_x, self.root_eps):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"GaussianTeacher(d_x={self.V.shape[1]}, d_y={self.V.shape[0]})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianTeacher):
            return NotImplemented
        own = (self.n_estimate, self.estimate_seed) == (other.n_estimate, other.estimate_seed)
        names = ("V", "Sigma_x", "Sigma_eps")
        return own and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.V.tobytes(), self.Sigma_x.tobytes(), self.Sigma_eps.tobytes(), self.n_estimate))

    def __reduce__(self) -> Any:
        return _rebuild, (self.V, self.Sigma_x, self.Sigma_eps, self.n_estimate, self.estimate_seed)

    def draw(self, n_samples: int, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """X (n_samples, d_x) and Y (n_samples, d_y); with one seed more samples never change those before.

        Parameters
        ----------
        n_samples : int
        rng : None, int, SeedSequence or Generator
            An int in [0, 2**64) is the key.
        """
        from sgdsde.random.normal import fill_normals
        from sgdsde.random.stream import key_from

        n = _check.count("n_samples", n_samples)
        key, k = np.uint64(key_from(rng)), self.root_x.shape[1]
        z = np.empty((k + self.root_eps.shape[1], BLOCK))
        X, Y = np.empty((n, self.V.shape[1])), np.empty((n, self.V.shape[0]))
        for start in range(0, n, BLOCK):  # products of one shape always, so that no bit depends on n
            rows = slice(start, min(start + BLOCK, n))
            fill_normals(z, 0, np.arange(start, start + BLOCK, dtype=np.uint64), DATA, key)
            x = self.root_x @ z[:k]
            y = self.V @ x + self.root_eps @ z[k:]
            X[rows], Y[rows] = x.T[: rows.stop - start], y.T[: rows.stop - start]
        return X, Y


def teacher_matrix(V: Any) -> np.ndarray:
    """V (d_y, d_x) with d_y, d_x >= 1."""
    V = _check.array("V", V, ("d_y", "d_x"))
    if V.size == 0:
        raise ShapeError(f"V must have at least one row and one column, got {V.shape}")
    return V


def covariance_matrix(name: str, value: Any, d: int) -> np.ndarray:
    """A symmetric matrix (d, d) without eigenvalues below zero, from a matrix, a diagonal or a number."""
    found = _check.array(name, value)
    if found.ndim == 0:
        found = float(found) * np.eye(d)
    elif found.shape == (d,):
        found = np.diag(found)
    if found.shape != (d, d):
        raise ShapeError(f"{name} must have shape ({d}, {d}) or ({d},), or be a number, got {found.shape}")
    if np.abs(found - found.T).max() > 1e-12 * np.abs(found).max():
        raise ArgumentError(f"{name} must be symmetric, got entries that differ by {np.abs(found - found.T).max():.3g}")
    found = 0.5 * found + 0.5 * found.T
    if not np.abs(found).max() < LARGEST:
        raise ArgumentError(f"{name} must have entries of a size that can be squared, got {np.abs(found).max():.3g}")
    least = float(np.linalg.eigvalsh(found)[0])
    if least < -1e-12 * np.abs(found).max():
        raise ArgumentError(f"{name} must have no eigenvalue below zero, got {least:.6g}")
    return found


def _root(sigma: np.ndarray) -> np.ndarray:
    """R (d, rank) with RRᵀ = Σ."""
    if np.array_equal(sigma, np.diag(np.diag(sigma))):
        return np.diag(np.sqrt(np.diag(sigma)))[:, np.diag(sigma) > 0.0].copy()
    values, vectors = np.linalg.eigh(sigma)
    keep = values > len(values) * np.finfo(float).eps * values[-1]
    return np.ascontiguousarray(vectors[:, keep] * np.sqrt(values[keep]))


def _rebuild(V: Any, Sigma_x: Any, Sigma_eps: Any, n_estimate: int, estimate_seed: int) -> GaussianTeacher:
    return GaussianTeacher(V, Sigma_x, Sigma_eps, n_estimate=n_estimate, estimate_seed=estimate_seed)
