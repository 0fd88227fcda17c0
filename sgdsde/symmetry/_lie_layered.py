"""Structured search for symmetries of models of any size: matrices B between neighbouring layers, and diagonals.

A space of candidates is a list of pieces: W ↦ L W with any L or a diagonal one, W ↦ W R likewise, or θ ↦ a⊙θ. Each
sample's gradient gives one row of conditions,

    ⟨∂ℓ_i/∂W, L W + W R⟩ = ⟨(∂ℓ_i/∂W)Wᵀ, L⟩ + ⟨Wᵀ(∂ℓ_i/∂W), R⟩ = 0    summed over the pieces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdsde.algebra import Block, Diagonal, Generator, Sandwich, Zero
from sgdsde.symmetry._lie_states import Gap, States, Triangle

__all__ = ["Space", "search_space", "spaces"]

WIDEST = 1500
"""Unknown numbers of one space; a space with more is left out, and said to be."""


class Piece(NamedTuple):
    """One array and how it may move."""

    side: str
    """'left' W ↦ LW, 'right' W ↦ WR, 'rows' and 'columns' the same with diagonal L and R, 'diagonal' a⊙W."""
    start: int
    shape: tuple[int, int]

    @property
    def stretch(self) -> slice:
        """Where the array stands in θ."""
        return slice(self.start, self.start + self.shape[0] * self.shape[1])

    @property
    def unknown(self) -> int:
        """How many numbers."""
        r, c = self.shape
        return {"left": r * r, "right": c * c, "rows": r, "columns": c, "diagonal": r * c}[self.side]

    def rows(self, g: np.ndarray, x: np.ndarray) -> np.ndarray:
        """One row of conditions (N, unknown) for each gradient g (N, d) at the state x."""
        g, x = g[:, self.stretch], x[self.stretch]
        if self.side == "diagonal":
            return g * x
        g, w = g.reshape(len(g), *self.shape), x.reshape(self.shape)
        if self.side in ("rows", "columns"):
            return np.einsum("nij,ij->ni" if self.side == "rows" else "nij,ij->nj", g, w)
        return (g @ w.T if self.side == "left" else w.T @ g).reshape(len(g), -1)


class Space(NamedTuple):
    """A linear space of candidates."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def unknown(self) -> int:
        """How many numbers."""
        return sum(piece.unknown for piece in self.pieces)

    def rows(self, g: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Conditions (N, unknown)."""
        return np.hstack([piece.rows(g, x) for piece in self.pieces])

    def cut(self, c: np.ndarray) -> list[tuple[Piece, np.ndarray]]:
        """The numbers of each piece."""
        ends = np.cumsum([0, *(piece.unknown for piece in self.pieces)])
        return [(piece, c[..., a:b]) for piece, a, b in zip(self.pieces, ends[:-1], ends[1:], strict=True)]

    def transposed(self, c: np.ndarray) -> np.ndarray:
        """The numbers (k, unknown) of the transposed generators."""
        out = []
        for piece, part in self.cut(c):
            if piece.side in ("left", "right"):
                n = piece.shape[0 if piece.side == "left" else 1]
                part = np.swapaxes(part.reshape(-1, n, n), -1, -2).reshape(part.shape)
            out.append(part)
        return np.concatenate(out, axis=-1)

    def generator(self, c: np.ndarray, dim: int) -> Generator:
        """The generator of the numbers c (unknown,)."""
        sides: dict[int, list[Any]] = {}
        for piece, part in self.cut(c):
            here = sides.setdefault(piece.start, [piece.shape, None, None, None])
            if piece.side == "diagonal":
                here[3] = part
            elif part.any():
                whole = np.diag(part) if piece.side in ("rows", "columns") else part.reshape(math.isqrt(part.size), -1)
                here[1 if piece.side in ("left", "rows") else 2] = whole
        blocks: list[tuple[int, Block]] = []
        for start, (shape, left, right, diagonal) in sides.items():
            if diagonal is not None:
                blocks.append((start, Diagonal(diagonal) if diagonal.any() else Zero(diagonal.size)))
            elif left is not None or right is not None:
                blocks.append((start, _block(shape, left, right)))
        return Generator(dim, blocks)


def _block(shape: tuple[int, int], left: np.ndarray | None, right: np.ndarray | None) -> Block:
    """L W + W R, diagonal where both are."""
    r, c = shape
    if all(m is None or np.array_equal(m, np.diag(np.diag(m))) for m in (left, right)):
        rows = np.zeros(r) if left is None else np.diag(left)
        return Diagonal((rows[:, None] + (np.zeros(c) if right is None else np.diag(right))).ravel())
    return Sandwich(shape, left, right)


def arrays(shapes: Mapping[str, Sequence[int]], dim: int) -> list[tuple[str, int, tuple[int, int]]]:
    """(name, start, (r, c)) of the arrays of θ as matrices; all of θ as one column where they do not make it up."""
    found, start = [], 0
    for name, shape in shapes.items():
        r = int(shape[0]) if len(shape) else 1
        c = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        found.append((name, start, (r, c)))
        start += r * c
    return found if start == dim and dim else [("theta", 0, (dim, 1))]


def spaces(shapes: Mapping[str, Sequence[int]], dim: int) -> tuple[list[Space], list[str]]:
    """The spaces to look through, the narrow ones first, and what was left out because it has too many unknowns."""
    parts = arrays(shapes, dim)
    made: list[Space] = []
    for k, (name, start, shape) in enumerate(parts):
        if shape[1] == 1 and k and parts[k - 1][2][0] == shape[0] and parts[k - 1][2][1] > 1:
            continue  # a bias, which moves with the matrix before it
        names, pieces = [name], [Piece("left", start, shape)]
        for other, at, grid in parts[k + 1 :]:
            if grid[1] == shape[0]:
                names.append(other)
                pieces.append(Piece("right", at, grid))
                break
            if grid != (shape[0], 1):
                break
            names.append(other)
            pieces.append(Piece("left", at, grid))
        made.append(Space("/".join(names), tuple(pieces)))
    made += [
        Space(name, (Piece("left", start, shape), Piece("right", start, shape)))
        for name, start, shape in parts
        if min(shape) > 1
    ]
    if dim <= WIDEST:
        made.append(Space("diagonal", tuple(Piece("diagonal", start, shape) for _, start, shape in parts)))
    else:
        both = [Piece("rows", start, shape) for _, start, shape in parts]
        both += [Piece("columns", start, shape) for _, start, shape in parts if shape[1] > 1]
        made.append(Space("rows and columns", tuple(both)))
    kept = [space for space in made if space.unknown <= WIDEST]
    return kept, [f"{space.name} ({space.unknown} unknowns)" for space in made if space.unknown > WIDEST]


def search_space(states: States, space: Space, tolerance: float) -> tuple[np.ndarray, Gap]:
    """Orthonormal numbers (k, unknown) of the symmetries in a space, and the gap."""
    triangle = Triangle(space.unknown)
    same, before, used, rows = 0, -1, 0, 0
    while same < 2:
        x = states.draw()
        size = 0.0
        for g in states.gradients(x):
            new = space.rows(g, x)
            size = max(size, float(np.abs(g).max(initial=0.0)) * float(np.abs(x).max()))
            triangle.add(new / size if size > 0.0 else new)
            rows += len(g)
        used += 1
        if rows < space.unknown and used < 2 * space.unknown:
            continue
        count = triangle.zeros(tolerance)
        same = same + 1 if count == before else 0
        before = count
        if count == 0:
            break
    return triangle.null_space(tolerance)
