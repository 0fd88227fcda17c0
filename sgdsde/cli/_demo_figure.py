"""The figure of the demo: four panels."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import plot
from sgdsde.cli._demo_runs import Results

__all__ = ["figure"]


def figure(results: Results) -> Any:
    """A matplotlib figure of 1600 x 1200 pixels, legible at 1000: charge, gap, equilibrium, decomposition."""
    from matplotlib.figure import Figure

    s = results.settings
    drawn = Figure(figsize=(12, 9), dpi=133, layout="constrained")
    (a, b), (c, d) = drawn.subplots(2, 2)
    plot.charge(results.runs, results.law, ax=a)
    plot.charge_gap(results.runs, results.law, ax=b)
    plot.equilibrium(results.sides, results.law, ax=c)
    _end_of_the_way(results, c)
    plot.decomposition(results.parts, what="displacement", ax=d)
    a.set_title("The charge follows the law of each dynamics", loc="left", fontsize=12)
    b.set_title("What the continuous law leaves open shrinks with dt", loc="left", fontsize=12)
    c.set_title("Noise equilibrium from both sides of one orbit", loc="left", fontsize=12)
    d.set_title("Motion along and across the symmetry", loc="left", fontsize=12)
    drawn.suptitle(
        f"SGD on {s.data}: η = {s.learning_rate:g}, S = {s.batch_size}, γ = {s.gamma:g}, {s.paths} paths, "
        "bands ±2 standard errors",
        fontsize=13,
    )
    return drawn


def _end_of_the_way(results: Results, ax: Any) -> None:
    """The end of the third panel once more, enlarged, in its empty corner: what is left between both sides is O(η)."""
    inset = ax.inset_axes((0.45, 0.07, 0.52, 0.35))
    plot.equilibrium(results.sides, results.law, ax=inset)
    inset.get_legend().remove()
    end = results.settings.steps * results.settings.learning_rate
    values = [np.asarray(line.get_ydata())[np.asarray(line.get_xdata()) >= 0.7 * end] for line in inset.lines]
    seen = np.concatenate([v for v in values if v.size])
    room = 0.3 * (np.ptp(seen) or 1.0)
    inset.set(xlabel="", ylabel="", xlim=(0.7 * end, end), ylim=(seen.min() - room, seen.max() + room))
    inset.set_title("the end, enlarged", fontsize=9, loc="left")
    inset.tick_params(labelsize=8)
