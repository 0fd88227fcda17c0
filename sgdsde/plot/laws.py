"""A charge beside its laws: what was measured, the exact one-step mean summed, and the continuous law with its gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.plot._style import COLOURS, ERRORS, axes, band, finish, mean_and_error, missing, named_solutions, time_label

__all__ = ["charge", "charge_gap"]

MARKS = 10
"""Circles of the prediction along one line."""
SHADED = 2
"""Runs up to which the gap is shaded; more would cover each other."""


def charge(solutions: Any, law: Any, *, labels: Sequence[str] | None = None, colors: Any = None, ax: Any = None) -> Any:
    """Draw a charge along runs, against its law.

    For each run, in one colour: the mean of C over paths (line, band of ±2 standard errors); C(0) plus the exact
    one-step means of that dynamics, summed (circles, bars of ±2 standard errors of what is left over); C(0) plus the
    continuous law ∫(-4γC + 2σ²ρTr[ΣA])dt along the same paths (dashed), and the gap between it and the charge (shaded,
    for one or two runs).

    Parameters
    ----------
    solutions : Solution, sequence or dict label -> Solution
        Run with `track=law`.
    law : ChargeLaw or Charge
        With a `Charge` only the measured line is drawn, and the runs need not have tracked anything.
    labels : sequence of str, optional
        By default method and dt.
    colors : sequence of matplotlib colours, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    if not hasattr(law, "report") and not callable(law):
        raise ArgumentError(f"law must be a ChargeLaw, or a Charge, got {_check.show(law)}")
    named = named_solutions(solutions, labels)
    shades = _colors(colors, len(named))
    for i, ((label, solution), shade) in enumerate(zip(named.items(), shades)):
        text = label + missing(solution)
        if not hasattr(law, "report"):
            _measured(ax, solution, law, color=shade, label=text)
            continue
        report = law.report(solution, size=False)
        start = _start(solution, law.charge)
        mean, error = mean_and_error(start + report.delta)
        band(ax, report.t, mean, error, color=shade, linewidth=1.8, label=text)
        predicted, continuous = start.mean() + report.mean("predicted"), start.mean() + report.mean("continuous")
        _circles(ax, report.t, predicted, shade, report.stderr("remainder"), turn=_turn(i, len(named)))
        ax.plot(report.t, continuous, color=shade, linestyle=(0, (4, 2)), linewidth=1.1)
        if len(named) <= SHADED:
            ax.fill_between(report.t, continuous, mean, color=shade, alpha=0.08, linewidth=0)
    if hasattr(law, "report"):
        _circles(ax, np.empty(0), np.empty(0), "0.3", label="its own one-step means, summed")
        ax.plot([], [], color="0.3", linestyle=(0, (4, 2)), linewidth=1.1, label="continuous law")
    return finish(ax, time_label(next(iter(named.values()))), f"charge {_name(law)}")


def charge_gap(
    solutions: Any, law: Any, *, labels: Sequence[str] | None = None, colors: Any = None, ax: Any = None
) -> Any:
    """Draw what the continuous law leaves open, C(t) - C(0) - ∫(-4γC + 2σ²ρTr[ΣA])dt, for runs of several steps.

    For each run: the mean gap over paths (line, band ±2 standard errors), and the gap that its exact one-step mean
    predicts, Σ(h²∇LᵀA∇L + 4γ²h²C) (circles). Both shrink with dt.

    Parameters and returned value as for `charge`; `law` must be a `ChargeLaw`.
    """
    ax = axes(ax)
    if not hasattr(law, "report"):
        raise ArgumentError(f"law must be a ChargeLaw, got {_check.show(law)}")
    named = named_solutions(solutions, labels)
    ax.axhline(0.0, color="0.3", linewidth=0.8)
    for i, ((label, solution), shade) in enumerate(zip(named.items(), _colors(colors, len(named)))):
        report = law.report(solution, size=False)
        mean, error = report.mean("gap"), report.stderr("gap")
        band(ax, report.t, mean, error, color=shade, linewidth=1.8, label=label + missing(solution))
        expected = report.mean("predicted") - report.mean("continuous")
        _circles(ax, report.t, expected, shade, turn=_turn(i, len(named)))
    _circles(ax, np.empty(0), np.empty(0), "0.3", label="predicted")
    return finish(ax, time_label(next(iter(named.values()))), f"gap of the continuous law of {_name(law)}")


def _measured(ax: Any, solution: Any, function: Any, **style: Any) -> None:
    states = solution.y[None] if solution.single else solution.y
    band(ax, solution.t, *mean_and_error(np.asarray(function(states))), linewidth=1.8, **style)


def _circles(
    ax: Any, t: np.ndarray, values: np.ndarray, color: Any, error: Any = None, label: str = "", turn: float = 0.0
) -> None:
    """Open circles at some of the times, with bars where there is an error.

    They are evenly spread, and shifted by the part `turn` of the space between two, so that runs do not cover each
    other.
    """
    at = np.arange(t.size)
    if t.size > MARKS:
        wanted = t[0] + (t[-1] - t[0]) * np.clip((np.arange(MARKS) + turn) / (MARKS - 1), 0, 1)
        at = np.unique(np.abs(t[:, None] - wanted).argmin(axis=0))
    bars = {} if error is None or not np.isfinite(error).any() else {"yerr": ERRORS * error[at]}
    ax.errorbar(
        t[at], values[at], **bars, color=color, linestyle="none", marker="o", markersize=4.5, markerfacecolor="white",
        markeredgewidth=1.2, elinewidth=1.2, zorder=3, label=label or None,
    )  # fmt: skip


def _turn(i: int, n: int) -> float:
    return 0.5 * (i - (n - 1) / 2) / n


def _start(solution: Any, function: Any) -> np.ndarray:
    """C(0) of each path, (n_paths, 1)."""
    return np.broadcast_to(function(np.atleast_2d(solution.y0)), (solution.n_paths,))[:, None]


def _name(law: Any) -> str:
    return str(getattr(law, "name", None) or getattr(law, "__name__", "C"))


def _colors(colors: Any, n: int) -> list[Any]:
    if colors is None:
        return [COLOURS[i % len(COLOURS)] for i in range(n)]
    if isinstance(colors, str) or not hasattr(colors, "__len__") or len(colors) != n:
        raise ArgumentError(f"colors must be {n} colours, one for each solution, got {_check.show(colors)}")
    return list(colors)
