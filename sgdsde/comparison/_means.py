"""Means of functions of states over paths that come in pieces, with their covariance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.comparison._study import values

__all__ = ["Sums", "named", "one", "square"]


def square(y: np.ndarray) -> np.ndarray:
    """|y|² of states (n_paths, d): a second moment, which sees what means do not."""
    return (y**2).sum(axis=1)


class Sums:
    """Means and covariance of rows, over paths that come in pieces (Chan, Golub & LeVeque 1983)."""

    def __init__(self, rows: int, functions: int) -> None:
        self.n, self.mean, self.products = 0, np.zeros(rows), np.zeros((rows, rows))
        self.lost = np.zeros(rows, dtype=np.int64)
        """Paths of each row that are not finite; they enter as zeros, and such a row is not used."""
        self.squares = np.zeros(functions)

    def add(self, rows: np.ndarray) -> None:
        """rows (n_rows, n_paths)."""
        bad = ~np.isfinite(rows)
        self.lost += np.count_nonzero(bad, axis=1)
        rows = np.where(bad, 0.0, rows)
        n, mean = rows.shape[1], rows.mean(axis=1)
        rows -= mean[:, None]
        apart, total = mean - self.mean, self.n + n
        with np.errstate(over="ignore", invalid="ignore"):
            self.products += rows @ rows.T + np.outer(apart, apart) * (self.n * n / total)
        self.mean, self.n = self.mean + apart * (n / total), total

    def covariance(self) -> np.ndarray:
        """Of the means."""
        return self.products / (self.n * (self.n - 1))


def one(name: str, function: Callable[[np.ndarray], Any], y: np.ndarray, n: int) -> np.ndarray:
    with np.errstate(all="ignore"):  # states that are not finite are counted
        found = values(f"functions[{name!r}]", function, y, n)
    if found.shape[1] != 1:
        raise ShapeError(f"functions[{name!r}] must return one number for each path, got shape {found.shape}")
    return found[:, 0]


def named(functions: Any) -> dict[str, Callable[[np.ndarray], Any]]:
    named = functions if isinstance(functions, Mapping) else {word(functions): functions}
    if not named or not all(isinstance(name, str) and callable(function) for name, function in named.items()):
        wanted = "functions must be a function of states (n_paths, d), or a dict of such functions by name"
        raise ArgumentError(f"{wanted}, got {_check.show(functions)}")
    return dict(named)


def word(function: Any) -> str:
    if function is square:
        return "|y|²"
    return str(getattr(function, "name", None) or getattr(function, "__name__", None) or type(function).__name__)
