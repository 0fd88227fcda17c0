"""Weak order of convergence: the error of means, its Monte-Carlo floor seen, with an interval or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.comparison._judging import judge
from sgdsde.comparison._means import Sums, named, one, square
from sgdsde.comparison._study import Piece, Study, make_study
from sgdsde.comparison.order_result import WeakOrderResult
from sgdsde.schemes import Scheme, get_scheme

__all__ = ["WeakOrderResult", "weak_order"]

WIDEST = 0.5
"""Weak orders are whole numbers."""


def weak_order(
    sde: Any,
    y0: Any,
    t_span: Any,
    method: str | Scheme | None = None,
    *,
    functions: Callable[[np.ndarray], Any] | Mapping[str, Callable[[np.ndarray], Any]] = square,
    reference: Any = None,
    refine: int | None = None,
    n_paths: int = 100_000,
    n_steps: Sequence[int] = (4, 8, 16, 32, 64),
    rng: Any = None,
    expected: float | None = None,
    args: Sequence[Any] | None = None,
    sigmas: float = 3.0,
    **options: Any,
) -> WeakOrderResult:
    """Measure the weak order of a method: how fast E f(Y(t1)) converges, for one function f or several.

    Parameters
    ----------
    sde, y0, t_span, method, rng, args, **options
        As in `strong_order`; "auto" chooses for laws.
    functions : callable or dict of str to callable
        f maps states (n_paths, d) to (n_paths,). By default |y|². Means alone do not see wrong areas: have a second
        moment of what the noise makes together.
    reference : None, str, Scheme, number or dict of str to number
        What E f is compared with. None: each level with the next, E f(Y_h) − E f(Y_{h'}), where n_steps grow by one
        factor. The name of a method: that one on a grid `refine` times finer than the last level. Numbers: the exact
        E f(X(t1)), one for each function.
    refine : int, optional
        For a method as reference; 8 by default. With 1 it is taken to be exact on the last level's grid.
    n_paths : int
        Standard errors fall with its square root.
    n_steps : sequence of ints
        Levels: increasing, each of which divides the last; at least 3, and 4 without a reference. Coarse ones, for an
        error must be seen above the noise. Powers of two for methods that need iterated integrals or space-time areas.
    expected : float, optional
        What to compare with; by default the method's trait for the noise of the equation.
    sigmas : float
        Half-width of the interval in standard errors.

    Returns
    -------
    WeakOrderResult
        `verdict` is 'consistent' or 'inconsistent' with the trait; 'exact' where every path agrees to rounding;
        'inconclusive' where an error is less than 4 of its standard errors (too few paths, or no error at all: sampling
        cannot tell, and the largest that can hide is given), where the error changes its sign between levels, where
        paths left the finite numbers, or where the interval is too wide; `reason` says which.

    Raises
    ------
    ArgumentError, ShapeError

    Notes
    -----
    Levels share their noise, and against a method or the next level the differences are taken path by path, whose
    spread is small where the method converges on paths. A method without a strong order keeps a spread of O(1), and so
    do exact values: errors below some n_paths^{-1/2} are not seen. The interval is that of a weighted regression of
    log \\|error\\| on log dt, with the covariance of all levels (delta method). Memory does not grow with `n_paths`.

    Examples
    --------
    >>> import sgdsde as sg
    >>> def drift(t, y): return (-y[0],)
    >>> def diffusion(t, y): return (0.5 * y[0],)
    >>> sde = sg.SDE(drift, diffusion, dim=1, noise="scalar")
    >>> sg.weak_order(sde, [1.0], (0, 1), "euler-maruyama", n_paths=20_000, rng=0).verdict
    'consistent'
    >>> result = sg.weak_order(sde, [1.0], (0, 1), "platen", n_paths=1000, rng=0)
    >>> result.verdict, result.reason
    ('inconclusive', 'no error is seen, and none is larger than 0.027 (estimate and 4 standard errors)')
    """
    of = named(functions)
    exact = _numbers(reference, of)
    fine = get_scheme(reference) if isinstance(reference, (str, Scheme)) else None
    if refine is not None and fine is None:
        raise ArgumentError("refine is for a method as reference: it says how much finer its steps are")
    refine = _check.count("refine", refine) if refine is not None else 8 if fine is not None else 1
    sigmas = _check.positive("sigmas", sigmas)
    if expected is not None:
        expected = _check.number("expected", expected, least=0.0)
    study = make_study(
        sde, y0, t_span, method, fine, goal="weak", n_steps=n_steps, refine=refine, least=4 if reference is None else 3,
        n_paths=n_paths, rng=rng, args=args, options=options,
    )  # fmt: skip
    levels, dts = study.levels, study.dts
    if reference is None:
        if any(b * levels[0] != a * levels[1] for a, b in pairwise(levels)):
            raise ArgumentError(f"n_steps must grow by one factor where reference is None, got {levels}")
        dts = dts[:-1]
    sums = _differences(study, of, fine, exact)
    if expected is None:
        expected = study.scheme.weak.get(study.noise)
    results = {}
    for k, name in enumerate(of):
        rows = slice(k * dts.size, (k + 1) * dts.size)
        results[name] = judge(
            sums.mean[rows],
            sums.covariance()[rows, rows],
            dts,
            sums.lost[rows],
            size=float(np.sqrt(sums.squares[k] / study.n_paths)),
            finest=(study.t1 - study.t0) / study.n_fine if refine > 1 else 0.0,
            widest=WIDEST,
            expected=expected,
            sigmas=sigmas,
            method=study.scheme.name,
            noise=study.noise,
            n_paths=study.n_paths,
            seed=study.key,
            kind="weak",
            of=name,
        )
    return WeakOrderResult(results)


def _differences(
    study: Study, of: dict[str, Callable[[np.ndarray], Any]], fine: Scheme | None, exact: dict[str, float] | None
) -> Sums:
    """Sums of the differences whose means are the errors, rows (function, level), over all paths."""
    n_rows = len(study.levels) - (fine is None and exact is None)
    sums = Sums(len(of) * n_rows, len(of))
    for piece in study.pieces():
        found = np.stack([_at_end(piece, of, study.scheme, n_level) for n_level in study.levels], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            if exact is not None:
                errors = found - np.array([exact[name] for name in of])[:, None, None]
            elif fine is not None:
                errors = found - _at_end(piece, of, fine, study.n_fine)[:, None]
            else:
                errors = found[:, :-1] - found[:, 1:]
            last = found[:, -1]
            sums.squares += (np.where(np.isfinite(last), last, 0.0) ** 2).sum(axis=1)
        sums.add(errors.reshape(-1, len(piece.paths)))
    return sums


def _at_end(piece: Piece, of: dict[str, Callable[[np.ndarray], Any]], method: Scheme, n_steps: int) -> np.ndarray:
    """(n_functions, n_paths)."""
    y = piece.run(method, n_steps).y[:, -1]
    return np.stack([one(name, function, y, len(y)) for name, function in of.items()])


def _numbers(reference: Any, of: dict[str, Any]) -> dict[str, float] | None:
    """The exact values by name, where that is what the reference is."""
    if reference is None or isinstance(reference, (str, Scheme)):
        return None
    given = reference if isinstance(reference, Mapping) else {next(iter(of)): reference}
    if set(given) != set(of):
        raise ArgumentError(
            f"reference must be None, a method, or the exact mean of each function {sorted(of)}, "
            f"got {_check.show(reference)}"
        )
    return {name: _check.number(f"reference[{name!r}]", value) for name, value in given.items()}
