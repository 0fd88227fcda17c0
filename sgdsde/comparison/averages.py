"""Time averages of correlated series, with honest errors: autocorrelation times and batch means."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError

__all__ = ["TimeAverage", "autocorrelation_time", "batch_means"]

WINDOW = 5.0
"""The sum of autocorrelations goes on to this many autocorrelation times (A. Sokal 1997)."""
LONG = 50.0
"""A series of this many autocorrelation times knows its own."""
BATCHES = 20
"""Batches that all series are cut into at least, together."""
APART = 0.1
"""Neighbouring batches whose correlation is below this, or twice its error, count as independent."""


class TimeAverage(NamedTuple):
    """An average over time and paths.

    Attributes
    ----------
    mean, stderr : float
    n_batches : int
        How many numbers, taken as independent, the error comes from.
    tau : float
        Integrated autocorrelation time, in intervals of the series.
    reliable : bool
        Whether there were batches enough, apart from each other: else the error is too small.
    """

    mean: float
    stderr: float
    n_batches: int
    tau: float
    reliable: bool


def autocorrelation_time(series: Any) -> float:
    """Integrated autocorrelation time τ = 1 + 2Σρ_k of a stationary series, in its intervals; 1 for independent ones.

    Parameters
    ----------
    series : (n,) or (n_paths, n) array
        Autocovariances about the common mean are averaged over paths.

    Returns
    -------
    float
        The mean of n numbers has the variance τ·var/n. NaN for a constant series.

    Notes
    -----
    The sum stops at the first lag k >= 5τ (A. Sokal, "Monte Carlo methods in statistical mechanics", 1997, section 3).
    A series shorter than about 50 τ underestimates τ. Cost n log n.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).standard_normal((4, 5000))
    >>> x = np.zeros_like(z)
    >>> for k in range(1, 5000):
    ...     x[:, k] = 0.8 * x[:, k - 1] + z[:, k]
    >>> 8 < autocorrelation_time(x) < 10.5  # an autoregressive series: (1 + 0.8)/(1 - 0.8) = 9
    True
    """
    x = _series(series)
    n = x.shape[1]
    centred = x - x.mean()
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(power, size, axis=1)[:, :n].mean(axis=0) / n
    scale = np.abs(x).max()
    if covariance[0] <= (8 * np.finfo(float).eps * scale) ** 2:
        return math.nan
    total = 2.0 * np.cumsum(covariance / covariance[0]) - 1.0
    inside = np.flatnonzero(np.arange(n) >= WINDOW * np.maximum(total, 1.0))
    return float(max(total[inside[0] if inside.size else n - 1], 1.0 / n))


def batch_means(series: Any) -> TimeAverage:
    """Mean over all of a stationary series, with the standard error of means of batches.

    Parameters
    ----------
    series : (n,) or (n_paths, n) array
        Paths are independent of each other.

    Notes
    -----
    Neighbouring numbers are joined until the correlation of neighbouring batches is below 0.1, or below twice what
    chance gives; the error is that of the
    batch means (G. S. Fishman, "Discrete-event simulation", 2001, section 6.3). With fewer than 20 batches in all, or
    batches that still hang together, `reliable` is False.
    """
    x = _series(series)
    n_paths, n = x.shape
    mean, size = float(x.mean()), 1
    while True:
        count = n // size
        batches = x[:, n - count * size :].reshape(n_paths, count, size).mean(axis=2)
        apart = _neighbours(batches, mean) < max(APART, 2.0 / math.sqrt(batches.size))
        if apart or n_paths * (n // (2 * size)) < BATCHES or n // (2 * size) == 0:
            break
        size *= 2
    total = batches.size
    spread = batches.std(ddof=1) if total > 1 else math.nan
    tau = autocorrelation_time(x) if n > 1 else 1.0
    return TimeAverage(mean, float(spread / math.sqrt(total)), total, tau, bool(apart and total >= BATCHES))


def _neighbours(batches: np.ndarray, mean: float) -> float:
    """Correlation of neighbouring batches of one path."""
    if batches.shape[1] < 2:
        return 0.0
    centred = batches - mean
    square = (centred**2).mean()
    return float((centred[:, 1:] * centred[:, :-1]).mean() / square) if square > 0.0 else 0.0


def _series(series: Any) -> np.ndarray:
    x = _check.array("series", series)
    if x.ndim not in (1, 2) or x.size == 0:
        raise ShapeError(f"series must have shape (n,) or (n_paths, n), got {x.shape}")
    if x.shape[-1] < 2 and x.ndim == 1:
        raise ArgumentError("series must have at least 2 numbers")
    return np.atleast_2d(x)
