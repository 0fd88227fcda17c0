"""`svag_extrapolation`: from SGD to its SDE without the SDE, along SVAG(l), l = 1, 2, 4, 8, … → ∞."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.comparison._means import named, square
from sgdsde.comparison._weak_error_levels import make_levels
from sgdsde.comparison._weak_error_runs import estimate
from sgdsde.comparison.extrapolation import Extrapolation, richardson
from sgdsde.random.stream import key_from
from sgdsde.sgd.problem import SGD

__all__ = ["SVAGReport", "svag_extrapolation"]


class SVAGReport(Mapping[str, Extrapolation]):
    """Extrapolations by the name of their function, steps being 1/l; prints as tables.

    Attributes
    ----------
    l : (n_levels,) array of int
    time : float
    n_paths, seed : int
    n_diverged : (n_levels,) array of int
        Paths that left the finite numbers; levels with any are not in the fit.
    """

    def __init__(
        self, found: dict[str, Extrapolation], l: np.ndarray, time: float, n_paths: int, seed: int, lost: np.ndarray
    ) -> None:
        self.found, self.l, self.time, self.n_paths, self.seed, self.n_diverged = found, l, time, n_paths, seed, lost

    def __getitem__(self, name: str) -> Extrapolation:
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __repr__(self) -> str:
        lines = [f"SVAG(l) for l → ∞ at t = {self.time:g}, {self.n_paths} paths, seed {self.seed}"]
        for name, one in self.found.items():
            lines += [f"mean of {name}", one.table("1/l"), self.sentence(name)]
        for l, lost in zip(self.l, self.n_diverged):
            if lost:
                lines.append(f"note: l = {l} is left out: {lost} paths left the finite numbers")
        return "\n".join(lines)

    def sentence(self, name: str) -> str:
        """How far the smallest l is from the limit."""
        one = self.found[name]
        l = round(1.0 / one.steps[0])
        what = "SGD (l = 1)" if l == 1 else f"l = {l}"
        gap, error = float(one.gap[0]), float(one.gap_stderr[0])
        share = f", {abs(gap / one.limit):.2g} of it" if abs(one.limit) > 5 * one.stderr else ""
        return f"{what} is {gap:.3g} ± {error:.2g} from the limit{share}"


def svag_extrapolation(
    problem: Any,
    theta0: Any,
    time: float,
    l: Sequence[int] = (1, 2, 4, 8),
    *,
    functions: Callable[[np.ndarray], Any] | Mapping[str, Callable[[np.ndarray], Any]] = square,
    n_paths: int = 20_000,
    rng: Any = None,
    powers: Sequence[float] = (1.0,),
    control_variate: bool = True,
    threads: int | None = None,
    executor: Executor | None = None,
) -> SVAGReport:
    """Means of SVAG(l) at a fixed time, extrapolated in 1/l to l → ∞, where SVAG is the SDE of SGD.

    The limit is that of the SDE of order 1, but no equation and no Gaussian number is used: whatever is said of the
    SDE can be checked against it, and the distance of l = 1 is what SGD and its SDE differ by.

    Parameters
    ----------
    problem : SGD
        Without an optimizer, with a constant learning rate; batches drawn anew at each step.
    theta0 : (d,) array_like
    time : float
        t = Σ η: a whole number of learning rates.
    l : sequence of at least 3 ints
        SVAG(l) makes l times as many steps.
    functions : callable or dict of str to callable
        f maps parameters (n_paths, d) to (n_paths,): a `Charge`, ``problem.loss``, … By default |θ|².
    n_paths, rng, control_variate, threads, executor
        As in `weak_error`.
    powers : sequence of float
        Of 1/l in the fit, fewer than there are l: (1,), or (1, 2) where that is bad.

    Returns
    -------
    SVAGReport
        A mapping from names to `comparison.Extrapolation`: limit, standard error, chi² of the fit, and how far each l
        is from the limit. It prints itself.

    Raises
    ------
    ArgumentError, ModelError, ShapeError

    Notes
    -----
    The error of SVAG(l) is a series in 1/l (Z. Li, S. Malladi, S. Arora, NeurIPS 2021, theorem 4.3): its step is η/l,
    and the third cumulant of its noise falls like 1/l. Cost: Σl·time/η steps, each of 2S sample gradients, and of a
    gradient over all samples with `control_variate`.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> a = np.array([0.3, 1.7])  # ℓ_i = ½a_iθ², whose SDE has E X² = exp((-2 E a + η Var a)t)
    >>> model = sg.models.LinearRegression(1, biases=False, scale=0.5)
    >>> problem = sg.SGD(model, np.sqrt(a)[:, None], [0.0, 0.0], learning_rate=0.2)
    >>> found = sg.svag_extrapolation(problem, [1.0], 2.0, n_paths=4000, rng=0, powers=(1, 2))["|y|²"]
    >>> bool(abs(found.limit - np.exp(2 * (-2 * a.mean() + 0.2 * a.var()))) < 4 * found.stderr), found.good
    (True, True)
    """
    if not isinstance(problem, SGD):
        raise ArgumentError(f"problem must be an SGD problem, got {_check.show(problem)}")
    if isinstance(l, str) or not isinstance(l, Iterable):
        raise ArgumentError(f"l must be a sequence of whole numbers, got {_check.show(l)}")
    many = sorted(_check.count("l", one) for one in l)
    if len(many) < 3 or len(set(many)) < len(many):
        raise ArgumentError(f"l must be at least 3 different numbers, got {many}")
    levels = make_levels(problem, time, [problem.learning_rate / one for one in many], "svag")
    start = _check.array("theta0", theta0, (problem.model.dim,))
    of, key, n_paths = named(functions), key_from(rng), _check.count("n_paths", n_paths, least=100)
    found = estimate(
        levels, of, start, float(time), (True, False), order=1, method=None, refine=1, n_paths=n_paths, key=key,
        control=_check.flag("control_variate", control_variate), options={"threads": threads, "executor": executor},
    )  # fmt: skip
    n = len(levels)
    lost = found.lost[: len(of) * n].reshape(len(of), n).max(axis=0)
    kept = np.flatnonzero(lost == 0)
    if len(kept) <= len(powers):
        raise ArgumentError(
            f"l must leave more than {len(powers)} levels whose paths all stay finite; of l = {many} these left the "
            f"finite numbers: {lost.tolist()}; a smaller learning rate helps"
        )
    result = {}
    for k, name in enumerate(of):
        rows = k * n + kept
        covariance = found.covariance[np.ix_(rows, rows)]
        result[name] = richardson(1.0 / np.array(many)[kept], found.mean[rows], covariance, powers=powers)
    return SVAGReport(result, np.array(many), float(time), n_paths, key, lost)
