"""Sums of block matrices that keep as much structure as the two summands share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sgdsde.algebra.block import Block, Dense, Diagonal
from sgdsde.algebra.scattered import Scattered

__all__ = ["Parts", "combine", "cut"]

Parts = Sequence[tuple[int, Block]]
"""Blocks and where each starts, in order, without overlap."""


def cut(parts: Parts, points: Iterable[int]) -> list[tuple[int, Block]]:
    """The parts, with diagonal ones cut at the given places."""
    out: list[tuple[int, Block]] = []
    for start, block in parts:
        if not isinstance(block, Diagonal):
            out.append((start, block))
            continue
        inside = sorted({q - start for q in points if start < q < start + block.size})
        out += zip([start, *(start + q for q in inside)], block.cut(inside), strict=True)
    return out


def combine(a: Parts, b: Parts) -> list[tuple[int, Block]]:
    """The parts of A + B. Diagonal blocks are cut to fit; blocks that overlap without fitting become dense."""
    points = {q for start, block in (*a, *b) for q in (start, start + block.size)}
    pieces = sorted([*cut(a, points), *cut(b, points)], key=lambda part: (part[0], -part[1].size))
    out: list[tuple[int, Block]] = []
    for start, block in pieces:
        if not out or start >= out[-1][0] + out[-1][1].size:
            out.append((start, block))
            continue
        first, held = out[-1]
        size = max(first + held.size, start + block.size) - first
        out[-1] = (first, _widen(held, 0, size).plus(_widen(block, start - first, size)))
    return out


def _widen(block: Block, offset: int, size: int) -> Block:
    """The block placed at `offset` within a stretch of `size` components that it otherwise leaves alone."""
    if block.size == size:
        return block
    stretch = slice(offset, offset + block.size)
    if isinstance(block, Diagonal):
        vector = np.zeros(size)
        vector[stretch] = block.vector
        return Diagonal(vector)
    if isinstance(block, Scattered):
        return block.placed(offset, size)
    matrix = np.zeros((size, size))
    matrix[stretch, stretch] = block.matrix
    return Dense(matrix)
