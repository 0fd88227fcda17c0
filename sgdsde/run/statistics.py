"""Means and variances over paths, streamed: a fixed binary tree over path numbers, so that they too are bit-identical.

Node (level, i) covers paths i·2^level .. (i + 1)·2^level - 1. A block of B = 2^k paths is reduced to one node of
level k inside a kernel, pair by pair; two siblings merge into their parent as soon as both are there. The tree's
shape depends on path numbers alone: never on blocks, threads or order of arrival. Pairs merge by the update of Chan,
Golub & LeVeque (1983), which does not cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Moments", "Tree", "moments_of"]


@dataclass
class Moments:
    """Count, mean, sum of squared deviations, smallest and largest of each row at each time; arrays (n_times, rows)."""

    values: np.ndarray  # (5, n_times, rows)

    @property
    def count(self) -> np.ndarray:
        return self.values[0]

    @property
    def mean(self) -> np.ndarray:
        return np.where(self.count > 0, self.values[1], np.nan)

    @property
    def var(self) -> np.ndarray:
        """Unbiased variance; NaN below two paths."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.count > 1, self.values[2] / (self.count - 1), np.nan)

    @property
    def smallest(self) -> np.ndarray:
        return self.values[3]

    @property
    def largest(self) -> np.ndarray:
        return self.values[4]


@dataclass
class Tree:
    """Nodes that wait for their sibling. `add` blocks in any order, `result` once all are in."""

    pending: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)

    def add(self, saved: np.ndarray, block: int, block_size: int) -> None:
        """One block's rows (n_times, rows, B); its paths are block·block_size + 0 .. B - 1; a power of two."""
        from sgdsde.run.reduction import FIELDS, reduce_block

        n_times, rows, n = saved.shape
        node = np.empty((FIELDS, n_times, rows))
        reduce_block(saved, node, np.empty((FIELDS, n)))
        level = block_size.bit_length() - 1
        while (level, block ^ 1) in self.pending:
            node = _merged(node, self.pending.pop((level, block ^ 1)), block & 1)
            level, block = level + 1, block >> 1
        self.pending[level, block] = node

    def result(self) -> Moments:
        """All paths. Left-over nodes (n_paths is rarely a power of two) fold from the last path backwards."""
        nodes = sorted(self.pending.items(), key=lambda item: -(item[0][1] << item[0][0]))
        total = nodes[0][1].copy()
        for _, node in nodes[1:]:
            total = _merged(total, node, 1)
        return Moments(total)


def _merged(a: np.ndarray, b: np.ndarray, a_is_right: int) -> np.ndarray:
    from sgdsde.run.reduction import FIELDS, merge_nodes

    left, right = (b, a) if a_is_right else (a, b)
    merge_nodes(left.reshape(FIELDS, -1), right.reshape(FIELDS, -1))
    return left


def moments_of(values: np.ndarray, block_size: int = 256) -> Moments:
    """The same moments of rows that were kept: values (n_paths, n_times, rows)."""
    tree = Tree()
    for block, start in enumerate(range(0, values.shape[0], block_size)):
        piece = np.ascontiguousarray(np.moveaxis(values[start : start + block_size], 0, -1))
        tree.add(piece, block, block_size)
    return tree.result()
