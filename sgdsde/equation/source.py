"""The Python source of an INCREMENT that calls a user's functions, for one size and one pair of return types."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from sgdsde.equation.packing import layout, unpack_source
from sgdsde.equation.probing import DIAGONAL

__all__ = ["Call", "Entries", "NotCompiled", "increment_source", "work_size"]

ON_STACK = 256  # largest state that is copied to the stack; larger ones to `work`
UNROLLED = 16  # most entries of G that are written out one by one where they could be looped over


class Call(NamedTuple):
    """How a function is called: function(*before, t, y, *args, **keywords); partials add before and keywords."""

    function: Any
    before: tuple[Any, ...] = ()
    keywords: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    """Of the keywords."""


class NotCompiled(Exception):
    """A function that numba cannot compile; the message is a short reason."""


def work_size(d: int) -> int:
    """Doubles of work that the increment takes."""
    return 0 if d <= ON_STACK else 2 * d


class Entries(NamedTuple):
    """How generated source reads entries of what a function returned."""

    name: str
    checks: tuple[str, ...]
    loop: bool
    """Whether a loop variable may be the index; entries of a tuple have different types and need a literal one."""
    inner_loop: bool
    matrix: bool
    number: bool
    array: bool

    def __call__(self, i: Any, j: Any = 0) -> str:
        entry = f"[{i}]"
        if self.number:
            entry = ""
        elif self.matrix:
            entry = f"[{i}, {j}]" if self.array else f"[{i}][{j}]"
        return f"(1.0 * {self.name}{entry})"  # a float also of an int or a bool


def read_entries(name: str, label: str, returned: Any, d: int, m: int, matrix: bool) -> Entries:
    """Read a value of numba type `returned` as (d,), or as (d, m) when `matrix`."""
    wrong = f"raise ModelError('{label} returned another shape than at the start')"
    outer_loop, inner_loop, checks, array, number = True, True, [], False, False
    if isinstance(returned, (types.Float, types.Integer, types.Boolean)) and d == 1 and not matrix:
        number = True
    elif isinstance(returned, types.Array) and returned.ndim == (2 if matrix else 1):
        array = True
        checks.append(f"if {name}.shape != ({d}, {m}): {wrong}" if matrix else f"if {name}.shape[0] != {d}: {wrong}")
    elif _is_tuple(returned, d):
        outer_loop = False
        if matrix and not all(_is_tuple(row, m) for row in returned.types):
            if any(isinstance(row, types.BaseTuple) for row in returned.types):
                raise NotCompiled(f"{label} returns {returned}, where tuples of one length are wanted")
            checks += [f"if len({name}[{i}]) != {m}: {wrong}" for i in range(d)]
        elif matrix:
            inner_loop = False
    elif isinstance(returned, (types.List, types.ListType)):
        checks.append(f"if len({name}) != {d}: {wrong}")
        if matrix and isinstance(returned.dtype, types.BaseTuple):
            inner_loop = False
        elif matrix:
            checks += [f"for i in range({d}):", f"    if len({name}[i]) != {m}: {wrong}"]
    else:
        raise NotCompiled(f"{label} returns {returned} when it is compiled")
    if any(isinstance(entry, types.Complex) for entry in _numbers(returned)):
        raise NotCompiled(f"{label} returns complex numbers when it is compiled")
    return Entries(name, tuple(checks), outer_loop, inner_loop, matrix, number, array)


def _numbers(returned: Any) -> list[Any]:
    """The types of the single numbers in a returned value."""
    if isinstance(returned, types.BaseTuple):
        return [number for entry in returned.types for number in _numbers(entry)]  # type: ignore[attr-defined]
    return _numbers(returned.dtype) if hasattr(returned, "dtype") else [returned]


def _is_tuple(returned: Any, length: int) -> bool:
    return isinstance(returned, types.BaseTuple) and len(returned.types) == length  # type: ignore[attr-defined]


def increment_source(
    drift: Call, diffusion: Call, held: tuple[Any, ...], d: int, m: int, form: str, f: Entries, g: Entries
) -> str:
    """The function `increment` of one equation."""
    lines = ["def increment(out, x, t, h, v, p, data, work):"]
    groups = ("args", "drift_before", "drift_values", "diffusion_before", "diffusion_values")
    lines += [f"    {group} = {expression}" for group, expression in zip(groups, unpack_source(layout(held)))]
    if d > ON_STACK:
        lines += [f"    y = array_f(work, 0, ({d},))", f"    z = array_f(work, {d}, ({d},))"]
    lines.append("    for b in range(x.shape[1]):")
    body = []
    for name, state, result, call in (("drift", "y", "f", drift), ("diffusion", "z", "g", diffusion)):
        if d <= ON_STACK:
            body.append(f"{state} = local_array({d})")
        # Each function gets a copy of its own: it may change it, or return it.
        body += _each(d, f"{state}[{{i}}] = x[{{i}}, b]", d <= 8)
        inputs = [f"{name}_before[{k}]" for k in range(len(call.before))] + ["t[b]", state]
        inputs += [f"args[{k}]" for k in range(len(held[0]))]
        inputs += [f"{keyword}={name}_values[{k}]" for k, keyword in enumerate(call.keywords)]
        body.append(f"{result} = {name}({', '.join(inputs)})")
    body += [*f.checks, *g.checks]
    if f.loop and g.loop and d * (1 if form == DIAGONAL else m) > UNROLLED:
        body += [f"for i in range({d}):", *("    " + line for line in _component("i", f, g, m, form))]
    else:
        body += [line for i in range(d) for line in _component(i, f, g, m, form)]
    return "\n".join(lines + ["        " + line for line in body])


def _each(d: int, line: str, unrolled: bool) -> list[str]:
    if unrolled:
        return [line.format(i=i) for i in range(d)]
    return [f"for i in range({d}):", "    " + line.format(i="i")]


def _component(i: Any, f: Entries, g: Entries, m: int, form: str) -> list[str]:
    """out[i, b] = f_i h + Σ_j g_ij v_j, summed in the order of j."""
    if form == DIAGONAL:
        return [f"out[{i}, b] = {f(i)} * h[b] + {g(i)} * v[{i}, b]"]
    if g.inner_loop and m > 8:
        return [
            f"s = {f(i)} * h[b]",
            f"for j in range({m}):",
            f"    s += {g(i, 'j')} * v[j, b]",
            f"out[{i}, b] = s",
        ]
    return [f"out[{i}, b] = " + " + ".join([f"{f(i)} * h[b]"] + [f"{g(i, j)} * v[{j}, b]" for j in range(m)])]
