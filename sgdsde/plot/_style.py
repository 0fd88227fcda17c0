"""How figures look: colours that everyone can tell apart, one way to draw a mean with its error, quiet axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["COLOURS", "axes", "band", "finish", "mean_and_error", "named_solutions"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe & Ito 2008: distinct for the colour-blind, and in grey as far as that goes."""
SIZE, DPI = (7.0, 4.6), 144
"""A figure of its own is 1008 pixels wide."""
ERRORS = 2.0
"""Standard errors that a band reaches on each side."""


def axes(ax: Any) -> Any:
    """The axes to draw on: those given, or the only ones of a new figure."""
    if ax is None:
        from matplotlib import pyplot as plt

        return plt.subplots(figsize=SIZE, dpi=DPI, layout="constrained")[1]
    if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
        raise ArgumentError(f"ax must be matplotlib axes or None, got {_check.show(ax)}")
    return ax


def finish(ax: Any, xlabel: str, ylabel: str, title: str | None = None, legend: bool = True) -> Any:
    """Labels, a light grid, no frame on the right and above."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if title:
        ax.set_title(title, loc="left", fontsize=11)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if legend and ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize=9)
    return ax


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the first axis; NaN wherever a path is missing, the error NaN with one path."""
    mean = values.mean(axis=0)
    if len(values) < 2:
        return mean, np.full(mean.shape, np.nan)
    return mean, values.std(axis=0, ddof=1) / np.sqrt(len(values))


def band(ax: Any, t: np.ndarray, mean: np.ndarray, error: np.ndarray, **line: Any) -> Any:
    """A line with a band of `ERRORS` standard errors where there are any; returns the line."""
    (drawn,) = ax.plot(t, mean, **line)
    if np.isfinite(error).any():
        low, high = mean - ERRORS * error, mean + ERRORS * error
        ax.fill_between(t, low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    return drawn


def named_solutions(solutions: Any, labels: Sequence[str] | None) -> dict[str, Any]:
    """One solution, a sequence or a dict of them, as a dict of labels."""
    if isinstance(solutions, Mapping):
        if labels is not None:
            raise ArgumentError("labels must be None for a dict of solutions: its keys are the labels")
        found = {str(key): one for key, one in solutions.items()}
    else:
        listed = list(solutions) if isinstance(solutions, Sequence) else [solutions]
        if labels is None:
            found = dict(zip(_default_labels(listed), listed))
        elif isinstance(labels, str) or len(labels) != len(listed):
            raise ArgumentError(f"labels must be {len(listed)} texts, one for each solution, got {_check.show(labels)}")
        else:
            found = {str(label): one for label, one in zip(labels, listed)}
    for label, one in found.items():
        if not hasattr(one, "t") or not hasattr(one, "y0"):
            raise ArgumentError(f"solutions must be of solve or of SGD.run, got {_check.show(one)} for {label!r}")
    if not found:
        raise ArgumentError("solutions must hold at least one run")
    return found


def _default_labels(listed: Sequence[Any]) -> list[str]:
    labels: list[str] = []
    for one in listed:
        label = f"{getattr(one, 'method', '?')}, dt = {getattr(one, 'dt', np.nan):g}"
        labels.append(label if label not in labels else f"{label} ({len(labels) + 1})")
    return labels


def missing(solution: Any) -> str:
    """For a label: how many paths stopped; nothing where none did."""
    stopped = int(np.count_nonzero(solution.path_status))
    return f" ({stopped} of {solution.n_paths} paths stopped)" if stopped else ""


def time_label(solution: Any) -> str:
    """What the time axis is."""
    return "t = η · step" if solution.calculus == "discrete" else "t"
