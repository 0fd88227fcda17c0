"""The search itself, for one problem: what is inert, all generators on the rest, and a basis of them to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdsde.algebra import Affine, Generator, translation
from sgdsde.symmetry._lie_basis import Span, echelon, parts_of, sparsest, windows
from sgdsde.symmetry._lie_general import MOST_UNKNOWN, general, refuse
from sgdsde.symmetry._lie_layered import Space, arrays, search_space, spaces
from sgdsde.symmetry._lie_states import Gap, Inert, States

__all__ = ["Found", "action", "errors", "look", "probes"]

GENERAL_UP_TO = 128
"""Components on which the general search is tried unasked,"""
UNKNOWN_UNASKED = 1600
"""with this many unknowns at most."""
STRUCTURED_PROBES = 2048
"""Numbers by which structured generators are told from each other, at least, and at four states."""
CHECKED = 2
"""States at which a generator is checked."""
REACH = 0.5
"""|λ|(‖A‖ + ‖b‖/‖θ‖) of the finite group elements that are checked."""


class Found(NamedTuple):
    """What a search found."""

    inert: Inert
    translations: list[Affine]
    """The inert directions that are not single components."""
    generators: list[Generator | Affine]
    gap: Gap
    n_states: int
    complete: bool
    """Whether all affine generators were looked for."""
    skipped: list[str]


def look(states: States, declared: Mapping[str, Any], search: str, tolerance: float, probe: np.ndarray) -> Found:
    """Search by "general" means, "structured" ones, or ("auto") the first where the model is small enough."""
    shapes = getattr(states.problem.model, "shapes", {}) or {}
    parts, d = arrays(shapes, states.dim), states.dim
    fine = tolerance**1.5  # rows of gradients as they are, where the general search has directions of unit length
    inert = Inert.find(states, fine)
    moved = [translation(v) for v in echelon(inert.shared, tolerance)]
    everything = None
    if search != "structured" and (search == "general" or d - inert.count <= GENERAL_UP_TO):
        most = MOST_UNKNOWN if search == "general" else UNKNOWN_UNASKED
        everything = general(states, inert, tolerance, most)
        if everything is None and search == "general":
            raise refuse(most)
    known = list(declared.values())
    candidates = [a for a, (off, _) in zip(known, errors(states, known, finite=False), strict=True) if off < 1e-9]
    kept, skipped = spaces(shapes, d)
    gap = inert.gap
    n_found = None if everything is None else len(everything[0])
    for space in kept if n_found != 0 else []:
        found, own = search_space(states, space, fine)
        gap = gap.worst(own)
        candidates += _from_space(space, found, inert, probe, tolerance)
    if everything is not None:
        gap, skipped = gap.worst(everything[1]), []
        candidates += _from_matrices(everything[0], parts, tolerance) if n_found else []
    acts = [a for a in candidates if np.linalg.norm(action(a, inert, probe)) > 1e-7 * np.linalg.norm(a.apply(probe))]
    basis = sparsest(acts, lambda a: action(a, inert, probe), probe.size, inert.dead)
    return Found(inert, moved, basis, gap, states.count, everything is not None, skipped)


def probes(problem: Any, states: States) -> np.ndarray:
    """States by their values at which generators are told from each other."""
    return states.draw(states.dim + 4 if states.dim <= GENERAL_UP_TO else max(4, STRUCTURED_PROBES // states.dim))


def action(a: Generator | Affine, inert: Inert, probe: np.ndarray) -> np.ndarray:
    """J at the probe states without its inert part, one row of numbers."""
    return inert.remove(a.apply(probe)).ravel()


def errors(states: States, many: Sequence[Any], finite: bool = True) -> list[tuple[float, float | None]]:
    """Of each generator the largest |g_i·J|/(‖g_i‖(‖A‖‖θ‖ + ‖b‖)) and |ℓ_i(θ_λ) - ℓ_i(θ)|/(1 + |ℓ_i|), at some states.

    The second is None where there are no losses, or they are not asked for.
    """
    has_losses = finite and hasattr(states.problem, "per_sample_losses")
    tangent, kept = np.zeros(len(many)), np.zeros(len(many))
    for _ in range(CHECKED if len(many) else 0):
        x = states.draw()
        length = float(np.linalg.norm(x))
        speeds = [a.norm * length + (float(np.linalg.norm(a.shift)) if isinstance(a, Affine) else 0.0) for a in many]
        for g in states.gradients(x):
            sizes = np.linalg.norm(g, axis=1)
            g = g[sizes > 0] / sizes[sizes > 0, None]
            for k, a in enumerate(many):
                if speeds[k] > 0.0 and len(g):
                    tangent[k] = max(tangent[k], float(np.abs(g @ a.apply(x)).max()) / speeds[k])
        before = _losses(states.problem, x) if has_losses else np.zeros(0)
        for k, a in enumerate(many if has_losses else ()):
            for lam in (REACH * length / speeds[k], -REACH * length / speeds[k]) if speeds[k] > 0.0 else ():
                off = np.abs(_losses(states.problem, a.exp(lam, x)) - before) / (1.0 + np.abs(before))
                kept[k] = max(kept[k], float(off.max()))
    return [(float(t), float(f) if has_losses else None) for t, f in zip(tangent, kept, strict=True)]


def _losses(problem: Any, x: np.ndarray) -> np.ndarray:
    if getattr(problem, "n_samples", 1) is None:
        return np.array([problem.loss(x)])
    return np.asarray(problem.per_sample_losses(x))


def _from_matrices(found: np.ndarray, parts: Any, tolerance: float) -> Iterator[Generator | Affine]:
    """Candidates with few entries from all [A, b] (k, d, d + 1)."""
    k, d, _ = found.shape
    for name, some in windows(found, parts):
        flat = some.reshape(len(some), -1)
        turned = some.copy()
        turned[:, :, :-1] = np.swapaxes(some[:, :, :-1], 1, 2)
        for vectors in parts_of(flat, turned.reshape(flat.shape)):
            for ab in echelon(vectors, tolerance).reshape(-1, d, d + 1):
                linear = Generator.from_matrix(ab[:, :-1], name)
                yield Affine(linear, ab[:, -1], name) if ab[:, -1].any() else linear


def _from_space(
    space: Space, found: np.ndarray, inert: Inert, probe: np.ndarray, tolerance: float
) -> Iterator[Generator]:
    """Candidates with few entries from the symmetries of a structured space."""
    if not len(found):
        return
    acts = np.array([action(space.generator(c, inert.dim), inert, probe) for c in found])
    if np.abs(acts).max() <= 1e-9 * np.abs(probe).max():
        return
    u, s, _ = np.linalg.svd(acts, full_matrices=False)
    found = u[:, s > 1e-7 * s[0]].T @ found  # without those that move only what is inert, or nothing
    for vectors in parts_of(found, space.transposed(found)):
        for c in echelon(vectors, tolerance):
            yield space.generator(c, inert.dim).named(space.name)


def outside(inner: Found, outer: Found, probe: np.ndarray) -> list[Generator | Affine]:
    """Generators and translations of `outer` that those of `inner` do not contain."""
    span = Span(probe.size)
    for a in inner.generators:
        span.add(action(a, outer.inert, probe))
    more: list[Generator | Affine] = [a for a in outer.generators if span.add(action(a, outer.inert, probe))]
    still = Span(inner.inert.dim)
    still.rows = inner.inert.basis()
    return more + [translation(v) for v in echelon(outer.inert.basis(), 1e-9) if still.add(v)]
