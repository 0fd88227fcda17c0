"""Coordinates z in R on the range of a stationary density, in which powers at its ends become exponentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Chart", "Half", "Interval", "Line", "Point"]


class Point(NamedTuple):
    """x and what would cancel if it were computed from x."""

    x: np.ndarray
    log_x: np.ndarray
    """ln x; NaN where x < 0."""
    gap: np.ndarray
    """|x - k|, k the finite end other than 0 (or 0)."""
    log_gap: np.ndarray
    log_jacobian: np.ndarray
    """ln dx/dz."""


class Chart:
    """z ↦ x, increasing."""

    ends: tuple[float, float]

    def point(self, z: np.ndarray) -> Point:
        """x at z."""
        raise NotImplementedError

    def z(self, x: np.ndarray) -> np.ndarray:
        """z of x inside the ends."""
        raise NotImplementedError


@dataclass(frozen=True)
class Half(Chart):
    """(k, ∞), x = k + e^z."""

    k: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        return self.k, np.inf

    def point(self, z: np.ndarray) -> Point:
        gap = np.exp(z)
        x = self.k + gap
        if self.k == 0.0:
            return Point(x, z, gap, z, z)
        return Point(x, _log(x), gap, z, z)

    def z(self, x: np.ndarray) -> np.ndarray:
        return np.log(x - self.k)


@dataclass(frozen=True)
class Interval(Chart):
    """(0, k), x = k/(1 + e^{-z}); gap = k - x."""

    k: float

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        return 0.0, self.k

    def point(self, z: np.ndarray) -> Point:
        log_k = np.log(self.k)
        left, right = -np.logaddexp(0.0, -z), -np.logaddexp(0.0, z)
        return Point(self.k * np.exp(left), log_k + left, self.k * np.exp(right), log_k + right, log_k + left + right)

    def z(self, x: np.ndarray) -> np.ndarray:
        return np.log(x) - np.log(self.k - x)


@dataclass(frozen=True)
class Line(Chart):
    """R, x = centre + width·sinh z."""

    centre: float
    width: float

    ends = (-np.inf, np.inf)

    def point(self, z: np.ndarray) -> Point:
        x = self.centre + self.width * np.sinh(z)
        jacobian = np.log(0.5 * self.width) + np.logaddexp(z, -z)
        return Point(x, _log(x), np.abs(x), np.log(np.abs(x) + (x == 0)), jacobian)

    def z(self, x: np.ndarray) -> np.ndarray:
        return np.arcsinh((x - self.centre) / self.width)


def _log(x: np.ndarray) -> np.ndarray:
    return np.log(np.where(x > 0, x, np.nan))
