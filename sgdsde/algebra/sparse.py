"""A generator as a sparse matrix: what compiled loops read, of as many numbers as it has entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde.algebra.block import Diagonal, Zero
from sgdsde.algebra.generator import Generator
from sgdsde.algebra.sandwich import Sandwich
from sgdsde.algebra.scattered import Scattered

__all__ = ["entries"]


def entries(generator: Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, columns, values) of the entries of A that are not zero; a layer's W -> L W + W R has O(r c (r + c)).

    Examples
    --------
    >>> from sgdsde import scaling
    >>> entries(scaling(2))
    (array([0, 1]), array([0, 1]), array([1., 1.]))
    """
    from scipy import sparse

    blocks = [(start, _sparse(block, sparse)) for start, block in generator.parts]
    found = [(start, block.tocoo()) for start, block in blocks if block.nnz]
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    rows = np.concatenate([start + block.row for start, block in found]).astype(np.int64)
    columns = np.concatenate([start + block.col for start, block in found]).astype(np.int64)
    values = np.concatenate([block.data for _, block in found]).astype(float)
    kept = values != 0.0
    return rows[kept], columns[kept], values[kept]


def _sparse(block: Any, sparse: Any) -> Any:
    if isinstance(block, Zero):
        return sparse.coo_array((block.size, block.size))
    if isinstance(block, Diagonal):
        return sparse.diags_array(block.vector)
    if isinstance(block, Sandwich):
        r, c = block.shape
        total = sparse.coo_array((r * c, r * c))
        if block.left is not None:
            total = total + sparse.kron(sparse.coo_array(block.left), sparse.eye_array(c))
        if block.right is not None:
            total = total + sparse.kron(sparse.eye_array(r), sparse.coo_array(block.right.T))
        return total
    if isinstance(block, Scattered):
        rows, columns = np.nonzero(block.inner.matrix)
        places = (block.index[rows], block.index[columns])
        return sparse.coo_array((block.inner.matrix[rows, columns], places), shape=(block.size, block.size))
    return sparse.coo_array(block.matrix)
