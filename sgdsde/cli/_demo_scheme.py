"""The mean change of the charge in one step of a scheme that no formula covers exactly, by trying single steps.

`ChargeLaw` gives the mean of a step of `milstein-symmetric` to O(h²), and what is missing adds up to O(h) along a path.
It is measured here: from states of the run itself, steps are tried with fresh noise, each draw with both signs, which
cancels what is odd in it. That is the mean of that dynamics, not a fit to the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde.random import normals
from sgdsde.run.solving import solve

__all__ = ["looked_at", "scheme_term"]

EVERY_STEP = 30
"""Steps at the start, where the loss falls fast, that are all looked at."""
BLOCKS = 24
"""Blocks of the steps after them, of which the middle one is looked at."""
MEMORY = 1 << 22
"""Normal numbers held at once."""


def looked_at(n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the steps that are tried, and how many steps each stands for."""
    dense = min(EVERY_STEP, n_steps)
    edges = np.unique(np.linspace(dense, n_steps, BLOCKS + 1).round().astype(int))
    middles = (edges[1:] + edges[:-1] - 1) // 2
    return np.concatenate([np.arange(dense), middles]), np.concatenate([np.ones(dense), np.diff(edges)])


def scheme_term(problem: Any, charge: Any, solution: Any, predicted: np.ndarray, key: int, progress: Any) -> np.ndarray:
    """What the formula leaves out of the mean change of the charge since the start, (n_paths, n_times).

    Parameters
    ----------
    problem : SGD
    charge : Charge
    solution : Solution
        Saved before and after each step that is looked at.
    predicted : (n_paths, n_times) array
        Sums of what the formula gives for each step.
    key : int
    progress : callable or None
    """
    steps, weights = looked_at(solution.n_steps)
    before, after = np.searchsorted(solution.steps, steps), np.searchsorted(solution.steps, steps + 1)
    formula = predicted[:, after] - predicted[:, before]
    at_once = max(1, MEMORY // (len(steps) * problem.n_samples))
    missed = np.empty(formula.shape)
    for first in range(0, solution.n_paths, at_once):
        paths = slice(first, min(first + at_once, solution.n_paths))
        states = solution.y[paths][:, before]
        means = _mean_changes(problem, charge, solution, states.reshape(-1, solution.dim), key, first)
        missed[paths] = means.reshape(-1, len(steps)) - formula[paths]
        if progress is not None:
            progress(paths.stop / solution.n_paths)
    total = np.cumsum(missed * weights, axis=1)
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    return np.array([np.interp(solution.steps, reached, np.concatenate([[0.0], row])) for row in total])


def _mean_changes(problem: Any, charge: Any, solution: Any, states: np.ndarray, key: int, path: int) -> np.ndarray:
    """Mean change of the charge in one step from each state, over one draw and its mirror image."""
    h, n, m = solution.dt, len(states), problem.n_samples
    dW = np.sqrt(h) * normals(key, path, count=n * m).reshape(n, 1, m)
    ends = solve(
        problem.sde(), (0.0, h), np.concatenate([states, states]), method=solution.method, dt=h, n_paths=2 * n,
        dW=np.concatenate([dW, -dW]), keep="final",
    )  # fmt: skip
    return charge(ends.y[:, -1]).reshape(2, n).mean(axis=0) - charge(states)
