"""The part of an INCREMENT's source that uses a derivative: its sums over extended noise (`derivative`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from sgdsde._jit import inline
from sgdsde.equation.derivative import derivative_shape
from sgdsde.equation.probing import DIAGONAL
from sgdsde.equation.source import ON_STACK, Entries, NotCompiled, all_components, component_lines, numbers_in

__all__ = ["Slopes", "contract", "extended_lines", "read_slopes", "slopes_work"]

WRITTEN_OUT = 64
"""Most entries of a derivative that are written out one by one where they could be looped over."""


class Slopes(NamedTuple):
    """How generated source reads entries of a derivative."""

    checks: tuple[str, ...]
    loop: bool
    """Whether loop variables may be the indices."""
    array: bool
    number: bool

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
        return Slopes((f"if D.shape != {shape}: {wrong}",), True, True, False)
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


def slopes_work(d: int, m: int, form: str) -> int:
    """Doubles of work that the sums take, behind what the increment takes anyhow."""
    return (d if d > ON_STACK else 0) + (d * m if form != DIAGONAL and d * m > ON_STACK else 0)


@inline
def contract(D, i, c):
    """Σ_(k,l) D[i, k, l] c[k d + l], in four sums that do not wait for each other."""
    m, d = D.shape[1], D.shape[2]
    whole = d - d % 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for k in range(m):
        at = k * d
        for l in range(0, whole, 4):
            s0 += D[i, k, l] * c[at + l]
            s1 += D[i, k, l + 1] * c[at + l + 1]
            s2 += D[i, k, l + 2] * c[at + l + 2]
            s3 += D[i, k, l + 3] * c[at + l + 3]
        for l in range(whole, d):
            s0 += D[i, k, l] * c[at + l]
    return (s0 + s1) + (s2 + s3)


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
    """c[k, l] = Σ_j g_lj u_jk, which does not need ∂G; then its product with ∂G."""
    lines = [
        f"for q in range({d * m}):",
        "    c[q] = 0.0",
        f"for j in range({m}):",
        f"    for k in range({m}):",
        f"        u = v[{m} + j * {m} + k, b]",
        f"        for l in range({d}):",
        f"            c[k * {d} + l] += {g('l', 'j')} * u",
    ]
    if D.array and cube:
        return lines + _each(d, ["out[i, b] += contract(D, i, c)"])
    entry = D("i", "k", "l") if cube else D("i", "l")
    return lines + _each(
        d,
        [
            "s = 0.0",
            f"for k in range({m}):",
            f"    for l in range({d}):",
            f"        s += {entry} * c[k * {d} + l]",
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
