"""Steps of SGD's kin, made of the model's own batch step: heavy-ball momentum, SVAG and Adam, for every model.

The batch step of a model moves θ by -h(ĝ + 2γθ), ĝ the batch mean; these call it through its address, which stands with
their own numbers at the end of `data`, and combine what it did.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sgdsde._abi import STEP
from sgdsde._address import address, function_at
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest

__all__ = ["adam", "heavy_ball", "numbers", "svag", "svag_weights"]

TAIL = 6
"""Numbers at the end of `data`: the three words of the model's step, then three of the method."""
_model_step = function_at(STEP)


def numbers(step: Any, own: tuple[float, float, float]) -> np.ndarray:
    """What these kernels find at the end of `data`; addresses are below 2**53."""
    return np.array([*map(float, address(step, STEP)), *own])


def svag_weights(l: int) -> tuple[float, float]:
    """Weights of the two batches, (1 ± √(2l - 1))/2: mean ∇L and covariance lΣ/S."""
    root = math.sqrt(2.0 * l - 1.0)
    return 0.5 * (1.0 + root), 0.5 * (1.0 - root)


@kernel(STEP)
def svag(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """θ' = θ - h(w₁ĝ₁ + w₂ĝ₂ + 2γθ), two independent batches: aux[:S] and aux[S:]; w₁ + w₂ = 1."""
    d, n = x.shape
    size, end = aux.shape[0] // 2, data.shape[0] - TAIL
    step = _model_step(np.int64(data[end]), np.int64(data[end + 1]), np.int64(data[end + 2]))
    first = matrix(work, 0, d, n)
    tail = rest(work, d * n)
    inner = data[:end]
    for i in range(d):
        for b in range(n):
            first[i, b] = x[i, b]
    step(increment, correction, first, t, h, dW, aux[:size], status, tail, p, inner)
    for i in range(d):
        for b in range(n):
            change = first[i, b] - x[i, b]
            first[i, b] = data[end + 3] * change + (1.0 - data[end + 4]) * x[i, b]
    step(increment, correction, x, t, h, dW, aux[size:], status, tail, p, inner)
    for i in range(d):
        for b in range(n):
            x[i, b] = first[i, b] + data[end + 4] * x[i, b]


@kernel(STEP)
def heavy_ball(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """x = [θ, v]: v' = βv + ĝ + 2γθ, θ' = θ - ηv' (B. T. Polyak 1964); h = η/(1 - β), the time that a step takes."""
    rows, n = x.shape
    d = rows // 2
    end = data.shape[0] - TAIL
    step = _model_step(np.int64(data[end]), np.int64(data[end + 1]), np.int64(data[end + 2]))
    moved = matrix(work, 0, d, n)
    for i in range(d):
        for b in range(n):
            moved[i, b] = x[i, b]
    step(increment, correction, moved, t, h, dW, aux, status, rest(work, d * n), p, data[:end])
    beta = data[end + 3]
    for i in range(d):
        for b in range(n):
            x[d + i, b] = beta * x[d + i, b] + (x[i, b] - moved[i, b]) / h[b]
            x[i, b] -= (1.0 - beta) * h[b] * x[d + i, b]


@kernel(STEP)
def adam(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """x = [θ, m, v, β₁ᵏ, β₂ᵏ]; see `optimizers.Adam`."""
    rows, n = x.shape
    d = (rows - 2) // 3
    end = data.shape[0] - TAIL
    step = _model_step(np.int64(data[end]), np.int64(data[end + 1]), np.int64(data[end + 2]))
    beta1, beta2, epsilon = data[end + 3], data[end + 4], data[end + 5]
    moved = matrix(work, 0, d, n)
    for i in range(d):
        for b in range(n):
            moved[i, b] = x[i, b]
    step(increment, correction, moved, t, h, dW, aux, status, rest(work, d * n), p, data[:end])
    for b in range(n):
        x[3 * d, b] *= beta1
        x[3 * d + 1, b] *= beta2
    for i in range(d):
        for b in range(n):
            g = (x[i, b] - moved[i, b]) / h[b]
            x[d + i, b] = beta1 * x[d + i, b] + (1.0 - beta1) * g
            x[2 * d + i, b] = beta2 * x[2 * d + i, b] + (1.0 - beta2) * g * g
            mean = x[d + i, b] / (1.0 - x[3 * d, b])
            square = x[2 * d + i, b] / (1.0 - x[3 * d + 1, b])
            x[i, b] -= h[b] * mean / (math.sqrt(square) + epsilon)
