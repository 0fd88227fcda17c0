"""Brownian: one path that can be asked for its increments, space-time areas and iterated integrals, all of one piece.

Increments W and space-time areas H come from a tree of halved intervals (`sgdsde.random.brownian_tree`), exactly
distributed over any intervals. Lévy areas are drawn once on the finest grid, given (W, H) there, and joined by Chen's
relation above it (`sgdsde.random.brownian_chen`).
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.random.brownian_tree import TICKS, fill_intervals, level_range
from sgdsde.random.levy_integrals import levy_terms, path_numbers
from sgdsde.random.levy_joining import join_cells
from sgdsde.random.levy_kernels import AREA, fill_integrals, integrals_work
from sgdsde.random.levy_methods import METHODS
from sgdsde.random.stream import key_from

__all__ = ["Brownian"]

MOST_LEVELS = 30
AREAS_AT_ONCE = 1 << 20
METHOD = "mrongowius-roessler"
"""Its tail is exact in H, so that an area can be drawn given (W, H), and has the right variance at any error."""


class Brownian:
    """A Brownian path in m dimensions, or several, as a value: it never changes, whatever it is asked.

    Parameters
    ----------
    m : int
        Number of independent components.
    t_span : (t0, t1)
    rng : int, None, SeedSequence or Generator
        As in `solve`; the key is kept as `seed`.
    levels : int
        The finest grid, on which Lévy areas are drawn, has 2**levels cells of length `dt`.
    n_paths : int, optional
        Paths 0 .. n_paths − 1; every array gets a first axis for them.
    path_index : int or sequence of ints, optional
        These paths instead; an int, or neither, means one path and no axis for it. Path 731 is the same in any company.
    error : float, optional
        Root mean square error of each Lévy area of a finest cell; dt^{3/2} by default. Over a time T errors add up to
        error·√(T/dt), so T^{1/2} dt by default.

    Attributes
    ----------
    m, t0, t1, span, levels, dt, seed
    terms : int
        Length of the series of which a finest cell's area is made (`sgdsde.random.levy_methods`).

    Notes
    -----
    * W and H have the exact joint law over any set of intervals. Times are rounded to (t1 − t0)/2**48. Different
      `levels` give the same W and H.
    * Iterated integrals are to be had between times of the finest grid, consistent with W, with H and with each other:
      over any union of cells Chen's relation holds to rounding. Their law on the finest cells, given (W, H), is
      Mrongowius and Rößler's approximation: up to `error`, with the right variance. They depend on `levels` and
      `error`, so compare methods on one object.
    * W inside a finest cell knows the cell's W and H but not its Lévy area: given (W, H) they are independent here and
      not in truth. What mixes integrals with times inside cells needs more levels.
    * Nothing is stored. A time costs at most 48 halvings, a grid one halving a step, and iterated integrals the areas
      of all finest cells, in pieces of 8 MB.
    * A run without `dW=` and with the same seed uses the same random numbers differently: take another seed if the two
      should be independent.

    References
    ----------
    J. Foster, T. Lyons, H. Oberhauser, SIAM J. Numer. Anal. 58 (2020) 1393 (halving with H); P. E. Kloeden, E. Platen
    (1992) 5.8; J. Mrongowius, A. Rößler, Stoch. Anal. Appl. 40 (2022) 397 (areas).

    Examples
    --------
    >>> import numpy as np
    >>> from sgdsde.random import Brownian, coarsen
    >>> b = Brownian(2, (0, 1), rng=0)
    >>> fine, coarse = b.grid(256), b.grid(64)
    >>> bool(np.allclose(coarsen(fine, b.iterated(256), factor=4).I, b.iterated(64), rtol=0, atol=1e-14))
    True
    >>> bool(np.allclose(b.increments(0.2, 0.9), b(0.9) - b(0.2)))
    True
    >>> Brownian(2, (0, 1), rng=0, n_paths=5).grid(64).shape  # as solve(dW=…) takes it
    (5, 64, 2)
    """

    def __init__(
        self,
        m: int,
        t_span: Any,
        rng: Any = None,
        *,
        levels: int = 10,
        n_paths: int | None = None,
        path_index: Any = None,
        error: float | None = None,
    ) -> None:
        self.m = _check.count("m", m, most=4096)
        ends = _check.array("t_span", t_span, (2,))
        if not ends[0] < ends[1]:
            raise ArgumentError(f"t_span must be (t0, t1) with t0 < t1, got ({ends[0]}, {ends[1]})")
        self.t0, self.t1 = float(ends[0]), float(ends[1])
        self.levels = _check.count("levels", levels, least=0, most=MOST_LEVELS)
        self.span = self.t1 - self.t0
        self.dt = self.span / (1 << self.levels)
        if n_paths is not None and path_index is not None:
            raise ArgumentError("n_paths and path_index exclude each other: both say which paths there are")
        self._single = n_paths is None and np.ndim(path_index) == 0
        count = _check.count("n_paths", n_paths) if n_paths is not None else 1 if self._single else len(path_index)
        self._path = path_numbers("path_index", path_index, count)
        self.seed = key_from(rng)
        error = self.dt * math.sqrt(self.dt) if error is None else _check.positive("error", error)
        self.terms = levy_terms(self.dt, self.m, method=METHOD, error=error)[1]
        self._error = error

    def __repr__(self) -> str:
        paths = "" if self._single else f", n_paths={self._path.size}"
        return f"Brownian(m={self.m}, t_span=({self.t0:g}, {self.t1:g}), rng={self.seed}, levels={self.levels}{paths})"

    def __call__(self, t: Any) -> np.ndarray:
        """W(t) − W(t0): (m,) for a time, (n, m) for n times in any order."""
        ticks = self._ticks("t", t)
        return self._intervals(np.zeros_like(ticks), ticks)[0]

    def increments(self, t0: Any, t1: Any) -> np.ndarray:
        """W(t1) − W(t0), t0 <= t1: (m,) for two times, (n, m) for two sequences that broadcast against each other."""
        return self._intervals(self._ticks("t0", t0), self._ticks("t1", t1))[0]

    def space_time_area(self, t0: Any, t1: Any) -> np.ndarray:
        """H = (1/h) ∫ (W(u) − W(t0) − (u − t0)/h ΔW) du over [t0, t1], h = t1 − t0; N(0, h/12), independent of ΔW."""
        return self._intervals(self._ticks("t0", t0), self._ticks("t1", t1))[1]

    def iterated_integrals(self, t0: float, t1: float, *, calculus: str = "ito") -> np.ndarray:
        """I_(i,j) = ∫∫ dW_i(u) dW_j(s) over [t0, t1], u < s, as (m, m); both are times of the finest grid."""
        c0, c1 = self._cell("t0", t0), self._cell("t1", t1)
        if c0 >= c1:
            raise ArgumentError(f"t1 must be after t0, got t0={t0!r}, t1={t1!r}")
        w, A = self._areas(c0, c1, c1 - c0)
        return self._out(_from_area(w, A, (c1 - c0) * self.dt, calculus))[..., 0, :, :]

    def grid(self, n_steps: int) -> np.ndarray:
        """Increments (n_steps, m) of equal steps over the span, ready for `solve(dW=…)`; to the bit, `increments`."""
        return self._out(self._grid(n_steps)[0])

    def space_time(self, n_steps: int) -> np.ndarray:
        """Space-time areas H (n_steps, m) of the steps of `grid(n_steps)`."""
        return self._out(self._grid(n_steps)[1])

    def iterated(self, n_steps: int, *, calculus: str = "ito") -> np.ndarray:
        """Iterated integrals (n_steps, m, m) of the steps of `grid(n_steps)`; n_steps divides 2**levels."""
        n = self._coarser(n_steps)
        _, A = self._areas(0, 1 << self.levels, (1 << self.levels) // n)
        return self._out(_from_area(self._grid(n)[0], A, self.span / n, calculus))

    def steps(self, n_steps: int, k0: int, k1: int, *, beyond: str = "") -> tuple[np.ndarray, np.ndarray]:
        """What drives steps k0 .. k1 − 1 of the n_steps of `grid`, to the bit, without the others: the runner's way.

        Returns
        -------
        dW : (k1 − k0, m, n_paths)
        aux : (k1 − k0, r, n_paths)
            `beyond` says what: '' nothing (r = 0), 'space-time' H (r = m), 'ito' or 'stratonovich' the iterated
            integrals, row i·m + j with i the earlier one (r = m²; n_steps divides 2**levels).
        """
        W, H = self._grid(n_steps, k0, k1)
        if beyond == "space-time":
            return W, H
        if not beyond:
            return W, np.empty((k1 - k0, 0, self._path.size))
        group = (1 << self.levels) // self._coarser(n_steps)
        _, A = self._areas(k0 * group, k1 * group, group)
        I = _from_area(W, A, self.span / n_steps, beyond)
        return W, I.reshape(k1 - k0, self.m * self.m, self._path.size)

    def only(self, path: np.ndarray) -> Brownian:
        """The same object for some of its paths, by their numbers; always with an axis for them."""
        made = copy.copy(self)
        made._path, made._single = np.ascontiguousarray(path, dtype=np.uint64), False
        return made

    @property
    def path_index(self) -> np.ndarray:
        """(n_paths,) numbers of the paths."""
        return self._path.astype(np.int64)

    def _coarser(self, n_steps: int) -> int:
        n = _check.count("n_steps", n_steps)
        if (1 << self.levels) % n:
            raise ArgumentError(f"n_steps must divide 2**levels = {1 << self.levels}, got {n}; levels= can be raised")
        return n

    def _out(self, found: np.ndarray) -> np.ndarray:
        """From paths last to paths first, or none."""
        return np.ascontiguousarray(found[..., 0] if self._single else np.moveaxis(found, -1, 0))

    def _grid(self, n_steps: int, k0: int = 0, k1: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        n = _check.count("n_steps", n_steps, most=1 << 40)
        k1 = n if k1 is None else k1
        level = n.bit_length() - 1
        if n == 1 << level:
            return level_range(level, k0, k1, self.m, self.span, self._path, self.seed)
        ticks = np.array([(k * TICKS + n // 2) // n for k in range(k0, k1 + 1)], dtype=np.int64)
        return self._between(ticks[:-1], ticks[1:])

    def _between(self, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = (self.m, self._path.size)
        W, H = np.empty((start.size, *shape)), np.empty((start.size, *shape))
        scratch = [np.empty(shape) for _ in range(6)]
        start, stop = np.ascontiguousarray(start), np.ascontiguousarray(stop)
        z = np.empty((2 * self.m, self._path.size))
        fill_intervals(W, H, start, stop, self.span, self._path, np.uint64(self.seed), *scratch, z)
        return W, H

    def _ticks(self, name: str, t: Any) -> np.ndarray:
        clean = _check.array(name, t)
        slack = 8 * np.finfo(float).eps * max(abs(self.t0), abs(self.t1))
        if clean.size and (clean.min() < self.t0 - slack or clean.max() > self.t1 + slack):
            worst = float(clean.min() if clean.min() < self.t0 - slack else clean.max())
            raise ArgumentError(f"{name} must lie within t_span [{self.t0!r}, {self.t1!r}], got {worst!r}")
        return np.clip(np.rint((clean - self.t0) / self.span * TICKS), 0, TICKS).astype(np.int64)

    def _intervals(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        try:
            first, last = np.broadcast_arrays(first, last)
        except ValueError:
            raise ShapeError(f"t0 and t1 must broadcast, got shapes {first.shape} and {last.shape}") from None
        if np.any(first > last):
            raise ArgumentError("t1 must not be before t0")
        W, H = self._between(first.reshape(-1), last.reshape(-1))
        shape = (*first.shape, self.m, self._path.size)
        return self._out(W.reshape(shape)), self._out(H.reshape(shape))

    def _cell(self, name: str, t: Any) -> int:
        tick, size = int(self._ticks(name, _check.number(name, t))), TICKS >> self.levels
        cell = (tick + size // 2) // size
        slack = 2 + 8 * np.finfo(float).eps * max(abs(self.t0), abs(self.t1)) / self.span * TICKS
        if abs(tick - cell * size) > slack:
            near = self.t0 + cell * self.dt
            raise ArgumentError(
                f"{name} must be a time of the finest grid, t0 + k·{self.dt:g}, got {t!r} (the nearest is {near!r}); "
                "iterated integrals are not to be had inside its cells; levels= can be raised"
            )
        return cell

    def _areas(self, c0: int, c1: int, group: int) -> tuple[np.ndarray, np.ndarray]:
        """(W (n, m, B), A (n, m*m, B)) of groups of consecutive cells, from c0 to c1, joined a few cells at a time."""
        m, B = self.m, self._path.size
        most = max(1, AREAS_AT_ONCE // (m * m * B))
        w, A = np.zeros(((c1 - c0) // group, m, B)), np.zeros(((c1 - c0) // group, m * m, B))
        for c in range(c0, c1, most):
            cells = self._cells(c, min(c + most, c1))
            join_cells(w, A, *cells, c - c0, group)
        return w, A

    def _cells(self, c0: int, c1: int) -> tuple[np.ndarray, np.ndarray]:
        n, m, B = c1 - c0, self.m, self._path.size
        w, H = level_range(self.levels, c0, c1, m, self.span, self._path, self.seed)
        w, A = np.ascontiguousarray(w), np.empty((n, m * m, B))
        fixed, per_path = integrals_work(m)
        fill_integrals(
            A,
            w,
            np.ascontiguousarray(H),
            np.full((n, B), self.dt),
            self._path,
            (1 << self.levels) + c0,  # cells of different grids have numbers of their own
            np.uint64(self.seed),
            list(METHODS).index(METHOD),
            self._error,
            AREA,
            np.empty(fixed + per_path * B),
        )
        return w, A


def _from_area(w: np.ndarray, A: np.ndarray, h: float, calculus: str) -> np.ndarray:
    """I (n, m, m, B) from dW (n, m, B) and A (n, m*m, B)."""
    ito = _check.choice("calculus", calculus, ("ito", "stratonovich")) == "ito"
    I = 0.5 * w[:, :, None] * w[:, None, :] + A.reshape(w.shape[0], w.shape[1], *w.shape[1:])
    return I - 0.5 * h * np.eye(w.shape[1])[..., None] if ito else I
