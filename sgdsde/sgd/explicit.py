"""Increments with an explicit factor F: out = -h(∇L + 2γθ) + s·F·v, with F constant, or a Python function of θ."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from sgdsde._abi import INCREMENT
from sgdsde._errors import ShapeError
from sgdsde._jit import kernel, kernel_uncached

__all__ = ["PythonFactor", "constant_increment", "python_increment"]

_registered: weakref.WeakValueDictionary[int, PythonFactor] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


@lru_cache(maxsize=32)
def constant_increment(increment: Any) -> Any:
    """A model's INCREMENT with a constant factor in place of its own: s·F (d, m), in C order, is the end of `data`."""

    @kernel_uncached(INCREMENT)
    def constant(out, x, t, h, v, p, data, work):
        d, n_columns = x.shape
        m = v.shape[0]
        increment(out, x, t, h, v[:0], p, data, work)
        start = data.shape[0] - d * m
        for i in range(d):
            for j in range(m):
                f = data[start + i * m + j]
                for b in range(n_columns):
                    out[i, b] += f * v[j, b]

    return constant


class PythonFactor:
    """Increments of one problem with a factor that Python evaluates; registered for as long as this object lives.

    Kernels find it by `number`. What the function raises is kept, the column filled with NaN, and `taken` hands it out.
    """

    def __init__(self, problem: Any, function: Callable[[np.ndarray], np.ndarray], strength: float, m: int) -> None:
        self.problem, self.function, self.strength, self.m = problem, function, strength, m
        self.error: BaseException | None = None
        self.number = next(_numbers)
        _registered[self.number] = self

    def increment(self, out: np.ndarray, x: np.ndarray, h: np.ndarray, v: np.ndarray) -> None:
        """All columns of one call."""
        for b in range(x.shape[1]):
            if self.error is not None:
                out[:, b] = np.nan
                continue
            try:
                out[:, b] = self.column(x[:, b].copy(), float(h[b]), v[:, b])
            except BaseException as error:
                self.error = error
                out[:, b] = np.nan

    def column(self, theta: np.ndarray, h: float, v: np.ndarray) -> np.ndarray:
        """One column; a column that is no longer finite moves to NaN without a call of the function."""
        if not np.isfinite(theta).all():
            return np.full(theta.size, np.nan)
        noise = 0.0
        if v.any():
            factor = self.function(theta)
            if factor.shape[1] != self.m:
                raise ShapeError(f"factor must return ({theta.size}, {self.m}) as at the start, got {factor.shape}")
            noise = self.strength * (factor @ v)
        if h == 0.0:
            return noise + np.zeros(theta.size)
        gradient = self.problem.gradient(theta)
        return noise - h * (gradient + 2.0 * self.problem.gamma * theta)

    def taken(self) -> BaseException | None:
        """The error that was kept, which is forgotten."""
        error, self.error = self.error, None
        return error


def _increment(out: Any, x: Any, h: Any, v: Any, p: Any) -> None:
    _registered[int(p[0])].increment(out, x, h, v)


@kernel(INCREMENT, nogil=False)
def python_increment(out, x, t, h, v, p, data, work):
    with numba.objmode():
        _increment(out, x, h, v, p)
