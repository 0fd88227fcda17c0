"""BLAS on one thread while kernels run: bits must not depend on its threads, and ours are the ones that pay."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, and restore it when the last of several concurrent runs is over."""
    global _users, _limit
    with _lock:
        if _users == 0:
            import scipy.linalg.cython_blas  # noqa: F401  (must be loaded to be limited)

            _limit = ThreadpoolController().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _limit = None
