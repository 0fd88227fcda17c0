"""Passes over samples that Python makes: what an adapter writes, and how compiled kernels find and call it.

An object of `Passes` holds one model and one set of samples. It is registered under a number for as long as it lives;
q[1] of the kernels is that number, and q owns it (`Passes.numbers`).
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from typing import Any

import numpy as np

from sgdsde.models.model import DIFFERENCE

__all__ = ["Passes", "batch", "bend", "hessian", "losses", "owned", "single", "weighted"]

_registered: weakref.WeakValueDictionary[int, Passes] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def owned(numbers: Any, owner: Any) -> np.ndarray:
    """A vector of these numbers that keeps `owner` alive, as long as it or a view of it lives."""
    numbers = np.asarray(numbers, dtype=np.float64)

    class Memory(ctypes.c_double * numbers.size):  # type: ignore[misc]
        owner: Any

    memory = Memory()
    memory.owner = owner
    vector = np.frombuffer(memory)
    vector[:] = numbers  # bit by bit: a double may hold the bits of an integer
    return vector


class Passes:
    """Losses and gradients of n samples at a θ (d,), all finite float64 arrays.

    Subclasses write `losses`, `weighted` and `batch`, and override the others where they have something better.
    """

    def __init__(self, n: int, dim: int) -> None:
        self.n, self.dim = n, dim
        self.number = next(_numbers)
        _registered[self.number] = self

    def numbers(self) -> np.ndarray:
        """q of the kernels; it keeps this object alive."""
        return owned([self.n, self.number, 0, 0, 0, 0, 0, 0], self)

    def losses(self, theta: np.ndarray) -> Any:
        """ℓ_i, (n,)."""
        raise NotImplementedError

    def weighted(self, theta: np.ndarray, c: np.ndarray) -> Any:
        """Σ_i c_i ∇ℓ_i, (d,)."""
        raise NotImplementedError

    def batch(self, theta: np.ndarray, index: np.ndarray) -> Any:
        """The mean of ∇ℓ_i over the samples of `index`, integers that may repeat, (d,)."""
        raise NotImplementedError

    def rows(self, theta: np.ndarray, start: int, stop: int) -> np.ndarray:
        """∇ℓ_i of the samples start..stop-1, (stop - start, d)."""
        return np.array([self.batch(theta, np.array([i])) for i in range(start, stop)]).reshape(-1, self.dim)

    def hessian(self, theta: np.ndarray, v: np.ndarray, c: np.ndarray) -> Any:
        """Σ_i c_i H_i v, (d,), for v that is not zero: a central difference."""
        h = DIFFERENCE * (1.0 + float(np.linalg.norm(theta))) / float(np.linalg.norm(v))
        ahead, behind = (np.array(self.weighted(theta + step * v, c)) for step in (h, -h))
        return (ahead - behind) / (2.0 * h)

    def bend(self, theta: np.ndarray) -> Any:
        """(1/n)Σ_i H_i(g_i - ḡ) = ½∇Tr Σ, (d,): central differences of each ∇ℓ_i along g_i - ḡ."""
        mean = np.array(self.weighted(theta, np.full(self.n, 1.0 / self.n)))
        total, size = np.zeros(self.dim), 1.0 + float(np.linalg.norm(theta))
        for i in range(self.n):
            one = np.array([i])
            delta = self.batch(theta, one) - mean
            length = float(np.linalg.norm(delta))
            if length > 0.0:
                h = DIFFERENCE * size / length
                ahead, behind = (np.array(self.batch(theta + s * delta, one)) for s in (h, -h))
                total += (ahead - behind) / (2.0 * h)
        return total / self.n


# What kernels call: the object under q[1] at work. Overflow and NaN are the run's to report.
_quiet = np.errstate(all="ignore")


@_quiet
def losses(out: Any, theta: Any, q: Any) -> None:
    out[:] = _registered[int(q[1])].losses(theta)


@_quiet
def weighted(out: Any, theta: Any, c: Any, q: Any) -> None:
    out[:] = _registered[int(q[1])].weighted(theta, c)


@_quiet
def single(out: Any, theta: Any, i: int, q: Any) -> None:
    out[:] = _registered[int(q[1])].batch(theta, np.array([i]))


@_quiet
def batch(out: Any, theta: Any, index: Any, q: Any) -> None:
    out[:] = _registered[int(q[1])].batch(theta, index.astype(np.int64))


@_quiet
def hessian(out: Any, theta: Any, v: Any, c: Any, q: Any) -> None:
    out[:] = _registered[int(q[1])].hessian(theta, v, c)


@_quiet
def bend(out: Any, theta: Any, q: Any) -> None:
    out[:] = _registered[int(q[1])].bend(theta)
