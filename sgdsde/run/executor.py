"""Who runs the blocks: a pool of threads, or any `concurrent.futures.Executor`.

A few blocks are in flight at a time; each goes round (submit, advance for a while, come back) until it is finished, so
that progress, Ctrl-C and checkpoints live between the calls and no memory grows with the number of paths. For a
checkpoint the blocks that come back are held until none is in flight, so that what is written is at rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from numba import cloudpickle

from sgdsde.run.blas import one_blas_thread
from sgdsde.run.interrupt import Interrupt
from sgdsde.run.job import Block, Job, advance_block

__all__ = ["available_cores", "run_blocks"]

SECONDS = 0.1
"""A block goes on for about this long before it comes back."""
SECONDS_REMOTE = 0.5


def available_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Visitor(Protocol):
    """What the run does between the calls."""

    def finished(self, block: Block) -> None:
        """Take a finished block."""

    def moved(self, block: Block, steps: int) -> None:
        """A block came back, `steps` further than before."""

    def wants_rest(self) -> bool:
        """True when a checkpoint is due."""

    def at_rest(self, under_way: dict[int, Block]) -> None:
        """No block is in flight."""


def run_blocks(
    job: Job,
    blocks: Iterator[Block],
    visitor: Visitor,
    *,
    threads: int,
    executor: Executor | None,
    chunk: int | None,
) -> tuple[dict[int, Block], bool]:
    """Run all blocks. Returns those that were under way when Ctrl-C came, and whether it came.

    Threads stop within one call of the engine; work that an executor had started is waited for.
    """
    if executor is not None:
        width = 2 * (getattr(executor, "_max_workers", None) or available_cores())
        return _rounds(job, blocks, visitor, _Remote(job, executor, chunk), width)
    with one_blas_thread(), ThreadPoolExecutor(threads, thread_name_prefix="sgdsde") as pool:

        def send(block: Block) -> Future[Block]:
            return pool.submit(advance_block, job, block, SECONDS, chunk)

        return _rounds(job, blocks, visitor, send, threads + 1)


def _rounds(
    job: Job, blocks: Iterator[Block], visitor: Visitor, send: Callable[[Block], Future[Block]], width: int
) -> tuple[dict[int, Block], bool]:
    under_way: dict[int, Block] = {}
    flying: dict[Future[Block], int] = {}
    held: list[Block] = []

    def launch(block: Block) -> None:
        under_way[block.index] = block
        flying[send(block)] = block.index

    def land(future: Future[Block]) -> None:
        block = future.result()
        visitor.moved(block, block.k - before.pop(flying.pop(future)))
        under_way[block.index] = block
        if block.k >= job.grid.n_steps:
            del under_way[block.index]
            visitor.finished(block)
        else:
            held.append(block)

    before: dict[int, int] = {}
    with Interrupt() as interrupt:
        try:
            while not interrupt.asked:
                if not (visitor.wants_rest() and flying):
                    while held:
                        block = held.pop(0)
                        before[block.index] = block.k
                        launch(block)
                    while len(flying) < width and (started := next(blocks, None)) is not None:
                        before[started.index] = started.k
                        launch(started)
                if not flying:
                    return {}, False
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    land(future)
                if visitor.wants_rest() and not flying:
                    visitor.at_rest(under_way)
        except KeyboardInterrupt:
            interrupt.asked = True
        finally:
            for future in flying:
                future.cancel()
            wait(flying)
        for future in list(flying):
            if not future.cancelled():
                land(future)
        visitor.at_rest(under_way)
    return under_way, True


class _Remote:
    """Sends blocks to an executor: the job as bytes that a worker unpacks once, the block as it is."""

    def __init__(self, job: Job, executor: Executor, chunk: int | None) -> None:
        self.payload = cloudpickle.dumps(job)
        self.executor = executor
        self.chunk = chunk

    def __call__(self, block: Block) -> Future[Block]:
        return self.executor.submit(work_remotely, self.payload, block, SECONDS_REMOTE, self.chunk)


_jobs: dict[bytes, Any] = {}


def work_remotely(payload: bytes, block: Block, seconds: float, chunk: int | None) -> Block:
    """In the worker: unpack the job (kept for the next call) and take the block further."""
    if payload not in _jobs:
        while len(_jobs) >= 4:
            _jobs.pop(next(iter(_jobs)))
        _jobs[payload] = cloudpickle.loads(payload)
    with one_blas_thread():
        return advance_block(_jobs[payload], block, seconds, chunk)
