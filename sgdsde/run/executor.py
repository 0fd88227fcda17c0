"""Who runs the blocks: this thread, a pool of threads, or any `concurrent.futures.Executor`.

A few blocks are in flight at a time; each goes round (submit, advance for a while, come back) until it is finished, so
that progress, Ctrl-C and checkpoints live between the calls and no memory grows with the number of paths. For a
checkpoint the blocks that come back are held until none is in flight, so that what is written is at rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from typing import Protocol

from sgdsde.run.blas import one_blas_thread
from sgdsde.run.interrupt import Interrupt
from sgdsde.run.job import Block, Job, advance_block
from sgdsde.run.remote import Remote

__all__ = ["available_cores", "run_blocks"]

SECONDS = 0.1
"""A block goes on for about this long before it comes back."""

Send = Callable[[Block], "Future[Block | None]"]


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
) -> dict[int, Block]:
    """Run all blocks. Returns those that were under way when Ctrl-C came.

    Threads stop within one call of the engine; work that an executor had started is waited for.
    """
    if executor is not None and not isinstance(executor, ThreadPoolExecutor):
        width = 2 * (getattr(executor, "_max_workers", None) or available_cores())
        remote = Remote(job, executor, chunk)
        return _rounds(job, blocks, visitor, remote.send, width)
    with one_blas_thread():
        if executor is not None:
            return _rounds(job, blocks, visitor, _pooled(executor, job, chunk), executor._max_workers + 1)
        if threads == 1:
            return _rounds(job, blocks, visitor, _inline(job, chunk), 1)
        with ThreadPoolExecutor(threads, thread_name_prefix="sgdsde") as pool:
            return _rounds(job, blocks, visitor, _pooled(pool, job, chunk), threads + 1)


def _pooled(pool: Executor, job: Job, chunk: int | None) -> Send:
    return lambda block: pool.submit(advance_block, job, block, SECONDS, chunk)


def _inline(job: Job, chunk: int | None) -> Send:
    """One thread needs no pool: the work is done while it is being sent."""

    def send(block: Block) -> Future[Block | None]:
        future: Future[Block | None] = Future()
        try:
            future.set_result(advance_block(job, block, SECONDS, chunk))
        except Exception as error:
            future.set_exception(error)
        return future

    return send


def _rounds(job: Job, blocks: Iterator[Block], visitor: Visitor, send: Send, width: int) -> dict[int, Block]:
    under_way: dict[int, Block] = {}
    flying: dict[Future[Block | None], tuple[int, int]] = {}  # number of the block, its steps when it left
    held: list[Block] = []

    def launch(block: Block) -> None:
        under_way[block.index], k = block, block.k
        flying[send(block)] = block.index, k

    def land(future: Future[Block | None]) -> None:
        index, k = flying.pop(future)
        try:
            block = future.result()
        except (KeyboardInterrupt, BrokenExecutor, CancelledError) as error:
            interrupt.asked = interrupt.asked or isinstance(error, KeyboardInterrupt)
            if not interrupt.asked:
                raise
            return  # the same Ctrl-C ended the worker; the block stays as it was when it left
        if block is None:  # a worker that has not got the job yet
            held.append(under_way[index])
            return
        visitor.moved(block, block.k - k)
        if block.k >= job.grid.n_steps:
            del under_way[index]
            visitor.finished(block)
        else:
            under_way[index] = block
            held.append(block)

    with Interrupt() as interrupt:
        try:
            while not interrupt.asked:
                if not (visitor.wants_rest() and flying):
                    while held and not interrupt.asked:
                        launch(held.pop(0))
                    while len(flying) < width and not interrupt.asked and (new := next(blocks, None)) is not None:
                        launch(new)
                if not flying:
                    return under_way
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    land(future)
                if visitor.wants_rest() and not flying:
                    visitor.at_rest(under_way)
        finally:
            for future in flying:
                future.cancel()
            wait(flying)
        for future in list(flying):
            land(future)
    return under_way
