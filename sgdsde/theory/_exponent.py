"""Φ(x) = ∫ N/q dx, the exponent of a stationary density, from any reference point (from 0, as printed, it diverges).

Closed for K = 1, 2 and ∞, where the powers of x are whole: with J_n = ∫ x^{-n}/q dx,

    J_{-1} = ln q/(2α₁) + (α₂/α₁)J_0,   J_0 = arctan((α₁x - α₂)/√Δ)/√Δ,   α₃J_n = ∫x^{-n} dx - α₁J_{n-2} + 2α₂J_{n-1},

and for constant q or q = α₁x². For other K the integral is done by Gauss-Legendre panels in the coordinate z, and
beyond them by its leading powers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sgdsde.theory._charts import Chart, Half, Point
from sgdsde.theory._ends import End, Shape
from sgdsde.theory._table import panels, refine

__all__ = ["exponent"]

REACH = 60.0
"""Of the panels in z: beyond, x is 1e-26 of what it is compared with."""
SMALLEST = -345.0
"""ln x below which negative powers are no longer told apart (x² is the smallest number)."""

Exponent = Callable[[np.ndarray, Point], np.ndarray]


def exponent(shape: Shape, chart: Chart, ends: tuple[End, End]) -> Exponent:
    """Φ as a function of z and the point there."""
    if shape.alpha1 == 0.0 or (shape.alpha3 == 0.0 and shape.m > 0):
        return _powers(shape)
    if shape.m == round(shape.m):
        return _closed(shape, -1.0 if chart.ends[1] == shape.zero else 1.0)
    return _Panels(shape, chart, ends)


def _power(at: Point, e: float) -> np.ndarray:
    """∫ x^e dx."""
    if e == -1.0:
        return at.log_x
    if e >= 0 and e == round(e):
        return at.x ** (e + 1) / (e + 1)
    return np.exp((e + 1) * np.clip(at.log_x, SMALLEST, -SMALLEST)) / (e + 1)


def _powers(shape: Shape) -> Exponent:
    """q = α₃, or q = α₁x²."""
    divisor, shift = (shape.alpha3, 0.0) if shape.alpha1 == 0.0 else (shape.alpha1, -2.0)
    terms = [(c / divisor, e + shift) for c, e in shape.numerator() if c]
    return lambda z, at: sum((c * _power(at, e) for c, e in terms), np.zeros_like(z))


def _closed(shape: Shape, side: float) -> Exponent:
    """Whole powers, by the recursion; `side` of the double zero of q."""
    a1, a2, a3, delta = shape.alpha1, shape.alpha2, shape.alpha3, shape.delta
    wanted = [(round(-e), c) for e, c in ((e, c) for c, e in shape.numerator()) if c]
    top = max((n for n, _ in wanted), default=0)

    def phi(z: np.ndarray, at: Point) -> np.ndarray:
        J: dict[int, np.ndarray] = {}
        if delta > 0:
            root = np.sqrt(delta)
            J[0] = np.arctan((a1 * at.x - a2) / root) / root
            J[-1] = shape.log_q(at.x) / (2 * a1) + a2 / a1 * J[0]
        elif shape.zero is not None and (shape.zero > 0 or shape.m == 0):
            J[0] = -side / (a1 * at.gap)
            J[-1] = at.log_gap / a1 + a2 / a1 * J[0]
        else:  # the double zero of q is at x < 0
            J[0] = -1.0 / (a1 * at.x - a2)
            J[-1] = np.log(at.x - a2 / a1) / a1 + a2 / a1 * J[0]
        for n in range(1, top + 1):
            J[n] = (_power(at, float(-n)) - a1 * J[n - 2] + 2 * a2 * J[n - 1]) / a3
        return sum((c * J[n] for n, c in wanted), np.zeros_like(z))

    return phi


class _Panels:
    """Φ by quadrature, 0 at the middle of the panels."""

    def __init__(self, shape: Shape, chart: Chart, ends: tuple[End, End]) -> None:
        self.shape, self.chart, self.ends = shape, chart, ends
        scale = abs(shape.zero) if shape.zero is not None else np.sqrt(shape.alpha3 / shape.alpha1)
        middle = float(np.log(scale)) if isinstance(chart, Half) else 0.0
        grid = np.unique(np.append(np.arange(middle - REACH, middle + REACH + 0.1, 0.5), middle))
        near = np.abs(panels(self._integrand, grid[:-1], grid[1:])[np.abs(grid[:-1] - middle) < 2.0]).sum()
        self.edges, masses = refine(self._integrand, grid, 1e-16 * float(near))
        start = int(np.searchsorted(self.edges, middle))
        left = -np.cumsum(masses[:start][::-1])[::-1]  # from the middle outwards: at one end it may be huge
        self.sums = np.concatenate([left, [0.0], np.cumsum(masses[start:])])
        self.far = [self._end(k, self.edges[[0, -1]][k : k + 1]) for k in (0, 1)]

    def _integrand(self, z: np.ndarray) -> np.ndarray:
        at, s = self.chart.point(z), self.shape
        k = s.zero if s.zero is not None and s.zero > 0 else 0.0
        # β₁x - β₂ about k, where it may vanish with q
        pull, side = s.pull(k), -1.0 if self.chart.ends[1] == k else 1.0
        rest = at.log_jacobian - (np.log(s.alpha1) + 2 * at.log_gap if k else s.log_q(at.x))
        out = s.A * (pull + side * s.beta1 * at.gap) * np.exp(rest - s.m * at.log_x)
        return out + s.decay * np.exp(rest + (1 - 2 * s.m) * at.log_x) if s.decay else out

    def _end(self, k: int, z: np.ndarray) -> np.ndarray:
        """∫ of the leading powers at an end, as a function of z beyond the panels."""
        at, end = self.chart.point(z), self.ends[k]
        zero = self.shape.zero
        # the local variable: x, or the distance to the zero of q, which falls as x rises to it
        near_root = zero is not None and zero > 0 and not end.far and (k == 1 or self.chart.ends[0] > 0)
        tau = at.log_gap if near_root else at.log_x
        out = np.zeros_like(z)
        for c, e in end.terms:
            power = np.clip((e + 1) * np.clip(tau, SMALLEST, -SMALLEST), -700.0, 700.0)
            out += c * (tau if abs(e + 1) < 1e-9 else np.exp(power) / (e + 1))
        return out

    def __call__(self, z: np.ndarray, at: Point) -> np.ndarray:
        inside = np.clip(z, self.edges[0], self.edges[-1])
        i = np.clip(np.searchsorted(self.edges, inside, "right") - 1, 0, self.edges.size - 2)
        flat = panels(self._integrand, self.edges[i].ravel(), inside.ravel()).reshape(z.shape)
        out = self.sums[i] + flat
        for k, beyond in ((0, z < self.edges[0]), (1, z > self.edges[-1])):
            if beyond.any():
                out[beyond] += self._end(k, z[beyond]) - self.far[k]
        return out
