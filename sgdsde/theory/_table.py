"""Integrals of a positive function given by its logarithm on R: adaptive Gauss-Legendre panels, kept for later use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["Table", "refine", "steps_from"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NODES, WEIGHTS = 0.5 * (NODES + 1.0), 0.5 * WEIGHTS
DROP = 90.0
"""The function is cut off where its logarithm is this far below the largest value."""
LOCAL, GLOBAL = 1e-12, 1e-17
"""A panel is halved while its two halves differ from it by more than both, of itself and of everything."""
MOST = 3000
"""Panels that are halved at once, at most."""
PARTS = 500
"""Equal parts of the integral that are about as long as a panel may be."""

Function = Callable[[np.ndarray], np.ndarray]


def panels(f: Function, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """∫ f over each [left_i, right_i], one rule of 16 points each."""
    return (f(left[:, None] + (right - left)[:, None] * NODES) @ WEIGHTS) * (right - left)


def refine(f: Function, edges: np.ndarray, floor: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Edges of panels on which f is integrated to rounding, and the integrals, in order.

    `floor` is an error that may be made in each panel; by default `GLOBAL` of the integral of |f|.
    """
    left, right = edges[:-1], edges[1:]
    whole = panels(f, left, right)
    done: list[np.ndarray] = []
    scale = np.abs(whole).sum()
    allowed = GLOBAL * scale if floor is None else floor
    for _ in range(60):
        middle = 0.5 * (left + right)
        first, second = panels(f, left, middle), panels(f, middle, right)
        off = np.abs(first + second - whole)
        bad = (off > LOCAL * (np.abs(first) + np.abs(second))) & (off > allowed)
        good = ~bad
        done += [
            np.stack([left[good], middle[good], first[good]]),
            np.stack([middle[good], right[good], second[good]]),
        ]
        if not bad.any():
            break
        if bad.sum() > MOST:  # what is left is the rounding of f
            done.append(np.stack([left[bad], right[bad], (first + second)[bad]]))
            break
        if floor is None:
            scale = max(scale, np.abs(first).sum() + np.abs(second).sum())
            allowed = GLOBAL * scale
        left, right = np.concatenate([left[bad], middle[bad]]), np.concatenate([middle[bad], right[bad]])
        whole = np.concatenate([first[bad], second[bad]])
    else:
        done.append(np.stack([left, right, whole]))
    every = np.concatenate(done, axis=1)
    every = every[:, np.argsort(every[0])]
    return np.append(every[0], every[1, -1]), every[2]


def steps_from(centres: Sequence[float], reach: float) -> np.ndarray:
    """Points on both sides of each centre, at distances that grow by halves, up to `reach`."""
    away = 1e-6 * 1.5 ** np.arange(np.ceil(np.log(reach / 1e-6) / np.log(1.5)) + 1)
    offsets = np.concatenate([-away[::-1], [0.0], away])
    return np.unique(np.add.outer(np.asarray(centres, dtype=float), offsets))


class Table:
    """F(z) = ∫_{-∞}^z exp(log_f) / ∫_R exp(log_f), with `log_total` the logarithm of the denominator."""

    def __init__(self, log_f: Function, centres: Sequence[float]) -> None:
        grid = steps_from(centres, 1e7)
        with np.errstate(all="ignore"):
            values = np.nan_to_num(log_f(grid), nan=-np.inf, posinf=-np.inf)
        self.top = float(values.max())
        seen = np.flatnonzero(values > self.top - DROP)
        grid = grid[max(seen[0] - 1, 0) : seen[-1] + 2]
        self.log_f = log_f
        with np.errstate(over="ignore", under="ignore"):
            self.edges, self.masses = refine(self._f, grid)
            self._split()
            total = float(self.masses.sum())
            self.log_total = self.top + float(np.log(total))
            self.masses = self.masses / total
        self.below = np.append(0.0, np.cumsum(self.masses))
        self.above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)

    def _split(self) -> None:
        """Cut panels that hold much into equal parts, for `ppf` to start close."""
        parts = np.ceil(PARTS * self.masses / self.masses.sum()).astype(int).clip(1)
        first, width = np.repeat(self.edges[:-1], parts), np.repeat(np.diff(self.edges) / parts, parts)
        left = first + width * (np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts))
        self.edges = np.append(left, self.edges[-1])
        self.masses = panels(self._f, self.edges[:-1], self.edges[1:])

    def _f(self, z: np.ndarray) -> np.ndarray:
        return np.exp(self.log_f(z) - self.top)

    def _part(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Probability of [left, right], within one panel."""
        return panels(self._f, left, right) * np.exp(self.top - self.log_total)

    def _place(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = np.clip(z, self.edges[0], self.edges[-1])
        return z, np.clip(np.searchsorted(self.edges, z, "right") - 1, 0, self.masses.size - 1)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        """F(z), (n,)."""
        z, i = self._place(z)
        return np.minimum(self.below[i] + self._part(self.edges[i], z), 1.0)

    def sf(self, z: np.ndarray) -> np.ndarray:
        """1 - F(z), (n,), without the cancellation."""
        z, i = self._place(z)
        return np.minimum(self.above[i + 1] + self._part(z, self.edges[i + 1]), 1.0)

    def ppf(self, u: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """z with F(z) = u = 1 - rest, (n,), 0 < u < 1: Newton within a panel, kept inside it by halving."""
        lower, n = u <= 0.5, self.masses.size
        i = np.where(
            lower, np.searchsorted(self.below, u, "right") - 1, n - np.searchsorted(self.above[::-1], rest, "right")
        ).clip(0, n - 1)
        start, mass = self.edges[i], self.masses[i]
        left, right = start.copy(), self.edges[i + 1].copy()
        # what is missing, from the nearer end of the range
        wanted = np.where(lower, u - self.below[i], mass - (rest - self.above[i + 1]))
        z = left + np.clip(wanted / mass, 0.0, 1.0) * (right - left)
        scale = np.exp(self.top - self.log_total)
        todo = np.arange(u.size)
        for _ in range(60):
            at = z[todo]
            off = self._part(start[todo], at) - wanted[todo]
            low = left[todo] = np.where(off <= 0, at, left[todo])
            high = right[todo] = np.where(off >= 0, at, right[todo])
            with np.errstate(divide="ignore", invalid="ignore"):
                new = at - off / (self._f(at) * scale)
            new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
            z[todo] = new
            todo = todo[np.abs(new - at) > 1e-9 * (1.0 + np.abs(at))]  # the next error is the square of this step
            if not todo.size:
                break
        return z

    def mean(self, g: Callable[[np.ndarray], Any]) -> float:
        """∫ g dF."""

        def integrand(z: np.ndarray) -> np.ndarray:
            return self._f(z) * g(z)

        with np.errstate(over="ignore", under="ignore"):
            return float(refine(integrand, self.edges)[1].sum() * np.exp(self.top - self.log_total))
