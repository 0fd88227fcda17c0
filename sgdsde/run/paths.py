"""Which paths: their numbers in the ensemble, where they start, what drives them, how many go side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.equation._equation import Equation
from sgdsde.run.grid import Grid, Saves
from sgdsde.run.memory import refuse_more_than_half

__all__ = [
    "Paths",
    "PER_PATH",
    "block_size",
    "check_block_size",
    "check_counters",
    "given_noise",
    "path_numbers",
    "start_states",
]

LEAF = 256
"""Largest block; a power of two, as every block size is."""
CACHE = 1 << 17
"""Bytes of state, noise and scratch that a block should stay below."""
LEAST = 4
"""Below this, columns cost more than the cache gains: 256 paths of d = 2 take 3.2 ns a step each, one alone 75."""
MOST_PATHS = 2**56
PER_PATH = 4
"""Doubles that each path takes whatever is kept: its number, its status, when it stopped."""


class Paths(NamedTuple):
    """The paths of a run by their numbers in the ensemble."""

    n: int
    numbers: np.ndarray | None
    """(n,) integers; None for 0 .. n - 1, of which there may be too many to write down."""
    single: bool
    """One path, without an axis for paths in the results."""

    def part(self, where: slice) -> np.ndarray:
        """Numbers of some of the paths, as the kernels want them."""
        if self.numbers is not None:
            return self.numbers[where].astype(np.uint64)
        start, stop, _ = where.indices(self.n)
        return np.arange(start, stop, dtype=np.uint64)

    def all(self) -> np.ndarray:
        """(n,) integers."""
        return np.arange(self.n) if self.numbers is None else self.numbers


def path_numbers(n_paths: int | None, path_index: Any) -> Paths:
    """Read `n_paths` and `path_index`: an ensemble, some of its paths, or one of them."""
    total = None if n_paths is None else _check.count("n_paths", n_paths, most=MOST_PATHS)
    if path_index is None:
        return Paths(total or 1, None, total is None)
    most = MOST_PATHS - 1 if total is None else total - 1
    if not isinstance(path_index, range) and np.ndim(path_index) == 0:
        number = _check.count("path_index", path_index, least=0, most=most)
        return Paths(1, np.array([number]), total is None)
    refuse_more_than_half(8.0 * PER_PATH * len(path_index), "running so many paths", ["fewer of them at once"])
    if isinstance(path_index, range):
        numbers = np.arange(path_index.start, path_index.stop, path_index.step)
    else:
        numbers = np.asarray(path_index)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        raise ArgumentError(f"path_index must be an integer or a sequence of integers, got {_check.show(path_index)}")
    if numbers.min() < 0 or numbers.max() > most:
        wanted = f"0 <= path_index <= {most}" + ("" if total is None else f" (n_paths = {total})")
        raise ArgumentError(f"path_index must hold {wanted}, got {numbers.min()} .. {numbers.max()}")
    if np.unique(numbers).size < numbers.size:
        raise ArgumentError(f"path_index must name different paths, got {_check.show(path_index)}")
    return Paths(numbers.size, numbers.astype(np.int64), False)


def start_states(y0: Any, dim: int, paths: Paths, n_paths: int | None) -> np.ndarray:
    """Initial states, (n, d): one for all (a view, no copies), or a row for each path of the ensemble or of the run."""
    raw = _check.array("y0", y0)
    if raw.ndim == 0 and dim == 1:
        raw = raw.reshape(1)
    if raw.shape == (dim,):
        return np.broadcast_to(raw, (paths.n, dim))
    if raw.ndim == 2 and raw.shape[1] == dim and not (n_paths is None and paths.single):
        if raw.shape[0] == n_paths:
            return raw if paths.numbers is None else raw[paths.numbers]
        if raw.shape[0] == paths.n:
            return raw
    wanted, hint = f"({dim},)", ""
    if n_paths is not None:
        wanted += f" or (n_paths, d) = ({n_paths}, {dim})"
    elif raw.ndim == 2 and raw.shape[1] == dim:
        hint = f"; with n_paths={raw.shape[0]} each row is the start of one path"
    raise ShapeError(f"y0 must have shape {wanted}, got {raw.shape}{hint}")


def given_noise(dW: Any, paths: Paths, n_steps: int, m: int, discrete: bool) -> np.ndarray | None:
    """The increments that a person gives, (n, n_steps, m), as they are where they are float64."""
    if dW is None:
        return None
    if discrete:
        raise ArgumentError("dW cannot drive discrete SGD: its randomness is the choice of the batch")
    if isinstance(dW, np.ndarray) and dW.dtype == np.float64 and not np.ma.isMaskedArray(dW):
        raw = dW  # as large as the run is long: read where it lies, and looked through block by block
    else:
        raw = _check.array("dW", dW)
    shape = (paths.n, n_steps, m)
    if raw.shape != shape and not (paths.single and raw.shape == shape[1:]):
        wanted = f"(n_steps, m) = {shape[1:]}" if paths.single else f"(n_paths, n_steps, m) = {shape}"
        raise ShapeError(f"dW must have shape {wanted}, got {raw.shape}")
    return raw.astype(np.float64, copy=False).reshape(shape)


def check_block_size(wanted: Any) -> int | None:
    """A power of two, or None."""
    if wanted is None:
        return None
    size = _check.count("block_size", wanted, most=LEAF)
    if size & (size - 1):
        raise ArgumentError(f"block_size must be a power of two, got {size}")
    return size


def block_size(wanted: int | None, equation: Equation, m: int, n_paths: int, cores: int) -> int:
    """Paths side by side: a power of two, small enough for the cache and for every core to have work."""
    if wanted is not None:
        return wanted
    size = LEAF
    if equation.block is not None:
        size = min(size, 1 << (max(1, equation.block).bit_length() - 1))
    while size > LEAST and size * (equation.dim + m) * 4 * 8 > CACHE:
        size //= 2
    while size > 8 and size * cores > n_paths:
        size //= 2
    while size > 1 and size >= 2 * n_paths:
        size //= 2
    return size


def check_counters(grid: Grid, saves: Saves, m: int, n_aux: int, *, adaptive: bool = False) -> None:
    """Every random number of a path has a number of its own, below 2**63 (2**42 with bridges): refuse longer runs."""
    per_step = max(m, n_aux, 1)
    between = saves.step[saves.offset > 0]
    most = 2**42 if between.size or adaptive else 2**62
    if grid.n_steps * per_step > most:
        raise ArgumentError(
            f"dt must allow at most {most // per_step} steps with {per_step} random numbers each"
            f"{' and times of t_eval between steps' if between.size else ''}, got {grid.n_steps}"
        )
    if between.size >= 2**20 and np.unique(between, return_counts=True)[1].max() >= 2**20:
        raise ArgumentError("t_eval must hold fewer than 2**20 times within one step")
