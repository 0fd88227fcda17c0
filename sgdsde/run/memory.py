"""How much memory is free, as well as the operating system says it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from sgdsde._errors import TooLargeError

__all__ = ["free_memory", "refuse_more_than_half"]

NEGLIGIBLE = 1 << 25
"""Bytes that are not worth asking the operating system for."""


def refuse_more_than_half(n_bytes: float, what: str, advice: Sequence[str]) -> None:
    """TooLargeError where keeping `what` would take more than half of the free memory."""
    if n_bytes <= NEGLIGIBLE:
        return
    free = free_memory()
    if n_bytes > free / 2:
        raise TooLargeError(
            f"{what} takes {_size(n_bytes)}, more than half of the {_size(free)} that are free; "
            f"use {', or '.join(advice)}"
        )


def _size(n_bytes: float) -> str:
    power = min(int(math.log(max(n_bytes, 1), 1024)), 6)
    return f"{n_bytes / 1024**power:.3g} {['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][power]}"


def free_memory() -> float:
    """Bytes that a new array may take; infinite where the system does not say."""
    free = _from_meminfo() or _from_sysconf() or float("inf")
    return min(free, _from_cgroup())


def _from_meminfo() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def _from_sysconf() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES") / 2
    except (AttributeError, OSError, ValueError):
        return None


def _from_cgroup() -> float:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        return float("inf") if limit == "max" else max(float(limit) - float(used), 0.0)
    except (OSError, ValueError):
        return float("inf")
