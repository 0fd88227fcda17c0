"""The part of an INCREMENT's source that uses a derivative: its sums over extended noise (`derivative`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from sgdsde._sums import LANES
from sgdsde.equation.derivative import derivative_shape
from sgdsde.equation.probing import DIAGONAL
from sgdsde.equation.source import ON_STACK, Entries, NotCompiled, all_components, component_lines, numbers_in

__all__ = ["Slopes", "derivative_shape", "extended_lines", "read_slopes", "scratch_lines"]

WRITTEN_OUT = 64
"""Most entries of a derivative that are written out one by one where they could be looped over."""


class Slopes(NamedTuple):
    """How generated source reads entries of a derivative."""

    checks: tuple[str, ...]
    loop: bool
    """Whether loop variables may be the indices."""
    array: bool
    number: bool
    rows: bool = False
    """Whether it is an array of doubles without gaps."""

    def __call__(self, *index: Any) -> str:
        if self.number:
            return "(1.0 * D)"
        entry = "[" + ", ".join(map(str, index)) + "]" if self.array else "".join(f"[{i}]" for i in index)
        return f"(1.0 * D{entry})"


def read_slopes(returned: Any, shape: tuple[int, ...]) -> Slopes:
    """Read a value of numba type `returned` as an array of that shape."""
    if any(isinstance(entry, types.Complex) for entry in numbers_in(returned)):
        raise NotCompiled("derivative returns complex numbers when it is compiled")
    wrong = "raise ModelError('derivative returned another shape than at the start')"
    if isinstance(returned, (types.Float, types.Integer, types.Boolean)) and shape == (1,):
        return Slopes((), True, False, True)
    if isinstance(returned, types.Array) and returned.ndim == len(shape):
        rows = returned.layout == "C" and returned.dtype == types.float64
        return Slopes((f"if D.shape != {shape}: {wrong}",), True, True, False, rows)
    checks: list[str] = []
    loop = _levels(returned, "D", shape, checks, wrong)
    return Slopes(tuple(checks), loop, False, False)


def _levels(returned: Any, name: str, shape: tuple[int, ...], checks: list[str], wrong: str) -> bool:
    """Checks of the lengths of nested tuples, lists and arrays; whether all indices may be variables."""
    refused = NotCompiled(f"derivative returns {returned} when it is compiled")
    if not shape:
        if not isinstance(returned, (types.Float, types.Integer, types.Boolean)):
            raise refused
        return True
    if isinstance(returned, types.BaseTuple):
        if len(returned.types) != shape[0]:  # type: ignore[attr-defined]
            raise refused
        for i, entry in enumerate(returned.types):  # type: ignore[attr-defined]
            _levels(entry, f"{name}[{i}]", shape[1:], checks, wrong)
        return False
    if isinstance(returned, types.Array) and returned.ndim == len(shape):
        checks.append(f"if {name}.shape != {shape}: {wrong}")
        return True
    if isinstance(returned, (types.List, types.ListType)):
        checks.append(f"if len({name}) != {shape[0]}: {wrong}")
        inner = [_levels(returned.dtype, f"{name}[{i}]", shape[1:], checks, wrong) for i in range(shape[0])]
        return all(inner)
    raise refused


def scratch_lines(d: int, m: int, form: str, at: int) -> tuple[list[str], int]:
    """Lines that make the arrays of the sums, on the stack or in `work` from number `at` on, and the end in `work`."""
    lines = []
    for name, size in (("u", m * m), ("c", m * _wide(d)), ("e", d * m + LANES)) if form != DIAGONAL else ():
        if size <= ON_STACK:
            lines.append(f"{name} = local_array({size})")
        else:
            lines.append(f"{name} = array_f(work, {at}, ({size},))")
            at += size
    return lines, at


def _wide(d: int) -> int:
    """d, and what is wanting to whole groups of lanes."""
    return -(-d // LANES) * LANES


def extended_lines(d: int, m: int, form: str, f: Entries, g: Entries, D: Slopes) -> list[str]:
    """Lines of the loop over paths, once f, g and D are known: out with the double sums."""
    if form == DIAGONAL:
        index = ["i"] if D.loop and f.loop and g.loop and d > WRITTEN_OUT else list(range(d))
        lines = []
        for i in index:
            lines += component_lines(i, f, g, m, form)
            lines.append(f"out[{i}, b] += {g(i)} * {D(i)} * v[{m} + {i}, b]")
        return _each(d, lines) if index == ["i"] else lines
    lines = all_components(f, g, d, m, form)
    cube = len(derivative_shape(d, m, form)) == 3
    looped = D.loop and g.loop and g.inner_loop and d * m * d > WRITTEN_OUT
    return lines + (_looped_sums if looped else _written_sums)(d, m, g, D, cube)


def _each(d: int, lines: list[str]) -> list[str]:
    return [f"for i in range({d}):", *("    " + line for line in lines)]


def _looped_sums(d: int, m: int, g: Entries, D: Slopes, cube: bool) -> list[str]:
    """e[k, l] = Σ_j g_lj u_jk, which does not need ∂G, from c = gᵀ; then its product with ∂G."""
    wide = _wide(d)
    lines = [
        f"for q in range({m * m}):",
        f"    u[q] = v[{m} + q, b]",
        f"for l in range({d}):",
        f"    for j in range({m}):",
        f"        c[j * {wide} + l] = {g('l', 'j')}",
        f"for k in range({m}):",
        f"    for l in range(0, {d}, {LANES}):  # the last ones write into the next row, which comes after",
        f"        combine(e, k * {d} + l, u, k, {m}, c, l, {wide}, {m})",
    ]
    if D.rows:
        return lines + _each(d, [f"out[i, b] += dot(vector(D, i * {d * m}, {d * m}), e)"])
    entry = D("i", "k", "l") if cube else D("i", "l")
    return lines + _each(
        d,
        [
            "s = 0.0",
            f"for k in range({m}):",
            f"    for l in range({d}):",
            f"        s += {entry} * e[k * {d} + l]",
            "out[i, b] += s",
        ],
    )


def _written_sums(d: int, m: int, g: Entries, D: Slopes, cube: bool) -> list[str]:
    lines = []
    for k in range(m):
        for l in range(d):
            terms = " + ".join(f"{g(l, j)} * v[{m + j * m + k}, b]" for j in range(m))
            lines.append(f"c_{k}_{l} = {terms}")
    for i in range(d):
        for k in range(m):
            terms = " + ".join(f"{D(i, k, l) if cube else D(i, l)} * c_{k}_{l}" for l in range(d))
            lines.append(f"out[{i}, b] += {terms}")
    return lines
