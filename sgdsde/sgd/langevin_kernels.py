"""The increment of the Langevin equation, out = -h(∇L + 2γθ) + s·v, with the drift of any model's INCREMENT."""

from __future__ import annotations

import numpy as np

from sgdsde._abi import INCREMENT
from sgdsde._address import function_at
from sgdsde._jit import kernel

__all__ = ["increment"]

TAIL = 4  # numbers at the end of p: s, and the words of the model's increment
_increment = function_at(INCREMENT)


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    end = p.shape[0] - TAIL
    s = p[end]
    drift = _increment(np.int64(p[end + 1]), np.int64(p[end + 2]), np.int64(p[end + 3]))
    drift(out, x, t, h, v[:0], p[:end], data, work)
    for i in range(v.shape[0]):
        for b in range(v.shape[1]):
            out[i, b] += s * v[i, b]
