"""A user's loss and gradient of one sample as compiled kernels, whose source is written for their types.

The kernels are kept by what the functions compute (`fingerprint`), the types of samples and args, and d: new data and
new numbers in args compile nothing.
"""

from __future__ import annotations

import threading
import types as pytypes
import warnings
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, NamedTuple

from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaWarning

from sgdsde._abi import VECTOR
from sgdsde._errors import ModelError
from sgdsde._jit import kernel_uncached
from sgdsde._views import rest
from sgdsde.equation.compile import KEPT, _function, _short_reason
from sgdsde.equation.fingerprint import fingerprint
from sgdsde.equation.packing import INTRINSICS, layout, numba_types, unpack_source
from sgdsde.equation.source import Call, read_entries
from sgdsde.models._foreign_kernels import LOSS, OWN, sample_by_differences
from sgdsde.models.model import SAMPLE

__all__ = ["Made", "compile_functions"]


class Made(NamedTuple):
    """A SAMPLE and a LOSS kernel, or the reason why there are none."""

    sample: Any
    loss: Any
    reason: str = ""
    at_fault: str = ""
    """'loss' or 'gradient', where a reason is given."""


_lock = threading.RLock()
_kept: OrderedDict[Hashable, Made] = OrderedDict()


def compile_functions(loss: Call, gradient: Call | None, held: tuple[Any, ...], d: int) -> Made:
    """The kernels of two functions of (θ, x, y, *args); without a gradient it is taken by differences.

    Parameters
    ----------
    held : tuple
        (X, Y, args, what a partial of the loss holds before θ, its keywords' values, the same of the gradient); the
        kernels read them from `pack(held)`, and only their types count here.
    """
    calls = {"loss": loss} if gradient is None else {"loss": loss, "gradient": gradient}
    for label, call in calls.items():
        if not isinstance(call.function, (pytypes.FunctionType, Dispatcher)):
            kind = "a method" if isinstance(call.function, pytypes.MethodType) else f"a {type(call.function).__name__}"
            return Made(None, None, f"numba compiles plain functions, this is {kind}", label)
    key = (tuple((fingerprint(call.function), call.keywords) for call in calls.values()), layout(held), d)
    with _lock:
        if key not in _kept:
            _kept[key] = _compile(calls, held, d)
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
        return _kept[key]


def _compile(calls: dict[str, Call], held: tuple[Any, ...], d: int) -> Made:
    X, Y, args, *partials = numba_types(layout(held))
    label, made = "loss", {}
    try:
        for k, (label, call) in enumerate(calls.items()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NumbaWarning)
                before, values = partials[2 * k : 2 * k + 2]
                function, returned = _function(call, (*before, VECTOR, _entry(X), _entry(Y), *args), values)
                entries = read_entries("f", label, returned, d if label == "gradient" else 1, 1, False)
                namespace = {**INTRINSICS, "function": function, "rest": rest, "ModelError": ModelError}
                exec(_source(label, call, held, d, entries), namespace)
                made[label] = kernel_uncached(SAMPLE if label == "gradient" else LOSS)(namespace["kernel"])
    except Exception as error:
        return Made(None, None, _short_reason(error), label)
    return Made(made.get("gradient", sample_by_differences), made["loss"])


def _entry(array: Any) -> Any:
    """The type of X[i]."""
    return array.dtype if array.ndim == 1 else types.Array(array.dtype, array.ndim - 1, "C")


def _source(label: str, call: Call, held: tuple[Any, ...], d: int, entries: Any) -> str:
    """The function `kernel`: a SAMPLE kernel for a gradient, a LOSS kernel for a loss."""
    groups = ("X", "Y", "args", "before_loss", "values_loss", "before_gradient", "values_gradient")
    inputs = [f"before_{label}[{k}]" for k in range(len(call.before))] + ["theta", "X[i]", "Y[i]"]
    inputs += [f"args[{k}]" for k in range(len(held[2]))]
    inputs += [f"{keyword}=values_{label}[{k}]" for k, keyword in enumerate(call.keywords)]
    first = "out, " if label == "gradient" else ""
    lines = [f"def kernel({first}theta, i, q, data, work):", f"    p = rest(q, {OWN})"]
    lines += [f"    {group} = {expression}" for group, expression in zip(groups, unpack_source(layout(held)))]
    lines += [f"    f = function({', '.join(inputs)})", *("    " + line for line in entries.checks)]
    if label == "loss":
        lines.append(f"    return {entries(0)}")
    elif entries.loop:
        lines += [f"    for k in range({d}):", f"        out[k] = {entries('k')}"]
    else:
        lines += [f"    out[{k}] = {entries(k)}" for k in range(d)]
    return "\n".join(lines)
