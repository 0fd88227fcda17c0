"""Mini-batches by their address: which samples step k of a path takes. AUX kernels (`sgdsde._abi`), p[2] = N."""

from __future__ import annotations

from sgdsde._abi import AUX, BATCH
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest
from sgdsde.random.integers import fill_indices, fill_subsets

__all__ = ["every", "shuffled", "two_without_replacement", "with_replacement", "without_replacement"]


@kernel(AUX)
def with_replacement(aux, dW, h, path, step, key, p, data, work):
    """S independent uniform indices: numbers step·S … step·S + S - 1 of the path."""
    fill_indices(aux, step * aux.shape[0], path, BATCH, key, int(p[2]))


@kernel(AUX)
def two_without_replacement(aux, dW, h, path, step, key, p, data, work):
    """Two independent batches, each of S/2 different indices of its own."""
    size = aux.shape[0] // 2
    for half in range(2):
        fill_subsets(aux[half * size : (half + 1) * size], (2 * step + half) * size, path, BATCH, key, int(p[2]), work)


@kernel(AUX)
def without_replacement(aux, dW, h, path, step, key, p, data, work):
    """S different indices, every subset with the same probability, anew at each step."""
    fill_subsets(aux, step * aux.shape[0], path, BATCH, key, int(p[2]), work)


@kernel(AUX)
def shuffled(aux, dW, h, path, step, key, p, data, work):
    """Epochs: every N // S steps a new permutation, cut into batches; what is left over sits out. N doubles of scratch.

    The permutation is made anew up to the batch that is wanted, O(position) a step: nothing is remembered.
    """
    size, n = aux.shape[0], int(p[2])
    per_epoch = n // size
    epoch, batch = step // per_epoch, step % per_epoch
    length = (batch + 1) * size
    for b in range(aux.shape[1]):
        order = matrix(work, 0, length, 1)
        fill_subsets(order, epoch * n, path[b : b + 1], BATCH, key, n, rest(work, n))
        for i in range(size):
            aux[i, b] = order[length - size + i, 0]


@kernel(AUX)
def every(aux, dW, h, path, step, key, p, data, work):
    """All N samples in order, twice where two batches are asked for: gradient descent."""
    n = int(p[2])
    for i in range(aux.shape[0]):
        for b in range(aux.shape[1]):
            aux[i, b] = i % n
