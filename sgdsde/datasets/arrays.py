"""What the data sets of this room are handed out as."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["Data", "one_hot_rows"]


class Data(NamedTuple):
    """Inputs and targets: ``X, Y = datasets.digits()``."""

    X: np.ndarray
    """(N, d_x)."""
    Y: np.ndarray
    """(N, d_y), or (N,) for numbers and class numbers."""


def one_hot_rows(labels: np.ndarray, n_classes: int, one_hot: bool) -> np.ndarray:
    """Rows of the unit matrix (N, n_classes) for class numbers, or these themselves, as float64."""
    if labels.size and (labels.min() < 0 or labels.max() >= n_classes):
        raise ArgumentError(f"labels must be in 0..{n_classes - 1}, got {labels.min()}..{labels.max()}")
    return np.eye(n_classes)[labels] if _check.flag("one_hot", one_hot) else labels.astype(np.float64)
