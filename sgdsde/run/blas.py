"""BLAS on one thread while kernels run: bits must not depend on its threads, and ours are the ones that pay."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_users = 0
_limit: Any = None
_found: tuple[int, ThreadpoolController] | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, and restore it when the last of several concurrent runs is over."""
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _limit = None


def _controller() -> ThreadpoolController:
    """The libraries of this process: looking for them takes 2 ms, so only when a module was imported since."""
    global _found
    if _found is None or _found[0] != len(sys.modules):
        import scipy.linalg.cython_blas  # noqa: F401  (must be loaded to be limited)

        controller = ThreadpoolController()  # imports on its own
        _found = len(sys.modules), controller
    return _found[1]


def _after_fork() -> None:
    """A child has none of the parent's runs, whatever their lock was doing."""
    global _lock, _users, _limit
    _lock, _users, _limit = threading.Lock(), 0, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
