"""Scheme: one method as a value. A page of this folder is its formula, its step, and one of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOISE_KINDS", "Scheme"]

NOISE_KINDS = ("additive", "scalar", "diagonal", "commutative", "general")


def _no_work(d: int, m: int) -> tuple[int, int]:
    return (0, 0)


@dataclass(frozen=True)
class Scheme:
    """A method and its traits. The table in the docs, the order tests and the checks of `solve` read the traits.

    Parameters
    ----------
    name : str
        As in `solve(method=name)`; the file is named the same, with underscores.
    step : kernel or mapping
        A STEP kernel (`sgdsde._abi`), or a mapping from (noise kind, calculus) to one; a kind that is missing from the
        mapping falls back to 'general'.
    calculus : tuple of str
        The calculi it integrates: 'ito', 'stratonovich', or both; ('discrete',) for a recursion.
    strong, weak : mapping
        Order of convergence for each noise kind it accepts. A kind that is absent from `strong` is refused.
    needs : tuple of str
        'correction' when the step calls the CORRECTION kernel; names of auxiliary variables later schemes ask for.
    needs_where : mapping
        (noise kind, calculus) -> what is needed there, where that is not `needs`; a kind that is missing falls back to
        'general', and that to `needs`. `needs_for` reads both.
    work : callable
        (d, m) -> (fixed, per path): doubles of scratch the step takes from the front of `work`.
    aux_rows : callable
        m -> r, rows of `aux`; `aux` is the AUX kernel that fills them (None when r = 0).
    evaluations : str
        Cost of one step, in evaluations of the increment.
    ode_order : int
        Order of the method it becomes when the noise is zero.
    reference : str
        Where the formula stands, with equation number.
    """

    name: str
    step: Any
    calculus: tuple[str, ...]
    strong: Mapping[str, float]
    weak: Mapping[str, float]
    needs: tuple[str, ...] = ()
    needs_where: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    work: Callable[[int, int], tuple[int, int]] = _no_work
    aux_rows: Callable[[int], int] = lambda m: 0
    aux: Any = None
    evaluations: str = "1"
    ode_order: int = 1
    reference: str = ""
    summary: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def kernel(self, noise: str, calculus: str) -> Any:
        """The STEP kernel for one noise kind and calculus."""
        if not isinstance(self.step, Mapping):
            return self.step
        return self.step.get((noise, calculus)) or self.step[("general", calculus)]

    def needs_for(self, noise: str, calculus: str) -> tuple[str, ...]:
        """What the step for one noise kind and calculus asks for."""
        found = self.needs_where.get((noise, calculus))
        return found if found is not None else self.needs_where.get(("general", calculus), self.needs)
