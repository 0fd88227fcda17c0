"""One run as a value (`Job`), one block of its paths as a value (`Block`), and the function that takes a block further.

Both pickle: a worker in another process builds its kernels from the job and goes on with the block, to the same bits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sgdsde._address import address
from sgdsde._errors import INTERRUPTED, OK, ArgumentError
from sgdsde.equation._equation import Equation
from sgdsde.run.grid import Grid, Saves
from sgdsde.run.shaping import BY_FUNCTION, BY_KERNEL
from sgdsde.run.watching import Watcher, watcher_of
from sgdsde.schemes import Scheme, get_scheme, methods

if TYPE_CHECKING:
    from sgdsde.random.brownian import Brownian

__all__ = ["Block", "Job", "advance_block", "advance_cart", "by_name", "start_block"]

FIRST_CHUNK = 16
"""Steps of the first call of a block; later ones are sized by the clock."""
DRIVEN_AT_ONCE = 1 << 20
"""Doubles that a `Brownian` gives at once."""
KEPT_MEMORY = 1 << 20
"""Doubles of scratch that a thread keeps for its next call."""
GROWTH = 8
"""Calls grow by this factor until they take long enough."""


@dataclass(frozen=True)
class Job:
    """Everything that all blocks of a run share."""

    equation: Equation
    scheme: Scheme | str
    noise: str
    grid: Grid
    y0: np.ndarray  # (d,) start of the first path, where observers are tried
    saves: Saves
    key: int
    observe: Mapping[str, Any]
    track: Mapping[str, Any]
    track_every: int
    save_noise: bool
    project: Any = None
    step_size: Any = None
    brownian: Brownian | None = None

    def resolve(self) -> Scheme:
        """The scheme itself; registered ones travel by name."""
        return get_scheme(self.scheme)

    def program(self) -> Program:
        """Compiled kernels and their arguments, made once in each process."""
        found: Program | None = self.__dict__.get("_program")
        if found is None:
            found = Program.build(self)
            object.__setattr__(self, "_program", found)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_program", "_pace")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def by_name(scheme: Scheme) -> Scheme | str:
    """The name of a scheme of the registry, which pickles; any other scheme as it is."""
    return scheme.name if scheme.name in methods and methods[scheme.name] is scheme else scheme


@dataclass(frozen=True)
class Program:
    """The arguments of the engine that do not depend on the block."""

    kernels: tuple[Any, ...]
    functions: tuple[Any, ...]  # kept alive: `kernels` holds their addresses
    watchers: tuple[Watcher, ...]
    grid: tuple[Any, ...]
    n_observed: int
    n_tracked: int
    observed: Mapping[str, int]
    tracked: Mapping[str, int]
    m: int
    n_aux: int
    work: tuple[int, int]
    beyond: str
    """What a `Brownian` gives in place of the aux kernel: `Aux.brownian`."""

    @classmethod
    def build(cls, job: Job) -> Program:
        from sgdsde.run import idle
        from sgdsde.run.engine import SIGNATURES, SLOTS
        from sgdsde.run.shaping import projection_of, step_size_of

        equation, scheme = job.equation, job.resolve()
        derivative = getattr(equation, "has_derivative", False)
        asks = scheme.needs_for(job.noise, equation.calculus, derivative)
        kernels = equation.kernels(correction="correction" in asks)
        if "columns" in asks:
            from sgdsde.equation.columns import with_columns

            kernels = with_columns(equation, kernels)
        start = job.grid.t0, job.y0
        observers = {name: watcher_of(name, thing, equation, *start) for name, thing in job.observe.items()}
        trackers = {name: thing.__track__(equation, scheme) for name, thing in job.track.items()}
        d, m, aux = equation.dim, equation.noise_dim, scheme.aux_for(job.noise, equation.calculus)
        n_aux = aux.rows(d, m) if aux is not None else 0
        step_work = scheme.work(d, m)
        needs = [(step_work[0] + kernels.work[0], step_work[1] + kernels.work[1])]
        if aux is not None:
            needs.append(aux.work(d, m))
        data = kernels.data
        if scheme.prepare is not None:
            data = np.concatenate([data, np.ravel(scheme.prepare(equation, kernels, *start, job.grid.h))])
        how, projection = projection_of(job.project, equation, scheme, *start)
        size = step_size_of(job.step_size, equation, *start)
        shaping = [watcher for watcher in (projection, size) if watcher is not None]
        needs += [watcher.work for watcher in (*observers.values(), *trackers.values(), *shaping)]
        functions = [
            scheme.kernel(job.noise, equation.calculus, derivative),
            kernels.increment if kernels.increment is not None else idle.no_increment,
            kernels.correction if kernels.correction is not None else idle.no_correction,
            aux.kernel if aux is not None else None,  # the engine leaves alone what has no rows
            *_filled([w.kernel for w in observers.values()], None, SLOTS),
            *_filled([w.kernel for w in trackers.values()], None, SLOTS),
            projection.kernel if projection is not None and how == BY_KERNEL else None,
            projection.kernel if projection is not None and how == BY_FUNCTION else None,
            size.kernel if size is not None else None,
        ]
        arguments = (
            np.array([address(f, signature) for f, signature in zip(functions, SIGNATURES, strict=True)]),
            _owned(kernels.p),
            _owned(data),
            *_slots(list(observers.values()), SLOTS),
            *_slots(list(trackers.values()), SLOTS),
            job.track_every,
            how,
            *_numbers(projection),
            size is not None,
            *_numbers(size),
        )
        grid = job.grid
        return cls(
            kernels=arguments,
            functions=tuple(functions),
            watchers=(*observers.values(), *trackers.values(), *shaping),
            grid=(grid.t0, grid.h, grid.h_last, grid.n_steps, _owned(grid.lengths), _owned(grid.starts)),
            n_observed=sum(w.rows for w in observers.values()),
            n_tracked=sum(w.rows for w in trackers.values()),
            observed={name: w.rows for name, w in observers.items()},
            tracked={name: w.rows for name, w in trackers.items()},
            m=m,
            n_aux=n_aux,
            work=(max(fixed for fixed, _ in needs), max(per_path for _, per_path in needs)),
            beyond=aux.brownian if aux is not None else "",
        )


def _owned(array: np.ndarray) -> np.ndarray:
    """A contiguous, writeable float64 vector: the one layout the kernels were compiled for."""
    vector = np.asarray(np.require(array, dtype=np.float64, requirements=["C", "A"])).reshape(-1)
    return vector if vector.flags.writeable else vector.copy()


def _filled(values: list[Any], filler: Any, slots: int) -> tuple[Any, ...]:
    return (*values, *(filler,) * (slots - len(values)))


def _numbers(watcher: Watcher | None) -> tuple[np.ndarray, np.ndarray]:
    nothing = np.zeros(1)
    return (nothing, nothing) if watcher is None else (_owned(watcher.p), _owned(watcher.data))


def _slots(watchers: list[Watcher], slots: int) -> tuple[Any, ...]:
    nothing = np.zeros(1)
    rows = np.zeros(slots + 1, np.int64)
    rows[1:] = np.cumsum(_filled([w.rows for w in watchers], 0, slots))
    return (
        _filled([_owned(w.p) for w in watchers], nothing, slots),
        _filled([_owned(w.data) for w in watchers], nothing, slots),
        rows,
    )


@dataclass
class Block:
    """The state of B paths after `k` steps, and what was saved of them so far."""

    index: int
    path: np.ndarray  # (B,) numbers of the paths in their streams
    x: np.ndarray  # (d, B)
    acc: np.ndarray  # (q, B)
    status: np.ndarray  # (2B,) codes, and counts of events
    first_bad: np.ndarray  # (B,) step at which the path stopped, 0 for none
    saved: np.ndarray  # (n_saves, d + observed + tracked, B)
    noise_in: np.ndarray  # (B, n_steps·m), or no columns
    noise_out: np.ndarray  # (n_steps·m, B), or no rows
    k: int = field(default=0, kw_only=True)
    steps_per_call: int = field(default=FIRST_CHUNK, kw_only=True)

    def interrupted(self) -> Block:
        """The same block given up where it stands."""
        status = self.status.copy()
        codes = status[: self.path.size]
        codes[codes == OK] = INTERRUPTED
        return replace(self, status=status)


def start_block(job: Job, index: int, path: np.ndarray, y0: np.ndarray, noise: np.ndarray | None) -> Block:
    """Block of the paths `path` (B,) from y0 (B, d); `noise` is their dW (B, n_steps, m) where the user gives it."""
    program, d, n = job.program(), job.equation.dim, path.size
    rows = d + program.n_observed + program.n_tracked
    given = np.empty((n, 0))
    if noise is not None:
        given = np.require(noise.reshape(n, -1), requirements=["C", "A", "W", "E"])
        with np.errstate(invalid="ignore", over="ignore"):
            if not np.isfinite(given.sum()) and not np.isfinite(given).all():
                raise ArgumentError("dW must be finite")
    kept_rows = job.grid.n_steps * program.m if job.save_noise else 0
    return Block(
        index=index,
        path=np.ascontiguousarray(path, dtype=np.uint64),
        x=np.array(y0.T, dtype=np.float64, order="C"),
        acc=np.zeros((program.n_tracked, n)),
        status=np.zeros(2 * n, np.int64),
        first_bad=np.zeros(n, np.int64),
        saved=np.full((job.saves.times.size, rows, n), np.nan),
        noise_in=given,
        noise_out=np.zeros((kept_rows, n)),
        steps_per_call=job.__dict__.get("_pace", FIRST_CHUNK),
    )


def advance_block(job: Job, block: Block, seconds: float, chunk: int | None = None) -> Block:
    """Take the block further for about `seconds` (or exactly one chunk of `chunk` steps), in place; returns it."""
    from sgdsde.run.engine import scratch_size

    program, n = job.program(), block.path.size
    n_work = program.work[0] + program.work[1] * n + 8
    n_scratch = scratch_size(job.equation.dim, program.n_tracked, program.m, program.n_aux, n)
    begin = before = now = time.perf_counter()
    with _memory(n_work + n_scratch) as memory:
        while block.k < job.grid.n_steps:
            n_steps = chunk or block.steps_per_call
            _advance(job, program, block, n_steps, memory[:n_work], memory[n_work:])
            before, now = now, time.perf_counter()
            if chunk is not None or now - begin >= seconds:
                break
            if now - before < seconds / (2 * GROWTH):
                block.steps_per_call = n_steps * GROWTH
    if now - before > seconds:
        block.steps_per_call = max(1, block.steps_per_call // 2)
    object.__setattr__(job, "_pace", block.steps_per_call)  # the next block starts with what was learned
    return block


def _advance(job: Job, program: Program, block: Block, n_steps: int, work: np.ndarray, scratch: np.ndarray) -> None:
    """One call of the engine."""
    from sgdsde.run.engine import advance

    k1 = min(block.k + n_steps, job.grid.n_steps)
    noise, aux, first = block.noise_in, np.empty((block.path.size, 0)), 0
    if job.brownian is not None:
        per_step = block.path.size * (program.m + program.n_aux)
        k1 = min(k1, block.k + max(1, DRIVEN_AT_ONCE // max(per_step, 1)))
        from sgdsde.run.driving import drive

        noise, aux, first = *drive(job.brownian, job.grid, block.path, block.k, k1, program.beyond), block.k
        if not program.beyond:
            aux = np.empty((block.path.size, 0))
    advance(
        *program.kernels,
        *program.grid,
        job.saves.step,
        job.saves.offset,
        job.saves.times,
        block.saved,
        block.x,
        block.acc,
        block.status,
        block.first_bad,
        block.path,
        job.key,
        noise,
        aux,
        block.noise_out,
        first,
        block.k,
        k1,
        program.m,
        program.n_aux,
        work,
        scratch,
    )
    raise_pending(job.equation)
    block.k = k1


_of_this_thread = threading.local()


@contextmanager
def _memory(size: int) -> Iterator[np.ndarray]:
    """Doubles for the engine: asking for new ones at each call would stop all threads while pages are mapped.

    They are out of reach while they are lent, as a user's Python function may start a run inside this one.
    """
    memory: np.ndarray | None = vars(_of_this_thread).pop("memory", None)
    if memory is None or memory.size < size:
        memory = np.empty(size)
    try:
        yield memory
    finally:
        if memory.size <= KEPT_MEMORY:
            _of_this_thread.memory = memory


def advance_cart(job: Job, cart: list[Block], seconds: float, chunk: int | None = None) -> list[Block]:
    """Take several blocks further, one after the other, for about `seconds` in all."""
    begin = time.perf_counter()
    for i, block in enumerate(cart):
        if i > 0 and time.perf_counter() - begin > seconds:
            break
        advance_block(job, block, seconds, chunk)
    return cart


def raise_pending(equation: Equation) -> None:
    """Raise what a user's Python function raised inside a kernel, for equations that catch it there."""
    pending = getattr(equation, "pending_error", None)
    error = pending() if pending is not None else None
    if error is not None:
        raise error
