"""Discovery: the symmetries that were found, and how sure of them one can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde.algebra import Affine, Generator
from sgdsde.symmetry._lie_algebra import Structure
from sgdsde.symmetry._lie_layered import arrays
from sgdsde.symmetry._lie_states import Gap

__all__ = ["Discovery", "places_named"]

CLEAR = 1e3
"""A gap smaller than this leaves the number of generators in doubt."""
SHOWN = 12


@dataclass(frozen=True, repr=False, eq=False)
class Discovery:
    """Outcome of `discover_symmetries`; it prints itself."""

    generators: tuple[Generator | Affine, ...]
    """A basis: symmetric ones, antisymmetric ones, the others, then translations; all checked on the losses."""
    dead: tuple[int, ...]
    """Components of θ on which no sample's loss depends."""
    dead_names: tuple[str, ...]
    """The same by array, whole rows and columns together: "W1[:,32]"."""
    type: str
    """Name of the algebra, translations apart: "gl(2)", "so(3,3)", "abelian(4)", "none", …"""
    structure: Structure = field(repr=False)
    """Centre, derived algebra, radical, signature of the Killing form, structure constants."""
    gap: Gap
    """Singular values on both sides of the cut, relative to the largest."""
    complete: bool
    """Whether all affine generators were looked for, not only structured ones."""
    skipped: tuple[str, ...]
    """Structured spaces that were too large."""
    declared: tuple[str, ...]
    """Names of what the model says it has."""
    declared_missing: tuple[str, ...]
    """Of them, those that are no symmetry here."""
    extra: tuple[Generator | Affine, ...]
    """Generators beyond those declared and their brackets."""
    fragile: tuple[Generator | Affine, ...]
    """What one part of the data has and another breaks (`redraw`)."""
    failed: tuple[Generator | Affine, ...]
    """What the states of the search allowed, and a check at new states or on the losses did not."""
    tangent: float
    """Largest |g_i·J|/(‖g_i‖(‖A‖‖θ‖ + ‖b‖)) over the generators, samples and new states."""
    finite: float | None
    """Largest |ℓ_i(θ_λ) - ℓ_i(θ)|/(1 + |ℓ_i|) under finite group elements; None without losses or generators."""
    dim_theta: int
    n_states: int
    n_samples: int | None
    model: str

    @property
    def dim(self) -> int:
        """How many independent generators, translations among them."""
        return len(self.generators)

    @property
    def symmetric(self) -> tuple[Generator | Affine, ...]:
        """Those with A = Aᵀ, which have charges (`Charge`); a translation is one."""
        return tuple(a for a in self.generators if a.is_symmetric)

    @property
    def antisymmetric(self) -> tuple[Generator | Affine, ...]:
        """Those with A = -Aᵀ ≠ 0: rotations, which keep θᵀAᵀdθ = 0 in every step."""
        return tuple(a for a in self.generators if a.is_antisymmetric and not a.is_symmetric)

    @property
    def translations(self) -> tuple[Affine, ...]:
        """Constant directions that no loss depends on, other than `dead` components."""
        return tuple(a for a in self.generators if isinstance(a, Affine) and not a.linear.parts)

    @property
    def clear(self) -> bool:
        """Whether the gap leaves no doubt about how many there are."""
        return self.gap.ratio >= CLEAR

    def __getitem__(self, name: str) -> Generator | Affine:
        found = {a.name: a for a in self.generators}
        if name not in found:
            raise KeyError(f"{name!r} is not one of {', '.join(found) or 'no generators'}")
        return found[name]

    def __str__(self) -> str:
        counts = f"{len(self.symmetric)} symmetric, {len(self.antisymmetric)} antisymmetric"
        shifts = len(self.translations)
        kinds = [self.type] * (shifts < self.dim) + [f"{shifts} translation{'s' * (shifts > 1)}"] * (shifts > 0)
        over = "" if self.n_samples is None else f" on {self.n_samples} samples"
        lines = [f"Symmetries of {self.model}{over}: {' and '.join(kinds) or 'none'}"]
        if self.dim:
            lines.append(f"  {self.dim} generators: {counts}")
            lines += [f"    {a!r}" for a in self.generators[:SHOWN]]
            lines += [f"    … and {self.dim - SHOWN} more"] if self.dim > SHOWN else []
        s = self.structure
        if len(s.constants) > 1:
            killing = "({}+, {}-, {} zero)".format(*s.killing)
            lines.append(
                f"  centre {s.centre}, derived algebra {s.derived}, radical {s.radical}, Killing form {killing}"
            )
        if self.dead:
            lines.append(f"  {len(self.dead)} of {self.dim_theta} components are dead: {_some(self.dead_names)}")
        zero = f"{self.gap.zero:.1e}" if self.gap.zero else "none"
        other = f"{self.gap.other:.1e}" if np.isfinite(self.gap.other) else "none"
        doubt = "" if self.clear else ": no clear gap, the number of generators is in doubt"
        lines.append(f"  singular values that are zero: {zero}, that are not: {other}{doubt}")
        if self.finite is not None:
            errors = f"tangent {self.tangent:.1e}, finite {self.finite:.1e}"
            lines.append(f"  checked at new states: {errors} ({self.n_states} states used)")
        if not self.complete:
            out = f"; left out: {_some(self.skipped)}" if self.skipped else ""
            lines.append(f"  structured search: layer by layer and diagonal only{out}")
        if self.declared:
            lost = f"not found: {_some(self.declared_missing)}" if self.declared_missing else "all found"
            lines.append(f"  {len(self.declared)} declared by the model, {lost}; {len(self.extra)} beyond them")
        for what, many in (
            ("hold on part of the data and are broken by the rest", self.fragile),
            ("failed the check at new states", self.failed),
        ):
            if many:
                lines.append(f"  {len(many)} {what}: {_some([a.name or repr(a) for a in many])}")
        return "\n".join(lines)

    __repr__ = __str__


def _some(names: Any) -> str:
    names = list(names)
    return ", ".join(names[:SHOWN]) + (f", … ({len(names)})" if len(names) > SHOWN else "")


def places_named(model: Any, dead: np.ndarray) -> tuple[str, ...]:
    """Dead components by array: whole arrays, whole columns and rows, then single ones."""
    out: list[str] = []
    for name, start, (r, c) in arrays(getattr(model, "shapes", {}) or {}, int(model.dim)):
        grid = np.isin(np.arange(start, start + r * c), dead).reshape(r, c)
        if grid.all():
            out.append(name)
            continue
        columns = np.flatnonzero(grid.all(axis=0) & (r > 1))
        rows = np.flatnonzero(grid.all(axis=1) & (c > 1))
        out += [f"{name}[:,{j}]" for j in columns] + [f"{name}[{i},:]" for i in rows]
        left = grid.copy()
        left[:, columns], left[rows, :] = False, False
        out += [f"{name}[{i},{j}]" if c > 1 else f"{name}[{i}]" for i, j in np.argwhere(left)]
    return tuple(out)
