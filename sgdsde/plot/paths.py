"""Trajectories: single paths, their mean and its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.plot._style import COLOURS, axes, band, finish, mean_and_error, missing, time_label
from sgdsde.run.solution import Solution

__all__ = ["trajectories"]

SHOWN = 4
"""Components drawn when none are named."""


def trajectories(
    solution: Any,
    components: int | Sequence[int] | None = None,
    *,
    observable: str | Callable[[np.ndarray], Any] | None = None,
    max_paths: int = 25,
    label: str | None = None,
    color: Any = None,
    ax: Any = None,
) -> Any:
    """Draw paths of a run as thin lines, their mean over all paths as a thick one with a band of ±2 standard errors.

    Parameters
    ----------
    solution : Solution
        With keep="stats" the mean and its band alone are drawn.
    components : int or sequence of int, optional
        Of the state (or of the observable), by default the first four; one colour each.
    observable : str or callable, optional
        Draw what was observed under this name, or a function of states (n, d) -> (n,) or (n, q), such as a `Charge`
        or ``problem.loss``, in place of the state.
    max_paths : int
        Thin lines at most; 0 for none.
    label : str, optional
        In the legend, for the mean.
    color : matplotlib colour, optional
        For a single component.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Notes
    -----
    A mean ends where the first path stops (see `Solution.mean`); the legend counts them.
    """
    ax = axes(ax)
    max_paths = _check.count("max_paths", max_paths, least=0)
    if not isinstance(solution, Solution):
        raise ArgumentError(f"solution must be a Solution of solve or of SGD.run, got {_check.show(solution)}")
    word, values, mean, error = _values(solution, observable)
    q = mean.shape[1]
    chosen = _components(components, q)
    if color is not None and len(chosen) > 1:
        raise ArgumentError(f"color must be None for {len(chosen)} components: each has a colour of its own")
    for at, c in enumerate(chosen):
        shade = color if color is not None else COLOURS[at % len(COLOURS)]
        several = values is not None and len(values) > 1
        if values is not None:
            for path in values[: max_paths if several else 1, :, c]:
                ax.plot(
                    solution.t, path, color=shade, linewidth=0.6 if several else 1.6, alpha=0.45 if several else 1.0
                )
        name = word if q == 1 else f"{word}$_{{{c}}}$" if observable is None else f"{word}[{c}]"
        text = f"mean of {name}" if label is None else label if len(chosen) == 1 else f"{label}, {name}"
        if values is None or several:
            band(ax, solution.t, mean[:, c], error[:, c], color=shade, linewidth=2.0, label=text + missing(solution))
        elif label is not None or len(chosen) > 1:
            ax.lines[-1].set_label((name if label is None else text) + missing(solution))
    return finish(ax, time_label(solution), word)


def _values(solution: Any, observable: Any) -> tuple[str, np.ndarray | None, np.ndarray, np.ndarray]:
    """Name, paths (n_paths, n_times, q) or None where only moments were kept, mean and standard error (n_times, q)."""
    if observable is None or isinstance(observable, str):
        what = "y" if observable is None else observable
        mean, error = solution.mean(what), solution.stderr(what)
        if solution.values is None:
            return what, None, mean, error
        values = solution.y if observable is None else {**solution.tracked, **solution.observed}[observable]
        return what, values[None] if solution.single else values, mean, error
    if not callable(observable):
        raise ArgumentError(f"observable must be a name, a function of states or None, got {_check.show(observable)}")
    states = solution.y[None] if solution.single else solution.y
    alive = np.isfinite(states).all(axis=2)
    found = _check.array("observable's result", observable(states[alive]), finite=False)
    if found.ndim not in (1, 2) or len(found) != np.count_nonzero(alive):
        raise ShapeError(f"observable must map states (n, d) to (n,) or (n, q), got shape {found.shape}")
    values = np.full((*alive.shape, 1 if found.ndim == 1 else found.shape[1]), np.nan)
    values[alive] = found.reshape(len(found), -1)
    word = str(getattr(observable, "name", None) or getattr(observable, "__name__", None) or type(observable).__name__)
    return word, values, *mean_and_error(values)


def _components(components: Any, q: int) -> list[int]:
    if components is None:
        return list(range(min(q, SHOWN)))
    listed = [components] if np.ndim(components) == 0 else list(components)
    return [_check.count("components", c, least=-q, most=q - 1) % q for c in listed]
