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
from sgdsde._sums import combine, dot
from sgdsde._views import all_zero, vector
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
    """'drift', 'diffusion' or 'derivative', where a reason is given."""


_lock = threading.RLock()
_kept: OrderedDict[Hashable, Compiled] = OrderedDict()


def unwrap(function: Any) -> Call:
    """Look through `functools.partial`, so that the values it holds can be passed at run time as args are."""
    if isinstance(function, functools.partial):
        return Call(function.func, function.args, tuple(function.keywords), tuple(function.keywords.values()))
    return Call(function)


def compile_increment(
    drift: Call,
    diffusion: Call,
    held: tuple[Any, ...],
    d: int,
    m: int,
    form: str,
    derivative: Call | None = None,
) -> Compiled:
    """The compiled INCREMENT of an equation; `reason` says why where numba cannot compile a function.

    Parameters
    ----------
    held : tuple
        Clean (args, drift.before, drift.values, diffusion.before, diffusion.values), and those of the derivative where
        there is one; the kernel reads them from `pack(held)`, and only their types count here.
    form : str
        How the diffusion is laid out (`probing`): "column", "diagonal" or "matrix".
    derivative : Call, optional
        Then the increment takes the extended noise too (`sgdsde.equation.derivative`).
    """
    calls = {"drift": drift, "diffusion": diffusion}
    if derivative is not None:
        calls["derivative"] = derivative
    for label, call in calls.items():
        if not isinstance(call.function, (pytypes.FunctionType, Dispatcher)):
            kind = "a method" if isinstance(call.function, pytypes.MethodType) else f"a {type(call.function).__name__}"
            return Compiled(None, 0, f"numba compiles plain functions, this is {kind}", label)
    functions = tuple((fingerprint(call.function), call.keywords) for call in calls.values())
    key = (functions, layout(held), d, m, form)
    with _lock:
        if key not in _kept:
            _kept[key] = _compile(calls, held, d, m, form)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        return _kept[key]


def _compile(calls: dict[str, Call], held: tuple[Any, ...], d: int, m: int, form: str) -> Compiled:
    args, *holds = map(numba_types, map(layout, held))
    state = (types.float64, types.float64[::1])
    label, returned = "drift", {}
    namespace = {**INTRINSICS, "all_zero": all_zero, "local_array": local_array, "ModelError": ModelError}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            for (label, call), before, values in zip(calls.items(), holds[::2], holds[1::2]):
                namespace[label], returned[label] = _function(call, (*before, *state, *args), values)
            label = "drift"
            f = read_entries("f", "drift", returned["drift"], d, 1, False)
            label = "diffusion"
            g = read_entries("g", "diffusion", returned["diffusion"], d, m, form == "matrix")
            label = list(calls)[-1]
            size, extended = work_size(d), None
            if "derivative" in calls:
                from sgdsde.equation import derivative_source as own

                D = own.read_slopes(returned[label], own.derivative_shape(d, m, form))
                scratch, size = own.scratch_lines(d, m, form, work_size(d, 3))
                extended = calls[label], scratch, [*D.checks, *own.extended_lines(d, m, form, f, g, D)]
                namespace |= {"combine": combine, "dot": dot, "vector": vector}
            source = increment_source(calls["drift"], calls["diffusion"], held, d, m, form, f, g, extended)
            exec(source, namespace)
            return Compiled(kernel_uncached(INCREMENT)(namespace["increment"]), size)
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
