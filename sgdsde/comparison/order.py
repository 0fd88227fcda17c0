"""Strong order of convergence, measured on one Brownian path coarsened, with an interval and the right to say nothing.

Every level of step length sees the same path: dW is drawn once on the finest grid and summed, which for increments is
all there is to Chen's relation. Fresh noise on each level would measure the spread of the solution and no order at all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._abi import DRIVING
from sgdsde._errors import ArgumentError, DivergenceWarning, ShapeError
from sgdsde.equation._equation import Problem
from sgdsde.random.stream import key_from
from sgdsde.run.grid import time_span
from sgdsde.run.solving import DEFAULT_METHOD, solve
from sgdsde.schemes import Scheme, get_scheme

__all__ = ["OrderResult", "strong_order"]

EXACT = 1e-12
"""An error below this fraction of the solution is rounding."""
WIDEST = 0.25
"""Orders are multiples of one half: an interval that reaches further than this on one side cannot tell them apart."""
FLOOR = 4.0
"""An error must be this many of its standard errors for its logarithm to mean something."""
BEND = 0.05
"""What terms beyond the leading one bend the line by, however many paths there are: no interval is narrower."""
MEMORY = 1 << 22
"""Increments held at once, in doubles."""


@dataclass(frozen=True, repr=False, eq=False)
class OrderResult:
    """A measured order of convergence.

    Attributes
    ----------
    order : float
        Slope of log2(error) against log2(dt) over the levels used; NaN where there are too few of them.
    interval : (float, float)
        `sigmas` standard errors of the slope on each side, which carry that the levels share their paths, plus twice
        what the finer half of the levels would change; at least 0.05; plus what the error of a numerical reference
        can do.
    expected : float or None
        The trait of the method for this noise, or what was passed.
    verdict : str
        'consistent', 'inconsistent' (with `expected`), 'measured' (nothing was expected), 'exact' (every error is
        rounding), 'inconclusive' (`reason` says why; `order` is not to be used).
    errors, stderr, dts : (n_levels,) arrays
        Root mean square error at the end, its standard error over paths, step lengths.
    used : (n_levels,) array of bool
        Levels in the fit: finite on every path and above rounding.
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

    def __repr__(self) -> str:
        low, high = self.interval
        wanted = "" if self.expected is None else f", expected={self.expected:g}"
        return (
            f"OrderResult(order={self.order:.3f}, interval=({low:.3f}, {high:.3f}){wanted}, verdict={self.verdict!r})"
        )

    def explain(self) -> str:
        """A table of the levels and a sentence on the verdict."""
        lines = [f"{self.method}, {self.noise} noise, {self.n_paths} paths, seed {self.seed}"]
        lines.append(f"{'dt':>12} {'error':>12} {'std. error':>12} {'local order':>12}")
        for i, dt in enumerate(self.dts):
            local = ""
            if i and self.used[i] and self.used[i - 1]:
                local = f"{np.log2(self.errors[i - 1] / self.errors[i]) / np.log2(self.dts[i - 1] / dt):.3f}"
            note = "" if self.used[i] else f"  not used: {self._why_unused(i)}"
            lines.append(f"{dt:12.4g} {self.errors[i]:12.4g} {self.stderr[i]:12.2g} {local:>12}{note}")
        low, high = self.interval
        if math.isfinite(self.order):
            lines.append(f"order {self.order:.3f}, between {low:.3f} and {high:.3f} ({self.sigmas:g} standard errors)")
        expected = "" if self.expected is None else f" with order {self.expected:g}"
        words = {"consistent": f"consistent{expected}", "inconsistent": f"inconsistent{expected}"}
        lines.append(words.get(self.verdict, self.verdict) + (f": {self.reason}" if self.reason else ""))
        return "\n".join(lines)

    def _why_unused(self, i: int) -> str:
        n = int(self.n_diverged[i])
        return f"{n} {'path' if n == 1 else 'paths'} left the finite numbers" if n else "rounding"


def strong_order(
    sde: Any,
    y0: Any,
    t_span: Any,
    method: str | Scheme | None = None,
    *,
    n_paths: int = 1000,
    n_steps: Sequence[int] = (16, 32, 64, 128, 256),
    rng: Any = None,
    reference: Any = None,
    refine: int | None = None,
    quantity: Callable[[np.ndarray], Any] | None = None,
    functional: Callable[[Any], Any] | None = None,
    expected: float | None = None,
    args: Sequence[Any] | None = None,
    sigmas: float = 3.0,
    **options: Any,
) -> OrderResult:
    """Measure the strong order of a method on an equation.

    Parameters
    ----------
    sde : SDE
        Or anything that `solve` takes. An order is a statement about globally Lipschitz coefficients: elsewhere the
        mean square error need not be finite.
    y0 : (d,) or (n_paths, d) array
    t_span : (t0, t1)
    method : str or Scheme, optional
        As in `solve`.
    n_paths : int
        The standard error of the slope falls with its square root; at least 10.
    n_steps : sequence of at least 3 ints
        Levels: numbers of steps, increasing, each of which divides the last.
    rng : int, None, SeedSequence or Generator
        As in `solve`. With refine = 1 the finest level is the run `solve(..., rng=rng)` itself.
    reference : None, str, Scheme, callable or number
        What errors are measured against at the end: the same method (None) or another one on a grid `refine` times
        finer than the finest level; ``reference(t, W)``, with t (n + 1,) and W (n_paths, n + 1, m) the path on that
        grid, returning the exact values (n_paths, d) of y, or of the quantity; or the number that the quantity should
        be.
    refine : int, optional
        16 for a numerical reference, else 1. Raise it where a callable integrates along the path.
    quantity : callable, optional
        Measure a function of the state in place of the state: maps y (n_paths, d) to (n_paths,) or (n_paths, q).
    functional : callable, optional
        The same as a function of the whole `Solution` (kept "final"), for what was tracked along the path.
    expected : float, optional
        What to compare with. By default the method's trait for the noise of the equation, and nothing where a quantity
        or functional is given.
    args, **options
        Passed to `solve`: `track=`, `threads=`, …
    sigmas : float
        Half-width of the interval in standard errors.

    Returns
    -------
    OrderResult
        With `verdict` 'exact' where there is only rounding, and 'inconclusive' where paths left the finite numbers,
        where one of the two smallest errors is less than 4 of its standard errors, where fewer than three levels are
        left, or where the interval is too wide to tell an order from its neighbours.

    Notes
    -----
    Cost: n_paths × (sum of n_steps + refine × the last) steps. The error is the root mean square over paths of the
    Euclidean norm at t1. Levels share their paths, so their errors are correlated: each path's influence on the slope
    of the weighted regression is computed (delta method), and its spread gives the standard error, without resampling.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> def drift(t, y): return (0.1 * y[0],)
    >>> def diffusion(t, y): return (0.5 * y[0],)
    >>> sde = sg.SDE(drift, diffusion, dim=1, noise="scalar")
    >>> exact = lambda t, W: np.exp((0.1 - 0.125) * t[-1] + 0.5 * W[:, -1])
    >>> sg.strong_order(sde, [1.0], (0, 1), "milstein", reference=exact, rng=0).verdict
    'consistent'
    """
    t0, t1 = time_span(t_span)
    if isinstance(sde, type) or not isinstance(sde, Problem):
        raise ArgumentError(f"sde must be an SDE or the .sde() of an SGD problem, got {_check.show(sde)}")
    for label, function in (("quantity", quantity), ("functional", functional)):
        if function is not None and not callable(function):
            raise ArgumentError(f"{label} must be a function, got {_check.show(function)}")
    levels = _levels(n_steps)
    n = _check.count("n_paths", n_paths, least=10)
    sigmas = _check.positive("sigmas", sigmas)
    if quantity is not None and functional is not None:
        raise ArgumentError("quantity and functional exclude each other: give the one that says what to measure")
    start = _check.array("y0", y0)
    equation = sde.bind(t0, start if start.ndim < 2 else start[0], args)
    scheme = get_scheme(method if method is not None else DEFAULT_METHOD.get(equation.calculus, ""))
    measure = _measure(quantity, functional)
    numerical = reference is None or isinstance(reference, (str, Scheme))
    refine = _check.count("refine", refine) if refine is not None else 16 if numerical else 1
    key = key_from(rng)
    n_fine, m = levels[-1] * refine, equation.noise_dim
    options = {**options, "keep": "final", "args": args, "rng": key, "n_paths": n}

    def end(which: Any, n_level: int, dW: np.ndarray, here: np.ndarray, paths: range) -> np.ndarray:
        coarse = dW.reshape(len(paths), n_level, n_fine // n_level, m).sum(axis=2)
        dt = (t1 - t0) / n_level
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # counted, and reported in the result
            return measure(solve(sde, (t0, t1), here, method=which, dt=dt, dW=coarse, path_index=paths, **options))

    squares, sizes = np.empty((len(levels), n)), np.empty(n)
    for paths in _chunks(n, n_fine * max(m, 1)):
        part = slice(paths.start, paths.stop)
        dW = _noise(key, paths, n_fine, m, (t1 - t0) / n_fine)
        here = start[part] if start.ndim == 2 else start
        values = [end(scheme, n_level, dW, here, paths) for n_level in levels]
        if numerical:
            exact = end(scheme if reference is None else reference, n_fine, dW, here, paths)
        else:
            exact = _exact(reference, dW, t0, t1, values[0].shape)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes[part] = (exact**2).sum(axis=1)
            for i, value in enumerate(values):
                squares[i, part] = ((value - exact) ** 2).sum(axis=1)

    if expected is not None:
        expected = _check.positive("expected", expected)
    elif quantity is None and functional is None:
        expected = scheme.strong.get(equation.noise)
    dts = (t1 - t0) / np.array(levels, dtype=float)
    finest = (t1 - t0) / n_fine if numerical else 0.0
    constant = not numerical and not callable(reference)
    size = 1.0 if constant else float(np.sqrt(np.mean(sizes)))
    about = {"method": scheme.name, "noise": equation.noise, "n_paths": n, "seed": key, "sigmas": sigmas}
    return _judge(squares, dts, finest, size, expected, sigmas, about)


def _judge(
    squares: np.ndarray, dts: np.ndarray, finest: float, size: float, expected: float | None, sigmas: float, about: dict
) -> OrderResult:
    """From squared errors (n_levels, n_paths) to the result. `finest` is the step of a numerical reference, else 0."""
    n_diverged = np.count_nonzero(~np.isfinite(squares), axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.where(n_diverged == 0, squares.mean(axis=1), np.inf)
        errors = np.sqrt(mean)
        influence = 0.5 / math.log(2) * (squares / mean[:, None] - 1.0)  # of a path on log2(error)
        stderr = errors * math.log(2) * influence.std(axis=1, ddof=1) / math.sqrt(squares.shape[1])
    stderr = np.where(errors == 0, 0.0, stderr)
    used = (n_diverged == 0) & (errors > EXACT * size)
    about = {**about, "expected": expected, "errors": errors, "stderr": stderr, "dts": dts, "used": used}
    about["n_diverged"] = n_diverged
    nothing = {**about, "order": math.nan, "interval": (math.nan, math.nan)}
    if not used.any() and not n_diverged.any():
        return OrderResult(verdict="exact", reason=f"every error is at most {EXACT:g} of the solution", **nothing)
    if used.sum() < 3:
        reason = "fewer than three levels can be used"
        if n_diverged.any():
            reason += f"; up to {n_diverged.max()} of {squares.shape[1]} paths left the finite numbers"
        return OrderResult(verdict="inconclusive", reason=reason, **nothing)

    x, y, psi = np.log2(dts[used]), np.log2(errors[used]), influence[used]
    order, spread = _slope(x, y, psi)
    half = (len(x) + 1) // 2
    fine, _ = _slope(x[-half:], y[-half:], psi[-half:])
    reach = max(sigmas * spread + 2 * abs(fine - order), BEND)
    low, high = order - reach, order + reach
    if finest:  # the reference errs too, by at most its share: order p gives (finest / dt)^p of the error measured
        corrected, _ = _slope(x, y - np.log2(1 - (finest / dts[used]) ** max(order, 0.25)), psi)
        low, high = min(low, corrected - reach), max(high, corrected + reach)
    verdict, reason = "measured", ""
    if expected is not None:
        verdict = "consistent" if low <= expected <= high else "inconsistent"
    noisy = errors[used][-2:] < FLOOR * stderr[used][-2:]
    if noisy.any():
        verdict, reason = "inconclusive", f"a small error is less than {FLOOR:g} of its standard errors: more paths"
    elif max(order - low, high - order) > WIDEST:
        verdict, reason = "inconclusive", "the interval is too wide to tell orders apart: more paths, or finer levels"
    return OrderResult(order=order, interval=(low, high), verdict=verdict, reason=reason, **about)


def _slope(x: np.ndarray, y: np.ndarray, psi: np.ndarray) -> tuple[float, float]:
    """Weighted least squares slope of y on x and its standard error; psi (n_levels, n_paths) are influences on y."""
    variance = psi.var(axis=1)
    weight = 1.0 / np.maximum(variance, 1e-3 * max(variance.max(), 1e-30))
    centred = x - np.average(x, weights=weight)
    coefficient = weight * centred / (weight * centred**2).sum()
    of_paths = coefficient @ psi
    return float(coefficient @ y), float(of_paths.std(ddof=1) / math.sqrt(of_paths.size))


def _levels(n_steps: Any) -> list[int]:
    if isinstance(n_steps, str) or not isinstance(n_steps, Iterable):
        raise ArgumentError(f"n_steps must be a sequence of numbers of steps, got {_check.show(n_steps)}")
    levels = [_check.count("n_steps", level) for level in n_steps]
    if len(levels) < 3 or sorted(set(levels)) != levels or any(levels[-1] % level for level in levels):
        raise ArgumentError(f"n_steps must be at least 3 increasing numbers that divide the last, got {levels}")
    return levels


def _chunks(n_paths: int, per_path: int) -> Iterator[range]:
    size = max(1, min(n_paths, MEMORY // per_path))
    for first in range(0, n_paths, size):
        yield range(first, min(first + size, n_paths))


def _noise(key: int, paths: range, n_steps: int, m: int, h: float) -> np.ndarray:
    """Increments (n_paths, n_steps, m): those that `solve` would draw on this grid."""
    from sgdsde.random.normal import fill_normals

    block = np.empty((n_steps * m, len(paths)))
    fill_normals(block, 0, np.asarray(paths, dtype=np.uint64), DRIVING, np.uint64(key))
    return np.ascontiguousarray(math.sqrt(h) * block.T).reshape(len(paths), n_steps, m)


def _measure(quantity: Any, functional: Any) -> Callable[[Any], np.ndarray]:
    """What is compared, (n_paths, q), as a function of the solution."""

    def measure(solution: Any) -> np.ndarray:
        end = solution.y[:, -1]
        if quantity is None and functional is None:
            return end
        name, value = ("quantity", quantity(end)) if functional is None else ("functional", functional(solution))
        value = _check.array(name, value, finite=False)
        if value.ndim not in (1, 2) or value.shape[0] != end.shape[0]:
            raise ShapeError(f"{name} must return shape ({end.shape[0]},) or ({end.shape[0]}, q), got {value.shape}")
        return value.reshape(end.shape[0], -1)

    return measure


def _exact(reference: Any, dW: np.ndarray, t0: float, t1: float, shape: tuple[int, ...]) -> np.ndarray:
    if not callable(reference):
        return np.full(shape, _check.number("reference", reference))
    W = np.concatenate([np.zeros_like(dW[:, :1]), dW.cumsum(axis=1)], axis=1)
    value = _check.array("reference", reference(np.linspace(t0, t1, W.shape[1]), W), finite=False)
    if value.shape != shape and not (shape[1] == 1 and value.shape == shape[:1]):
        raise ShapeError(f"reference must return shape {shape}, got {value.shape}")
    return value.reshape(shape)
