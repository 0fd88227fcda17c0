"""MotionTrack: how far a run moved along and across its symmetries, summed over every step, no step kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, SgdsdeError
from sgdsde.run.watching import Watcher
from sgdsde.symmetry import forms
from sgdsde.symmetry.directions import as_named

__all__ = ["Motion", "MotionTrack"]

MOST = 256
"""Generators: K numbers for each component of θ are held for a path at a time."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Sums over all tracked steps up to each saved time, (n_paths, n_times), (n_times,) for a single path."""

    quadratic_variation_parallel: np.ndarray
    """Σ‖Δθ_∥‖²."""
    quadratic_variation_orthogonal: np.ndarray
    """Σ‖Δθ_⊥‖²."""
    length_parallel: np.ndarray
    """Σ‖Δθ_∥‖."""
    length_orthogonal: np.ndarray
    """Σ‖Δθ_⊥‖."""
    changes: dict[str, np.ndarray] = field(default_factory=dict)
    """Σ 2A_aθ_mid·Δθ_∥ by name: C_a(t) - C_a(0) for a symmetric A_a, twice the angular sum Σ r²Δφ for an antisymmetric
    one."""

    @property
    def share(self) -> np.ndarray:
        """Σ‖Δθ_∥‖²/Σ‖Δθ‖²; NaN where nothing moved."""
        whole = self.quadratic_variation_parallel + self.quadratic_variation_orthogonal
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.quadratic_variation_parallel / whole


class MotionTrack:
    """A track of motion along and across the directions A_aθ: quadratic variation, path length, changes of charges.

    Each step Δθ is split at its midpoint, as `decompose` does with saved states: Δθ_∥ is its projection on the span of
    A_aθ_mid, which carries the whole change of every charge (exactly, for any method). Sums of norms depend on how
    finely a trajectory is saved; these are over steps.

    Parameters
    ----------
    generators : mapping name -> Generator, sequence or Generator
        Up to 256, linear (of a model's `symmetries()` those that are); they may be linearly dependent, and may vanish
        at θ.
    name : str
        For `track=` and in tables.

    Raises
    ------
    ArgumentError

    Notes
    -----
    A tracked step costs K products A_aθ, K²d/2 operations and a K × K system by LDLᵀ: a direction whose part outside
    those before it is below 16K eps of its squared length counts as contained in them.

    Examples
    --------
    >>> import sgdsde as sg
    >>> from sgdsde.symmetry import MotionTrack
    >>> model = sg.models.Product()
    >>> problem = sg.SGD(model, sg.models.uw_label(), learning_rate=0.1)
    >>> track = MotionTrack(model.symmetries())
    >>> sol = sg.solve(problem.sde(), (0, 1), [2.0, 1.0], rng=0, track=track)
    >>> motion = track.read(sol)
    >>> (name, change), = motion.changes.items()
    >>> C = sg.Charge(model.symmetries()[name])(sol.y)
    >>> bool(abs(change[-1] - (C[-1] - C[0])) < 1e-14)
    True
    """

    def __init__(self, generators: Any, name: str = "motion") -> None:
        self.generators = as_named(generators)
        self.name = str(name)
        if len(self.generators) > MOST:
            raise ArgumentError(f"generators must be at most {MOST} for a track, got {len(self.generators)}")
        for key, a in self.generators.items():
            if not a.norm > 0.0:
                raise ArgumentError(f"generators must not be zero, and {key!r} is")

    def __repr__(self) -> str:
        return f"MotionTrack({', '.join(self.generators)})"

    def __track__(self, equation: Any, scheme: Any) -> Watcher:
        """The TRACK kernel; asked for by the runner."""
        from sgdsde.symmetry._motion_kernels import OWN_ROWS, motion, motion_size
        from sgdsde.symmetry._projection_solver import HEADER, ROW

        family = list(self.generators.values())
        d, k = family[0].dim, len(family)
        if equation.dim != d:
            raise ArgumentError(f"track: generators act on {d} components, the run has {equation.dim}")
        table, at, written = np.zeros((k, ROW)), HEADER + k * ROW, []
        for a, one in enumerate(family):
            written.append(forms.encode(one))
            table[a, :2] = one.norm, at
            at += written[-1].size
        p = np.concatenate([[float(k)], np.zeros(HEADER - 1), table.ravel(), *written])
        return Watcher(motion, p, np.zeros(0), OWN_ROWS + k, (motion_size(d, k), 0), self)

    def read(self, solution: Any) -> Motion:
        """The sums of a run that tracked this.

        Parameters
        ----------
        solution : Solution
            Of a run with `track=` this, with keep="all" or "final".

        Raises
        ------
        ArgumentError
            It tracked nothing of this, or kept no paths.
        """
        if not (hasattr(solution, "track") and hasattr(solution, "tracked_steps")):
            raise ArgumentError(f"solution must be a Solution of solve or of SGD.run, got {_check.show(solution)}")
        found = [name for name, thing in solution.track.items() if thing is self]
        if not found:
            raise ArgumentError(f"solution must come from a run with track= this {self!r}; it tracked nothing of it")
        try:
            rows = np.moveaxis(np.asarray(solution.tracked[found[0]]), -1, 0)
        except SgdsdeError as error:
            raise ArgumentError(f"solution must keep its paths for the motion along them: {error}") from None
        a, b, c, d = rows[:4]
        return Motion(a, b, c, d, dict(zip(self.generators, rows[4:])))
