"""`integrate`: run an equation that is already bound, with a scheme. `solve` and `SGD.run` both end here."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import INTERRUPTED, OK, ArgumentError, DivergenceWarning
from sgdsde.equation._equation import Equation
from sgdsde.random.stream import key_from
from sgdsde.run.checkpoint import Checkpoint, settings_of
from sgdsde.run.collect import Collector, check_memory
from sgdsde.run.executor import available_cores, run_blocks
from sgdsde.run.grid import Grid, Saves, make_saves
from sgdsde.run.job import Block, Job, by_name, start_block
from sgdsde.run.paths import Paths, check_block_size, check_counters, given_noise, path_numbers, start_states
from sgdsde.run.paths import block_size as choose_block_size
from sgdsde.run.progress import Line, Report, reporter
from sgdsde.run.solution import Solution
from sgdsde.run.watching import check_names, named
from sgdsde.schemes._scheme import Aux, Scheme

__all__ = ["integrate"]

MOST_AUX = 1 << 18
"""Numbers beyond dW that a step may need: iterated integrals of 512 Brownian motions."""


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
    brownian: Any = None,
    project: Any = None,
    step_size: Any = None,
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
    paths = path_numbers(n_paths, path_index)
    states = start_states(y0, equation.dim, paths, n_paths)
    discrete = equation.calculus == "discrete"
    saves = make_saves(grid, t_eval, keep=keep, on_grid=discrete)
    given = given_noise(dW, paths, grid.n_steps, equation.noise_dim, discrete)
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        raise ArgumentError(f"executor must be a concurrent.futures.Executor, got {_check.show(executor)}")
    watched = named("observe", observe, 4), named("track", track, 4)
    check_names(*watched)
    every = _check.count("track_every", track_every)
    kind = noise if noise is not None else equation.noise
    keep_noise = _check.flag("save_noise", save_noise)
    block_size = check_block_size(block_size)
    report = reporter(progress, scheme.name)
    cores = _check.count("threads", threads) if threads is not None else available_cores()
    chunk = None if chunk_steps is None else _check.count("chunk_steps", chunk_steps, most=2**62)
    file = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_every)
    aux = scheme.aux_for(kind, equation.calculus)
    if dW is not None and brownian is not None:
        raise ArgumentError("dW and brownian exclude each other: both say what drives the run")
    if brownian is not None:
        from sgdsde.run.driving import check_brownian, key_beside

        check_brownian(brownian, equation, grid, saves, paths, aux.brownian if aux is not None else "")
    beyond = aux.rows(equation.dim, equation.noise_dim) if aux is not None and not discrete else 0
    if beyond > MOST_AUX:
        raise ArgumentError(
            f"method {scheme.name!r} needs {beyond} random numbers beyond dW at each step for {equation.noise_dim} "
            "noises; use 'milstein-symmetric', or goal='charge' or 'weak' with method='auto'"
        )
    if step_size is not None:
        _check_adaptive(scheme, equation, aux, saves, watched[1], brownian, grid)
    if rng is None and file is not None and file.seed is not None:
        key = file.seed
    else:
        key = key_beside(brownian) if rng is None and brownian is not None else key_from(rng)
    shape = {"project": project, "step_size": step_size, "brownian": brownian}
    job = Job(equation, by_name(scheme), kind, grid, states[0], saves, key, *watched, every, keep_noise, **shape)
    program = job.program()
    check_counters(grid, saves, program.m, program.n_aux, adaptive=step_size is not None)
    check_memory(job, keep, paths.n, cores + 1)
    if block_size is None and file is not None:
        block_size = file.block_size
    size = choose_block_size(block_size, equation, program.m, paths.n, cores)

    collector = Collector(job, keep, paths.n, size)
    resumed = {} if file is None else file.load(collector, settings_of(job, paths, states, given, keep, size))
    blocks = _blocks(job, collector, resumed, paths, states, given, size)
    visitor = _Visitor(job, collector, file, report, paths.n, resumed)
    visitor.begin()
    under_way = run_blocks(job, blocks, collector.done.size, visitor, threads=cores, executor=executor, chunk=chunk)
    if file is not None:
        file.save(under_way)
    for block in under_way.values():
        collector.add(block.interrupted(), finished=False)
    solution = _solution(job, collector, problem, states, paths, watched[1])
    visitor.end(interrupted=not collector.done.all())
    _warn(solution)
    return solution


def _check_adaptive(
    scheme: Scheme, equation: Equation, aux: Aux | None, saves: Saves, track: Mapping, brownian: Any, grid: Grid
) -> None:
    """step_size with what it cannot be combined with: one reason each."""
    if equation.calculus == "discrete":
        raise ArgumentError(
            "step_size is for differential equations: a step of SGD has the length of its learning rate"
        )
    if aux is not None or scheme.prepare is not None:
        what = "iterated integrals or space-time areas" if aux is not None else "numbers prepared for one step length"
        raise ArgumentError(
            f"step_size cannot be used with method {scheme.name!r}, which needs {what} of steps whose lengths are not "
            "known beforehand; use a method of increments alone, such as 'euler-maruyama' or 'milstein-symmetric'"
        )
    if track:
        raise ArgumentError("track cannot be used with step_size: trackers state laws of steps of one length")
    if brownian is not None:
        raise ArgumentError("brownian cannot be used with step_size: it is not asked between the grid's times")
    if np.any(saves.offset > 0):
        raise ArgumentError(f"t_eval must lie on the grid t0 + k·dt with step_size, dt = {grid.h:g}")


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

    def begin(self) -> None:
        """Say where the run starts: a function that cannot be called fails here, and not after an hour."""
        if self.report is not None and not isinstance(self.report, Line) and self.steps < self.total:
            self.report(self.steps / self.total)

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

    def end(self, *, interrupted: bool) -> None:
        if self.report is not None and not interrupted:
            self.report(1.0)
        elif isinstance(self.report, Line):
            self.report.break_off()


def _blocks(
    job: Job,
    collector: Collector,
    resumed: dict[int, Block],
    paths: Paths,
    states: np.ndarray,
    noise: np.ndarray | None,
    size: int,
) -> Iterator[Block]:
    yield from resumed.values()
    for i in np.flatnonzero(~collector.done):
        if int(i) not in resumed:
            part = slice(i * size, (i + 1) * size)
            yield start_block(job, int(i), paths.part(part), states[part], None if noise is None else noise[part])


def _solution(
    job: Job,
    collector: Collector,
    problem: Any,
    states: np.ndarray,
    paths: Paths,
    track: Mapping[str, Any],
) -> Solution:
    program, grid, saves = job.program(), job.grid, job.saves
    names: dict[str, slice] = {}
    start = job.equation.dim
    for kind, watched in (("observed", program.observed), ("tracked", program.tracked)):
        for name, rows in watched.items():
            names[f"{kind}:{name}"] = slice(start, start + rows)
            start += rows
    stopped = np.full(paths.n, np.nan)
    bad = collector.first_bad > 0
    stopped[bad] = grid.time(collector.first_bad[bad])
    noise = collector.noise
    return Solution(
        t=saves.times,
        method=job.resolve().name,
        calculus=job.equation.calculus,
        dt=grid.h,
        n_steps=grid.n_steps,
        seed=job.key,
        problem=problem,
        y0=states[0] if paths.single else states,
        n_paths=paths.n,
        single=paths.single,
        dim=job.equation.dim,
        path_index=paths.all(),
        path_status=collector.path_status,
        events=collector.events,
        t_stopped=stopped,
        steps=saves.step,
        tracked_steps=-(-saves.step // job.track_every),
        names=names,
        values=collector.values,
        moments=collector.moments(),
        dW=noise[0] if noise is not None and paths.single else noise,
        track=dict(track),
    )


def _warn(solution: Solution) -> None:
    failed = int(np.count_nonzero(~np.isin(solution.path_status, (OK, INTERRUPTED))))
    if not failed:
        return
    level, frame = 2, sys._getframe(1)  # point at the first line outside the package
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sgdsde."):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{solution.message}. Their values are NaN from there on, and so are means, unless skip_diverged=True. "
        "A smaller dt often helps.",
        DivergenceWarning,
        stacklevel=level,
    )
