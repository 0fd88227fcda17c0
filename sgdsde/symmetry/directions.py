"""The directions of a symmetry at a state, and the orthogonal projection of increments on them.

`Span`: the directions A_aθ of a list of generators, by the pseudo-inverse of J = [A_1θ, …, A_kθ]. `LinearLayers`: the
whole algebra of a linear network, (W, U) ↦ (-BW, UB) with any B at each interface, without a matrix of d × h² numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator, Sandwich
from sgdsde.models.model import Model
from sgdsde.models.naming import Named
from sgdsde.models.naming import charged as pick
from sgdsde.symmetry.charges import as_generator

__all__ = ["LinearLayers", "Span", "as_named", "whole_algebra"]

EPS = float(np.finfo(float).eps)
MOST_DENSE = 1 << 21
"""Numbers of the d × K matrix of a deep network up to which the joint problem is solved densely."""


class Span:
    """The span of A_1θ, …, A_kθ.

    Singular values of J below eps·d·‖J‖ count as zero, so that a generator that leaves θ alone (Aθ = 0), or one that
    the others contain, changes nothing.
    """

    def __init__(self, generators: Sequence[Generator]) -> None:
        self.generators = list(generators)
        self.dim = self.generators[0].dim
        self.numbers_per_state = self.dim * len(self.generators)

    def __repr__(self) -> str:
        return f"the span of {len(self.generators)} generators"

    def project(self, base: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Orthogonal projection of delta (n, d) on the directions at base (n, d)."""
        j = np.stack([a.apply(base) for a in self.generators], axis=-1)
        u, s, _ = np.linalg.svd(j, full_matrices=False)
        keep = s > EPS * self.dim * s[:, :1]
        coordinates = np.where(keep, np.einsum("ndk,nd->nk", u, delta), 0.0)
        return np.einsum("ndk,nk->nd", u, coordinates)


class Interface(NamedTuple):
    """Two matrices that share a width h: W (h, c) at `first`, U (r, h) at `second`, moved as (-BW, UB)."""

    first: int
    w_shape: tuple[int, int]
    second: int
    u_shape: tuple[int, int]


class LinearLayers:
    """The whole algebra gl(h_1) + … + gl(h_{D-1}) of linear layers θ = [W_1, …, W_D].

    Parameters
    ----------
    shapes : sequence of (r, c)
        Shape of each matrix in the order of θ, columns of one being rows of the one before.

    Notes
    -----
    At one interface the singular value decompositions U = L diag(s) Pᵀ, W = Q diag(t) Vᵀ make B ↦ (-BW, UB) diagonal:
    its singular values are √(s_i² + t_j²) for B = P_i Q_jᵀ. The projection they give is that of the solution of the
    Sylvester equation UᵀU·B + B·WWᵀ = UᵀΔU - ΔW·Wᵀ, without squaring the condition number; pairs below
    eps·d of the largest are left out (rank-deficient points). Cost: two thin SVDs a state.

    With three layers or more, neighbouring interfaces share a matrix, and the orthonormal directions of each interface
    are joined by least squares: dense (d × Σh² numbers, up to 2²¹ of them), else LSQR to 1e-14, preconditioned by the
    above.
    """

    def __init__(self, shapes: Sequence[tuple[int, int]]) -> None:
        shapes = [(_check.count("shapes", r), _check.count("shapes", c)) for r, c in shapes]
        if len(shapes) < 2:
            raise ShapeError(f"shapes must hold at least two matrices, got {len(shapes)}")
        for k, (one, two) in enumerate(pairwise(shapes)):
            if two[1] != one[0]:
                raise ShapeError(
                    f"matrix {k + 2} must have {one[0]} columns, as many as matrix {k + 1} has rows, got {two[1]}"
                )
        starts = list(accumulate((r * c for r, c in shapes), initial=0))
        self._set(starts[-1], [Interface(*pair) for pair in zip(starts, shapes[:-1], starts[1:], shapes[1:])])

    @classmethod
    def at(cls, dim: int, interfaces: Sequence[Interface]) -> LinearLayers:
        """Some interfaces of a θ with d = `dim` components; the rest of θ is left alone."""
        made = cls.__new__(cls)
        made._set(dim, sorted(interfaces))
        return made

    def _set(self, dim: int, interfaces: list[Interface]) -> None:
        self.dim = dim
        self.interfaces = interfaces
        self.n_directions = sum(i.w_shape[0] ** 2 for i in interfaces)
        self.numbers_per_state = 4 * dim + (dim * self.n_directions if len(interfaces) > 1 else 0)

    def __repr__(self) -> str:
        return "the whole algebra " + " + ".join(f"gl({i.w_shape[0]})" for i in self.interfaces)

    def project(self, base: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Orthogonal projection of delta (n, d) on the directions at base (n, d)."""
        frames = [_Frame(self.dim, interface, base) for interface in self.interfaces]
        if len(frames) == 1:
            return frames[0].forward(frames[0].adjoint(delta))
        return np.stack([self._joint([f.of(i) for f in frames], delta[i]) for i in range(len(delta))])

    def _joint(self, frames: list[_Frame], delta: np.ndarray) -> np.ndarray:
        ends = list(accumulate((f.size for f in frames), initial=0))
        pieces = [slice(a, b) for a, b in pairwise(ends)]

        def forward(v: np.ndarray) -> np.ndarray:
            v = v.reshape(-1, ends[-1])
            return sum(f.forward(v[:, piece]) for f, piece in zip(frames, pieces))  # type: ignore[return-value]

        def adjoint(x: np.ndarray) -> np.ndarray:
            return np.concatenate([f.adjoint(x.reshape(1, -1)) for f in frames], axis=-1)[0]

        if self.dim * ends[-1] <= MOST_DENSE:
            m = forward(np.eye(ends[-1])).T
            u, s, _ = np.linalg.svd(m, full_matrices=False)
            u = u[:, s > EPS * self.dim * s[0]]
            return u @ (u.T @ delta)
        m = LinearOperator((self.dim, ends[-1]), matvec=lambda v: forward(v)[0], rmatvec=adjoint, dtype=float)
        return forward(lsqr(m, delta, atol=1e-14, btol=1e-14, conlim=0.0, iter_lim=20 * ends[-1])[0])[0]


class _Frame:
    """Orthonormal directions of one interface at n states: coordinates (n, h²) to vectors (n, d) and back.

    U = L diag(s) Pᵀ and W = Q diag(t) R; direction (i, j) is (-B W, U B) for B = P_i Q_jᵀ / √(s_i² + t_j²). Both maps
    use the factors and never B itself, which may be large where U and W are nearly rank-deficient.
    """

    def __init__(self, dim: int, interface: Interface, base: np.ndarray) -> None:
        self.dim, self.h = dim, interface.w_shape[0]
        h, n = self.h, len(base)
        self.size = h * h
        self.w_shape, self.u_shape = interface.w_shape, interface.u_shape
        self.w = slice(interface.first, interface.first + h * self.w_shape[1])
        self.u = slice(interface.second, interface.second + self.u_shape[0] * h)
        left, s, p = np.linalg.svd(base[:, self.u].reshape(n, *self.u_shape), full_matrices=self.u_shape[0] < h)
        q, t, right = np.linalg.svd(base[:, self.w].reshape(n, *self.w_shape), full_matrices=self.w_shape[1] < h)
        size = np.hypot(_padded(s, h)[:, :, None], _padded(t, h)[:, None, :])
        keep = size > EPS * dim * size.max(axis=(1, 2), keepdims=True)
        inverse = np.where(keep, 1.0 / np.where(keep, size, 1.0), 0.0)
        self.u_weight = s[:, :, None] * inverse[:, : s.shape[1]]
        self.w_weight = -t[:, None, :] * inverse[:, :, : t.shape[1]]
        self.left, self.p, self.q, self.right = left, np.swapaxes(p, -1, -2), q, right

    def of(self, i: int) -> _Frame:
        """The frame of one state."""
        one = object.__new__(_Frame)
        one.__dict__.update(self.__dict__)
        for name in ("left", "right", "p", "q", "u_weight", "w_weight"):
            setattr(one, name, getattr(self, name)[i : i + 1])
        return one

    def forward(self, coordinates: np.ndarray) -> np.ndarray:
        c = coordinates.reshape(-1, self.h, self.h)
        out = np.zeros((len(c), self.dim))
        u = self.left @ (self.u_weight * c[:, : self.u_weight.shape[1]]) @ _turned(self.q)
        w = self.p @ (self.w_weight * c[:, :, : self.w_weight.shape[2]]) @ self.right
        out[:, self.u], out[:, self.w] = u.reshape(len(c), -1), w.reshape(len(c), -1)
        return out

    def adjoint(self, x: np.ndarray) -> np.ndarray:
        du, dw = x[:, self.u].reshape(-1, *self.u_shape), x[:, self.w].reshape(-1, *self.w_shape)
        c = np.zeros((len(x), self.h, self.h))
        c[:, : self.u_weight.shape[1]] += self.u_weight * (_turned(self.left) @ du @ self.q)
        c[:, :, : self.w_weight.shape[2]] += self.w_weight * (_turned(self.p) @ dw @ _turned(self.right))
        return c.reshape(len(x), -1)


def _turned(a: np.ndarray) -> np.ndarray:
    return np.swapaxes(a, -1, -2)


def _padded(s: np.ndarray, h: int) -> np.ndarray:
    return np.pad(s, ((0, 0), (0, h - s.shape[1])))


def as_named(generators: Any, *, affine: bool = False, charged: bool = False) -> dict[str, Any]:
    """Generators by name, from one, a sequence or a mapping, or those of a model that fit.

    Of a `Model`, and of its `symmetries()`, those that are linear, unless `affine`, and that have a charge, if
    `charged`; what else is given has to be linear, unless `affine`.
    """
    if isinstance(generators, Model):
        generators = generators.symmetries()
    if isinstance(generators, Named):
        whole = generators
        fits = {k: a for k, a in whole.items() if affine or isinstance(a, Generator)} if not charged else pick(whole)
        if not fits:
            kind = "linear and symmetric" if charged else "linear"
            raise ArgumentError(f"generators must hold at least one that is {kind}, got {whole!r}")
        generators = fits
    if isinstance(generators, Mapping):
        named = {str(name): as_generator(a, f"generators[{name!r}]", affine=affine) for name, a in generators.items()}
    else:
        many = list(generators) if isinstance(generators, (list, tuple)) else [generators]
        named = {}
        for k, value in enumerate(many):
            a = as_generator(value, f"generators[{k}]", affine=affine)
            named[a.name if a.name and a.name not in named else f"A{k}"] = a
    if not named:
        raise ArgumentError("generators must hold at least one generator")
    if len({a.dim for a in named.values()}) > 1:
        raise ShapeError(f"generators must act on one θ, got dims {sorted({a.dim for a in named.values()})}")
    return named


def whole_algebra(generators: Sequence[Generator], every_b: bool = False) -> LinearLayers | None:
    """The algebra of linear layers that these generators make up, or None.

    Generators (W, U) ↦ (-BW, UB) whose B span all symmetric h × h matrices make up all of gl(h): commutators of
    symmetric matrices are the antisymmetric ones, and the directions of a group are closed under commutators.
    """
    found: dict[Interface, list[np.ndarray]] = {}
    for a in generators:
        if not isinstance(a, Generator) or len(a.parts) != 2:
            return None
        (first, one), (second, two) = a.parts
        if not (isinstance(one, Sandwich) and isinstance(two, Sandwich)):
            return None
        if one.left is None or one.right is not None or two.right is None or two.left is not None:
            return None
        if one.left.shape != two.right.shape or np.abs(one.left + two.right).max() > 0:
            return None
        found.setdefault(Interface(first, one.shape, second, two.shape), []).append(two.right)
    for matrices in [] if every_b else found.values():
        h = matrices[0].shape[0]
        symmetric = np.array([(b + b.T) / 2 for b in matrices if np.array_equal(b, b.T)])
        rank = np.linalg.matrix_rank(symmetric.reshape(len(symmetric), -1)) if len(symmetric) else 0
        if rank < h * (h + 1) // 2:
            return None
    return LinearLayers.at(generators[0].dim, list(found))
