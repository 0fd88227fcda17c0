"""A trajectory along and across the symmetry: which part of each increment moves on the orbit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.models.deep_linear import DeepLinear
from sgdsde.models.model import Model
from sgdsde.models.naming import Named
from sgdsde.symmetry.charges import as_generator
from sgdsde.symmetry.directions import LinearLayers, Span, as_named, whole_algebra
from sgdsde.symmetry.equilibrium import noise_equilibrium

__all__ = ["Decomposition", "decompose", "orbit_coordinate"]

CHUNK = 1 << 22
"""Doubles of scratch that one batch of increments may take."""


SHOWN = 8
"""Charges in the printed table."""


class Changes(Mapping[str, np.ndarray]):
    """Name -> 2Aθ·Δθ_∥, made when it is looked up: a layer of h units has h(h + 1)/2 charges."""

    def __init__(self, named: Mapping[str, Any], base: np.ndarray, parallel: np.ndarray) -> None:
        self._named, self._base, self._parallel = named, base, parallel

    def __getitem__(self, name: str) -> np.ndarray:
        return 2 * np.einsum("...d,...d->...", self._named[name].apply(self._base), self._parallel)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)


@dataclass(frozen=True, repr=False, eq=False)
class Decomposition:
    """Parts of each increment of a trajectory; leading axes (paths) are those of the states.

    Attributes
    ----------
    parallel, orthogonal : (..., n_times - 1, d) arrays
        The part of each increment along the symmetry directions, and the rest. They add up to the increment.
    charge_changes : mapping of (..., n_times - 1) arrays
        2A_aθ·Δθ_∥ for each symmetric generator a by name (A_aθ + b_a for an affine one), θ as `rule` says, worked out
        when it is looked up. With the midpoint rule it is C(θ_{n+1}) - C(θ_n), exactly, for any trajectory of any
        method.
    rule : str
        'midpoint' or 'ito'.
    t : (n_times,) array or None
        Times, of a solution.
    directions : str
        What was projected on.
    """

    parallel: np.ndarray = field(repr=False)
    orthogonal: np.ndarray = field(repr=False)
    charge_changes: Mapping[str, np.ndarray]
    rule: str
    t: np.ndarray | None
    directions: str

    @property
    def displacement_parallel(self) -> np.ndarray:
        """Sum of the parallel parts up to each time, (..., n_times, d)."""
        return _summed(self.parallel, -2)

    @property
    def displacement_orthogonal(self) -> np.ndarray:
        """Sum of the orthogonal parts up to each time, (..., n_times, d)."""
        return _summed(self.orthogonal, -2)

    @property
    def length_parallel(self) -> np.ndarray:
        """Σ‖Δθ_∥‖ up to each time, (..., n_times). It depends on how finely the trajectory was saved."""
        return _summed(np.linalg.norm(self.parallel, axis=-1), -1)

    @property
    def length_orthogonal(self) -> np.ndarray:
        """Σ‖Δθ_⊥‖ up to each time, (..., n_times)."""
        return _summed(np.linalg.norm(self.orthogonal, axis=-1), -1)

    @property
    def fractions(self) -> np.ndarray:
        """‖Δθ_∥‖²/‖Δθ‖² of each increment, (..., n_times - 1); NaN where nothing moved."""
        return _ratio(np.sum(self.parallel**2, axis=-1), np.sum(self.orthogonal**2, axis=-1))

    @property
    def fraction(self) -> Any:
        """Σ‖Δθ_∥‖²/Σ‖Δθ‖² over the whole trajectory, (...)."""
        along, across = np.sum(self.parallel**2, axis=(-2, -1)), np.sum(self.orthogonal**2, axis=(-2, -1))
        value = _ratio(along, across)
        return float(value) if value.ndim == 0 else value

    def __repr__(self) -> str:
        rows = [("length along", self.length_parallel[..., -1]), ("length across", self.length_orthogonal[..., -1])]
        rows.append(("share of squared length along", np.asarray(self.fraction)))
        shown = islice(self.charge_changes.items(), SHOWN)
        rows += [(f"change of C[{name}]", change.sum(axis=-1)) for name, change in shown]
        head = f"Decomposition on {self.directions}, {self.rule} rule, {self.parallel.shape[-2]} increments"
        more = len(self.charge_changes) - SHOWN
        tail = [f"  and {more} charges more"] if more > 0 else []
        return "\n".join([head, *(f"  {name:<30} {_mean_and_error(value)}" for name, value in rows), *tail])


def decompose(trajectory: Any, generators: Any, *, rule: str = "midpoint", algebra: str | None = None) -> Decomposition:
    """Split every increment of a trajectory into its parts along and across the symmetry directions.

    With J = [A_1θ, …, A_kθ], the parallel part of Δθ is J(JᵀJ)⁺JᵀΔθ.

    Parameters
    ----------
    trajectory : Solution or array_like of shape (..., n_times, d)
    generators : mapping name -> Generator, Model, LinearLayers, Generator or sequence of them
        Such as `model.symmetries()`, linear or affine. `LinearLayers(shapes)` is the whole algebra of linear layers by
        their shapes.
    rule : 'midpoint' or 'ito'
        Where the directions are taken: at (θ_n + θ_{n+1})/2, or at θ_n.

        With the midpoint rule the parallel part carries the whole change of every charge,
        C(θ_{n+1}) - C(θ_n) = 2Aθ_mid·Δθ_∥, exactly, for any increments of any method.

        With the Itô rule 2Aθ_n·Δθ_∥ = -4γhC(θ_n) for one step of SGD or Euler-Maruyama, because every gradient is
        orthogonal to Aθ_n: **without weight decay the Itô parallel part of a step is identically zero although C
        moves** (by ΔθᵀAΔθ, at second order). That is why it is not the default; it is of use on single steps
        (`t_eval="steps"`), to see the decay alone.
    algebra : 'whole' or 'given', optional
        'whole' completes generators (W, U) ↦ (-BW, UB) of linear layers to every B, symmetric or not, where it knows
        that each B is a symmetry: for a `DeepLinear` model (passed as `generators`, or behind the solution), and when
        the given B span all symmetric matrices (commutators of symmetries are symmetries). The projection is that of
        the Sylvester equation UᵀU·B + B·WWᵀ = UᵀΔU - ΔW·Wᵀ, with no d × h² matrix (`LinearLayers`). The
        symmetric B alone can differ by much on one step. (The shears that a layer between one input or one output has,
        and their charges, are left out.) 'given' projects on the span of exactly the given generators.
        Default: 'given' for one generator or a sequence, 'whole' otherwise.

    Returns
    -------
    Decomposition

    Examples
    --------
    >>> from sgdsde.algebra import rescaling
    >>> states = np.array([[2.0, 1.0], [2.2, 0.9], [2.1, 1.0]])
    >>> parts = decompose(states, rescaling(2))
    >>> change = parts.charge_changes["rescaling"]
    >>> bool(np.allclose(change, np.diff(states[:, 0]**2 - states[:, 1]**2), atol=1e-15))
    True
    """
    rule = _check.choice("rule", rule, ["midpoint", "ito"])
    states, t = _states(trajectory)
    named, directions = _directions(generators, algebra, trajectory)
    if states.shape[-1] != directions.dim:
        raise ShapeError(f"trajectory must have {directions.dim} components, as the generators, got {states.shape[-1]}")
    first, last = states[..., :-1, :], states[..., 1:, :]
    base = (first + last) / 2 if rule == "midpoint" else first
    delta = last - first
    parallel = _project(directions, base.reshape(-1, directions.dim), delta.reshape(-1, directions.dim))
    parallel = parallel.reshape(delta.shape)
    changes = Changes(named, base, parallel)
    return Decomposition(parallel, delta - parallel, changes, rule, t, repr(directions))


def _directions(generators: Any, algebra: str | None, trajectory: Any) -> tuple[Mapping[str, Generator], Any]:
    """Symmetric generators by name, and what to project on."""
    if isinstance(generators, LinearLayers):
        return {}, generators
    if algebra is None:
        algebra = "whole" if isinstance(generators, (Mapping, Model)) else "given"
    algebra = _check.choice("algebra", algebra, ["whole", "given"])
    model = generators if isinstance(generators, Model) else _model_of(trajectory)
    own = generators.symmetries() if isinstance(generators, Model) else generators
    if algebra == "whole" and isinstance(own, Named):  # of linear layers none but B = I is made: h² others follow
        leading = [own[name] for name in takewhile(lambda name: name.endswith("B=I"), own)]
        layers = whole_algebra(leading, every_b=True) if leading else None
        if layers is not None:
            return own.charged().but("crossing("), layers
    named = as_named(generators, affine=True)
    listed = list(named.values())
    charged = {name: a for name, a in named.items() if a.is_symmetric}
    if algebra == "given":
        return charged, Span(listed)
    if isinstance(model, DeepLinear) and model.dim == listed[0].dim:
        return charged, whole_algebra(listed, every_b=True) or LinearLayers(_matrices(model))
    return charged, whole_algebra(listed) or Span(listed)


def _matrices(model: DeepLinear) -> list[tuple[int, int]]:
    return [(n, m) for n, m in model.shapes.values()]


def _model_of(trajectory: Any) -> Any:
    """The model behind a solution of SGD or of its SDE, or None."""
    problem = getattr(trajectory, "problem", None)
    return getattr(problem, "model", None) or getattr(getattr(problem, "problem", None), "model", None)


def _project(directions: Any, base: np.ndarray, delta: np.ndarray) -> np.ndarray:
    out = np.full(delta.shape, np.nan)
    good = np.flatnonzero(np.isfinite(base).all(axis=1) & np.isfinite(delta).all(axis=1))
    batch = max(1, CHUNK // directions.numbers_per_state)
    for start in range(0, good.size, batch):
        rows = good[start : start + batch]
        out[rows] = directions.project(base[rows], delta[rows])
    return out


def orbit_coordinate(problem: Any, theta: Any, generator: Any) -> Any:
    """λ of each θ along its orbit, counted from the noise equilibrium: θ = e^{λA}θ*, C(θ*) = C*.

    Parameters
    ----------
    problem : SGD
    theta : array_like of shape (..., d)
    generator : Generator
        Symmetric.

    Returns
    -------
    float or (...) array: -λ* of `noise_equilibrium`; ∓inf where that is ±inf, NaN where it is degenerate or θ not
    finite.
    """
    a = as_generator(generator)
    theta = _check.array("theta", theta, finite=False)
    if theta.ndim == 0 or theta.shape[-1] != a.dim:
        raise ShapeError(f"theta must have shape (..., {a.dim}), got {theta.shape}")
    flat = theta.reshape(-1, a.dim)
    values = [-noise_equilibrium(problem, x, a).lam if np.isfinite(x).all() else np.nan for x in flat]
    return values[0] if theta.ndim == 1 else np.array(values).reshape(theta.shape[:-1])


def _states(trajectory: Any) -> tuple[np.ndarray, np.ndarray | None]:
    t = None
    if hasattr(trajectory, "y") and hasattr(trajectory, "t"):
        trajectory, t = trajectory.y, np.asarray(trajectory.t)
    states = np.asarray(trajectory)
    if states.dtype.kind not in "biuf":
        raise ArgumentError(f"trajectory must be a Solution or an array of numbers, got {_check.show(trajectory)}")
    if states.ndim < 2 or states.shape[-2] < 2:
        raise ShapeError(f"trajectory must have shape (..., n_times, d) with n_times at least 2, got {states.shape}")
    return states.astype(np.float64, copy=False), t


def _summed(parts: np.ndarray, axis: int) -> np.ndarray:
    total = np.cumsum(parts, axis=axis)
    return np.concatenate([np.zeros_like(np.take(total, [0], axis=axis)), total], axis=axis)


def _ratio(along: np.ndarray, across: np.ndarray) -> np.ndarray:
    whole = along + across
    return np.where(whole > 0, along / np.where(whole > 0, whole, 1.0), np.where(np.isnan(whole), whole, np.nan))


def _mean_and_error(value: np.ndarray) -> str:
    value = np.ravel(value)
    if value.size == 0:
        return "no paths"
    if value.size == 1:
        return f"{value[0]:.6g}"
    return f"{value.mean():.6g} ± {value.std(ddof=1) / np.sqrt(value.size):.2g} ({value.size} paths)"
