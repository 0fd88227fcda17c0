"""How much memory is free, as well as the operating system says it."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["free_memory"]


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
