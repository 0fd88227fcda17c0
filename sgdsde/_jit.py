"""Numba's options in one place: how kernels are compiled, and cached where a cache can be written."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import typeinfer
from numba.core.errors import NumbaExperimentalFeatureWarning

from sgdsde._freshness import digest

__all__ = ["OPTIONS", "inline", "kernel", "kernel_uncached"]

# Contraction (a*b + c in one rounding) is the only liberty taken; division by zero gives inf, as NumPy does.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}

inline = numba.njit(**OPTIONS)
"""Compile a small helper at its first call from a kernel; it is inlined there and never cached on its own."""


def kernel(signature: Any, **options: Any) -> Callable[[Callable], Any]:
    """Compile at once for `signature` and keep the machine code on disk, as long as nothing it is made of changes.

    Where no cache folder can be written the function is compiled for this process only, and one warning says so.
    Never use it for a function that takes or closes over a dispatcher: numba would compile anew in each process
    (numba issue 6264). Functions are passed to kernels as `numba.types.FunctionType` values instead.
    """

    def decorate(function: Callable) -> Any:
        try:
            return _compile(function, signature, cache=True, **options)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            _warn_once()
            return _compile(function, signature, cache=False, **options)

    return decorate


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "no folder for compiled code can be written, so kernels are compiled again in every process; "
            "set NUMBA_CACHE_DIR to a folder that can be written",
            RuntimeWarning,
            stacklevel=3,
        )


def kernel_uncached(signature: Any, **options: Any) -> Callable[[Callable], Any]:
    """Compile at once for `signature`, for this process only: for closures over compiled functions."""
    return lambda function: _compile(function, signature, cache=False, **options)


@contextmanager
def _no_collection() -> Iterator[None]:
    """The garbage collector waits: reading machine code makes many objects that stay, and each full pass over those of
    numba takes half as long as reading all kernels of a run."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compile(function: Callable, signature: Any, cache: bool, **options: Any) -> Any:
    with warnings.catch_warnings(), _no_collection():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        if not cache:
            return numba.njit(signature, **{**OPTIONS, **options})(function)
        made = numba.njit(cache=True, **{**OPTIONS, **options})(function)
        file = made._cache._cache_file
        file._source_stamp = (file._source_stamp, digest(function))
        with typeinfer.register_dispatcher(made):
            made.compile(signature)
            made.disable_compile()
        return made
