"""Losses of one sample's outputs o against its target y: `squared`, `logistic`, `softmax`.

    squared    ‖o - y‖²                           y: K real numbers; no ½
    logistic   Σ_j log(1 + e^{-y_j o_j})          y_j: labels ±1, or 0/1, which stand for -1/+1
    softmax    log Σ_j e^{o_j} - Σ_j y_j o_j      y: the number of the class, 0..K-1, or K probabilities with sum 1

Models take them by name or as these objects, and multiply them by their `scale`. Values, gradients and second
derivatives are compiled, and finite wherever the result is: no exponential of a large number is formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["Loss", "logistic", "read_loss", "softmax", "squared"]

SUM_TOLERANCE = 1e-9


class Loss:
    """A loss of K outputs, for N samples at once; there are three, made in this module.

    Examples
    --------
    >>> from sgdsde import losses
    >>> losses.softmax.value([[1000.0, 0.0], [0.0, 0.0]], [0, 1])
    array([0.        , 0.69314718])
    >>> losses.squared.gradient([[1.0, 2.0]], [[0.0, 0.0]])
    array([[2., 4.]])
    >>> losses.logistic
    losses.logistic
    """

    def __init__(self, name: str, kind: int) -> None:
        self.name, self.kind = name, kind

    def __repr__(self) -> str:
        return f"losses.{self.name}"

    def __reduce__(self) -> Any:
        return read_loss, (self.name,)

    def targets(self, Y: Any, n_outputs: int) -> np.ndarray:
        """Y as the kernels read it, float64: (N, K), or (N,) for K = 1 and for class numbers.

        Raises
        ------
        ArgumentError, ShapeError
            For labels other than those of the loss, rows of probabilities that are negative or do not add up to one, or
            a shape that does not fit K outputs.
        """
        if self.name == "softmax" and n_outputs < 2:
            raise ArgumentError(f"softmax needs at least 2 outputs, got {n_outputs}; one output is the logistic loss")
        if not (isinstance(Y, np.ndarray) and Y.dtype == np.float64 and Y.flags.c_contiguous and np.isfinite(Y).all()):
            Y = _check.array("Y", Y)
        if self.name == "softmax" and (Y.ndim == 1 or Y.shape[1:] == (1,)):
            wrong = (Y != np.floor(Y)) | (Y < 0) | (Y >= n_outputs)
            if wrong.any():
                raise ArgumentError(
                    f"Y must hold class numbers 0..{n_outputs - 1} for the softmax loss, got {Y[wrong][0]:g}"
                )
            return Y
        if Y.ndim not in (1, 2) or (1 if Y.ndim == 1 else Y.shape[1]) != n_outputs:
            wanted = f"(n_samples, {n_outputs})" + (" or (n_samples,)" if n_outputs == 1 else "")
            labels = " or class numbers (n_samples,)" if self.name == "softmax" else ""
            hint = f"; labels 0..{n_outputs - 1} become rows by np.eye({n_outputs})[Y]" if Y.ndim == 1 else ""
            raise ShapeError(f"Y must have shape {wanted}{labels} for {n_outputs} outputs, got {Y.shape}{hint}")
        if self.name == "softmax":
            off = np.abs(Y.sum(axis=1) - 1.0) > SUM_TOLERANCE
            if (Y < 0).any() or off.any():
                raise ArgumentError("Y must hold probabilities for the softmax loss, none below 0 and each row's sum 1")
        if self.name == "logistic":
            if ((Y == 0) | (Y == 1)).all():
                return 2.0 * Y - 1.0 if (Y == 0).any() else Y
            wrong = np.abs(Y) != 1
            if wrong.any():
                raise ArgumentError(f"Y must hold labels ±1, or 0 and 1, for the logistic loss, got {Y[wrong][0]:g}")
        return Y

    def value(self, outputs: Any, Y: Any) -> np.ndarray:
        """ℓ(o_i, y_i), shape (N,), for outputs (N, K), or (N,) for K = 1."""
        return self._call(outputs, Y)[0]

    def gradient(self, outputs: Any, Y: Any) -> np.ndarray:
        """∂ℓ/∂o, of the shape of `outputs`."""
        return self._call(outputs, Y)[1]

    def hessian_vector(self, outputs: Any, Y: Any, v: Any) -> np.ndarray:
        """(∂²ℓ/∂o²) v, of the shape of `outputs`, for v of that shape."""
        return self._call(outputs, Y, _check.array("v", v, np.shape(outputs)))[2]

    def _call(self, outputs: Any, Y: Any, v: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from sgdsde.models.loss_calls import derivatives

        outputs = _check.array("outputs", outputs)
        if outputs.ndim not in (1, 2) or outputs.size == 0:
            raise ShapeError(f"outputs must have shape (n_samples, n_outputs), got {outputs.shape}")
        rows = outputs.reshape(outputs.shape[0], -1)
        n, k = rows.shape
        Y = self.targets(Y, k)
        if Y.shape[0] != n:
            raise ShapeError(f"Y must hold {n} samples, as outputs do, got {Y.shape[0]}")
        columns = Y.size // n
        turned, tangent = np.array(rows.T, order="C"), np.zeros((k, n))
        if v is not None:
            tangent[:] = v.reshape(n, k).T
        value, gradient = np.empty(n), turned.copy()
        derivatives(self.kind, value, gradient, tangent, turned, np.ascontiguousarray(Y.ravel()), columns, np.ones(n))
        return value, gradient.T.reshape(outputs.shape).copy(), tangent.T.reshape(outputs.shape).copy()


squared = Loss("squared", 0)
"""‖o - y‖², summed over the outputs, without ½."""
logistic = Loss("logistic", 1)
"""Σ_j log(1 + e^{-y_j o_j}) for labels ±1 or 0/1."""
softmax = Loss("softmax", 2)
"""Cross-entropy log Σ_j e^{o_j} - Σ_j y_j o_j for class numbers or probabilities."""

_BY_NAME = {loss.name: loss for loss in (squared, logistic, softmax)}


def read_loss(loss: Any) -> Loss:
    """A loss by its name, or itself."""
    return loss if isinstance(loss, Loss) else _BY_NAME[_check.choice("loss", loss, _BY_NAME)]
