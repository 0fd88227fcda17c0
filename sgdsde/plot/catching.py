"""A charge and the equilibrium that it runs after."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.plot._style import axes, finish

__all__ = ["catch"]


def catch(found: Any, *, most_paths: int = 4, ax: Any = None) -> Any:
    """Draw C (line) and its target C* (dots) along the paths of a `symmetry.run_and_catch`.

    Parameters
    ----------
    found : symmetry.Catch
    most_paths : int
        Paths to draw, the first ones.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if not all(hasattr(found, name) for name in ("charge", "target", "rate", "kappa")):
        raise ArgumentError(f"found must be what symmetry.run_and_catch returns, got {_check.show(found)}")
    most_paths = _check.count("most_paths", most_paths)
    ax = axes(ax)
    n_times = found.charge.shape[-1]
    t = np.arange(n_times) if found.t is None else found.t
    pairs = zip(found.charge.reshape(-1, n_times)[:most_paths], found.target.reshape(-1, n_times))
    for i, (charge, target) in enumerate(pairs):
        ax.plot(t, charge, color=f"C{i}", linewidth=1.8, label="C" if i == 0 else None)
        ax.plot(t, target, ".", color=f"C{i}", markersize=3, alpha=0.7, label="C*" if i == 0 else None)
    return finish(ax, "saved state" if found.t is None else "t = η · step", "charge")
