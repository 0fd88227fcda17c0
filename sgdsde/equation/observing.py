"""A user's function of the state, f(t, y, *args), as an OBSERVE kernel: tried once in Python, then compiled and kept.

What it returns (a number, a tuple, a list or a 1-D array) may have any length, which is settled at the start.
"""

from __future__ import annotations

import threading
import types as pytypes
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaWarning

from sgdsde._abi import OBSERVE
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde._jit import kernel_uncached
from sgdsde._stack import local_array
from sgdsde.equation.agreement import all_python, disagreement
from sgdsde.equation.compile import _function, _short_reason, unwrap
from sgdsde.equation.fingerprint import fingerprint
from sgdsde.equation.packing import INTRINSICS, clean_args, layout, numba_types, pack, unpack_source
from sgdsde.equation.probing import call_with_args, values
from sgdsde.equation.source import ON_STACK, Call, Entries, read_entries

__all__ = ["Observation", "compile_observer", "observed_values", "probe"]

KEPT = 128  # compiled observers that are kept


class Observation(NamedTuple):
    """An OBSERVE kernel, the arrays it reads and the scratch it needs; no kernel where numba cannot compile it."""

    kernel: Any
    p: np.ndarray
    data: np.ndarray
    work: tuple[int, int]
    reason: str = ""
    """Why there is no kernel."""


_lock = threading.RLock()
_kept: OrderedDict[Hashable, tuple[Any, str]] = OrderedDict()


def probe(label: str, function: Any, t: float, y: np.ndarray, args: Sequence[Any]) -> int:
    """How many numbers `function(t, y, *args)` returns; ModelError or ShapeError where it cannot be used."""
    return observed_values(label, function, call_with_args(label, function, t, y, args)).size


def observed_values(label: str, function: Any, returned: Any, rows: int | None = None) -> np.ndarray:
    """What an observer returned as an array (rows,)."""
    array = values(label, function, returned, "a number or a one-dimensional array")
    if array.ndim > 1 or array.size == 0:
        raise ShapeError(f"{label} must return a number or a one-dimensional array, got shape {array.shape}")
    if rows is not None and array.size != rows:
        raise ShapeError(f"{label} returned {array.size} numbers, and {rows} at the start")
    return array.reshape(-1)


def compile_observer(
    function: Any, args: tuple[Any, ...], d: int, rows: int, start: tuple[float, np.ndarray] | None = None
) -> Observation:
    """The OBSERVE kernel of a function that gives `rows` numbers of a state (d,); `args` are clean (`packing`).

    Compiles when what the function computes has not been seen before; new values in `args` compile nothing. There is no
    kernel either where it gives something else than Python at `start`, (t, y).
    """
    nothing = np.zeros(0)
    call = unwrap(function)
    if not isinstance(call.function, (pytypes.FunctionType, Dispatcher)):
        reason = f"numba compiles plain functions, this is a {type(call.function).__name__}"
        return Observation(None, nothing, nothing, (0, 0), reason)
    try:
        held = (args, *clean_args("its values", (call.before, call.values)))
    except ArgumentError as error:
        return Observation(None, nothing, nothing, (0, 0), f"a functools.partial is called from Python where {error}")
    key = (fingerprint(call.function), call.keywords, layout(held), d, rows)
    with _lock:
        if key not in _kept:
            _kept[key] = _compile(call, held, d, rows)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        made, reason = _kept[key]
    found = Observation(made, *pack(held), (0 if d <= ON_STACK else d, 0), reason)
    if made is None or start is None or not all_python(call.function):
        return found
    t, y = start

    def compiled() -> np.ndarray:
        out = np.empty((rows, 1))
        made(out, y[:, None].copy(), np.full(1, t), found.p, found.data, np.empty(sum(found.work)))
        return out[:, 0]

    def python(t: float, y: np.ndarray) -> np.ndarray:
        return observed_values("observer", function, function(t, y.copy(), *args), rows)

    reason = disagreement(compiled, python, float(t), y)
    return Observation(None, nothing, nothing, (0, 0), reason) if reason else found


def _compile(call: Call, held: tuple[Any, ...], d: int, rows: int) -> tuple[Any, str]:
    args, before, keyword_values = map(numba_types, map(layout, held))
    positional = (*before, types.float64, types.float64[::1], *args)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            f, returned = _function(call, positional, keyword_values)
            source = _source(call, held, d, rows, read_entries("f", "observer", returned, rows, 1, False))
            namespace = {**INTRINSICS, "observer": f, "local_array": local_array, "ModelError": ModelError, "np": np}
            exec(source, namespace)
            return kernel_uncached(OBSERVE)(namespace["observe"]), ""
    except Exception as error:
        return None, _short_reason(error)


def _source(call: Call, held: tuple[Any, ...], d: int, rows: int, f: Entries) -> str:
    """The function `observe`. A state that is not finite gives NaN: users' functions never see one."""
    lines = ["def observe(out, x, t, p, data, work):"]
    groups = ("args", "before", "values")
    lines += [f"    {group} = {expression}" for group, expression in zip(groups, unpack_source(layout(held)))]
    lines += [f"    y = array_f(work, 0, ({d},))" if d > ON_STACK else f"    y = local_array({d})"]
    inputs = [f"before[{k}]" for k in range(len(call.before))] + ["t[b]", "y"]
    inputs += [f"args[{k}]" for k in range(len(held[0]))]
    inputs += [f"{keyword}=values[{k}]" for k, keyword in enumerate(call.keywords)]
    each = [f"for i in range({rows}):", f"    out[i, b] = {f('i')}"] if f.loop else []
    lines += [
        "    for b in range(x.shape[1]):",
        "        total = 0.0",
        f"        for i in range({d}):",
        "            y[i] = x[i, b]",
        "            total += y[i] * 0.0",
        "        if total != 0.0:",
        f"            for i in range({rows}):",
        "                out[i, b] = np.nan",
        "            continue",
        f"        f = observer({', '.join(inputs)})",
        *("        " + line for line in f.checks),
        *("        " + line for line in each or [f"out[{i}, b] = {f(i)}" for i in range(rows)]),
    ]
    return "\n".join(lines)
