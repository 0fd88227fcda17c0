"""`integrate`: run an equation that is already bound, with a scheme. `solve` and `SGD.run` both end here."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import DIVERGED, NOT_CONVERGED, ArgumentError, DivergenceWarning, ShapeError
from sgdsde.equation._equation import Equation
from sgdsde.random.stream import key_from
from sgdsde.run.checkpoint import Checkpoint
from sgdsde.run.collect import Collector, check_memory
from sgdsde.run.executor import available_cores, run_blocks
from sgdsde.run.grid import Grid, make_saves
from sgdsde.run.job import Block, Job, by_name, start_block
from sgdsde.run.progress import Report, reporter
from sgdsde.run.solution import Solution
from sgdsde.run.watching import named
from sgdsde.schemes._scheme import Scheme

__all__ = ["integrate"]

LEAF = 256
"""Largest block; a power of two, as every block size is."""
CACHE = 1 << 17
"""Bytes of state, noise and scratch that a block should stay below."""


def integrate(
    equation: Equation,
    scheme: Scheme,
    grid: Grid,
    y0: Any,
    *,
    problem: Any,
    noise: str | None = None,
    n_paths: int | None = None,
    rng: Any = None,
    t_eval: Any = None,
    keep: str = "all",
    observe: Any = None,
    track: Any = None,
    track_every: int = 1,
    save_noise: bool = False,
    dW: Any = None,
    path_index: Any = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Any = None,
    checkpoint: Any = None,
    checkpoint_every: float = 30.0,
    block_size: int | None = None,
    chunk_steps: int | None = None,
) -> Solution:
    """Integrate a bound equation over a grid. The arguments are those of `solve`, which explains them.

    `noise` is the kind the scheme should treat the noise as, where that is not what the equation says.
    """
    keep = _check.choice("keep", keep, ["all", "final", "stats"])
    single = n_paths is None and (path_index is None or np.ndim(path_index) == 0)
    index = _path_numbers(n_paths, path_index, y0)
    n = index.size
    states = _states(y0, equation.dim, index, n_paths)
    key = key_from(rng)
    discrete = equation.calculus == "discrete"
    saves = make_saves(grid, t_eval, keep=keep, on_grid=discrete)
    given = _given_noise(dW, n, single, grid.n_steps, equation.noise_dim, discrete)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ArgumentError(f"executor must be a concurrent.futures.Executor, got {_check.show(executor)}")
    watched = named("observe", observe, 4), named("track", track, 4)
    every = _check.count("track_every", track_every)
    kind = noise if noise is not None else equation.noise
    keep_noise = _check.flag("save_noise", save_noise)
    job = Job(equation, by_name(scheme), kind, grid, states[0], saves, key, *watched, every, keep_noise)
    program = job.program()
    check_memory(job, keep, n)
    cores = _check.count("threads", threads) if threads is not None else available_cores()
    size = _block_size(block_size, equation, program.m, n, cores)
    chunk = None if chunk_steps is None else _check.count("chunk_steps", chunk_steps)

    collector = Collector(job, keep, n, size)
    file, resumed = None, {}
    if checkpoint is not None:
        settings = {
            "method": job.resolve().name, "seed": key, "n_paths": n, "block_size": size, "keep": keep,
            "dim": equation.dim, "noise_dim": equation.noise_dim, "save_noise": save_noise,
            "observed": dict(program.observed), "tracked": dict(program.tracked), "track_every": every,
            "start": _digest(states, index, given),
        }  # fmt: skip
        file = Checkpoint(checkpoint, job, collector, settings, _check.positive("checkpoint_every", checkpoint_every))
        resumed = file.load()
    blocks = _blocks(job, collector, resumed, index, states, given, size)
    visitor = _Visitor(job, collector, file, reporter(progress, job.resolve().name), n, resumed)
    n_blocks = collector.done.size
    under_way, interrupted = run_blocks(
        job, blocks, visitor, threads=min(cores, max(1, n_blocks)), executor=executor, chunk=chunk
    )
    if file is not None:
        file.save(under_way)
    for block in under_way.values():
        collector.add(block.interrupted(), finished=False)
    solution = _solution(job, collector, problem, states, index, single, watched[1])
    if not interrupted:
        visitor.end()
    _warn(solution)
    return solution


class _Visitor:
    """Collects finished blocks, counts progress, and writes checkpoints when they are due."""

    def __init__(
        self,
        job: Job,
        collector: Collector,
        file: Checkpoint | None,
        report: Report | None,
        n_paths: int,
        resumed: Mapping,
    ) -> None:
        self.collector, self.file, self.report = collector, file, report
        self.total = job.grid.n_steps * n_paths
        done, size = np.flatnonzero(collector.done), collector.block_size
        finished = int(np.minimum(size, n_paths - done * size).sum())
        self.steps = job.grid.n_steps * finished + sum(block.k * block.path.size for block in resumed.values())

    def finished(self, block: Block) -> None:
        self.collector.add(block)

    def moved(self, block: Block, steps: int) -> None:
        self.steps += steps * block.path.size
        if self.report is not None and self.steps < self.total:
            self.report(self.steps / self.total)

    def wants_rest(self) -> bool:
        return self.file is not None and self.file.due()

    def at_rest(self, under_way: dict[int, Block]) -> None:
        if self.file is not None:
            self.file.save(under_way)

    def end(self) -> None:
        if self.report is not None:
            self.report(1.0)


def _path_numbers(n_paths: int | None, path_index: Any, y0: Any) -> np.ndarray:
    """Numbers of the paths to run, (n,), as uint64."""
    total = None if n_paths is None else _check.count("n_paths", n_paths)
    if path_index is None:
        return np.arange(1 if total is None else total, dtype=np.uint64)
    if isinstance(path_index, range):
        path_index = list(path_index)
    many = [path_index] if np.ndim(path_index) == 0 else list(path_index)
    most = 2**56 - 1 if total is None else total - 1
    numbers = [_check.count("path_index", i, least=0, most=most) for i in many]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ArgumentError(f"path_index must name different paths, got {_check.show(path_index)}")
    return np.array(numbers, dtype=np.uint64)


def _states(y0: Any, dim: int, index: np.ndarray, n_paths: int | None) -> np.ndarray:
    """Initial states, (n, d): one for all, or one row per path."""
    raw = _check.array("y0", y0)
    if raw.ndim == 0 and dim == 1:
        raw = raw.reshape(1)
    if raw.shape == (dim,):
        return np.broadcast_to(raw, (index.size, dim))
    if raw.ndim == 2 and raw.shape[1] == dim and n_paths is not None and raw.shape[0] in (n_paths, index.size):
        return raw if raw.shape[0] == index.size else raw[index.astype(np.int64)]
    wanted = f"({dim},)" + ("" if n_paths is None else f" or (n_paths, d) = ({n_paths}, {dim})")
    raise ShapeError(f"y0 must have shape {wanted}, got {raw.shape}")


def _given_noise(dW: Any, n: int, single: bool, n_steps: int, m: int, discrete: bool) -> np.ndarray | None:
    if dW is None:
        return None
    if discrete:
        raise ArgumentError("dW cannot drive discrete SGD: its randomness is the choice of the batch")
    if single and np.ndim(dW) == 2:
        return _check.array("dW", dW, (n_steps, m))[None]
    return _check.array("dW", dW, (n, n_steps, m))


def _block_size(wanted: int | None, equation: Equation, m: int, n_paths: int, cores: int) -> int:
    """Paths side by side: a power of two, small enough for the cache and for every core to have work."""
    if wanted is not None:
        size = _check.count("block_size", wanted, most=LEAF)
        if size & (size - 1):
            raise ArgumentError(f"block_size must be a power of two, got {size}")
        return size
    size = LEAF
    if equation.block is not None:
        size = min(size, equation.block)
    while size > 1 and size * (equation.dim + m) * 4 * 8 > CACHE:
        size //= 2
    while size > 8 and size * cores > n_paths:
        size //= 2
    while size > 1 and size >= 2 * n_paths:
        size //= 2
    return size


def _blocks(
    job: Job,
    collector: Collector,
    resumed: dict[int, Block],
    index: np.ndarray,
    states: np.ndarray,
    noise: np.ndarray | None,
    size: int,
) -> Iterator[Block]:
    yield from resumed.values()
    for i in np.flatnonzero(~collector.done):
        if int(i) not in resumed:
            part = slice(i * size, (i + 1) * size)
            yield start_block(job, int(i), index[part], states[part], None if noise is None else noise[part])


def _digest(*arrays: np.ndarray | None) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _solution(
    job: Job,
    collector: Collector,
    problem: Any,
    states: np.ndarray,
    index: np.ndarray,
    single: bool,
    track: Mapping[str, Any],
) -> Solution:
    program, grid, saves = job.program(), job.grid, job.saves
    names: dict[str, slice] = {}
    start = job.equation.dim
    for kind, watched in (("observed", program.observed), ("tracked", program.tracked)):
        for name, rows in watched.items():
            names[f"{kind}:{name}"] = slice(start, start + rows)
            start += rows
    bad = collector.first_bad
    noise = collector.noise
    return Solution(
        t=saves.times,
        method=job.resolve().name,
        calculus=job.equation.calculus,
        dt=grid.h,
        n_steps=grid.n_steps,
        seed=job.key,
        problem=problem,
        y0=np.array(states[0] if single else states),
        n_paths=index.size,
        single=single,
        dim=job.equation.dim,
        path_index=index,
        path_status=collector.path_status,
        t_stopped=np.where(bad > 0, grid.time(bad), np.nan),
        steps=saves.step,
        tracked_steps=-(-saves.step // job.track_every),
        names=names,
        values=collector.values,
        moments=collector.moments(),
        dW=noise[0] if noise is not None and single else noise,
        track=dict(track),
    )


def _warn(solution: Solution) -> None:
    failed = int(np.count_nonzero(np.isin(solution.path_status, (DIVERGED, NOT_CONVERGED))))
    if failed:
        warnings.warn(
            f"{solution.message}. Their values are NaN from there on, and so are means, unless skip_diverged=True. "
            "A smaller dt often helps.",
            DivergenceWarning,
            stacklevel=4,
        )
