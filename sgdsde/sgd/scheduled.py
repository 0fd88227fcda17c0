"""The SDE of SGD while the learning rate changes: its noise times √(η(t)/η(0)), its correction times η(t)/η(0).

The kernels of one learning rate are called through their addresses, which stand at the end of `p`; the times at which
the rate changes and η(t)/η(0) stand at the end of `data`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._address import address, function_at
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest
from sgdsde.equation._equation import Kernels

__all__ = ["scheduled"]

TAIL = 7  # numbers at the end of p: how many pieces, three words of each kernel
EARLY = 1e-9  # a time this much (in learning rates) before a change belongs to what follows
_increment, _correction = function_at(INCREMENT), function_at(CORRECTION)


def scheduled(kernels: Kernels, schedule: Any, m: int) -> Kernels:
    """The same equation with the rates of a schedule in place of its first one."""
    words = (*address(kernels.increment, INCREMENT), *address(kernels.correction, CORRECTION))
    early = EARLY * np.concatenate([[0.0], schedule.rates[:-1]])
    changes, ratios = schedule.starts - early, schedule.rates / schedule.rates[0]
    fixed, per_path = kernels.work
    return Kernels(
        increment,
        correction if kernels.correction is not None else None,
        np.concatenate([kernels.p, [changes.size], np.array(words, dtype=float)]),
        np.concatenate([kernels.data, changes, ratios]),
        (fixed, per_path + m),
    )


@inline
def _ratio(t, data, pieces):
    """η(t)/η(0)."""
    start = data.shape[0] - 2 * pieces
    low, high = 0, pieces
    while high - low > 1:
        middle = (low + high) // 2
        if data[start + middle] <= t:
            low = middle
        else:
            high = middle
    return data[start + pieces + low]


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    m, n = v.shape
    end = p.shape[0] - TAIL
    pieces = int(p[end])
    inner = _increment(np.int64(p[end + 1]), np.int64(p[end + 2]), np.int64(p[end + 3]))
    scaled = matrix(work, 0, m, n)
    for b in range(n):
        root = math.sqrt(_ratio(t[b], data, pieces))
        for j in range(m):
            scaled[j, b] = root * v[j, b]
    inner(out, x, t, h, scaled, p[:end], data[: data.shape[0] - 2 * pieces], rest(work, m * n))


@kernel(CORRECTION)
def correction(out, x, t, p, data, work):
    d, n = x.shape
    end = p.shape[0] - TAIL
    pieces = int(p[end])
    inner = _correction(np.int64(p[end + 4]), np.int64(p[end + 5]), np.int64(p[end + 6]))
    inner(out, x, t, p[:end], data[: data.shape[0] - 2 * pieces], work)
    for b in range(n):
        ratio = _ratio(t[b], data, pieces)
        for i in range(d):
            out[i, b] *= ratio
