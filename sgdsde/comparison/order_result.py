"""OrderResult: a measured order with its interval, its levels and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["OrderResult", "WeakOrderResult"]


@dataclass(frozen=True, repr=False, eq=False)
class OrderResult:
    """A measured order of convergence.

    Attributes
    ----------
    order : float
        Slope of log2(error) against log2(dt) over the levels used; NaN where there are too few of them.
    interval : (float, float)
        `sigmas` standard errors of the slope on each side, which carry that the levels share their paths, plus twice
        (3.5 times where there are three levels) what the finer half of the levels would change, less one (2.5) standard
        errors of that and at least one; at least 0.05; plus what the error of a numerical reference can do.
    expected : float or None
        The trait of the method for this noise, or what was passed.
    verdict : str
        'consistent', 'inconsistent' (with `expected`), 'measured' (nothing was expected), 'exact' (every error is
        rounding), 'inconclusive' (`reason` says why; `order` is not to be used).
    errors, stderr, dts : (n_levels,) arrays
        Error at the end (strong: root mean square; weak: size of the difference of means), its standard error over
        paths, step lengths.
    used : (n_levels,) array of bool
        Levels in the fit: finite on every path and above rounding.
    n_diverged : (n_levels,) array
        Paths that left the finite numbers.
    kind, of : str
        'strong' or 'weak', and the function whose mean is meant.
    about, step : str
        What was measured where it is no method, and what `dts` are called.
    """

    order: float
    interval: tuple[float, float]
    expected: float | None
    verdict: str
    reason: str
    errors: np.ndarray
    stderr: np.ndarray
    dts: np.ndarray
    used: np.ndarray
    method: str
    noise: str
    n_paths: int
    n_diverged: np.ndarray
    seed: int
    sigmas: float = 3.0
    kind: str = "strong"
    of: str = ""
    about: str = ""
    step: str = "dt"

    def __repr__(self) -> str:
        low, high = self.interval
        wanted = "" if self.expected is None else f", expected={self.expected:g}"
        return (
            f"OrderResult(order={self.order:.3f}, interval=({low:.3f}, {high:.3f}){wanted}, verdict={self.verdict!r})"
        )

    def explain(self) -> str:
        """A table of the levels and a sentence on the verdict."""
        return f"{self._head()}\n{self._table()}"

    def _head(self) -> str:
        return f"{self.about or f'{self.method}, {self.noise} noise'}, {self.n_paths} paths, seed {self.seed}"

    def _table(self) -> str:
        lines = [f"{self.step:>12} {'error':>12} {'std. error':>12} {'local order':>12}"]
        for i, dt in enumerate(self.dts):
            local = ""
            if i and self.used[i] and self.used[i - 1] and self.errors[i] and self.errors[i - 1]:
                local = f"{np.log2(self.errors[i - 1] / self.errors[i]) / np.log2(self.dts[i - 1] / dt):.3f}"
            note = "" if self.used[i] else f"  not used: {self._why_unused(i)}"
            lines.append(f"{dt:12.4g} {self.errors[i]:12.4g} {self.stderr[i]:12.2g} {local:>12}{note}")
        low, high = self.interval
        if math.isfinite(self.order):
            lines.append(f"order {self.order:.3f}, between {low:.3f} and {high:.3f} ({self.sigmas:g} standard errors)")
        return "\n".join([*lines, self._sentence()])

    def _sentence(self) -> str:
        expected = "" if self.expected is None else f" with {self.kind} order {self.expected:g}"
        words = {"consistent": f"consistent{expected}", "inconsistent": f"inconsistent{expected}"}
        return words.get(self.verdict, self.verdict) + (f": {self.reason}" if self.reason else "")

    def _why_unused(self, i: int) -> str:
        n = int(self.n_diverged[i])
        return f"{n} {'path' if n == 1 else 'paths'} left the finite numbers" if n else "rounding"


@dataclass(frozen=True, repr=False, eq=False)
class WeakOrderResult:
    """A measured weak order: a result for each function, and what they say together.

    A weak order is a promise for all functions, and one function may have a smaller error than it promises. So the
    lowest order decides: 'inconsistent' where one function is below what was expected; else 'inconclusive' where one
    could not be measured; else the verdict of the lowest. Functions without any error do not count unless all are so.

    Attributes
    ----------
    by_function : dict of str to OrderResult
        In the order in which they were given.
    deciding : OrderResult
        The one whose order, interval, verdict, … are those of the whole.
    """

    by_function: dict[str, OrderResult]

    @property
    def deciding(self) -> OrderResult:
        results = list(self.by_function.values())
        low = [r for r in results if r.verdict == "inconsistent" and r.interval[1] < (r.expected or 0.0)]
        unknown = [r for r in results if r.verdict == "inconclusive"]
        known = [r for r in results if r.verdict != "exact"]
        if not low and unknown:
            return unknown[0]
        return min(low or known or results, key=lambda r: r.order)

    @property
    def order(self) -> float:
        return self.deciding.order

    @property
    def interval(self) -> tuple[float, float]:
        return self.deciding.interval

    @property
    def expected(self) -> float | None:
        return self.deciding.expected

    @property
    def verdict(self) -> str:
        return self.deciding.verdict

    @property
    def reason(self) -> str:
        return self.deciding.reason

    @property
    def method(self) -> str:
        return self.deciding.method

    @property
    def noise(self) -> str:
        return self.deciding.noise

    @property
    def n_paths(self) -> int:
        return self.deciding.n_paths

    @property
    def seed(self) -> int:
        return self.deciding.seed

    def __getitem__(self, name: str) -> OrderResult:
        return self.by_function[name]

    def __repr__(self) -> str:
        one = self.deciding
        low, high = one.interval
        wanted = "" if one.expected is None else f", expected={one.expected:g}"
        among = "" if len(self.by_function) == 1 else f" of {len(self.by_function)}"
        return (
            f"WeakOrderResult(order={one.order:.3f}, interval=({low:.3f}, {high:.3f}){wanted}, "
            f"verdict={one.verdict!r}, by {one.of!r}{among})"
        )

    def explain(self) -> str:
        """A table of the levels and a sentence on the verdict, for each function."""
        one = self.deciding
        lines = [one._head()]
        for name, result in self.by_function.items():
            lines += [f"mean of {name}", result._table()]
        if len(self.by_function) > 1:
            lines.append(f"together: {one._sentence()} (by {one.of})")
        return "\n".join(lines)
