"""One equation on grids of different steps, all along the same Brownian path, some paths at a time.

Increments are drawn once on the finest grid and summed, which for increments is all there is to Chen's relation. A
method that needs more of the path than its increments makes a `Brownian` drive every grid. Fresh noise on each grid
would measure the spread of the solution and no order at all.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._abi import DRIVING
from sgdsde._errors import ArgumentError, DivergenceWarning, ShapeError
from sgdsde.equation._equation import Problem
from sgdsde.random.brownian import Brownian
from sgdsde.random.stream import key_from
from sgdsde.run.choosing import choose_for
from sgdsde.run.grid import time_span
from sgdsde.run.solving import DEFAULT_METHOD, noise_for, solve
from sgdsde.schemes import Scheme, get_scheme

__all__ = ["MEMORY", "Piece", "Study", "make_study", "values"]

MEMORY = 1 << 22
"""Increments held at once, in doubles."""
OWN = {"dt", "keep", "path_index", "dW", "brownian", "t_eval", "checkpoint", "checkpoint_every", "save_noise"}
"""Arguments of `solve` that a study sets, or that belong to a single run."""


@dataclass(frozen=True)
class Study:
    """What is run: made by `make_study`, gone through in `pieces`."""

    sde: Any
    start: np.ndarray
    t0: float
    t1: float
    scheme: Scheme
    noise: str
    """The kind of noise that the scheme takes the equation to have."""
    m: int
    levels: list[int]
    n_fine: int
    """Steps of the grid on which noise is drawn, and on which a numerical reference runs."""
    n_paths: int
    key: int
    beyond: str
    """What a method needs of the path beyond increments, '' for nothing."""
    options: dict[str, Any]

    @property
    def dts(self) -> np.ndarray:
        """(n_levels,) lengths of the steps."""
        return (self.t1 - self.t0) / np.array(self.levels, dtype=float)

    def pieces(self) -> Iterator[Piece]:
        """All paths, as many at once as fit into `MEMORY`."""
        size = max(1, min(self.n_paths, MEMORY // (self.n_fine * max(self.m, 1))))
        for first in range(0, self.n_paths, size):
            yield self.piece(range(first, min(first + size, self.n_paths)))

    def piece(self, paths: range) -> Piece:
        """These paths, and what drives them."""
        span, h = (self.t0, self.t1), (self.t1 - self.t0) / self.n_fine
        if self.beyond:
            levels = self.n_fine.bit_length() - 1
            return Piece(self, paths, None, Brownian(self.m, span, self.key, levels=levels, path_index=paths))
        return Piece(self, paths, _increments(self.key, paths, self.n_fine, self.m, h), None)


@dataclass(frozen=True)
class Piece:
    """Some paths of a study, and what drives them on every grid."""

    study: Study
    paths: range
    dW: np.ndarray | None
    brownian: Brownian | None

    @property
    def part(self) -> slice:
        return slice(self.paths.start, self.paths.stop)

    def run(self, method: Scheme, n_steps: int, **more: Any) -> Any:
        """The solution at the end, on a grid of n_steps; `more` goes to `solve`."""
        study = self.study
        driven: dict[str, Any] = {"brownian": self.brownian}
        if self.dW is not None:
            shape = len(self.paths), n_steps, study.n_fine // n_steps, study.m
            driven = {"dW": self.dW.reshape(shape).sum(axis=2), "rng": study.key}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # counted, and reported in the result
            return solve(
                study.sde,
                (study.t0, study.t1),
                study.start[self.part] if study.start.ndim == 2 else study.start,
                method=method,  # type: ignore[arg-type]
                dt=(study.t1 - study.t0) / n_steps,
                n_paths=study.n_paths,
                path_index=self.paths,
                keep="final",
                **{**driven, **study.options, **more},
            )

    def path(self) -> tuple[np.ndarray, np.ndarray]:
        """t (n_fine + 1,) and W (n_paths, n_fine + 1, m) on the finest grid, for exact solutions."""
        study = self.study
        dW = self.dW if self.brownian is None else self.brownian.grid(study.n_fine)
        assert dW is not None
        W = np.concatenate([np.zeros_like(dW[:, :1]), dW.cumsum(axis=1)], axis=1)
        return np.linspace(study.t0, study.t1, study.n_fine + 1), W


def make_study(
    sde: Any,
    y0: Any,
    t_span: Any,
    method: Any,
    reference: Scheme | None,
    *,
    goal: str,
    n_steps: Any,
    refine: int,
    least: int,
    n_paths: Any,
    rng: Any,
    args: Any,
    options: dict[str, Any],
) -> Study:
    """Checks what orders of both kinds are measured with.

    `reference` is a method that runs on the finest grid; `goal` is what "auto" chooses the method for.
    """
    own = sorted(OWN & set(options))
    if own:
        raise ArgumentError(f"{own[0]} must be left out: an order study sets it itself, on every level")
    unknown = sorted(set(options) - set(inspect.signature(solve).parameters))
    if unknown:
        raise ArgumentError(f"{unknown[0]} is no argument of solve, to which it would be passed")
    t0, t1 = time_span(t_span)
    if isinstance(sde, type) or not isinstance(sde, Problem):
        raise ArgumentError(f"sde must be an SDE or the .sde() of an SGD problem, got {_check.show(sde)}")
    levels = _levels(n_steps, least)
    n = _check.count("n_paths", n_paths, least=10)
    start = _check.array("y0", y0)
    one = start if start.ndim < 2 else start[0]
    equation = sde.bind(t0, one, args)
    if isinstance(method, str) and method == "auto":
        method = choose_for(equation, np.atleast_1d(one), t0, goal)[0].method
    scheme = get_scheme(method if method is not None else DEFAULT_METHOD.get(equation.calculus, ""))
    noise = noise_for(scheme, equation, t0, np.atleast_1d(one))
    needs = {_beyond(scheme, noise, equation.calculus)}
    if reference is not None and reference is not scheme:
        needs.add(_beyond(reference, noise_for(reference, equation, t0, np.atleast_1d(one)), equation.calculus))
    beyond = " and ".join(sorted(needs - {""}))
    n_fine = levels[-1] * refine
    if beyond and n_fine & (n_fine - 1):
        raise ArgumentError(
            f"n_steps and refine must be powers of two where a method needs {beyond} of the path, which a Brownian "
            f"gives on halved steps: got n_steps={tuple(levels)}, refine={refine}"
        )
    return Study(
        sde, start, t0, t1, scheme, noise, equation.noise_dim, levels, n_fine, n, key_from(rng), beyond,
        {**options, "args": args},
    )  # fmt: skip


def _beyond(scheme: Scheme, noise: str, calculus: str) -> str:
    aux = scheme.aux_for(noise, calculus)
    words = {"ito": "iterated integrals", "stratonovich": "iterated integrals", "space-time": "space-time areas"}
    return "" if aux is None else words.get(aux.brownian, "")


def _levels(n_steps: Any, least: int) -> list[int]:
    if isinstance(n_steps, str) or not isinstance(n_steps, Iterable):
        raise ArgumentError(f"n_steps must be a sequence of numbers of steps, got {_check.show(n_steps)}")
    levels = [_check.count("n_steps", level) for level in n_steps]
    if len(levels) < least or sorted(set(levels)) != levels or any(levels[-1] % level for level in levels):
        raise ArgumentError(f"n_steps must be at least {least} increasing numbers that divide the last, got {levels}")
    return levels


def _increments(key: int, paths: range, n_steps: int, m: int, h: float) -> np.ndarray:
    """(n_paths, n_steps, m): those that `solve` would draw on this grid."""
    from sgdsde.random.normal import fill_normals

    block = np.empty((n_steps * m, len(paths)))
    fill_normals(block, 0, np.asarray(paths, dtype=np.uint64), DRIVING, np.uint64(key))
    return np.ascontiguousarray(math.sqrt(h) * block.T).reshape(len(paths), n_steps, m)


def values(name: str, function: Callable[[Any], Any], of: Any, n: int) -> np.ndarray:
    """function(of) as (n_paths, q); it returns (n_paths,) or (n_paths, q)."""
    found = _check.array(name, function(of), finite=False)
    if found.ndim not in (1, 2) or found.shape[0] != n:
        raise ShapeError(f"{name} must return shape ({n},) or ({n}, q), got {found.shape}")
    return found.reshape(n, -1)
