"""Motion along and across the symmetry directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.plot._style import COLOURS, axes, band, finish, mean_and_error

__all__ = ["decomposition"]

_WORDS = {
    "length": "length of the path, Σ‖Δθ‖",
    "displacement": "displacement, ‖ΣΔθ‖",
    "fraction": "share of ‖Δθ‖² along the symmetry",
}


def decomposition(decomposition: Any, *, what: str = "length", ax: Any = None) -> Any:
    """Draw the parts of a motion along and across the symmetry directions.

    Parameters
    ----------
    decomposition : Decomposition, or dict label -> Decomposition
        Of `decompose`. Along is solid, across dashed, each Decomposition has a colour.
    what : {"length", "displacement", "fraction"}
        Sums of the lengths of the parts up to each time (they grow with how finely the run was saved); lengths of the
        summed parts, which is how far the state has got along and across; or the share along of each increment.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Notes
    -----
    With several paths the mean is drawn, with a band of ±2 standard errors.
    """
    ax = axes(ax)
    _check.choice("what", what, _WORDS)
    named = dict(decomposition) if isinstance(decomposition, Mapping) else {"": decomposition}
    timed = True
    for (label, parts), shade in zip(named.items(), COLOURS * (1 + len(named) // len(COLOURS))):
        if not hasattr(parts, "length_parallel"):
            raise ArgumentError(f"decomposition must be what decompose returns, got {_check.show(parts)}")
        t = parts.t if parts.t is not None else np.arange(parts.parallel.shape[-2] + 1.0)
        timed = timed and parts.t is not None
        prefix = f"{label}, " if label else ""
        if what == "fraction":
            _line(ax, (t[1:] + t[:-1]) / 2, parts.fractions, color=shade, label=label or "along the symmetry")
            continue
        if what == "length":
            along, across = parts.length_parallel, parts.length_orthogonal
        else:
            along = np.linalg.norm(parts.displacement_parallel, axis=-1)
            across = np.linalg.norm(parts.displacement_orthogonal, axis=-1)
        _line(ax, t, along, color=shade, label=f"{prefix}along")
        _line(ax, t, across, color=shade, linestyle=(0, (4, 2)), label=f"{prefix}across")
    ax.set_ylim(bottom=0.0)
    return finish(ax, "t" if timed else "saved state", _WORDS[what])


def _line(ax: Any, t: np.ndarray, values: np.ndarray, **style: Any) -> None:
    band(ax, t, *mean_and_error(values.reshape(-1, values.shape[-1])), linewidth=1.8, **style)
