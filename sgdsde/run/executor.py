"""Who runs the blocks: this thread, a pool of threads, or any `concurrent.futures.Executor`.

A few blocks are in flight at a time; each goes round (submit, advance for a while, come back) until it is finished, so
that progress, Ctrl-C and checkpoints live between the calls and no memory grows with the number of paths. For a
checkpoint the blocks that come back are held until none is in flight, so that what is written is at rest.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import time
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
from pathlib import Path
from typing import Protocol

from sgdsde.run.blas import one_blas_thread
from sgdsde.run.interrupt import Interrupt
from sgdsde.run.job import Block, Job, advance_cart
from sgdsde.run.remote import Remote

__all__ = ["available_cores", "run_blocks"]

SECONDS = 0.1
"""A block goes on for about this long before it comes back."""
SHORT = 0.002
"""New blocks travel in twice as many at once while they are back sooner than this many seconds."""
LIGHT = 1 << 21
"""... and while what they save is less than this many bytes."""

Cart = list[Block]
Send = Callable[[Cart], "Future[Cart | None]"]


def available_cores() -> int:
    """Cores this process may use: those it may run on, and no more than a container grants it."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, min(cores, _granted_cores()))


@functools.cache
def _granted_cores() -> int:
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return os.cpu_count() or 1 if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError):
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
    n_blocks: int,
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
        return _rounds(job, _Carts(blocks, n_blocks, width), visitor, remote.send)
    with one_blas_thread():
        if executor is not None:
            carts = _Carts(blocks, n_blocks, executor._max_workers + 1)
            return _rounds(job, carts, visitor, _pooled(executor, job, chunk))
        threads = min(threads, n_blocks)
        if threads <= 1:
            return _rounds(job, _Carts(blocks, n_blocks, 1), visitor, _inline(job, chunk))
        with ThreadPoolExecutor(threads, thread_name_prefix="sgdsde") as pool:
            return _rounds(job, _Carts(blocks, n_blocks, threads + 1), visitor, _pooled(pool, job, chunk))


def _pooled(pool: Executor, job: Job, chunk: int | None) -> Send:
    return lambda cart: pool.submit(advance_cart, job, cart, SECONDS, chunk)


def _inline(job: Job, chunk: int | None) -> Send:
    """One thread needs no pool: the work is done while it is being sent."""

    def send(cart: Cart) -> Future[Cart | None]:
        future: Future[Cart | None] = Future()
        future.set_result(advance_cart(job, cart, SECONDS, chunk))
        return future

    return send


class _Carts:
    """New blocks, several at once where they are short: handing over costs as much as a millisecond of work."""

    def __init__(self, blocks: Iterator[Block], n_blocks: int, width: int) -> None:
        self.blocks, self.left, self.width = blocks, n_blocks, width
        self.size = 1

    def next(self) -> Cart:
        """The next few blocks; an empty list at the end."""
        size = max(1, min(self.size, self.left // (4 * self.width)))
        cart = list(itertools.islice(self.blocks, size))
        self.left -= len(cart)
        return cart

    def took(self, seconds: float, cart: Cart) -> None:
        """Note how long a cart was away; carts grow while they are short and light."""
        if seconds < SHORT and len(cart) == self.size and sum(block.saved.nbytes for block in cart) < LIGHT:
            self.size *= 2


def _rounds(job: Job, carts: _Carts, visitor: Visitor, send: Send) -> dict[int, Block]:
    under_way: dict[int, Block] = {}
    flying: dict[Future[Cart | None], tuple[Cart, list[int], float]] = {}  # blocks, their steps, when they left
    held: list[Cart] = []

    def launch(cart: Cart) -> None:
        under_way.update((block.index, block) for block in cart)
        steps, now = [block.k for block in cart], time.perf_counter()
        flying[send(cart)] = cart, steps, now

    def land(future: Future[Cart | None]) -> None:
        cart, steps, left = flying.pop(future)
        try:
            back = future.result()
        except (KeyboardInterrupt, BrokenExecutor, CancelledError) as error:
            interrupt.asked = interrupt.asked or isinstance(error, KeyboardInterrupt)
            if not interrupt.asked:
                raise
            return  # the same Ctrl-C ended the worker; the blocks stay as they were when they left
        if back is None:  # a worker that has not got the job yet
            held.append(cart)
            return
        carts.took(time.perf_counter() - left, cart)
        for block, k in zip(back, steps, strict=True):
            visitor.moved(block, block.k - k)
            if block.k >= job.grid.n_steps:
                del under_way[block.index]
                visitor.finished(block)
            else:
                under_way[block.index] = block
                held.append([block])

    with Interrupt() as interrupt:
        try:
            while not interrupt.asked:
                if not (visitor.wants_rest() and flying):
                    while held and not interrupt.asked:
                        launch(held.pop(0))
                    while len(flying) < carts.width and not interrupt.asked and (cart := carts.next()):
                        launch(cart)
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
