"""From a user's two functions to one compiled INCREMENT, whose source is written for their sizes and return types.

The kernel copies a path's state to the stack, calls drift and diffusion (which LLVM inlines) and writes each component
by its literal index, so that the loop over paths vectorises: 1 to 2 ns for a path and step of a small model, about a
third of a second to compile. Compiled kernels are kept by what the functions compute (`fingerprint`), sizes and types
of args: new numbers in args never compile anything, and neither does a function made anew by a factory with equal
captured values; a changed global or closure does.
"""

from __future__ import annotations

import functools
import re
import threading
import types as pytypes
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaWarning
from numba.core.registry import cpu_target

from sgdsde._abi import INCREMENT
from sgdsde._errors import ModelError
from sgdsde._jit import kernel_uncached
from sgdsde._stack import local_array
from sgdsde.equation.fingerprint import fingerprint
from sgdsde.equation.freezing import frozen
from sgdsde.equation.packing import INTRINSICS, layout, numba_types
from sgdsde.equation.returns import TupleReturns
from sgdsde.equation.source import Call, increment_source, read_entries, work_size

__all__ = ["Compiled", "compile_increment", "unwrap"]

KEPT = 128  # compiled equations that are kept


class Compiled(NamedTuple):
    """An INCREMENT and the doubles of `work` it needs, or the reason why there is none."""

    increment: Any
    work: int
    reason: str = ""
    at_fault: str = ""
    """'drift' or 'diffusion', where a reason is given."""


_lock = threading.RLock()
_kept: OrderedDict[Hashable, Compiled] = OrderedDict()


def unwrap(function: Any) -> Call:
    """Look through `functools.partial`, so that the values it holds can be passed at run time as args are."""
    if isinstance(function, functools.partial):
        return Call(function.func, function.args, tuple(function.keywords), tuple(function.keywords.values()))
    return Call(function)


def compile_increment(drift: Call, diffusion: Call, held: tuple[Any, ...], d: int, m: int, form: str) -> Compiled:
    """The compiled INCREMENT of an equation; `reason` says why where numba cannot compile a function.

    Parameters
    ----------
    held : tuple
        Clean (args, drift.before, drift.values, diffusion.before, diffusion.values); the kernel reads them from
        `pack(held)`, and only their types count here.
    form : str
        How the diffusion is laid out (`probing`): "column", "diagonal" or "matrix".
    """
    for label, call in (("drift", drift), ("diffusion", diffusion)):
        if not isinstance(call.function, (pytypes.FunctionType, Dispatcher)):
            kind = "a method" if isinstance(call.function, pytypes.MethodType) else f"a {type(call.function).__name__}"
            return Compiled(None, 0, f"numba compiles plain functions, this is {kind}", label)
    functions = (fingerprint(drift.function), drift.keywords, fingerprint(diffusion.function), diffusion.keywords)
    key = (functions, layout(held), d, m, form)
    with _lock:
        if key not in _kept:
            _kept[key] = _compile(drift, diffusion, held, d, m, form)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        return _kept[key]


def _compile(drift: Call, diffusion: Call, held: tuple[Any, ...], d: int, m: int, form: str) -> Compiled:
    label = "drift"
    args, drift_before, drift_values, diffusion_before, diffusion_values = map(numba_types, map(layout, held))
    state = (types.float64, types.float64[::1])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            f, f_type = _function(drift, (*drift_before, *state, *args), drift_values)
            f_entries = read_entries("f", "drift", f_type, d, 1, False)
            label = "diffusion"
            g, g_type = _function(diffusion, (*diffusion_before, *state, *args), diffusion_values)
            entries = f_entries, read_entries("g", "diffusion", g_type, d, m, form == "matrix")
            source = increment_source(drift, diffusion, held, d, m, form, *entries)
            namespace = {**INTRINSICS, "drift": f, "diffusion": g, "local_array": local_array, "ModelError": ModelError}
            exec(source, namespace)
            return Compiled(kernel_uncached(INCREMENT)(namespace["increment"]), work_size(d))
    except Exception as error:
        return Compiled(None, 0, _short_reason(error), label)


def _function(call: Call, positional: Sequence[Any], values: Sequence[Any]) -> tuple[Any, Any]:
    """A dispatcher for a user's function, compiled for arguments of these types, and the type that it returns."""
    named = dict(zip(call.keywords, values))
    try:
        made = frozen(call.function, TupleReturns)
        return made, _return_type(made, positional, named)
    except Exception:
        if isinstance(call.function, Dispatcher):
            raise
    made = frozen(call.function)  # the list or array that the pass took away may have been needed
    return made, _return_type(made, positional, named)


def _return_type(dispatcher: Any, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_function_type(types.Dispatcher(dispatcher), tuple(positional), named).return_type


def _short_reason(error: Exception) -> str:
    """The first line of a numba error that says something, without colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Failed in")]
    reason = lines[0] if lines else type(error).__name__
    if reason.endswith(":") and len(lines) > 1:
        reason += " " + lines[1].removeprefix(">>> ")
    return reason if len(reason) <= 200 else reason[:199] + "…"
