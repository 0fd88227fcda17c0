"""A basis to read: of the symmetric part first, then the antisymmetric, of matrices with as few entries as can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sgdsde.algebra import Affine, Generator, linear_and_shift
from sgdsde.algebra.sparse import entries
from sgdsde.symmetry._lie_states import null_space

__all__ = ["Span", "echelon", "parts_of", "sparsest", "windows"]

LEAST_PIVOT = 0.05
INDEPENDENT = 1e-6
LONGEST_WINDOW = 8


def echelon(vectors: np.ndarray, tolerance: float) -> np.ndarray:
    """The reduced row echelon form of rows (k, n); what is within tolerance of a whole number is that number."""
    rows = np.array(vectors)
    for k in range(len(rows)):
        largest = np.abs(rows[k:]).max(axis=0, initial=0.0)
        column = int(np.argmax(largest > LEAST_PIVOT * largest.max()))
        i = k + int(np.argmax(np.abs(rows[k:, column])))
        rows[[k, i]] = rows[[i, k]]
        rows[k] /= rows[k, column]
        others = np.arange(len(rows)) != k
        rows[others] -= np.outer(rows[others, column], rows[k])
    whole = np.round(rows)
    return np.where(np.abs(rows - whole) <= tolerance, whole, rows)


def parts_of(vectors: np.ndarray, transposed: np.ndarray) -> Iterator[np.ndarray]:
    """Of the span of rows (k, n): the symmetric part, the antisymmetric, and all; the transposes of rows are given."""
    for sign in (1.0, -1.0):
        off = vectors - sign * transposed
        yield null_space(off.T, 1e-6)[0] @ vectors if _size(off) else vectors
    yield vectors


def _size(x: np.ndarray) -> bool:
    return bool(np.abs(x).max(initial=0.0) > 1e-9)


def windows(found: np.ndarray, parts: Sequence[tuple[str, int, tuple[int, int]]]) -> Iterator[tuple[str, np.ndarray]]:
    """Of generators [A, b] (k, d, d + 1): those that move only some neighbouring arrays, and then all; with names."""
    sizes = [shape[0] * shape[1] for _, _, shape in parts]
    for length in range(1, min(len(parts), LONGEST_WINDOW) + 1):
        for first in range(len(parts) - length + 1):
            chosen = parts[first : first + length]
            start, stop = chosen[0][1], chosen[-1][1] + sizes[first + length - 1]
            outside = np.delete(found, np.s_[start:stop], axis=1).reshape(len(found), -1)
            inside = null_space(outside.T, 1e-6)[0] if _size(outside) else np.eye(len(found))
            if len(inside):
                yield "/".join(name for name, _, _ in chosen), np.tensordot(inside, found, 1)
    if len(parts) > LONGEST_WINDOW:
        yield "theta", found


class Span:
    """Orthonormal rows, grown one vector at a time."""

    def __init__(self, n: int) -> None:
        self.rows = np.zeros((0, n))

    def rest(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """v without its part in the span, and the length of that relative to v's."""
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return v, 0.0
        v = v - self.rows.T @ (self.rows @ v)
        v = v - self.rows.T @ (self.rows @ v)
        return v, float(np.linalg.norm(v)) / size

    def add(self, v: np.ndarray) -> bool:
        """Whether v was independent; then it is part of the span."""
        rest, share = self.rest(v)
        if share <= INDEPENDENT:
            return False
        self.rows = np.vstack([self.rows, rest / np.linalg.norm(rest)])
        return True


def sparsest(
    candidates: Iterable[Generator | Affine], action: Any, n: int, dead: np.ndarray
) -> list[Generator | Affine]:
    """Independent ones of the candidates that span what all of them do.

    Symmetric ones come first, then antisymmetric ones, then the others, each kind in the order of how many entries A
    and b have: taking what is independent in the order of a weight makes the total weight as small as it can be.
    `action` takes a generator to the numbers (n,) that tell it from others; entries in dead rows do not count.
    """
    span = Span(n)
    return [a for a in sorted(candidates, key=lambda a: (_kind(a), _entries(a, dead))) if span.add(action(a))]


def _kind(a: Generator | Affine) -> int:
    return 0 if a.is_symmetric else 1 if a.is_antisymmetric else 2


def _entries(a: Generator | Affine, dead: np.ndarray) -> int:
    linear, shift = linear_and_shift(a)
    count = 0 if shift is None else int(np.count_nonzero(np.delete(shift, dead)))
    return count + int(np.sum(~np.isin(entries(linear)[0], dead)))
