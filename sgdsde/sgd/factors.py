"""Factors F of the gradient covariance, FFᵀ = Σ: the model's own, those that need linear algebra, and the user's.

The law of the SDE depends on Σ alone, but a path, and what rounding does to a charge, depend on F: it should not leak
along a symmetry, FᵀAθ = 0. `leak` measures it: per-sample, Gram and low rank 1e-16, Cholesky √jitter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numba.cloudpickle
import numpy as np

from sgdsde import _check
from sgdsde._abi import AUXILIARY
from sgdsde._errors import ArgumentError, ModelError, ShapeError

__all__ = ["Factor", "LowRank", "cholesky", "gram", "leak", "low_rank", "lost_part", "read_factor"]

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
    if isinstance(factor, str) and factor == "low-rank":
        factor = LowRank()
    if isinstance(factor, LowRank):
        name = "low-rank" if factor.rank is None else f"low-rank({factor.rank})"
        return Factor(name, "function", _LowRankOf(problem, factor.rank))
    if isinstance(factor, str):
        name = _check.choice("factor", factor, [*model.factors, "gram", "cholesky", "low-rank"])
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

    @np.errstate(over="ignore", invalid="ignore")
    def gram(self, theta: np.ndarray) -> np.ndarray:
        samples = self.problem.samples
        return gram(self.problem.model.factor(theta, samples))

    @np.errstate(over="ignore", invalid="ignore")
    def cholesky(self, theta: np.ndarray) -> np.ndarray:
        return cholesky(self.problem.covariance(theta))


@dataclass(frozen=True)
class LowRank:
    """A factor with `rank` columns, that of the largest eigenvalues of Σ: ``problem.sde(LowRank(10))``.

    FFᵀ is the best approximation of Σ of that rank, in every norm that depends on singular values alone: what it lacks
    has the trace of the eigenvalues left out, and `problem.factor_loss` says which part of Tr Σ that is. Without a rank
    it is min(d, N - 1), the largest that Σ can have, "low-rank" for short, and FFᵀ = Σ up to rounding.

    Parameters
    ----------
    rank : int, optional
        1..d.
    """

    rank: int | None = None

    def __post_init__(self) -> None:
        if self.rank is not None:
            object.__setattr__(self, "rank", _check.count("rank", self.rank))


class _LowRankOf:
    """The low-rank factor of a problem's Σ as a function of θ."""

    def __init__(self, problem: Any, rank: int | None) -> None:
        d, m = problem.model.dim, problem.model.noise(problem.model.factors[0], problem.samples)[0]
        if rank is not None and rank > d:
            raise ArgumentError(f"rank must be at most d = {d}, got {rank}")
        self.problem = problem
        self.rank = min(d, m - 1 if problem.n_samples else m) or 1 if rank is None else rank

    @np.errstate(over="ignore", invalid="ignore")
    def __call__(self, theta: np.ndarray) -> np.ndarray:
        problem = self.problem
        return low_rank(problem.model.factor(theta, problem.samples), self.rank)


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


@np.errstate(over="ignore", invalid="ignore")
def gram(G: np.ndarray) -> np.ndarray:
    """Σ^{1/2} = G (GᵀG)^{-1/2} Gᵀ (d, d), the symmetric square root of Σ = GGᵀ from the smaller Gram matrix (m, m).

    Eigenvalues below m·eps of the largest are taken as zero. Unlike an eigendecomposition of Σ it has no columns
    outside the span of G, so that it leaks along a symmetry no more than G does. Costs m³ + d²m.
    """
    products = _finite(G.T @ G)
    if products is None:
        return np.full((G.shape[0], G.shape[0]), np.nan)
    w, v = np.linalg.eigh(products)
    keep = w > w.size * np.finfo(float).eps * w[-1]
    half = (G @ v[:, keep]) * w[keep] ** -0.25
    return half @ half.T


def _finite(products: np.ndarray) -> np.ndarray | None:
    """None where a path has left the numbers whose squares are finite: its factor is NaN, and the path stops."""
    return products if np.isfinite(products).all() else None


@np.errstate(over="ignore", invalid="ignore")
def low_rank(G: np.ndarray, rank: int) -> np.ndarray:
    """F (d, rank) with FFᵀ the part of Σ = GGᵀ of the `rank` largest eigenvalues.

    From the eigenvectors u of the smaller one of GᵀG and GGᵀ, as G·(Gᵀu): so F has no columns outside the span of G,
    and leaks along a symmetry no more than G does. Eigenvectors have no sign and turn among equal eigenvalues, which
    would make F jump with θ. With U the eigenvectors and Λ the eigenvalues that are kept, F = UΛ^{1/2}·O, O the polar
    part of UᵀΩ, Ω (d, rank) fixed random numbers, is a smooth function of Σ where the last eigenvalue that is kept and
    the first that is not differ. Eigenvalues below m·eps of the largest are taken as zero. Costs min(d, m)³ + d·m·rank.
    """
    d, m = G.shape
    products = _finite(G.T @ G if m <= d else G @ G.T)
    if products is None:
        return np.full((d, rank), np.nan)
    w, vectors = np.linalg.eigh(products)
    kept = np.flatnonzero(w > max(d, m) * np.finfo(float).eps * max(w[-1], 0.0))[-rank:]
    if kept.size == 0:
        return np.zeros((d, rank))
    root = np.sqrt(w[kept])
    if m <= d:
        half = G @ vectors[:, kept]
    else:
        half = G @ (G.T @ vectors[:, kept] / root)
    u, _, v = np.linalg.svd((half / root).T @ _fixed(d, rank), full_matrices=False)
    return half @ (u @ v)


@lru_cache(maxsize=8)
def _fixed(d: int, rank: int) -> np.ndarray:
    """Ω."""
    from sgdsde.random.stream import normals

    return normals(0, 0, AUXILIARY, count=d * rank).reshape(d, rank)


def lost_part(G: np.ndarray, F: np.ndarray) -> float:
    """‖GGᵀ - FFᵀ‖/Tr GGᵀ, the norm that adds up the moduli of the eigenvalues; 0 where F is a factor of the same Σ."""
    total = float(np.sum(G * G))
    if total == 0.0:
        return 0.0 if not F.any() else np.inf
    both = np.concatenate([G, F], axis=1)
    signs = np.concatenate([np.ones(G.shape[1]), -np.ones(F.shape[1])])
    if both.shape[1] < both.shape[0]:
        both = np.asarray(np.linalg.qr(both, mode="r"))
    return float(np.abs(np.linalg.eigvalsh((both * signs) @ both.T)).sum()) / total


@np.errstate(over="ignore", invalid="ignore")
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
