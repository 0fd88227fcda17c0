"""Observers that numba cannot compile: one kernel that calls them in Python, column by column.

p[0] is the number under which a function is registered in this process. What it raises reaches the caller of `solve`.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from sgdsde._abi import OBSERVE
from sgdsde._jit import kernel
from sgdsde.equation.observing import observed_values

__all__ = ["PythonObserver", "python_observe"]

_registered: weakref.WeakValueDictionary[int, PythonObserver] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


class PythonObserver:
    """A function (t, y, *args) -> `rows` numbers, registered for as long as this object lives."""

    def __init__(self, label: str, function: Any, args: Sequence[Any], rows: int) -> None:
        self.label, self.function, self.args, self.rows = label, function, args, rows
        self.number = next(_numbers)
        _registered[self.number] = self

    def p(self) -> np.ndarray:
        return np.array([float(self.number)])

    def __call__(self, out: np.ndarray, x: np.ndarray, t: np.ndarray) -> None:
        for b in range(x.shape[1]):
            y = x[:, b].copy()
            if not np.isfinite(y).all():  # users' functions never see such a state
                out[:, b] = np.nan
                continue
            with np.errstate(all="ignore"):
                returned = self.function(float(t[b]), y, *self.args)
            out[:, b] = observed_values(self.label, self.function, returned, self.rows)


def _observe(out: Any, x: Any, t: Any, p: Any) -> None:
    _registered[int(p[0])](out, x, t)


@kernel(OBSERVE, nogil=False)
def python_observe(out, x, t, p, data, work):
    with numba.objmode():
        _observe(out, x, t, p)
