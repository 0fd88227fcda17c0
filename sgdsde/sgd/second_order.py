"""The modified equation of order 2: f - (η/2)(f·∇)f in place of the drift f = -∇L_γ, so -∇(L_γ + (η/4)‖∇L_γ‖²).

Where the model has a Hessian-vector product it is used; elsewhere (f·∇)f is a central difference of the drift along
itself. The kernels are called through their addresses, which stand at the end of `p`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgdsde._abi import INCREMENT
from sgdsde._address import address, function_at
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector, zeros
from sgdsde.equation._equation import Kernels
from sgdsde.models.model import DIFFERENCE, HESSIAN

__all__ = ["second_order"]

TAIL = 7
_increment, _hessian = function_at(INCREMENT), function_at(HESSIAN)


def second_order(kernels: Kernels, hessian: Any, eta: float, d: int, n_samples: int) -> Kernels:
    """The kernels of the first-order equation with the drift of the second."""
    words = (*address(kernels.increment, INCREMENT), *address(hessian, HESSIAN))
    fixed, per_path = kernels.work
    own = 2 * d + n_samples if hessian is not None else 0
    return Kernels(
        increment,
        kernels.correction,
        np.concatenate([kernels.p, [0.5 * eta], np.array(words, dtype=float)]),
        kernels.data,
        (fixed + own, per_path + 3 * d + 2),
    )


@kernel(INCREMENT)
def increment(out, x, t, h, v, p, data, work):
    d, n = x.shape
    end = p.shape[0] - TAIL
    inner = _increment(np.int64(p[end + 1]), np.int64(p[end + 2]), np.int64(p[end + 3]))
    half, first = p[end], p[:end]
    f, moved, ahead = matrix(work, 0, d, n), matrix(work, d * n, d, n), matrix(work, 2 * d * n, d, n)
    one, length = vector(work, 3 * d * n, n), zeros(work, (3 * d + 1) * n, n)
    tail = rest(work, (3 * d + 2) * n)
    still = True
    for b in range(n):
        one[b] = 1.0
        still = still and h[b] == 0.0
    inner(out, x, t, h, v, first, data, tail)
    if still:
        return
    inner(f, x, t, one, v[:0], first, data, tail)
    if p[end + 6] != 0.0:
        hessian = _hessian(np.int64(p[end + 4]), np.int64(p[end + 5]), np.int64(p[end + 6]))
        samples = int(p[2])
        theta, along, c = vector(tail, 0, d), vector(tail, d, d), vector(tail, 2 * d, samples)
        for i in range(samples):
            c[i] = 1.0 / samples
        for b in range(n):
            for i in range(d):
                theta[i], along[i] = x[i, b], f[i, b]
            curved = vector(moved, 0, d)
            hessian(curved, theta, along, c, first[2:], data, rest(tail, 2 * d + samples))
            for i in range(d):
                out[i, b] += half * h[b] * (curved[i] + 2.0 * p[0] * f[i, b])
        return
    for b in range(n):
        size, speed = 0.0, 0.0
        for i in range(d):
            size += x[i, b] * x[i, b]
            speed += f[i, b] * f[i, b]
        length[b] = DIFFERENCE * (1.0 + math.sqrt(size)) / math.sqrt(speed) if speed > 0.0 else 0.0
        for i in range(d):
            moved[i, b] = x[i, b] + length[b] * f[i, b]
    inner(ahead, moved, t, one, v[:0], first, data, tail)
    for i in range(d):
        for b in range(n):
            moved[i, b] = x[i, b] - length[b] * f[i, b]
    inner(f, moved, t, one, v[:0], first, data, tail)
    for b in range(n):
        if length[b] > 0.0:
            for i in range(d):
                out[i, b] -= half * h[b] * (ahead[i, b] - f[i, b]) / (2.0 * length[b])
