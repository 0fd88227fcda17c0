"""The noise equilibrium: both sides of 2γC = σ²ρTr[ΣA] along runs that approach it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.plot._style import axes, band, finish, mean_and_error, missing, named_solutions, time_label
from sgdsde.plot.laws import _colors, _start

__all__ = ["equilibrium"]


def equilibrium(
    solutions: Any, law: Any, *, labels: Sequence[str] | None = None, colors: Any = None, ax: Any = None
) -> Any:
    """Draw the two sides of the balance between weight decay and noise, 2γC and σ²ρTr[ΣA], along runs.

    For each run, in one colour: 2γC (line, band ±2 standard errors) and the mean of σ²ρTr[ΣA] between saved times
    (dashed). They meet at the noise equilibrium, from whichever side the run comes, but for terms of
    the order of the step.

    Parameters
    ----------
    solutions : Solution, sequence or dict label -> Solution
        Run with `track=law`, saved at three times or more.
    law : ChargeLaw
    labels : sequence of str, optional
        By default method and dt.
    colors : sequence of matplotlib colours, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    if not hasattr(law, "report"):
        raise ArgumentError(f"law must be a ChargeLaw, got {_check.show(law)}")
    named = named_solutions(solutions, labels)
    for (label, solution), shade in zip(named.items(), _colors(colors, len(named))):
        report = law.report(solution, size=False)
        decay = 2 * float(law.problem.gamma) * (_start(solution, law.charge) + report.delta)
        band(ax, report.t, *mean_and_error(decay), color=shade, linewidth=1.8, label=label + missing(solution))
        noise = np.diff(report.noise, axis=1) / (2 * np.diff(report.t))
        middle = (report.t[1:] + report.t[:-1]) / 2
        band(ax, middle, *mean_and_error(noise), color=shade, linewidth=1.3, linestyle=(0, (4, 2)))
    ax.plot([], [], color="0.3", linewidth=1.8, label="2γC")
    ax.plot([], [], color="0.3", linewidth=1.3, linestyle=(0, (4, 2)), label="σ²ρ Tr[ΣA]")
    return finish(ax, time_label(next(iter(named.values()))), "2γC  and  σ²ρ Tr[ΣA]")
