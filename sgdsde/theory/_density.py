"""A stationary density that is not normalised yet: its range, what it does at the ends, and its logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.theory import reduced
from sgdsde.theory._charts import Chart, Half, Interval, Line
from sgdsde.theory._ends import End, Shape, at_infinity, at_root, at_zero
from sgdsde.theory._exponent import exponent
from sgdsde.theory.reduced import Coefficients

__all__ = ["Density"]


class Density:
    """Base of `StationaryLaw`: all that follows from the reduced equation without an integral over p."""

    def __init__(self, numbers: Coefficients, branch: int | None) -> None:
        if branch not in (None, 1, -1):
            raise ArgumentError(f"branch must be 1, -1 or None, got {_check.show(branch)}")
        if numbers.m == 0.0 and branch is not None:
            raise ArgumentError("branch must be None for depth=1, where v runs over R")
        self._numbers = numbers
        self._sign = branch or (-1 if numbers.beta2 < 0 else 1)
        shape = Shape.of(numbers, self._sign)
        self.atoms: tuple[float, ...] = ()
        chart: Chart
        ends: tuple[End, End]
        if numbers.m == 0.0:
            self._sign, shape = 1, Shape.of(numbers, 1)
            if shape.zero is None:
                width = np.sqrt(shape.delta) / shape.alpha1 if shape.alpha1 else 1.0 + abs(shape.beta2) / shape.beta1
                chart = Line(shape.alpha2 / shape.alpha1 if shape.alpha1 else shape.beta2 / shape.beta1, width)
                ends = at_infinity(Shape.of(numbers, -1)), at_infinity(shape)
            else:  # q(k) = 0, and what drifts through k does not come back
                if not at_root(shape, 1).integrable():
                    self._sign, shape = -1, Shape.of(numbers, -1)
                chart, ends = Half(float(shape.zero or 0.0)), (at_root(shape, 1), at_infinity(shape))
        elif shape.zero is None or shape.zero <= 0:
            chart, ends = Half(), (at_zero(shape), at_infinity(shape))
        elif at_root(shape, 1).integrable():
            chart, ends = Half(shape.zero), (at_root(shape, 1), at_infinity(shape))
        else:
            chart, ends = Interval(shape.zero), (at_zero(shape), at_root(shape, -1))
        self._shape, self._chart, self._ends = shape, chart, ends
        self.support = tuple(sorted(self._sign * e + 0.0 for e in chart.ends))
        self.normalisable = ends[0].integrable() and ends[1].integrable()
        if not self.normalisable:
            sinks = [e for e, end in zip(chart.ends, ends) if not end.integrable()]
            self.atoms = tuple(sorted(self._sign * e + 0.0 for e in sinks))
        self._phi = exponent(shape, chart, ends)

    # --- the equation -------------------------------------------------------------------------------------------------

    def drift(self, v: Any) -> np.ndarray:
        """Drift of v in the reduced equation, any shape; for `deep` in the time 2Kt/d."""
        return reduced.drift(0.0, (np.asarray(v, dtype=float),), *self._numbers.args)[0]

    def diffusion(self, v: Any) -> np.ndarray:
        """Noise coefficient of v in the reduced equation, any shape."""
        return reduced.diffusion(0.0, (np.asarray(v, dtype=float),), *self._numbers.args)[0]

    # --- exponents ----------------------------------------------------------------------------------------------------

    @property
    def origin_exponent(self) -> float:
        """p ~ |v|^this as v → 0; inf where p vanishes faster than any power, NaN where 0 is not an end of its range."""
        return float(self._ends[0].exponent) if self._numbers.m > 0 and self._chart.ends[0] == 0 else np.nan

    @property
    def tail_exponent(self) -> float:
        """p ~ |v|^this as v → ∞, -5 + 3/K in general; -inf for a tail below every power, NaN where there is none."""
        return float(self._ends[1].exponent) if self._ends[1].far else np.nan

    def _finite(self, j: float) -> bool:
        for value, end in zip(self._chart.ends, self._ends):
            if not end.integrable(j if end.far or value == 0 else 0.0):
                return False
        return True

    # --- the logarithm ------------------------------------------------------------------------------------------------

    def _log(self, z: np.ndarray, volume: bool = True) -> np.ndarray:
        """ln of the density that is not normalised, of x; with dx/dz if `volume`."""
        at, s = self._chart.point(z), self._shape
        if s.zero is not None and (s.zero > 0 or s.m == 0):
            log_q = np.log(s.alpha1) + 2 * at.log_gap
        else:
            log_q = s.log_q(at.x)
        out = s.root * log_q - self._phi(z, at)
        if s.power:
            out = out + s.power * at.log_x
        return out + at.log_jacobian if volume else out

    def _centres(self) -> list[float]:
        low, high = self._chart.ends
        wanted = [self._shape.beta2 / self._shape.beta1, self._shape.alpha2 / (self._shape.alpha1 or np.inf)]
        inside = np.array([x for x in wanted if low < x < high])
        return [*self._chart.z(inside), 0.0]

    def _inside(self, v: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        v = _check.array("v", v, finite=False)
        x = self._sign * v
        inside = (x > self._chart.ends[0]) & (x < self._chart.ends[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            return v, inside, self._chart.z(x[inside])

    def log_density(self, v: Any) -> np.ndarray:
        """ln p up to a constant, whether or not p can be normalised; -inf outside the support. Any shape."""
        v, inside, z = self._inside(v)
        out = np.where(np.isnan(v), np.nan, -np.inf)
        with np.errstate(all="ignore"):
            out[inside] = self._log(z, volume=False)
        return out

    def slope(self, v: Any) -> np.ndarray:
        """v q(v) d ln p/dv, any shape (without the v for K = 1): zero where p has a critical point."""
        x, s = self._sign * np.asarray(v, dtype=float), self._shape
        q = (s.alpha1 * x - 2 * s.alpha2) * x + s.alpha3
        shift, outer = (1, x) if s.m > 0 else (0, 1.0)
        out = s.power * q + s.root * outer * (2 * s.alpha1 * x - 2 * s.alpha2)
        return out - sum(c * x ** (e + shift) for c, e in s.numerator() if c)
