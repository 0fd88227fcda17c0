"""The two-sample Kolmogorov-Smirnov distance of many pairs of samples at once, with its p-value."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ShapeError

__all__ = ["ks_two_sample"]

EXACT_UP_TO = 1_000_000
"""n_a·n_b up to which p is counted; above it the limit law is closer than anyone reads p."""


def ks_two_sample(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Largest distance between two empirical distribution functions, and how often chance alone gives as much.

    Parameters
    ----------
    a : array_like of shape (n_a, ...)
    b : array_like of shape (n_b, ...)
        Samples along the first axis; the other axes, the same in both, are separate tests. NaN must not be in them.

    Returns
    -------
    statistic, p_value : arrays of shape (...)

    Notes
    -----
    p is exact for independent samples of a continuous law while n_a·n_b <= 10⁶ (lattice paths that stay near the
    diagonal, Hodges 1958), then the limit law of Kolmogorov and Smirnov. Ties make it conservative, and so does noise
    that both samples share. Telling distributions 0.03 apart takes some 20 000 independent paths.

    Examples
    --------
    >>> distance, p = ks_two_sample([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])
    >>> float(distance), round(float(p) * 70)
    (1.0, 2)
    """
    a, b = _check.array("a", a), _check.array("b", b)
    if a.ndim == 0 or b.ndim == 0 or a.shape[1:] != b.shape[1:] or not len(a) or not len(b):
        raise ShapeError(
            f"a and b must have shapes (n_a, ...) and (n_b, ...) with equal rest, got {a.shape}, {b.shape}"
        )
    n, m = len(a), len(b)
    both = np.concatenate([a.reshape(n, -1), b.reshape(m, -1)])
    order = np.argsort(both, axis=0, kind="stable")
    ranked = np.take_along_axis(both, order, axis=0)
    steps = np.where(order < n, m, -n)  # n·m·(F_a - F_b) is an integer: no rounding in the statistic
    walk = np.abs(np.cumsum(steps, axis=0))
    last_of_tie = np.vstack([ranked[1:] != ranked[:-1], np.ones((1, ranked.shape[1]), dtype=bool)])
    largest = np.where(last_of_tie, walk, 0).max(axis=0, initial=0)
    p = np.array([_tail(n, m, int(k)) for k in largest])
    return (largest / (n * m)).reshape(a.shape[1:]), p.reshape(a.shape[1:])


@lru_cache(maxsize=4096)
def _tail(n: int, m: int, k: int) -> float:
    """P(n·m·D >= k) for two independent samples of sizes n and m."""
    if k <= 0:
        return 1.0
    if n * m > EXACT_UP_TO:
        from scipy.special import kolmogorov

        return float(kolmogorov(np.sqrt(n * m / (n + m)) * k / (n * m)))
    # Draw the merged order one by one: from (i, j) the next comes from a with chance (n - i)/(n - i + m - j). `alive`
    # is the chance to be at (i, s - i) without |i·m - j·n| having reached k; what has died by the end is p.
    i = np.arange(n + 1)
    alive = np.zeros(n + 1)
    alive[0] = 1.0
    dead = 0.0
    for s in range(n + m):
        j = s - i
        left = n + m - s
        up = alive * np.clip(n - i, 0, None) / left
        alive = alive * np.clip(m - j, 0, None) / left
        alive[1:] += up[:-1]
        out = np.abs(i * m - (s + 1 - i) * n) >= k
        dead += alive[out].sum()
        alive[out] = 0.0
    return float(min(dead, 1.0))
