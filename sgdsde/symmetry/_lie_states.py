"""Per-sample gradients at random states, and the directions in which no sample's loss ever moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sgdsde._errors import ModelError
from sgdsde.symmetry.checking import _gradients, _typical_size

__all__ = ["Gap", "Inert", "States", "Triangle", "null_space"]

ROWS = 4096
"""Gradients held at a time."""
SCALES = (1.0, 0.5, 2.0)
"""Sizes of the states, in turn, in units of `model.init`."""
STILL = 4
"""Units of ReLU may be off for all samples at one state."""
MOST_DIRECTIONS = 2000
"""Components up to which inert directions are looked for; above, inert components alone."""


class Gap(NamedTuple):
    """Singular values on both sides of the cut, relative to the largest."""

    zero: float
    """The largest that counts as zero; 0 where none does."""
    other: float
    """The smallest that does not; infinite where all do."""

    @property
    def ratio(self) -> float:
        """`other` / `zero`, where below 1e-16 is rounding."""
        return self.other / max(self.zero, 1e-16)

    def worst(self, other: Gap) -> Gap:
        """The one that is less clear."""
        return min(self, other, key=lambda gap: gap.ratio)


class Triangle:
    """Rows, kept as a triangular matrix R with the same RᵀR: n × n numbers, without squaring the condition number."""

    def __init__(self, n: int) -> None:
        self.r: np.ndarray = np.zeros((0, n))

    def add(self, rows: np.ndarray) -> None:
        """More rows, any number of them."""
        both = np.vstack([self.r, rows])
        self.r = np.asarray(np.linalg.qr(both, mode="r")) if len(both) > self.r.shape[1] else both

    def zeros(self, tolerance: float) -> int:
        """How many rows `null_space` has, for a third of the cost."""
        n = self.r.shape[1]
        s = np.linalg.svd(self.r, compute_uv=False) if self.r.size else np.zeros(0)
        return n - int(np.sum(s > tolerance * s.max(initial=0.0)))

    def null_space(self, tolerance: float) -> tuple[np.ndarray, Gap]:
        """Orthonormal rows that R takes to zero, and the gap."""
        return null_space(self.r, tolerance)


def null_space(rows: np.ndarray, tolerance: float) -> tuple[np.ndarray, Gap]:
    """Orthonormal rows v (k, n) with rows·v = 0, singular values below `tolerance` times the largest being zero."""
    n = rows.shape[1]
    if not len(rows) or not n:
        return np.eye(n), Gap(0.0, np.inf)
    _, s, vt = np.linalg.svd(rows, full_matrices=True)
    s = np.concatenate([s, np.zeros(n - s.size)])
    if s[0] == 0.0:
        return np.eye(n), Gap(0.0, np.inf)
    s = s / s[0]
    keep = s > tolerance
    return vt[~keep], Gap(float(s[~keep].max(initial=0.0)), float(s[keep].min()))


class States:
    """Random states of a problem, and what the samples say there."""

    def __init__(self, problem: Any, random: np.random.Generator) -> None:
        self.problem, self.random = problem, random
        self.dim = int(problem.model.dim)
        self.size = _typical_size(problem, random)
        self.count = 0

    def draw(self, n: int | None = None) -> np.ndarray:
        """A state (d,), or n of them in rows; sizes take turns."""
        many = self.random.standard_normal((1 if n is None else n, self.dim))
        for x in many:
            x *= self.size * SCALES[self.count % len(SCALES)]
            self.count += 1
        return many[0] if n is None else many

    def gradients(self, x: np.ndarray) -> Iterator[np.ndarray]:
        """∇ℓ_i(x) of all samples in rows, some at a time."""
        n = int(getattr(self.problem, "n_samples", None) or 0)
        several = n > ROWS and hasattr(self.problem, "samples")
        for start in range(0, n if several else 1, ROWS):
            if several:
                stop = min(n, start + ROWS)
                g = self.problem.model.per_sample_gradients(x, self.problem.samples, start, stop)
            else:
                g = _gradients(self.problem, x)
            if not np.isfinite(g).all():
                raise ModelError("a sample has a gradient that is not finite at a state tried; scale the model's init")
            yield g

    def triangle(self, x: np.ndarray) -> np.ndarray:
        """Rows (≤ d, d) with the span of the gradients at x, their norms included; the largest is about 1."""
        found = Triangle(self.dim)
        for g in self.gradients(x):
            found.add(g)
        size = np.abs(found.r).max(initial=0.0)
        return found.r / size if size > 0.0 else found.r


class Inert:
    """The directions v with g_i·v = 0 at every state: what the loss does not depend on.

    They are translations, and each makes d trivial generators more (θ ↦ v times anything), so that symmetries are
    looked for on θ without them.
    """

    def __init__(self, dim: int, dead: np.ndarray, shared: np.ndarray, gap: Gap, complete: bool) -> None:
        self.dim, self.dead, self.shared, self.gap, self.complete = dim, dead, shared, gap, complete

    @classmethod
    def find(cls, states: States, tolerance: float) -> Inert:
        """States are added until what is inert has stayed the same for as many as STILL of them."""
        d = states.dim
        complete = d <= MOST_DIRECTIONS
        triangle, largest, before, same = Triangle(d), np.zeros(d), -1, 0
        live = np.zeros(0, np.int64)
        null, gap = np.zeros((0, 0)), Gap(0.0, np.inf)
        while same < STILL:
            x = states.draw()
            if complete:
                rows = states.triangle(x)
                triangle.add(rows)
                largest = np.maximum(largest, np.abs(rows).max(axis=0, initial=0.0))
            else:
                for g in states.gradients(x):
                    largest = np.maximum(largest, np.abs(g).max(axis=0))
            live = np.flatnonzero(largest > tolerance * largest.max(initial=0.0))
            if complete:
                null, gap = null_space(triangle.r[:, live], tolerance)
            found = d - live.size + len(null)
            same = same + 1 if found == before else 0
            before = found
        shared = np.zeros((len(null), d))
        if len(null):
            shared[:, live] = null
        return cls(d, np.setdiff1d(np.arange(d), live), shared, gap, complete)

    @property
    def count(self) -> int:
        """How many directions."""
        return self.dead.size + len(self.shared)

    def basis(self) -> np.ndarray:
        """Orthonormal rows (count, d)."""
        return np.vstack([np.eye(self.dim)[self.dead], self.shared]) if self.count else np.zeros((0, self.dim))

    def rest(self) -> np.ndarray:
        """Orthonormal rows (d - count, d): what the loss depends on."""
        live = np.setdiff1d(np.arange(self.dim), self.dead)
        if not len(self.shared):
            return np.eye(self.dim)[live]
        out = np.zeros((live.size - len(self.shared), self.dim))
        out[:, live] = null_space(self.shared[:, live], 1e-8)[0]
        return out

    def remove(self, x: np.ndarray) -> np.ndarray:
        """x (..., d) without its inert part."""
        x = x - (x @ self.shared.T) @ self.shared if len(self.shared) else np.array(x)
        x[..., self.dead] = 0.0
        return x
