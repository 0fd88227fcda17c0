"""What a stationary density does at the ends of its range, read off from exponents: no integral decides if it exists.

On x > 0 (or all of R for K = 1) the density is

    log p = power·ln x + root·ln q(x) - Φ(x),    Φ' = N/q,    N = Aβ₁x^{1-m} - Aβ₂x^{-m} + Γx^{1-2m},

A = 1/(cT), Γ = γK/(c²T). Near an end, in the local variable τ (x, x, or the distance to a zero of q), Φ' is a sum of
powers: those beyond 1/τ make p vanish or grow faster than any power, 1/τ itself adds to the power.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgdsde.theory.reduced import Coefficients

__all__ = ["End", "Shape", "at_infinity", "at_root", "at_zero"]

SAME = 1e-9
"""Powers this close are one."""
ROUNDING = 1e-12
"""A coefficient below this part of the terms that it is the sum of is zero; so is Δ below this part of α₁α₃."""


@dataclass(frozen=True)
class Shape:
    """The numbers of the formula above, on the branch sign·v = x > 0."""

    m: float
    A: float
    decay: float
    beta1: float
    beta2: float
    alpha1: float
    alpha2: float
    alpha3: float
    power: float
    root: float

    @classmethod
    def of(cls, at: Coefficients, sign: int) -> Shape:
        """Of a reduced equation: Itô p ∝ x^{-3m/2} q^{-1} e^{-Φ}, Stratonovich p ∝ x^{-m} q^{-1/2} e^{-Φ}."""
        power, root = (-1.5 * at.m, -1.0) if at.ratio > 0 or at.m == 0 else (-at.m, -0.5)
        A, decay = 1.0 / (at.c * at.T), at.decay / (at.c * at.c * at.T)
        return cls(at.m, A, decay, at.beta1, sign * at.beta2, at.alpha1, sign * at.alpha2, at.alpha3, power, root)

    @property
    def delta(self) -> float:
        """α₁α₃ - α₂², exactly 0 where it is rounding."""
        delta = self.alpha1 * self.alpha3 - self.alpha2**2
        return delta if delta > ROUNDING * self.alpha1 * self.alpha3 else 0.0

    @property
    def zero(self) -> float | None:
        """The double zero k of q, or None."""
        return self.alpha2 / self.alpha1 if self.alpha1 > 0 and self.delta == 0.0 else None

    def pull(self, k: float) -> float:
        """β₁k - β₂, exactly 0 where it is rounding."""
        value = self.beta1 * k - self.beta2
        return value if abs(value) > ROUNDING * abs(self.beta2) else 0.0

    def numerator(self) -> list[tuple[float, float]]:
        """N as (coefficient, power)."""
        m = self.m
        return [(self.A * self.beta1, 1 - m), (-self.A * self.beta2, -m), (self.decay, 1 - 2 * m)]

    def log_q(self, x: np.ndarray) -> np.ndarray:
        """ln q(x), for q without a zero at k > 0 (there its logarithm comes from the distance to k)."""
        if self.alpha1 == 0.0:
            return np.full_like(x, np.log(self.alpha3))
        big = np.abs(x) > 1e100
        square = np.where(big, 0.0, x) - self.alpha2 / self.alpha1
        inner = np.log(self.alpha1 * square**2 + self.delta / self.alpha1)
        return np.where(big, np.log(self.alpha1) + 2 * np.log(np.abs(x) + (x == 0)), inner)


class End(NamedTuple):
    """p at an end: τ^power, times something faster than powers where `essential` is not 0."""

    terms: tuple[tuple[float, float], ...]
    """Φ'(τ) as (coefficient, power), as far as it does not vanish against 1/τ."""
    power: float
    essential: int
    """-1: p vanishes faster than any power of τ; 1: it grows faster."""
    far: bool
    """Whether the end is at infinity."""

    def integrable(self, j: float = 0.0) -> bool:
        """Whether ∫ τ^j p is finite at this end."""
        if self.essential:
            return self.essential < 0
        return self.power + j < -1 if self.far else self.power + j > -1

    @property
    def exponent(self) -> float:
        """The power, ±inf for what is faster (-inf at infinity, +inf at a finite end where p vanishes)."""
        if not self.essential:
            return self.power
        return (np.inf if self.essential > 0 else -np.inf) * (1 if self.far else -1)


def _end(pairs: list[tuple[float, float]], power: float, far: bool) -> End:
    """Gather powers of Φ', and weigh them."""
    terms: list[tuple[float, float]] = []
    for e in sorted({round(e, 9) for _, e in pairs}, reverse=far):
        same = [c for c, at in pairs if abs(at - e) < SAME]
        total = sum(same)
        if abs(total) > ROUNDING * sum(map(abs, same)) and (e > -1 - SAME if far else e < -1 + SAME):
            terms.append((total, next(at for _, at in pairs if abs(at - e) < SAME)))
    essential = 0
    for c, e in terms:
        if abs(e + 1) < SAME:
            power -= c
        elif not essential:
            essential = int(-np.sign(c) if far else np.sign(c))
    return End(tuple(terms), power, essential, far)


def _quotient(shape: Shape, series: list[float], first: float, step: int) -> list[tuple[float, float]]:
    return [(c * r, e + first + step * j) for c, e in shape.numerator() for j, r in enumerate(series)]


def at_zero(shape: Shape) -> End:
    """x → 0."""
    a1, a2, a3 = shape.alpha1, shape.alpha2, shape.alpha3
    if a3 == 0.0:
        return _end(_quotient(shape, [1 / a1], -2, 1), shape.power + 2 * shape.root, False)
    series = [1 / a3, 2 * a2 / a3**2]
    for _ in range(3):
        series.append((2 * a2 * series[-1] - a1 * series[-2]) / a3)
    return _end(_quotient(shape, series, 0, 1), shape.power, False)


def at_infinity(shape: Shape) -> End:
    """x → ∞."""
    a1, a2, a3 = shape.alpha1, shape.alpha2, shape.alpha3
    if a1 == 0.0:
        return _end(_quotient(shape, [1 / a3], 0, -1), shape.power, True)
    return _end(_quotient(shape, [1 / a1, 2 * a2 / a1**2], -2, -1), shape.power + 2 * shape.root, True)


def at_root(shape: Shape, side: int) -> End:
    """τ = side·(x - k) → 0+, q = α₁τ²."""
    k = shape.zero
    assert k is not None
    values = [c * (k**e if e else 1.0) for c, e in shape.numerator()]
    slopes = [c * e * k ** (e - 1) for c, e in shape.numerator() if e]
    pairs = [(side * c / shape.alpha1, -2.0) for c in values] + [(c / shape.alpha1, -1.0) for c in slopes]
    power = 2 * shape.root + (shape.power if k == 0 and shape.power else 0.0)
    return _end(pairs, power, False)
