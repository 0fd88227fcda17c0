"""Say what this installation runs on, and test it for a second.

Prints versions, threads, BLAS libraries, the folder of compiled code and free memory, then runs a self-test: known
random numbers, and a small solve against its exact law. The exit code is 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["add_arguments", "run"]

Line = tuple[str, str, bool]
"""What, what was found, whether that is well."""

_CORE = ("numpy", "scipy", "numba", "llvmlite", "threadpoolctl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Print what was found; 1 when a line is not well."""
    wrong = 0
    for part in (_versions, _threads, _compiler, _memory, _self_test):
        for what, found, well in part():
            wrong += not well
            print(f"{what:<18} {found}{'' if well else '   <- WRONG'}", flush=True)
    print("all is well" if not wrong else f"{wrong} thing{'s' * (wrong > 1)} wrong")
    return int(wrong > 0)


def _versions() -> Iterator[Line]:
    import sgdsde

    yield "sgdsde", f"{sgdsde.__version__} in {Path(sgdsde.__file__).parent}", True
    yield "python", f"{platform.python_version()} ({platform.system()} {platform.machine()})", True
    for name in _CORE:
        try:
            yield name, version(name), True
        except PackageNotFoundError:
            yield name, "not installed", False


def _threads() -> Iterator[Line]:
    import scipy.linalg  # noqa: F401  the BLAS that compiled kernels call is SciPy's
    import threadpoolctl

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "processors", f"{os.cpu_count()}, of which this process may use {allowed}", True
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    for pool in pools:
        words = f"{pool['internal_api']} {pool.get('version') or ''} ({pool.get('architecture') or 'unknown'})"
        yield "BLAS", f"{words}, {pool['num_threads']} threads, pinned to 1 during a run, {pool['filepath']}", True
    if not pools:
        yield "BLAS", "none that threadpoolctl knows: bits may depend on the number of BLAS threads", False


def _compiler() -> Iterator[Line]:
    from numba import config

    svml = bool(getattr(config, "USING_SVML", False))
    yield "Intel SVML", "used by numba" if svml else "not used (it need not be)", True
    yield "cache folder", *_cache_folder()


def _cache_folder() -> tuple[str, bool]:
    """The folder that numba takes for kernels of this package, and whether it is the one that was asked for."""
    from numba.core.caching import CompileResultCacheImpl

    from sgdsde import _jit

    try:
        locator = CompileResultCacheImpl(_jit.kernel).locator
        folder = Path(locator.get_cache_path())
        locator.ensure_cache_path()
    except (RuntimeError, OSError) as error:
        return f"{str(error).splitlines()[0]}; set NUMBA_CACHE_DIR to a folder that can be written", False
    asked = os.environ.get("NUMBA_CACHE_DIR")
    if not asked:  # beside the modules: one folder for each room
        package = Path(_jit.__file__).parent
        beside = folder.is_relative_to(package)
        return f"{folder} can be written ({_size(package if beside else folder)})", True
    if not folder.is_relative_to(Path(asked).absolute()):  # numba goes on to the next place without a word
        return f"NUMBA_CACHE_DIR={asked} cannot be written; numba takes {folder}", False
    return f"{asked} can be written ({_size(Path(asked))})", True


def _size(folder: Path) -> str:
    total = sum(file.stat().st_size for file in folder.rglob("*.nb[ci]"))
    return f"{total / 1e6:.1f} MB of compiled code in it"


def _memory() -> Iterator[Line]:
    from sgdsde.run.memory import free_memory

    free = free_memory() / 2**30
    yield "free memory", f"{free:.1f} GiB" if math.isfinite(free) else "unknown on this system", True


def _self_test() -> Iterator[Line]:
    start = time.perf_counter()
    importlib.import_module("sgdsde.run.engine")
    importlib.import_module("sgdsde.random.normal")
    yield "engine", f"ready after {time.perf_counter() - start:.1f} s (compiled at the first use, then read)", True
    tests: dict[str, Callable[[], str]] = {"random numbers": _known_numbers, "a small solve": _small_solve}
    for name, test in tests.items():
        start = time.perf_counter()
        try:
            problem = test()
        except Exception as error:  # whatever it is, a doctor reports it
            problem = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - start
        yield name, f"{problem or 'as they must be'} ({seconds:.1f} s)", not problem


def _known_numbers() -> str:
    """Philox against an answer its authors published (Random123, kat_vectors), and numbers pinned for this version."""
    import numpy as np

    from sgdsde.random import normals
    from sgdsde.random.philox import philox4x32_10

    counter_and_key = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
    answer = tuple(int(word) for word in philox4x32_10(*map(np.uint64, counter_and_key)))
    if answer != (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1):
        return f"Philox4x32-10 gives {answer}"
    pinned = [0.09607843414514884, -1.9005178184406017, 0.25469395375114184, -0.6536768920149405]
    found = normals(2026, path=5, count=4).tolist()
    return "" if found == pinned else f"normals(2026, path=5) are {found}, must be {pinned}"


def _small_solve() -> str:
    """Brownian motion with drift: Euler-Maruyama has its law exactly, Y(1) ~ N(y0 + a, b**2)."""
    import numpy as np

    import sgdsde as sg

    n, a, b = 4096, 0.7, 0.5

    def drift(t: float, y: np.ndarray, a: float, b: float) -> tuple[float]:
        return (a,)

    def diffusion(t: float, y: np.ndarray, a: float, b: float) -> tuple[float]:
        return (b,)

    sde = sg.SDE(drift, diffusion, dim=1, noise="additive", args=(a, b))
    sol = sg.solve(sde, (0, 1), [1.0], dt=1 / 16, n_paths=n, rng=1, save_noise=True)
    end = sol.y[:, -1, 0]
    gap = float(np.abs(end - (1 + a + b * np.asarray(sol.dW)[:, :, 0].sum(axis=1))).max())
    if not gap < 1e-12:
        return f"paths differ from the sum of their own noise by {gap:.1e}"
    z_mean = (end.mean() - (1 + a)) / (b / math.sqrt(n))
    z_var = (end.var(ddof=1) - b**2) / (b**2 * math.sqrt(2 / (n - 1)))
    return "" if max(abs(z_mean), abs(z_var)) < 5 else f"mean and variance are off by {z_mean:.1f}, {z_var:.1f} sigma"
