"""Compile every kernel ahead of time, into numba's cache.

Imports all modules of the package; one that holds compiled kernels gets a line with its seconds and whether the machine
code came from the cache. Afterwards a new process starts without compiling.
"""

from __future__ import annotations

import argparse
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

__all__ = ["add_arguments", "run", "warmup"]

_OPTIONAL = ("cli", "plot", "testing", "_foreign_torch", "_foreign_jax")  # no kernels, and packages of their own
_FIRST = ("algebra", "random", "equation", "schemes", "run", "models")  # in this order a module's seconds are its own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Compile, with a line per module."""
    print("module                                seconds  kernels  compiled now")

    def line(module: str, seconds: float, kernels: int, compiled: int) -> None:
        print(f"{module:<36} {seconds:>8.2f} {kernels:>8d} {compiled:>13d}", flush=True)

    start = time.perf_counter()
    seconds = warmup(line)
    print(f"{len(seconds)} modules with kernels, {time.perf_counter() - start:.1f} s in all")
    return 0


def warmup(report: Callable[[str, float, int, int], None] | None = None) -> dict[str, float]:
    """Import every module that holds compiled kernels, so that numba compiles them and keeps them on disk.

    Parameters
    ----------
    report : callable, optional
        Called after each module as ``report(module, seconds, kernels, compiled)``: how many kernels it holds and how
        many of them were compiled now rather than read from the cache.

    Returns
    -------
    dict
        Module name -> seconds its import took; 0 for one that had been imported before.

    Notes
    -----
    Costs minutes on a machine that has never run the package and a second or two afterwards. The cache is numba's: the
    folder of `NUMBA_CACHE_DIR`, or `__pycache__` beside each module; `sgdsde doctor` says which, and whether it can be
    written.

    Examples
    --------
    >>> import sgdsde
    >>> seconds = sgdsde.warmup()
    >>> "sgdsde.run.engine" in seconds
    True
    """
    spent: dict[str, float] = {}
    for name in sorted(_modules("sgdsde"), key=_rank):
        fresh = name not in sys.modules
        start = time.perf_counter()
        module = import_module(name)
        seconds = time.perf_counter() - start if fresh else 0.0
        hits, misses = _kernels(list(vars(module).values()), name)
        if hits + misses:
            spent[name] = seconds
            if report is not None:
                report(name, seconds, hits + misses, misses)
    return spent


def _modules(package: str) -> Iterator[str]:
    """Names of all modules below a package, folders first; the optional ones are left out."""
    for page in pkgutil.iter_modules(import_module(package).__path__, package + "."):
        if page.name.rpartition(".")[2] in (*_OPTIONAL, "__main__"):
            continue
        yield page.name
        if page.ispkg:
            yield from _modules(page.name)


def _rank(module: str) -> int:
    room = module.split(".")[1]
    return _FIRST.index(room) if room in _FIRST else len(_FIRST)


def _kernels(values: Iterable[object], module: str) -> tuple[int, int]:
    """(read from the cache, compiled now) among the kernels that a module defines."""
    from numba.core.dispatcher import Dispatcher

    hits = misses = 0
    for value in values:
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module and value.signatures:
            stats = value.stats
            hits += sum(stats.cache_hits.values())
            misses += sum(stats.cache_misses.values())
    return hits, misses
