"""`compare`: two runs on one time grid, seen through one observable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, SgdsdeError, ShapeError
from sgdsde.comparison.distributions import ks_two_sample
from sgdsde.comparison.result import Comparison
from sgdsde.comparison.wasserstein import wasserstein_two_sample
from sgdsde.run.solution import Solution

__all__ = ["compare"]

SAME_TIME = 1e-9
"""Two times this close, in units of the later end, are one."""
ROUNDING = 16 * float(np.finfo(float).eps)
"""A spread below this fraction of the values is rounding: nothing random has happened yet."""
NUMBERS = (
    *("mean_a", "mean_b", "stderr_a", "stderr_b", "difference", "stderr", "effect_size", "z", "ks", "p_value"),
    *("wasserstein", "wasserstein_stderr", "wasserstein_chance"),
)


def compare(
    a: Solution,
    b: Solution,
    observable: str | Callable[[np.ndarray], Any] | None = None,
    *,
    names: Sequence[str] | None = None,
    paired: bool | None = None,
    skip_diverged: bool = False,
) -> Comparison:
    """Compare two runs at the times they share: difference, standard error, effect size, z, and how far their laws are.

    Laws are held against each other by their Kolmogorov-Smirnov and Wasserstein-1 distances, each beside what chance
    alone would give.

    Parameters
    ----------
    a, b : Solution
        Of `solve` or `SGD.run`, with their paths kept. Nothing is interpolated: times that only one of them saved are
        left out, and noted.
    observable : callable, str or None
        A function of states, (n, d) -> (n,) or (n, q), such as a `Charge` or ``problem.loss``; the name of an entry of
        `.observed` or `.tracked` that both have; None for every component of the state.
    names : (str, str), optional
        Of the two runs, for the table. By default their methods, with dt where those are equal.
    paired : bool, optional
        Whether path i of a and path i of b share noise, so that the error of the difference is that of the paired
        differences. By default: when both runs have the same seed, and both are driven by Brownian motion or both by
        mini-batches. Then the paths that both have are compared. An SDE and SGD draw from different streams and are
        independent whatever their seeds.
    skip_diverged : bool
        With stopped paths every number is NaN from the time of the first one, unless this is True: then it is over
        those that are left, which is a different law. Either way they are counted.

    Returns
    -------
    Comparison
        It prints itself; `.table()`, `.to_arrays()`.

    Raises
    ------
    ArgumentError, ShapeError
        No time in common, an unknown name, paths that were not kept, a function of the wrong shape.

    Examples
    --------
    >>> import sgdsde as sg
    >>> def drift(t, y, a): return (-a * y[0],)
    >>> def diffusion(t, y, a): return (0.5 * y[0],)
    >>> sde = sg.SDE(drift, diffusion, dim=1, noise="diagonal", args=(1.0,))
    >>> fine = sg.solve(sde, (0, 1), [1.0], method="milstein", dt=1e-2, n_paths=400, rng=0, t_eval=3)
    >>> other = sg.solve(sde, (0, 1), [1.0], dt=1e-2, n_paths=400, rng=0, t_eval=3)
    >>> result = sg.compare(fine, other, lambda y: y[:, 0])
    >>> result.paired, bool(result.stderr[-1] < result.stderr_a[-1] / 10)
    (True, True)
    """
    for name, run in (("a", a), ("b", b)):
        if not isinstance(run, Solution):
            raise ArgumentError(f"{name} must be a Solution of solve or of SGD.run, got {_check.show(run)}")
    shared = _share_noise(a, b) if paired is None else _check.flag("paired", paired)
    at_a, at_b = _common_times(a, b)
    notes = []
    if len(at_a) < max(a.t.size, b.t.size):
        notes.append(f"compared at the {len(at_a)} times in common, of {a.t.size} and {b.t.size}")
    what, labels, x = _values("a", a, at_a, observable)
    _, labels_b, y = _values("b", b, at_b, observable)
    if labels != labels_b:
        raise ShapeError(f"observable must give as many numbers for both runs, got {x.shape[2]} and {y.shape[2]}")
    if shared:
        _, rows_a, rows_b = np.intersect1d(a.path_index, b.path_index, return_indices=True)
        if not rows_a.size:
            if paired:
                raise ArgumentError("paired must be False: the two runs have no path number in common")
            shared = False
        else:
            if rows_a.size < max(len(x), len(y)):
                notes.append(
                    f"the runs share their noise: compared on the {rows_a.size} path numbers in common, of {len(x)} "
                    f"and {len(y)}; with another seed for one of them every path counts"
                )
            x, y = x[rows_a], y[rows_b]
    skip = _check.flag("skip_diverged", skip_diverged)
    numbers, counts = _statistics(x, y, shared, skip)
    for k, (run, n) in enumerate(((a, len(x)), (b, len(y)))):
        stopped = int(counts[2 + k].max())
        if stopped:
            word = "left out" if skip else "numbers are NaN from the first time on (skip_diverged=True leaves them out)"
            notes.append(f"{'ab'[k]}: {stopped} of {n} paths are not finite at the last time; {word}. {run.message}")
    if not labels:
        numbers = {name: value[:, 0] for name, value in numbers.items()}
    return Comparison(
        observable=what,
        names=_names(a, b, names),
        labels=labels,
        t=a.t[at_a].copy(),
        n_a=counts[0],
        n_b=counts[1],
        stopped_a=counts[2],
        stopped_b=counts[3],
        paired=shared,
        notes=tuple(notes),
        **numbers,
    )


def _share_noise(a: Solution, b: Solution) -> bool:
    return a.seed == b.seed and (a.calculus == "discrete") == (b.calculus == "discrete")


def _names(a: Solution, b: Solution, names: Sequence[str] | None) -> tuple[str, str]:
    if names is not None:
        pair = isinstance(names, Sequence) and not isinstance(names, str) and len(names) == 2
        if not pair or not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"names must be two texts, one for each run, got {_check.show(names)}")
        return names[0], names[1]
    if a.method != b.method:
        return a.method, b.method
    if a.dt != b.dt:
        return f"{a.method} dt={a.dt:g}", f"{b.method} dt={b.dt:g}"
    return f"a: {a.method}", f"b: {b.method}"


def _common_times(a: Solution, b: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the times that both saved."""
    nearest = np.clip(np.searchsorted(b.t, a.t), 1, max(1, b.t.size - 1))
    nearest = np.minimum(nearest, b.t.size - 1)
    nearest -= (np.abs(b.t[nearest - 1] - a.t) < np.abs(b.t[nearest] - a.t)) & (nearest > 0)
    slack = SAME_TIME * max(np.abs(a.t).max(), np.abs(b.t).max())
    at_a = np.flatnonzero(np.abs(b.t[nearest] - a.t) <= slack)
    if not at_a.size:
        raise ArgumentError(
            f"a and b must share a time: a has {a.t.size} in [{a.t[0]:g}, {a.t[-1]:g}], b has {b.t.size} in "
            f"[{b.t[0]:g}, {b.t[-1]:g}], none in common; run both with the same t_eval"
        )
    return at_a, nearest[at_a]


def _values(name: str, run: Solution, at: np.ndarray, observable: Any) -> tuple[str, tuple[str, ...], np.ndarray]:
    """What is observed, names of its components (none for a single number), values (n_paths, n_times, q)."""
    try:
        if isinstance(observable, str):
            known = {**run.tracked, **run.observed}
            if observable not in known:
                raise ArgumentError(
                    f"observable must be one of {', '.join(map(repr, known)) or 'nothing, for nothing was observed'} "
                    f"in {name}, or a function of states, got {observable!r}"
                )
            values = _per_path(run, known[observable])[:, at]
            q = values.shape[2]
            return observable, () if q == 1 else tuple(f"{observable}[{i}]" for i in range(q)), values
        states = _per_path(run, run.y)[:, at]
    except ArgumentError:
        raise
    except SgdsdeError as error:
        raise ArgumentError(f"{name} must have kept its paths: {error}") from None
    if observable is None:
        return "the state", tuple(f"y[{i}]" for i in range(run.dim)), states
    if not callable(observable):
        raise ArgumentError(f"observable must be a function of states, a name or None, got {_check.show(observable)}")
    alive = np.isfinite(states).all(axis=2)
    flat = states[alive]
    found = _check.array("observable's result", observable(flat), finite=False) if len(flat) else np.empty(0)
    if found.ndim not in (1, 2) or len(found) != len(flat) or 0 in found.shape[1:]:
        raise ShapeError(
            f"observable must map states (n, d) to (n,) or (n, q), got shape {found.shape} for states {flat.shape}"
        )
    values = np.full((*alive.shape, 1 if found.ndim == 1 else found.shape[1]), np.nan)
    values[alive] = found.reshape(len(flat), -1)
    word = str(getattr(observable, "name", None) or getattr(observable, "__name__", None) or type(observable).__name__)
    return word, () if found.ndim == 1 else tuple(f"{word}[{i}]" for i in range(values.shape[2])), values


def _per_path(run: Solution, values: np.ndarray) -> np.ndarray:
    return values[None] if run.single else values


def _statistics(
    x: np.ndarray, y: np.ndarray, paired: bool, skip: bool
) -> tuple[dict[str, np.ndarray], tuple[np.ndarray, ...]]:
    """Every array of the Comparison from values (n_paths, n_times, q)."""
    n_times, q = x.shape[1:]
    out = {name: np.full((n_times, q), np.nan) for name in NUMBERS}
    alive_a, alive_b = np.isfinite(x).all(axis=2), np.isfinite(y).all(axis=2)
    counts = (alive_a.sum(axis=0), alive_b.sum(axis=0), (~alive_a).sum(axis=0), (~alive_b).sum(axis=0))
    if paired:
        alive_a = alive_b = alive_a & alive_b
    for k in range(n_times):
        u, v = x[alive_a[:, k], k], y[alive_b[:, k], k]
        counts[0][k], counts[1][k] = len(u), len(v)
        if not len(u) or not len(v) or (not skip and (counts[2][k] or counts[3][k])):
            continue
        mean_a, var_a = _moments(u)
        mean_b, var_b = _moments(v)
        error_a, error_b = np.sqrt(var_a / len(u)), np.sqrt(var_b / len(v))
        difference, error = mean_a - mean_b, np.hypot(error_a, error_b)
        if paired:
            difference, var = _moments(u - v)
            error = np.sqrt(var / len(u))
        freedom = len(u) + len(v) - 2
        with np.errstate(invalid="ignore", divide="ignore"):
            pooled = np.sqrt(((len(u) - 1) * var_a + (len(v) - 1) * var_b) / freedom) if freedom else np.full(q, np.nan)
            size = ROUNDING * np.maximum(np.abs(u).max(axis=0), np.abs(v).max(axis=0))
            same = np.abs(difference) <= size
            effect = np.where(pooled <= size, np.where(same, np.nan, np.sign(difference) * np.inf), difference / pooled)
            z = np.where(error <= size, np.where(same, np.nan, np.sign(difference) * np.inf), difference / error)
        ks, p = ks_two_sample(u, v)
        found = (mean_a, mean_b, error_a, error_b, difference, error, effect, z, ks, p)
        for name, value in zip(NUMBERS, (*found, *wasserstein_two_sample(u, v, paired=paired))):
            out[name][k] = value
    return out, counts


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and unbiased variance over the first axis; the variance of one path is NaN."""
    mean = values.mean(axis=0)
    if len(values) < 2:
        return mean, np.full(mean.shape, np.nan)
    return mean, values.var(axis=0, ddof=1)
