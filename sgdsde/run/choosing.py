"""`method="auto"`: the noise of an equation is measured, and the traits of the methods are asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.equation._equation import Equation, Problem
from sgdsde.equation.structure import noise_structure
from sgdsde.schemes._choice import Choice, choose

__all__ = ["choose_for", "choose_method"]

FEW = 256
"""Noises up to which the structure is measured; with more, what was declared is believed."""


def choose_method(
    sde: Problem, y0: Any, *, goal: str = "strong", t0: float = 0.0, args: Sequence[Any] | None = None
) -> Choice:
    """The method that `solve(method="auto", goal=goal)` takes for an equation, and why.

    Parameters
    ----------
    sde : SDE
        Or the ``.sde()`` of an SGD problem.
    y0 : (d,) array
        A start: the kind of noise is measured around it.
    goal : {"strong", "weak", "charge"}
        Paths; means and laws; or quadratic charges that follow their own law.
    t0 : float
    args : sequence, optional
        As in `solve`.

    Returns
    -------
    Choice
        `.method` and `.reason`.

    Raises
    ------
    ArgumentError
        No method suits: the message says why, and what to ask for instead.

    Examples
    --------
    >>> import sgdsde as sg
    >>> def drift(t, y): return (-y[0], 0.0)
    >>> def diffusion(t, y): return ((1.0, 0.0), (0.0, y[0]))
    >>> sg.choose_method(sg.SDE(drift, diffusion, dim=2), [1.0, 0.0]).method
    'milstein'
    >>> sg.choose_method(sg.SDE(drift, diffusion, dim=2), [1.0, 0.0], goal="weak").method
    'platen'
    """
    if isinstance(sde, type) or not isinstance(sde, Problem):
        raise ArgumentError(f"sde must be an SDE or the .sde() of an SGD problem, got {_check.show(sde)}")
    start = np.atleast_1d(_check.array("y0", y0))
    t0 = _check.number("t0", t0)
    return choose_for(sde.bind(t0, start, args), start, t0, goal)[0]


def choose_for(equation: Equation, y0: np.ndarray, t0: float, goal: str) -> tuple[Choice, str]:
    """The choice for a bound equation, and the kind of noise that the method is to rely on."""
    kind = equation.noise
    if equation.calculus != "discrete" and equation.noise_dim <= FEW and kind != "scalar":
        kind = noise_structure(equation, y0, t0).kind
    choice = choose(
        kind,
        equation.calculus,
        goal,
        d=equation.dim,
        m=equation.noise_dim,
        correction=getattr(equation, "exact_correction", False),
        derivative=getattr(equation, "has_derivative", False),
    )
    return choice, "additive" if kind == "none" else kind
