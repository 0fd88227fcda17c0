"""All columns of G at once, for steps that difference every one of them: COLUMNS(out[d m, B], x, t, p, data, work).

It has the signature of a CORRECTION, and stands in its place for a step that asks for 'columns': row i·m + j of out is
G_ij(t, x). From a user's function it is one evaluation; from an INCREMENT alone, one for each column.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from numba.core import types
from numba.core.errors import NumbaWarning

from sgdsde._abi import CORRECTION
from sgdsde._errors import ModelError
from sgdsde._jit import kernel_uncached
from sgdsde._stack import local_array
from sgdsde._views import matrix, rest, zeros
from sgdsde.equation._equation import Kernels
from sgdsde.equation.compile import KEPT, _function
from sgdsde.equation.fingerprint import fingerprint
from sgdsde.equation.packing import INTRINSICS, layout, numba_types
from sgdsde.equation.source import Call, columns_source, read_entries, work_size

__all__ = ["columns_by_increments", "compile_columns", "with_columns"]

_lock = threading.RLock()
_kept: OrderedDict[Hashable, Any] = OrderedDict()


def compile_columns(diffusion: Call, held: tuple[Any, ...], names: tuple[str, ...], d: int, m: int) -> Any:
    """The COLUMNS kernel of a diffusion that returns a matrix, and that the INCREMENT was compiled for.

    `held` is what the INCREMENT reads, of the functions `names` (`compile_increment`).
    """
    key = (fingerprint(diffusion.function), diffusion.keywords, names, layout(held), d, m)
    with _lock:
        if key not in _kept:
            _kept[key] = _compile(diffusion, held, names, d, m)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        return _kept[key]


def _compile(diffusion: Call, held: tuple[Any, ...], names: tuple[str, ...], d: int, m: int) -> Any:
    args, *holds = map(numba_types, map(layout, held))
    before, values = holds[2 * names.index("diffusion") :][:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)
        function, returned = _function(diffusion, (*before, types.float64, types.float64[::1], *args), values)
        g = read_entries("g", "diffusion", returned, d, m, True)
        namespace = {**INTRINSICS, "diffusion": function, "local_array": local_array, "ModelError": ModelError}
        exec(columns_source(diffusion, held, names, d, m, g), namespace)
        return kernel_uncached(CORRECTION)(namespace["columns"])


@lru_cache(maxsize=128)
def columns_by_increments(increment: Any, m: int) -> Any:
    """A COLUMNS kernel from an INCREMENT, by one call for each column; scratch of d + m + 1 a path."""

    @kernel_uncached(CORRECTION)
    def columns(out, x, t, p, data, work):
        d, n = x.shape
        g = matrix(work, 0, d, n)
        v = matrix(work, d * n, m, n)
        no_time = zeros(work, (d + m) * n, n)
        for j in range(m):
            for k in range(m):
                for b in range(n):
                    v[k, b] = 1.0 if k == j else 0.0
            increment(g, x, t, no_time, v, p, data, rest(work, (d + m + 1) * n))
            for i in range(d):
                for b in range(n):
                    out[i * m + j, b] = g[i, b]

    return columns


def with_columns(equation: Any, kernels: Kernels) -> Kernels:
    """Kernels with COLUMNS in the place of the CORRECTION, and room for all columns in front of their scratch."""
    d, m, (fixed, per_path) = equation.dim, equation.noise_dim, kernels.work
    own = getattr(equation, "columns_kernel", None)
    made = own() if own is not None else None
    if made is not None:
        return kernels._replace(correction=made, work=(max(fixed, work_size(d)), per_path + d * m))
    made = columns_by_increments(kernels.increment, m)
    return kernels._replace(correction=made, work=(fixed, per_path + d * m + d + m + 1))
