"""What the engine does in a step of the grid: steps whose lengths follow the state, and projections.

With a step size δ(t, y) each path goes through a grid step of length h in steps of its own, δ·dt long and never past
the grid point, so that noise of the grid, times to save and other paths stay what they are. The Brownian path between
grid points is a bridge from where the path stands to the grid's increment. A length is chosen from the state at its
start alone and no step is taken back, so the increments are those of a Brownian motion: nothing is biased. All
columns take their own step number j at once; those at the grid point idle with a harmless length and are put back.
"""

from __future__ import annotations

import numpy as np

from sgdsde._abi import OBSERVE, PROJECT, REFINEMENT
from sgdsde._address import function_at
from sgdsde._errors import DIVERGED, OK, STEP_SIZE
from sgdsde._jit import inline
from sgdsde._views import matrix, vector
from sgdsde.random.normal import fill_normals
from sgdsde.run.columns import column_finite, copy

__all__ = ["BY_FUNCTION", "BY_KERNEL", "SUBSTEP_BITS", "adapted", "adapted_size", "projected"]

SUBSTEP_BITS = 20
"""A path takes at most 2**20 steps within one of the grid."""
BY_KERNEL, BY_FUNCTION = 1, 2
"""How a projection is given: a PROJECT kernel, or an OBSERVE kernel that returns the state to put in place."""

project_at, function_of_state_at = function_at(PROJECT), function_at(OBSERVE)


@inline
def projected(how, table, row, x, x0, t, h, end, moved, status, p, data, work):
    """Move x to where it must be after the step from x0; columns that are not finite are left alone."""
    n = x.shape[1]
    if how == BY_KERNEL:
        project = project_at(table[row, 0], table[row, 1], table[row, 2])
        project(x, x0, t, h, status, p, data, work)
        return
    for b in range(n):
        end[b] = t[b] + h[b]
    function = function_of_state_at(table[row + 1, 0], table[row + 1, 1], table[row + 1, 2])
    function(moved, x, end, p, data, work)
    copy(x, moved)


@inline
def adapted_size(d, m, n):
    """Doubles of scratch that `adapted` takes."""
    return n * (d + 3 * m + 5)


@inline
def adapted(
    step, increment, correction, size, how, table, row,
    x, t, h, dt, dW, aux, status, k, path, key,
    p, data, size_p, size_data, project_p, project_data, end, moved, held_status, work, scratch,
):  # fmt: skip
    """From t to t + h in steps of δ·dt; h is one number for all columns here."""
    d, n = x.shape
    m = dW.shape[0]
    held = matrix(scratch, 0, d, n)
    gone, inner, fresh = (
        matrix(scratch, d * n, m, n),
        matrix(scratch, (d + m) * n, m, n),
        matrix(scratch, (d + 2 * m) * n, m, n),
    )
    at = (d + 3 * m) * n
    delta = matrix(scratch, at, 1, n)
    elapsed, length, now, busy = (
        vector(scratch, at + n, n),
        vector(scratch, at + 2 * n, n),
        vector(scratch, at + 3 * n, n),
        vector(scratch, at + 4 * n, n),
    )
    for b in range(n):
        elapsed[b] = 0.0
        busy[b] = 1.0 if status[b] == OK else 0.0
    for j in range(m):
        for b in range(n):
            gone[j, b] = 0.0
    first = (k << SUBSTEP_BITS) * m
    for j_step in range(1 << SUBSTEP_BITS):
        for b in range(n):
            now[b] = t[b] + elapsed[b]
        size(delta, x, now, size_p, size_data, work)
        going, halves = 0, 0
        for b in range(n):
            length[b] = h[b]
            if busy[b] == 0.0:
                continue
            f = delta[0, b]
            if not f > 0.0:
                status[b] = STEP_SIZE if column_finite(x, b) else DIVERGED
                busy[b] = 0.0
                continue
            going += 1
            left = h[b] - elapsed[b]
            wanted = min(f, 1.0) * dt
            if wanted >= left:
                length[b] = left
                busy[b] = 2.0  # to the end
            else:
                length[b] = wanted
                halves += 1
        if going == 0:
            return
        if halves > 0:
            fill_normals(fresh, first + j_step * m, path, REFINEMENT, key)
        for b in range(n):
            if busy[b] == 1.0:
                left = h[b] - elapsed[b]
                pull, spread = length[b] / left, np.sqrt(length[b] * (left - length[b]) / left)
                for j in range(m):
                    inner[j, b] = pull * (dW[j, b] - gone[j, b]) + spread * fresh[j, b]
            else:
                for j in range(m):
                    inner[j, b] = (dW[j, b] - gone[j, b]) if busy[b] == 2.0 else 0.0
        copy(held, x)
        for b in range(2 * n):
            held_status[b] = status[b]
        step(increment, correction, x, now, length, inner, aux, status, work, p, data)
        if how > 0:
            projected(how, table, row, x, held, now, length, end, moved, status, project_p, project_data, work)
        for b in range(n):
            if busy[b] == 0.0:
                for i in range(d):
                    x[i, b] = held[i, b]
                status[b], status[n + b] = held_status[b], held_status[n + b]
            elif busy[b] == 2.0:
                busy[b] = 0.0
            else:
                elapsed[b] += length[b]
                for j in range(m):
                    gone[j, b] += inner[j, b]
                if status[b] != OK or not column_finite(x, b):
                    busy[b] = 0.0
    for b in range(n):
        if busy[b] != 0.0 and status[b] == OK:
            status[b] = STEP_SIZE
