"""`weak_error`: E f of SGD against E f of its SDE at one time, for smaller and smaller learning rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.comparison._judging import judge
from sgdsde.comparison._means import named, square
from sgdsde.comparison._weak_error_levels import make_levels
from sgdsde.comparison._weak_error_runs import Estimates, estimate
from sgdsde.comparison.weak import WIDEST
from sgdsde.comparison.weak_error_result import WeakErrorResult
from sgdsde.random.stream import key_from
from sgdsde.schemes import Scheme

__all__ = ["WeakErrorResult", "weak_error"]

SCALED = {
    "learning_rate": "S = {S} fixed, T = η/S falls with η",
    "batch_size": "T = η/S = {T:g} fixed, S = η/T",
    "svag": "T = η/S = {T:g} fixed, SVAG(l)",
}


def weak_error(
    problem: Any,
    theta0: Any,
    time: float,
    learning_rates: Sequence[float],
    *,
    functions: Callable[[np.ndarray], Any] | Mapping[str, Callable[[np.ndarray], Any]] = square,
    order: int = 1,
    scale: str = "learning_rate",
    n_paths: int = 20_000,
    rng: Any = None,
    method: str | Scheme | None = None,
    refine: int = 4,
    exact_sgd: Any = None,
    exact_sde: Any = None,
    expected: float | None = None,
    control_variate: bool = True,
    sigmas: float = 3.0,
    threads: int | None = None,
    executor: Executor | None = None,
) -> WeakErrorResult:
    """Measure E f(θ) of SGD minus E f(X) of its SDE at a fixed time t = Σ η, and its order in the learning rate.

    Parameters
    ----------
    problem : SGD
        With a constant learning rate. Its optimizer may be any that has an SDE.
    theta0 : (d,) array_like
    time : float
        t1, the same for every level: a whole number of steps of each learning rate.
    learning_rates : sequence of at least 3 floats
    functions : callable or dict of str to callable
        f maps parameters (n_paths, d) to (n_paths,): a `Charge`, ``problem.loss``, … By default |θ|².
    order : {1, 2}
        Of the SDE, as in `SGD.sde`.
    scale : {"learning_rate", "batch_size", "svag"}
        What goes with η; see the notes.
    n_paths : int
        Standard errors fall with its square root.
    rng : int, None, SeedSequence or Generator
        SGD and SDE draw from different streams of the seed, and are independent.
    method : str or Scheme, optional
        Of the SDE, "euler-maruyama" by default, on grids `refine` and 2·`refine` times finer than SGD's. Their means
        are combined so that the leading error, of the method's weak order, is gone.
    refine : int
    exact_sgd, exact_sde : callable, optional
        problem -> the exact mean of SGD, or of the SDE of a problem: a number, or a dict of numbers by the names of
        `functions`. What is exact is not run; with both there is no Monte Carlo. Where η/S is fixed all levels have
        the SDE of `problem`.
    expected : float, optional
        By default what theory promises for smooth f: `order` with scale="learning_rate", 1 with the others, nothing
        with momentum or epochs.
    control_variate : bool
        Whether the first order of f in the noise, a martingale of mean zero, is taken out of the runs that have one:
        SGD and SVAG with independent batches, and Euler-Maruyama. It changes variances alone (up to 1/n_paths, for its
        coefficient is fitted), and costs a weighted gradient for each step.
    sigmas : float
        Half-width of the interval in standard errors.
    threads, executor
        As in `solve`.

    Returns
    -------
    WeakErrorResult
        'consistent' or 'inconsistent' with `expected`; 'measured' where nothing is; 'inconclusive' where an error is
        less than 4 of its standard errors, the error changes its sign, or the interval is too wide; `.explain()`.

    Raises
    ------
    ArgumentError, ModelError, ShapeError

    Notes
    -----
    A weak error depends on two numbers, η and the temperature T = η/S of the noise, and time t1 is fixed in all cases:

    * "learning_rate": S is fixed and T = η/S falls with η. This is what theorem 9 of Q. Li, C. Tai, W. E, JMLR 20
      (2019) 40 is about: the error is O(η) for the SDE of order 1 and O(η²) for that of order 2. Each level has its
      own equation.
    * "batch_size": T is that of `problem`, S = η/T a whole number, so η >= T. All levels have one SDE of order 1, and
      the error is c₁η + c₂T² + …: the part of T² is what third cumulants of the gradients do, which no SDE driven by
      Brownian motion has, and it does not go away as η falls. The order is 1 where that part is small. The SDE of
      order 2 is that of `problem` at its own η for all levels and is refused. The levels share their samples: a batch
      is the union of the smaller ones.
    * "svag": T is that of `problem`, and η/l is the step of `SVAG(l)`. The third cumulant falls like 1/l too, so that
      the error goes to zero with order 1: the way to the SDE at fixed T (Z. Li, S. Malladi, S. Arora, NeurIPS 2021).

    The interval is that of a weighted regression of log \\|error\\| on log η with the covariance of all levels.

    Examples
    --------
    The linear model ℓ_i = ½a_iθ², without Monte Carlo: E θ² after n steps, and that of the equations of both orders.

    >>> import numpy as np, sgdsde as sg
    >>> a = np.array([0.3, 1.7])
    >>> model = sg.models.LinearRegression(1, biases=False, scale=0.5)
    >>> problem = sg.SGD(model, np.sqrt(a)[:, None], [0.0, 0.0], learning_rate=0.1)
    >>> def sgd(p):
    ...     return np.mean((1 - p.learning_rate * a) ** 2) ** round(2 / p.learning_rate)
    >>> def sde(p):
    ...     return np.exp(2 * (-2 * a.mean() - p.learning_rate * a.mean() ** 2 + p.learning_rate * a.var()))
    >>> sg.weak_error(problem, [1.0], 2.0, [0.1, 0.05, 0.025, 0.0125], order=2, exact_sgd=sgd, exact_sde=sde)
    WeakErrorResult(order=2.071, interval=(1.990, 2.152), expected=2, verdict='consistent', by '|y|²')
    """
    scale = _check.choice("scale", scale, SCALED)
    if scale != "learning_rate" and order != 1:
        raise ArgumentError(
            f"order must be 1 with scale={scale!r}: the equation of order 2 changes with η, got {order!r}"
        )
    for argument, function in (("exact_sgd", exact_sgd), ("exact_sde", exact_sde)):
        if function is not None and not callable(function):
            raise ArgumentError(f"{argument} must be a function of a problem, got {_check.show(function)}")
    levels = make_levels(problem, time, learning_rates, scale)
    time = float(time)
    for level in levels:
        if exact_sde is None:
            level.of_sde.sde(order=order)  # refuses what has none, before anything runs
    start = _check.array("theta0", theta0, (problem.model.dim,))
    of = named(functions)
    sigmas = _check.positive("sigmas", sigmas)
    n_paths = _check.count("n_paths", n_paths, least=100)
    key = key_from(rng)
    if expected is not None:
        expected = _check.number("expected", expected, least=0.0)
    elif problem.optimizer is None and problem.sampling != "epochs":
        expected = float(order)
    rows, n = len(of) * len(levels), len(levels)
    sides = exact_sgd is None, exact_sde is None
    if any(sides):
        found = estimate(
            levels, of, start, time, sides, order=order, method=method, refine=_check.count("refine", refine),
            n_paths=n_paths, key=key, control=_check.flag("control_variate", control_variate),
            options={"threads": threads, "executor": executor},
        )  # fmt: skip
    else:
        zero = np.zeros(2 * rows)
        found = Estimates(zero, np.zeros((2 * rows, 2 * rows)), zero.astype(int), np.zeros(len(of)), zero)
    mean = found.mean.copy()
    if exact_sgd is not None:
        mean[:rows] = _exact("exact_sgd", exact_sgd, [level.sgd for level in levels], of)
    if exact_sde is not None:
        mean[rows:] = _exact("exact_sde", exact_sde, [level.of_sde for level in levels], of)
    apart = np.concatenate([np.eye(rows), -np.eye(rows)], axis=1)
    difference, covariance = apart @ mean, apart @ found.covariance @ apart.T
    stderr = np.sqrt(np.diag(found.covariance))
    about = f"SGD against its SDE of order {order} at t = {time:g}, "
    about += SCALED[scale].format(S=problem.batch_size, T=problem.effective_learning_rate / problem.batch_size)
    part = {name: slice(k * n, (k + 1) * n) for k, name in enumerate(of)}
    both = {name: slice(rows + at.start, rows + at.stop) for name, at in part.items()}
    results = {
        name: judge(
            difference[at],
            covariance[at, at],
            np.array([level.rate for level in levels]),
            np.maximum(found.lost[at], found.lost[both[name]]),
            size=float(max(found.squares[k], np.abs(mean[at]).max(), np.abs(mean[both[name]]).max())),
            finest=0.0,
            widest=WIDEST,
            expected=expected,
            sigmas=sigmas,
            method="sgd",
            noise=problem.sampling,
            n_paths=n_paths if any(sides) else 0,
            seed=key,
            kind="weak",
            of=name,
            about=about,
            step="η/l" if scale == "svag" else "η",
        )
        for k, (name, at) in enumerate(part.items())
    }
    ends = {name: [at.stop - 1, both[name].stop - 1] for name, at in part.items()}
    return WeakErrorResult(
        results,
        learning_rates=np.array([level.rate for level in levels]),
        batch_sizes=np.array([level.sgd.batch_size for level in levels]),
        sgd={name: mean[at] for name, at in part.items()},
        sde={name: mean[at] for name, at in both.items()},
        sgd_stderr={name: stderr[at] for name, at in part.items()},
        sde_stderr={name: stderr[at] for name, at in both.items()},
        difference={name: difference[at] for name, at in part.items()},
        difference_stderr={name: np.sqrt(np.diag(covariance)[at]) for name, at in part.items()},
        variance_reduction={name: _gain(found, at) for name, at in ends.items()},
    )


def _gain(found: Estimates, at: list[int]) -> float:
    left = float(np.diag(found.covariance)[at].sum())
    return float(found.plain_variance[at].sum()) / left if left > 0 else 1.0


def _exact(argument: str, function: Any, problems: list[Any], of: Mapping[str, Any]) -> np.ndarray:
    """(n_functions·n_levels,) exact means, in the order (function, level)."""
    table = []
    for problem in problems:
        found = function(problem)
        if not isinstance(found, Mapping):
            found = {next(iter(of)): found}
        if set(found) != set(of):
            raise ArgumentError(
                f"{argument} must return the mean of each function {sorted(of)}, got {_check.show(found)}"
            )
        table.append([_check.number(f"{argument}[{name!r}]", found[name]) for name in of])
    return np.array(table, dtype=float).T.ravel()
