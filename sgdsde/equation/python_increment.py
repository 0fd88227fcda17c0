"""The INCREMENT of functions that numba cannot compile: it calls them in Python, column by column.

One kernel serves all such equations; p[0] is the number under which the functions are registered in this process.
What a function raises passes through the kernel, and through every kernel above it, to the Python caller.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel

__all__ = ["PythonColumns", "python_columns", "python_increment"]

_registered: weakref.WeakValueDictionary[int, PythonColumns] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


class _Memory(ctypes.c_double * 1):  # type: ignore[misc]
    """One double that can hold a reference."""

    owner: Any


class PythonColumns:
    """f and G of one equation as Python evaluates them, registered for as long as this object lives.

    Parameters
    ----------
    evaluate : callable
        (t, y) -> f (d,), and G (d, m), or (d,) when `diagonal`: checked arrays.
    double_sum : callable, optional
        (t, y, G, u) -> what the rows u of v behind the noise itself add (`derivative`).
    """

    def __init__(
        self,
        evaluate: Callable[[float, np.ndarray], tuple[np.ndarray, np.ndarray]],
        diagonal: bool,
        double_sum: Callable[[float, np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.evaluate = evaluate
        self.diagonal = diagonal
        self.double_sum = double_sum
        self.number = next(_numbers)
        _registered[self.number] = self

    def p(self) -> np.ndarray:
        """The array that names this object, and keeps it alive."""
        memory = _Memory(float(self.number))
        memory.owner = self
        return np.frombuffer(memory)

    def increment(self, out: np.ndarray, x: np.ndarray, t: np.ndarray, h: np.ndarray, v: np.ndarray) -> None:
        for b in range(x.shape[1]):
            f, g = self.evaluate(float(t[b]), x[:, b].copy())
            m = g.shape[-1]
            out[:, b] = f * h[b] + (g * v[:m, b] if self.diagonal else g @ v[:m, b])
            if len(v) > m and self.double_sum is not None:
                out[:, b] += self.double_sum(float(t[b]), x[:, b].copy(), g, v[m:, b])

    def columns(self, out: np.ndarray, x: np.ndarray, t: np.ndarray) -> None:
        """G (d, m) row by row (`columns`)."""
        for b in range(x.shape[1]):
            g = self.evaluate(float(t[b]), x[:, b].copy())[1]
            out[:, b] = (np.diag(g) if self.diagonal else g).reshape(-1)


def _increment(out: Any, x: Any, t: Any, h: Any, v: Any, p: Any) -> None:
    _registered[int(p[0])].increment(out, x, t, h, v)


@kernel(INCREMENT, nogil=False)
def python_increment(out, x, t, h, v, p, data, work):
    with numba.objmode():
        _increment(out, x, t, h, v, p)


def _write_columns(out: Any, x: Any, t: Any, p: Any) -> None:
    _registered[int(p[0])].columns(out, x, t)


@kernel(CORRECTION, nogil=False)
def python_columns(out, x, t, p, data, work):
    with numba.objmode():
        _write_columns(out, x, t, p)
