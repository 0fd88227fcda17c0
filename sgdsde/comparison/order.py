"""Strong order of convergence, measured on one Brownian path, with an interval and the right to say nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.comparison._judging import judge
from sgdsde.comparison._study import Piece, make_study, values
from sgdsde.comparison.order_result import OrderResult
from sgdsde.schemes import Scheme, get_scheme

__all__ = ["OrderResult", "strong_order"]

WIDEST = 0.25
"""Orders are multiples of one half: an interval that reaches further than this on one side cannot tell them apart."""


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
        As in `solve`; "auto" is the method that it would choose for paths, by its name.
    n_paths : int
        The standard error of the slope falls with its square root; at least 10.
    n_steps : sequence of at least 3 ints
        Levels: numbers of steps, increasing, each of which divides the last. Powers of two for methods that need
        iterated integrals or space-time areas.
    rng : int, None, SeedSequence or Generator
        As in `solve`. With refine = 1 the finest level is the run `solve(..., rng=rng)` itself; for methods that need
        more of the path than increments, `solve(..., brownian=Brownian(m, t_span, rng, levels=…))`, 2**levels steps.
    reference : None, str, Scheme, callable or number
        What errors are measured against at the end: the same method (None) or another one on a grid `refine` times
        finer than the finest level; ``reference(t, W)``, with t (n + 1,) and W (n_paths, n + 1, m) the path on that
        grid, returning the exact values (n_paths, d) of y, or of the quantity; or the number that the quantity should
        be.
    refine : int, optional
        16 for a numerical reference, else 1. Raise it where a callable integrates along the path. With 1, another
        method as reference is taken to be exact on the last level's grid.
    quantity : callable, optional
        Measure a function of the state in place of the state: maps y (n_paths, d) to (n_paths,) or (n_paths, q).
    functional : callable, optional
        The same as a function of the whole `Solution` (kept "final"), for what was tracked along the path.
    expected : float, optional
        What to compare with. By default the method's trait for the noise of the equation, and nothing where a quantity
        or functional is given.
    args, **options
        Passed to `solve`: `track=`, `project=`, `threads=`, …
    sigmas : float
        Half-width of the interval in standard errors.

    Returns
    -------
    OrderResult
        With `verdict` 'exact' where there is only rounding, and 'inconclusive' where paths left the finite numbers,
        where an error is less than 4 of its standard errors, where fewer than three levels are left, or where the
        interval is too wide to tell an order from its neighbours.

    Raises
    ------
    ArgumentError, ShapeError

    Notes
    -----
    Cost: n_paths × (sum of n_steps + refine × the last) steps. The error is the root mean square over paths of the
    Euclidean norm at t1. Levels share their paths, so their errors are correlated: each path's influence on the slope
    of the weighted regression is computed (delta method), and its spread gives the standard error, without resampling.

    Increments are drawn on the finest grid and summed. Where a method, or the reference, needs iterated integrals or
    space-time areas, a `Brownian` drives all grids. Its areas on the finest grid are approximations, of the right mean
    and variance given (W, H); every level and a numerical reference see the same ones, so what is measured is how the
    method follows that one path, and the approximation is no part of the error. It is one of an exact solution that
    knows more of the path than `reference(t, W)` is given.

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
    for label, function in (("quantity", quantity), ("functional", functional)):
        if function is not None and not callable(function):
            raise ArgumentError(f"{label} must be a function, got {_check.show(function)}")
    if quantity is not None and functional is not None:
        raise ArgumentError("quantity and functional exclude each other: give the one that says what to measure")
    sigmas = _check.positive("sigmas", sigmas)
    if expected is not None:
        expected = _check.number("expected", expected, least=0.0)
    numerical = reference is None or isinstance(reference, (str, Scheme))
    refine = _check.count("refine", refine) if refine is not None else 16 if numerical else 1
    fine = get_scheme(reference) if numerical and reference is not None else None
    if reference is None and refine < 2:
        raise ArgumentError("refine must be at least 2 without a reference: a run is no reference for itself, got 1")
    study = make_study(
        sde, y0, t_span, method, fine, goal="strong", n_steps=n_steps, refine=refine, least=3, n_paths=n_paths, rng=rng,
        args=args, options=options,
    )  # fmt: skip

    def end(piece: Piece, which: Scheme, n_level: int) -> np.ndarray:
        solution = piece.run(which, n_level)
        y = solution.y[:, -1]
        if functional is not None:
            return values("functional", functional, solution, len(y))
        return y if quantity is None else values("quantity", quantity, y, len(y))

    n = study.n_paths
    squares, sizes = np.empty((len(study.levels), n)), np.empty(n)
    for piece in study.pieces():
        found = [end(piece, study.scheme, n_level) for n_level in study.levels]
        if numerical:
            exact = end(piece, study.scheme if fine is None else fine, study.n_fine)
        else:
            exact = _exact(reference, piece, found[0].shape)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes[piece.part] = (exact**2).sum(axis=1)
            for i, value in enumerate(found):
                squares[i, piece.part] = ((value - exact) ** 2).sum(axis=1)

    if expected is None and quantity is None and functional is None:
        expected = study.scheme.strong.get(study.noise)
    constant = not numerical and not callable(reference)
    return judge(
        *_roots(squares),
        study.dts,
        np.count_nonzero(~np.isfinite(squares), axis=1),
        size=1.0 if constant else float(np.sqrt(np.mean(sizes))),
        finest=(study.t1 - study.t0) / study.n_fine if numerical and refine > 1 else 0.0,
        widest=WIDEST,
        expected=expected,
        sigmas=sigmas,
        method=study.scheme.name,
        noise=study.noise,
        n_paths=n,
        seed=study.key,
    )


def _roots(squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Root mean squares (n_levels,) of (n_levels, n_paths), infinite where one is not finite; and their covariance."""
    good = np.isfinite(squares).all(axis=1)
    with np.errstate(over="ignore"):
        mean = np.where(good, np.where(good[:, None], squares, 0.0).mean(axis=1), np.inf)
    errors, shown = np.sqrt(mean), (mean > 0) & np.isfinite(mean)
    influence = np.zeros_like(squares)  # of a path on the error
    influence[shown] = 0.5 * errors[shown, None] * (squares[shown] / mean[shown, None] - 1.0)
    n = squares.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        return errors, influence @ influence.T / (n * (n - 1))


def _exact(reference: Any, piece: Piece, shape: tuple[int, ...]) -> np.ndarray:
    if not callable(reference):
        return np.full(shape, _check.number("reference", reference))
    found = _check.array("reference", reference(*piece.path()), finite=False)
    if found.shape != shape and not (shape[1] == 1 and found.shape == shape[:1]):
        raise ShapeError(f"reference must return shape {shape}, got {found.shape}")
    return found.reshape(shape)
