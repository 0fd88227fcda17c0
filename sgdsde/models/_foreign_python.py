"""A user's functions of one sample as Python calls them, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ModelError, ShapeError
from sgdsde.models._foreign_passes import Passes
from sgdsde.models.model import DIFFERENCE

__all__ = ["FunctionPasses"]


class FunctionPasses(Passes):
    """The functions as Python calls them."""

    def __init__(self, model: Any, X: np.ndarray, Y: np.ndarray) -> None:
        super().__init__(X.shape[0], model.dim)
        self.X, self.Y, self.args = X, Y, model.args
        self._loss, self._gradient = model.loss_function, model.gradient_function

    def _called(self, label: str, function: Any, theta: np.ndarray, i: int) -> Any:
        try:
            with np.errstate(all="ignore"):
                return function(theta, self.X[i], self.Y[i], *self.args)
        except Exception as error:  # the user's own, with a word on where it came from
            shapes = f"theta {theta.shape}, x {np.shape(self.X[i])}, y {np.shape(self.Y[i])}"
            error.add_note(f"raised by {label}(theta, x, y, *args) for sample {i}, called with {shapes}")
            raise

    def loss(self, theta: np.ndarray, i: int) -> float:
        """ℓ_i."""
        returned = self._called("loss", self._loss, theta, i)
        value = np.asarray(returned)
        if value.size != 1 or value.ndim > 1:
            raise ShapeError(f"loss must return one number for one sample, got shape {value.shape}")
        if value.dtype.kind not in "biuf":
            raise ModelError(f"loss must return a real number, got {_check.show(returned)}")
        return float(value.reshape(()))

    def gradient(self, theta: np.ndarray, i: int) -> np.ndarray:
        """∇ℓ_i."""
        if not callable(self._gradient):
            return self._differences(theta, i)
        returned = self._called("gradient", self._gradient, theta, i)
        value = np.asarray(returned)
        if value.shape != (self.dim,) and not (self.dim == 1 and value.ndim == 0):
            raise ShapeError(f"gradient must return the {self.dim} derivatives, shape ({self.dim},), got {value.shape}")
        if value.dtype.kind not in "biuf":
            raise ModelError(f"gradient must return real numbers, got dtype {value.dtype}")
        return value.astype(np.float64).reshape(self.dim)

    def _differences(self, theta: np.ndarray, i: int) -> np.ndarray:
        out, moved = np.empty(self.dim), theta.copy()
        for k in range(self.dim):
            h = DIFFERENCE * (1.0 + abs(theta[k]))
            moved[k] = theta[k] + h
            ahead, width = self.loss(moved, i), moved[k]
            moved[k] = theta[k] - h
            out[k] = (ahead - self.loss(moved, i)) / (width - moved[k])
            moved[k] = theta[k]
        return out

    def losses(self, theta: np.ndarray) -> np.ndarray:
        theta = theta.copy()
        return np.array([self.loss(theta, i) for i in range(self.n)])

    def weighted(self, theta: np.ndarray, c: np.ndarray) -> np.ndarray:
        theta, total = theta.copy(), np.zeros(self.dim)
        for i in np.flatnonzero(c):
            total += c[i] * self.gradient(theta, int(i))
        return total

    def batch(self, theta: np.ndarray, index: np.ndarray) -> np.ndarray:
        theta, total = theta.copy(), np.zeros(self.dim)
        for i in index:
            total += self.gradient(theta, int(i))
        return total / index.size
