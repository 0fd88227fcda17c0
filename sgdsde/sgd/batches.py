"""Mini-batches by their address: which samples step k of a path takes. AUX kernels (`sgdsde._abi`), p[2] = N."""

from __future__ import annotations

from sgdsde._abi import AUX, BATCH
from sgdsde._jit import kernel
from sgdsde.random.integers import fill_indices, fill_subsets

__all__ = ["every", "with_replacement", "without_replacement"]


@kernel(AUX)
def with_replacement(aux, dW, h, path, step, key, p, data, work):
    """S independent uniform indices: numbers step·S … step·S + S - 1 of the path."""
    fill_indices(aux, step * aux.shape[0], path, BATCH, key, int(p[2]))


@kernel(AUX)
def without_replacement(aux, dW, h, path, step, key, p, data, work):
    """S different indices, every subset with the same probability, anew at each step."""
    fill_subsets(aux, step * aux.shape[0], path, BATCH, key, int(p[2]), work)


@kernel(AUX)
def every(aux, dW, h, path, step, key, p, data, work):
    """All N samples in order: gradient descent."""
    for i in range(aux.shape[0]):
        for b in range(aux.shape[1]):
            aux[i, b] = i
