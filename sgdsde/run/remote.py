"""Blocks in other processes: the job travels as bytes and is kept there, a block travels to and fro."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager

from numba import cloudpickle

from sgdsde._errors import ArgumentError
from sgdsde.run.blas import one_blas_thread
from sgdsde.run.job import Block, Job, advance_cart

__all__ = ["Remote", "work_remotely"]

SECONDS = 0.5
"""A block goes on for about this long before it comes back."""
SMALL = 1 << 16
"""A job of fewer bytes is sent each time; a larger one only to workers that ask for it."""
KEPT = 2
"""Jobs that a worker keeps."""


class Remote:
    """Sends blocks of one job to an executor."""

    def __init__(self, job: Job, executor: Executor, chunk: int | None) -> None:
        try:
            self.payload = cloudpickle.dumps(job)
        except Exception as error:
            raise ArgumentError(f"executor wants what is run to be picklable: {error}") from error
        self.name = uuid.uuid4().bytes
        self.executor = executor
        self.chunk = chunk
        self.sent: dict[int, int] = {}

    def send(self, cart: list[Block]) -> Future[list[Block] | None]:
        """The blocks further on, or None from a worker that has not got the job: send them again."""
        first = cart[0]
        missed = self.sent.get(first.index) == first.k  # they came back as they were
        self.sent[first.index] = first.k
        payload = self.payload if missed or len(self.payload) <= SMALL else None
        return self.executor.submit(work_remotely, self.name, payload, cart, SECONDS, self.chunk)


_lock = threading.Lock()
_jobs: OrderedDict[bytes, Job] = OrderedDict()


def work_remotely(
    name: bytes, payload: bytes | None, cart: list[Block], seconds: float, chunk: int | None
) -> list[Block] | None:
    """In the worker: unpack the job (kept for the next call) and take the blocks further."""
    with _lock:
        job = _jobs.get(name)
        if job is None:
            if payload is None:
                return None
            job = _jobs[name] = cloudpickle.loads(payload)
            while len(_jobs) > KEPT:
                _jobs.popitem(last=False)
    with _deaf(), one_blas_thread():
        return advance_cart(job, cart, seconds, chunk)


@contextmanager
def _deaf() -> Iterator[None]:
    """Leave Ctrl-C, which a terminal sends to every process, to the one that runs `solve`."""
    child = multiprocessing.parent_process() is not None
    if not child or threading.current_thread() is not threading.main_thread():
        yield
        return
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
