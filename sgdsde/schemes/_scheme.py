"""Scheme: one method as a value. A page of this folder is its formula, its step, and one of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOISE_KINDS", "Aux", "Scheme"]

NOISE_KINDS = ("additive", "scalar", "diagonal", "commutative", "general")


def _no_work(d: int, m: int) -> tuple[int, int]:
    return (0, 0)


@dataclass(frozen=True)
class Aux:
    """What a step needs beyond dW, and the kernel that fills it: the rows of `aux`.

    Parameters
    ----------
    kernel : AUX kernel
        `sgdsde._abi`; given (key, path, step, dW, h) it gives the same numbers in any block.
    rows : callable
        (d, m) -> r, rows of `aux`.
    work : callable
        (d, m) -> (fixed, per path): doubles of scratch the kernel takes from the front of `work`.
    brownian : str
        What a `Brownian` object gives in its place: 'ito' or 'stratonovich' (iterated integrals, row i·m + j is the
        integral whose earlier index is i), 'space-time' (H). Empty where the numbers are not of the Brownian path.
    """

    kernel: Any
    rows: Callable[[int, int], int]
    work: Callable[[int, int], tuple[int, int]] = _no_work
    brownian: str = ""


@dataclass(frozen=True)
class Scheme:
    """A method and its traits. The table in the docs, the order tests and the checks of `solve` read the traits.

    Parameters
    ----------
    name : str
        As in `solve(method=name)`; the file is named the same, with underscores.
    step : kernel or mapping
        A STEP kernel (`sgdsde._abi`), or a mapping from (noise kind, calculus) to one; a kind that is missing from the
        mapping falls back to 'general'. A key (noise kind + '+derivative', calculus) is for equations that know the
        derivative of their diffusion, whose INCREMENT takes extended noise (`sgdsde.equation.derivative`).
    calculus : tuple of str
        The calculi it integrates: 'ito', 'stratonovich', or both; ('discrete',) for a recursion.
    strong, weak : mapping
        Order of convergence for each noise kind it accepts. A kind that is absent from `strong` is refused. Strong
        order 0.0 says that paths do not converge (weak schemes, whose noise is another one with the same moments); it
        is measured as any other order, and tables show it as a dash.
    needs : tuple of str
        'correction' when the step calls the CORRECTION kernel; 'columns' when it calls, in the same place, a kernel
        that writes all columns of G, for which it finds d·m rows in front of its scratch (`sgdsde.equation.columns`).
    needs_where : mapping
        (noise kind, calculus) -> what is needed there, where that is not `needs`; a kind that is missing falls back to
        'general', and that to `needs`. `needs_for` reads both.
    work : callable
        (d, m) -> (fixed, per path): doubles of scratch the step takes from the front of `work`.
    aux : Aux or mapping, optional
        What the step needs beyond dW; or a mapping from (noise kind, calculus) to it (or None), where a kind that is
        missing falls back to 'general'. `aux_for` reads both.
    prepare : callable, optional
        (equation, kernels, t0, y0, h) -> array of numbers that the step finds at the end of `data`: what can be
        computed once for a run. It may raise ArgumentError where the method cannot take the equation.
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
    aux: Aux | Mapping[tuple[str, str], Aux | None] | None = None
    prepare: Callable[..., Any] | None = None
    evaluations: str = "1"
    ode_order: int = 1
    reference: str = ""
    summary: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def kernel(self, noise: str, calculus: str, derivative: bool = False) -> Any:
        """The STEP kernel for one noise kind and calculus, and for equations that know their derivative."""
        if not isinstance(self.step, Mapping):
            return self.step
        if derivative and (f"{noise}+derivative", calculus) in self.step:
            return self.step[(f"{noise}+derivative", calculus)]
        return self.step.get((noise, calculus)) or self.step[("general", calculus)]

    def needs_for(self, noise: str, calculus: str, derivative: bool = False) -> tuple[str, ...]:
        """What the step for one noise kind and calculus, and for equations that know their derivative, asks for."""
        if derivative and (f"{noise}+derivative", calculus) in self.needs_where:
            return self.needs_where[(f"{noise}+derivative", calculus)]
        found = self.needs_where.get((noise, calculus))
        return found if found is not None else self.needs_where.get(("general", calculus), self.needs)

    def aux_for(self, noise: str, calculus: str) -> Aux | None:
        """What the step for one noise kind and calculus needs beyond dW."""
        if not isinstance(self.aux, Mapping):
            return self.aux
        return self.aux.get((noise, calculus), self.aux.get(("general", calculus)))
