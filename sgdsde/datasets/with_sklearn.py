"""The two data sets that scikit-learn carries with it, scaled, as float64 arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.datasets.arrays import Data, one_hot_rows

__all__ = ["Data", "diabetes", "digits"]


def digits(*, one_hot: bool = True) -> Data:
    """Handwritten digits of 8 × 8 pixels, N = 1797.

    Parameters
    ----------
    one_hot : bool
        Targets as rows of the 10 × 10 unit matrix, for squared loss; False gives class numbers (N,), for softmax.

    Returns
    -------
    Data
        X (1797, 64), grey levels in [0, 1] (sixteenths); Y (1797, 10) or (1797,). Three pixels are zero in every
        image, so that the second moments of X have rank 61.

    Raises
    ------
    ModuleNotFoundError
        Without scikit-learn; it says how to install it.

    Examples
    --------
    >>> X, Y = digits()
    >>> X.shape, Y.shape, X.max()
    ((1797, 64), (1797, 10), np.float64(1.0))
    """
    found = _sklearn("digits").load_digits()
    return Data(np.ascontiguousarray(found.data) / 16.0, one_hot_rows(found.target, 10, one_hot))


def diabetes(*, standardize: bool = True) -> Data:
    """Ten measurements of patients and how their diabetes went on a year later, N = 442 (B. Efron et al., 2004).

    Parameters
    ----------
    standardize : bool
        Every column of X, and Y, with mean 0 and variance 1 (with 1/N). False: as they were measured.

    Returns
    -------
    Data
        X (442, 10), Y (442,).

    Raises
    ------
    ModuleNotFoundError
        Without scikit-learn; it says how to install it.

    Examples
    --------
    >>> X, Y = diabetes()
    >>> X.shape, Y.shape, round(float(np.var(Y)), 12)
    ((442, 10), (442,), 1.0)
    """
    X, Y = _sklearn("diabetes").load_diabetes(return_X_y=True, scaled=False)
    X, Y = np.array(X, dtype=np.float64, order="C"), np.array(Y, dtype=np.float64)
    if _check.flag("standardize", standardize):
        X, Y = ((a - a.mean(axis=0)) / a.std(axis=0) for a in (X, Y))
    return Data(X, Y)


def _sklearn(name: str) -> Any:
    try:
        return import_module("sklearn.datasets")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise ModuleNotFoundError(
            f"datasets.{name} reads the data that scikit-learn carries, and scikit-learn is not installed: "
            "python -m pip install 'sgdsde[demo]'",
            name="sklearn",
        ) from error
