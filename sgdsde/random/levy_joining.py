"""Chen's relation for Lévy areas, compiled: cells one after the other, so that bits depend on no cut and no block."""

from __future__ import annotations

from numba import types

from sgdsde._jit import kernel
from sgdsde.random.philox import EXACT

__all__ = ["join_cells"]

CUBE = types.float64[:, :, ::1]


@kernel(types.void(CUBE, CUBE, CUBE, CUBE, types.int64, types.int64), **EXACT)
def join_cells(w, A, cell_w, cell_A, first, group):
    """Append cells to groups of `group` of them: A_ij += a_ij + ½(w_i c_j − w_j c_i), then w += c.

    Parameters
    ----------
    w : (n_groups, m, B)
    A : (n_groups, m*m, B)
        What the groups are so far; zeros before their first cell.
    cell_w : (n, m, B)
    cell_A : (n, m*m, B)
        Cells number first .. first + n − 1 of the groups.
    """
    n, m, B = cell_w.shape
    for k in range(n):
        g = (first + k) // group
        for i in range(m):
            for j in range(i + 1, m):
                for b in range(B):
                    area = cell_A[k, i * m + j, b]
                    area += 0.5 * (w[g, i, b] * cell_w[k, j, b] - w[g, j, b] * cell_w[k, i, b])
                    A[g, i * m + j, b] += area
                    A[g, j * m + i, b] -= area
        for i in range(m):
            for b in range(B):
                w[g, i, b] += cell_w[k, i, b]
