"""The PROJECT kernel of `OrbitProjection`: where the charges must be after a step, and each column moved there."""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import BLOCK, INTS, PROJECT, TRACK, VECTOR
from sgdsde._address import function_at
from sgdsde._errors import OK
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.models.charge_rows import CHARGE_ROWS, SUM_H_TRACE
from sgdsde.symmetry._projection_solver import AVERAGE, HEADER, ROW, TOGETHER, form_of, moved
from sgdsde.symmetry.forms import quadratic

__all__ = ["move", "project"]

_track = function_at(TRACK)


@inline
def _traces(acc, a, rows, x0, x, t, h, p, data, work):
    """The first `rows` rows of the TRACK kernel of generator a from x0, or the average of those from x0 and from x."""
    n = x.shape[1]
    acc = matrix(acc, 0, rows, n)
    at = HEADER + ROW * a
    track = _track(int(p[at + 4]), int(p[at + 5]), int(p[at + 6]))
    numbers = vector(p, int(p[at + 2]), int(p[at + 3]))
    for i in range(rows):
        for b in range(n):
            acc[i, b] = 0.0
    track(acc, x0, x, t, h, numbers, data, work)
    if p[AVERAGE] != 0.0:
        track(acc, x, x, t, h, numbers, data, work)
        for i in range(rows):
            for b in range(n):
                acc[i, b] *= 0.5


@inline
def _targets(target, x0, x, t, h, p, data, work):
    """C_a(x0) + h φ(4γh)·(2σ²ρ Tr[ΣA_a] - 4γ C_a(x0)), φ(z) = (1 - e^{-z})/z: an exponential Euler step of the charges.

    Tr[ΣA_a] is that of x0, or the average of those of x0 and x.
    """
    k, n = target.shape
    rows = max(k, CHARGE_ROWS)
    acc, tail = matrix(work, 0, rows, n), rest(work, rows * n)
    decay, strength, together = p[1], p[2], p[TOGETHER] != 0.0
    for a in range(k):
        goal = vector(target, a * n, n)
        quadratic(goal, x0, form_of(p, a))
        if decay != 0.0:
            for b in range(n):
                goal[b] *= np.exp(-decay * h[b])
        if strength == 0.0:
            continue
        if not together:
            _traces(acc, a, CHARGE_ROWS, x0, x, t, h, p, data, tail)
        elif a == 0:
            _traces(acc, 0, k, x0, x, t, h, p, data, tail)
        row = a if together else SUM_H_TRACE
        for b in range(n):
            phi = -np.expm1(-decay * h[b]) / (decay * h[b]) if decay != 0.0 else 1.0
            goal[b] += phi * strength * acc[row, b]


@inline
def _finite(x, b):
    for i in range(x.shape[0]):
        if not np.isfinite(x[i, b]):
            return False
    return True


@kernel(PROJECT)
def project(x, x0, t, h, status, p, data, work):
    """Every column to the charges that follow from x0 by their own law."""
    k, n = int(p[0]), x.shape[1]
    target = matrix(work, 0, k, n)
    work = rest(work, k * n)
    _targets(target, x0, x, t, h, p, data, work)
    for b in range(n):
        if status[b] == OK and _finite(x, b):
            code = moved(x, b, target, p, work)
            if code != OK:
                status[b] = code


@kernel(types.void(BLOCK, BLOCK, INTS, VECTOR, VECTOR))
def move(x, target, status, p, work):
    """Every column of x to the charges target (K, B)."""
    for b in range(x.shape[1]):
        status[b] = moved(x, b, target, p, work)
