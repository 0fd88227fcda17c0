"""The Python source of an INCREMENT that calls a user's functions, for one size and one pair of return types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from numba.core import types

from sgdsde.equation.packing import layout, unpack_source
from sgdsde.equation.probing import DIAGONAL

__all__ = [
    "Call",
    "Entries",
    "NotCompiled",
    "all_components",
    "columns_source",
    "component_lines",
    "increment_source",
    "numbers_in",
    "read_entries",
    "work_size",
]

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


def work_size(d: int, functions: int = 2) -> int:
    """Doubles of work that the increment takes for the states of its functions."""
    return 0 if d <= ON_STACK else functions * d


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
    if any(isinstance(entry, types.Complex) for entry in numbers_in(returned)):
        raise NotCompiled(f"{label} returns complex numbers when it is compiled")
    return Entries(name, tuple(checks), outer_loop, inner_loop, matrix, number, array)


def numbers_in(returned: Any) -> list[Any]:
    """The types of the single numbers in a returned value."""
    if isinstance(returned, types.BaseTuple):
        return [number for entry in returned.types for number in numbers_in(entry)]  # type: ignore[attr-defined]
    return numbers_in(returned.dtype) if hasattr(returned, "dtype") else [returned]


def _is_tuple(returned: Any, length: int) -> bool:
    return isinstance(returned, types.BaseTuple) and len(returned.types) == length  # type: ignore[attr-defined]


def increment_source(
    drift: Call,
    diffusion: Call,
    held: tuple[Any, ...],
    d: int,
    m: int,
    form: str,
    f: Entries,
    g: Entries,
    derivative: tuple[Call, Sequence[str], Sequence[str]] | None = None,
) -> str:
    """The function `increment` of one equation.

    `derivative` is how it is called, the lines that make its scratch, and those that check D, which it returned, and
    write out where the noise is extended (`derivative_source`).
    """
    names = ("drift", "diffusion", *(() if derivative is None else ("derivative",)))
    lines = ["def increment(out, x, t, h, v, p, data, work):", *_unpacked(held, names)]
    if d > ON_STACK:
        lines += [f"    {state} = array_f(work, {k * d}, ({d},))" for k, state in enumerate("yzw"[: len(names)])]
    calls = {
        "f": [*_evaluation("drift", "y", "f", drift, len(held[0]), d), *f.checks],
        "g": [*_evaluation("diffusion", "z", "g", diffusion, len(held[0]), d), *g.checks],
    }
    if derivative is not None:
        call, scratch, extended = derivative
        lines += ["    " + line for line in scratch]
        both = [*calls["f"], *calls["g"], *_evaluation("derivative", "w", "D", call, len(held[0]), d)]
        lines += _over_paths(f"v.shape[0] > {m}", [*both, *extended])
    for condition, parts in (("all_zero(v)", "f"), ("all_zero(h)", "g"), ("", "fg")):
        body = [line for part in parts for line in calls[part]]
        lines += _over_paths(condition, body + all_components(f, g, d, m, form, parts))
    return "\n".join(lines)


def columns_source(diffusion: Call, held: tuple[Any, ...], names: tuple[str, ...], d: int, m: int, g: Entries) -> str:
    """The function `columns` of one equation, which writes G; `held` belongs to the functions `names`."""
    lines = ["def columns(out, x, t, p, data, work):", *_unpacked(held, names)]
    if d > ON_STACK:
        lines.append(f"    z = array_f(work, 0, ({d},))")
    body = [*_evaluation("diffusion", "z", "g", diffusion, len(held[0]), d), *g.checks]
    if g.loop and g.inner_loop and d * m > UNROLLED:
        body += [f"for i in range({d}):", f"    for j in range({m}):", f"        out[i * {m} + j, b] = {g('i', 'j')}"]
    else:
        body += [f"out[{i * m + j}, b] = {g(i, j)}" for i in range(d) for j in range(m)]
    return "\n".join(lines + _over_paths("", body))


def _unpacked(held: tuple[Any, ...], names: Sequence[str]) -> list[str]:
    """Lines that read args, and the values of partials of the functions `names`."""
    groups = ("args", *(f"{name}_{part}" for name in names for part in ("before", "values")))
    return [f"    {group} = {expression}" for group, expression in zip(groups, unpack_source(layout(held)))]


def _over_paths(condition: str, body: Sequence[str]) -> list[str]:
    """A loop over paths, and where there is a condition for it, the end."""
    inner = ["    for b in range(x.shape[1]):", *("        " + line for line in body)]
    return [f"    if {condition}:", *("    " + line for line in inner), "        return"] if condition else inner


def _evaluation(name: str, state: str, result: str, call: Call, n_args: int, d: int) -> list[str]:
    """One call at column b. Each function gets a copy of the state of its own: it may change it, or return it."""
    lines = [f"{state} = local_array({d})"] if d <= ON_STACK else []
    lines += _each(d, f"{state}[{{i}}] = x[{{i}}, b]", d <= 8)
    inputs = [f"{name}_before[{k}]" for k in range(len(call.before))] + ["t[b]", state]
    inputs += [f"args[{k}]" for k in range(n_args)]
    inputs += [f"{keyword}={name}_values[{k}]" for k, keyword in enumerate(call.keywords)]
    return [*lines, f"{result} = {name}({', '.join(inputs)})"]


def all_components(f: Entries, g: Entries, d: int, m: int, form: str, parts: str = "fg") -> list[str]:
    """Lines that write a column of out; a loop where the entries allow it and are many."""
    if (f.loop or "f" not in parts) and (g.loop or "g" not in parts) and d * (1 if form == DIAGONAL else m) > UNROLLED:
        return [f"for i in range({d}):", *("    " + line for line in component_lines("i", f, g, m, form, parts))]
    return [line for i in range(d) for line in component_lines(i, f, g, m, form, parts)]


def _each(d: int, line: str, unrolled: bool) -> list[str]:
    if unrolled:
        return [line.format(i=i) for i in range(d)]
    return [f"for i in range({d}):", "    " + line.format(i="i")]


def component_lines(i: Any, f: Entries, g: Entries, m: int, form: str, parts: str = "fg") -> list[str]:
    """out[i, b] = f_i h + Σ_j g_ij v_j, summed in the order of j, or the part that is asked for."""
    terms = [f"{f(i)} * h[b]"] if "f" in parts else []
    if "g" in parts and form == DIAGONAL:
        terms.append(f"{g(i)} * v[{i}, b]")
    elif "g" in parts and g.inner_loop and m > 8:
        return [
            f"s = {terms[0] if terms else 0.0}",
            f"for j in range({m}):",
            f"    s += {g(i, 'j')} * v[j, b]",
            f"out[{i}, b] = s",
        ]
    elif "g" in parts:
        terms += [f"{g(i, j)} * v[{j}, b]" for j in range(m)]
    return [f"out[{i}, b] = " + " + ".join(terms)]
