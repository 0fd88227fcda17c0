"""Solutions with values that a test chooses: `compare` reads arrays, so no run is needed."""

import numpy as np
import pytest

from sgdsde.run.solution import Solution


def make(
    y, t=None, *, seed=0, method="euler-maruyama", calculus="ito", dt=0.1, path_index=None, observed=None, single=False
):
    """A Solution with states y (n_paths, n_times, d) and observed arrays by name (n_paths, n_times, rows)."""
    y = np.asarray(y, dtype=float)
    n, n_times, d = y.shape
    parts, names, at = [y], {}, d
    for name, values in (observed or {}).items():
        values = np.asarray(values, dtype=float)
        names[name] = slice(at, at + values.shape[2])
        at += values.shape[2]
        parts.append(values)
    values = np.concatenate(parts, axis=2)
    steps = np.arange(n_times)
    return Solution(
        t=np.arange(n_times, dtype=float) if t is None else np.asarray(t, dtype=float),
        method=method, calculus=calculus, dt=dt, n_steps=n_times - 1, seed=seed, problem="a test", y0=y[:, 0],
        n_paths=n, single=single, dim=d, path_index=np.arange(n) if path_index is None else np.asarray(path_index),
        path_status=(~np.isfinite(y).all(axis=(1, 2))).astype(np.int64), events=np.zeros(n, np.int64),
        t_stopped=np.where(np.isfinite(y).all(axis=(1, 2)), np.nan, 1.0), steps=steps, tracked_steps=steps,
        names=names, values=values, moments=None,
    )  # fmt: skip


@pytest.fixture
def solution():
    return make


@pytest.fixture
def normal():
    """normal(seed, *shape): reproducible numbers."""
    return lambda seed, *shape: np.random.default_rng(seed).normal(size=shape)
