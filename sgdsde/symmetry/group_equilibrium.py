"""The noise equilibrium of several symmetries at once, commuting or not: the lowest point of F on the orbit of a group.

    F(θ) = 2γ‖θ‖² + σ²ρ Tr Σ(θ),     d/dλ F(e^{λA}θ) at 0 = 4γC_A - 2σ²ρTr[ΣA] = -dC_A/dt,

so that every charge of the group rests exactly where F is stationary on the orbit. F is convex along λ ↦ e^{λA}θ for
every symmetric A (`sgdsde.symmetry.equilibrium` has the one-dimensional case), its lowest point is unique up to the
group elements that change neither θ's norms nor the noise's, and Newton's method finds it: with
A_a of the family, at each iterate

    K_ab = ⟨A_aθ, A_bθ⟩,   M_ab = ½Tr[Σ(A_aA_b + A_bA_a)],   ∇²F = 8γK + 4σ²ρM,

and θ ↦ exp(Σ_a λ_a A_a)θ re-centres, which is what makes the family's commutators harmless. F is the potential of the
slow motion along orbits, too (Ziyin et al. 2024, arXiv 2402.07193, theorem 4.3, has one generator).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra import Generator
from sgdsde.models.model import Model
from sgdsde.symmetry.charges import as_problem
from sgdsde.symmetry.directions import as_named
from sgdsde.symmetry.projection import _check_symmetry

__all__ = ["GroupEquilibrium", "group_equilibrium", "orbit_potential"]

EPS = float(np.finfo(float).eps)
FAR = 40.0
"""‖log g‖ beyond which an orbit is taken to have no lowest point: e^{40} is 1e17."""
LONGEST = 1.0
"""Of one step of Newton's method, in ‖log g‖."""
LARGEST = 1e150
DONE = 1e-13
"""Of Newton's last step, in the metric of ∇²F relative to F."""
STALLED = 1e-6
"""The same, above which a step that does not let F fall is none of a symmetry."""
FLAT = 1e-10
"""Curvature relative to the largest below which a direction is not determined."""


@dataclass(frozen=True, eq=False)
class GroupEquilibrium:
    """Where all charges of a family rest on one orbit of its group."""

    status: str
    """'finite', 'infinite' (F falls for ever along the orbit), 'degenerate' (F is the same on the whole orbit), or
    'cut off' after `most` iterations."""
    theta: np.ndarray = field(repr=False)
    """(d,): the equilibrium; where F falls for ever the last point reached."""
    charges: dict[str, float]
    """C_a there."""
    charges_at_start: dict[str, float]
    potential: float
    """F there."""
    potential_at_start: float
    undetermined: int
    """Independent directions of the family that move neither θ nor the noise at the equilibrium: it may be anywhere
    along them (the stabiliser), beside the compact subgroup."""
    relaxation_rates: np.ndarray
    """Eigenvalues of κ = 4γ + 2σ²ρMK⁻¹, at which small displacements of the charges decay, ascending."""
    residual: float
    """max_a |dC_a/dt| / (2‖A_a‖F) there: rounding, unless the iteration was cut off."""
    iterations: int
    steps: tuple[Generator, ...] = field(repr=False)
    """Σ_a λ_aA_a of each iteration, the first one first: θ* = … e^{S_2} e^{S_1} θ."""

    def act(self, theta: Any) -> np.ndarray:
        """The same group element on other states (..., d)."""
        for step in self.steps:
            theta = step.exp(1.0, theta)
        return np.asarray(theta)


def orbit_potential(problem: Any, theta: Any) -> Any:
    """F(θ) = 2γ‖θ‖² + σ²ρ Tr Σ(θ), (...) for θ (..., d): what slow motion along orbits descends.

    Parameters
    ----------
    problem : SGD
    theta : array_like of shape (..., d)

    Examples
    --------
    >>> import sgdsde as sg
    >>> problem = sg.SGD(sg.models.Product(), sg.models.uw_label(), learning_rate=0.1, gamma=0.5)
    >>> orbit_potential(problem, [[2.0, 1.0], [2.0**0.5, 2.0**0.5]])
    array([6. , 4.8])
    """
    problem = as_problem(problem)
    theta = _check.array("theta", theta, finite=False)
    flat = np.array([_potential(problem, x) for x in theta.reshape(-1, theta.shape[-1])])
    return float(flat[0]) if theta.ndim == 1 else flat.reshape(theta.shape[:-1])


def group_equilibrium(problem: Any, theta: Any, generators: Any, *, most: int = 200) -> GroupEquilibrium:
    """The point of the orbit Gθ at which 2γC_a = σ²ρ Tr[ΣA_a] for every A_a of a family, G the group they generate.

    Parameters
    ----------
    problem : SGD
        With γ >= 0.
    theta : array_like of shape (d,)
    generators : mapping, sequence, Generator or Model
        Symmetric, each of a symmetry of every sample's loss; they need neither commute nor be independent. Of a model,
        and of its `symmetries()`, all that are linear and symmetric: of a `DeepLinear` every B at every hidden layer.
    most : int
        Iterations.

    Returns
    -------
    GroupEquilibrium

    Raises
    ------
    ArgumentError
        γ < 0, a generator that is not symmetric, θ not one state.

    Notes
    -----
    An iteration costs two passes over the per-sample gradients and N K products A_a g_i, K the size of the family; five
    to ten iterations reach rounding, more from far away. The minimum is unique but for what `undetermined` counts, and
    rotations in the group, which change neither F nor the eigenvalues of the charges.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> model = sg.models.DeepLinear([2, 2, 2])
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 50, 2))
    >>> problem = sg.SGD(model, X, Y, learning_rate=0.01, gamma=0.01)
    >>> found = group_equilibrium(problem, model.init(0), model)
    >>> found.status, found.undetermined, bool(found.residual < 1e-12)
    ('finite', 0, True)
    """
    problem, named = as_problem(problem), _family(generators)
    family = list(named.values())
    x = _check.array("theta", theta, (family[0].dim,))
    if problem.gamma < 0:
        raise ArgumentError(f"gamma must be at least 0 for a noise equilibrium, got {problem.gamma:g}")
    most = _check.count("most", most)
    if not isinstance(generators, Model) and (problem.n_samples or 0) > 0:
        for a in family:
            if a.norm > 0:
                _check_symmetry(problem, a, np.random.default_rng(1))
    with np.errstate(over="ignore", invalid="ignore"):
        size = _potential(problem, x)
    if not size < LARGEST:
        raise ArgumentError(
            f"theta must be of a size at which 2γ‖θ‖² + σ²ρTr Σ can be squared, got max|θ| = {np.abs(x).max():.3g}"
        )
    begin, steps, travelled = x, [], 0.0
    status, now = "cut off", _Local(problem, x, family)
    first = now.potential
    for _ in range(most):
        step, decrement = now.newton()
        if now.degenerate:
            status = "degenerate"
            break
        if decrement <= DONE**2 * now.potential:
            status = "finite"
            break
        moved = _line_search(problem, family, now, step, decrement)
        if moved is None:
            if decrement > STALLED**2 * now.potential:
                raise ArgumentError(
                    "generators must each keep every sample's loss: along their orbit Tr Σ does not change as it "
                    "would then (`check_symmetry` names the sample and the generator)"
                )
            status = "finite"  # F cannot fall any further in this precision
            break
        now, taken = moved
        steps.append(taken)
        travelled += taken.norm
        if travelled > FAR:
            status = "infinite"
            break
    end = now.theta
    return GroupEquilibrium(
        status,
        end,
        {name: float(a.quadratic(end)) for name, a in named.items()},
        {name: float(a.quadratic(begin)) for name, a in named.items()},
        now.potential,
        first,
        now.undetermined,
        now.relaxation_rates,
        now.residual,
        len(steps),
        tuple(steps),
    )


def _family(generators: Any) -> dict[str, Generator]:
    named = as_named(generators, charged=True)
    for name, a in named.items():
        if not a.is_symmetric:
            raise ArgumentError(f"generators must be symmetric, and {name!r} is not: rotations move no charge")
    return named


def _potential(problem: Any, x: np.ndarray) -> float:
    _, var = problem.gradient_moments(x)
    return float(2 * problem.gamma * (x @ x) + problem.noise_scale * var.sum())


def _rows(problem: Any, x: np.ndarray) -> Iterator[np.ndarray]:
    """Rows (n, d) with Σ = Σ_rows r rᵀ, a few at a time."""
    n = problem.samples.n
    if n:
        mean = problem.gradient(x)
        for rows in problem.model._centred(x, mean, problem.samples):
            yield rows / np.sqrt(n)
        return
    w, v = np.linalg.eigh(problem.covariance(x))
    yield np.sqrt(np.maximum(w, 0.0))[:, None] * v.T


class _Local:
    """F, its slope and curvature in the family at one θ."""

    def __init__(self, problem: Any, theta: np.ndarray, family: list[Generator]) -> None:
        self.problem, self.theta, self.family = problem, theta, family
        k, gamma, noise = len(family), float(problem.gamma), float(problem.noise_scale)
        pull, m, trace = np.zeros(k), np.zeros((k, k)), 0.0
        for rows in _rows(problem, theta):
            moved = np.stack([a.apply(rows) for a in family])
            flat = moved.reshape(k, -1)
            pull += flat @ rows.ravel()
            m += flat @ flat.T
            trace += float(np.square(rows).sum())
        directions = np.stack([a.apply(theta) for a in family])
        self.k, self.m = directions @ directions.T, m
        self.potential = float(2 * gamma * (theta @ theta) + noise * trace)
        charges = directions @ theta
        self.slope = 4 * gamma * charges - 2 * noise * pull
        scale = 2 * self.potential * np.array([a.norm for a in family])
        self.residual = float(np.max(np.abs(self.slope) / np.where(scale > 0, scale, 1.0)))
        self.curvature = 8 * gamma * self.k + 4 * noise * m
        self.w, self.v = np.linalg.eigh(self.curvature)
        self.determined = self.w > FLAT * max(self.w[-1], 0.0)
        self.degenerate = not self.w[-1] > 0.0

    def newton(self) -> tuple[np.ndarray, float]:
        """-∇²F⁺∇F, and its squared length in ∇²F."""
        if self.degenerate:
            return np.zeros(len(self.family)), 0.0
        along = self.v[:, self.determined].T @ self.slope
        step = -self.v[:, self.determined] @ (along / self.w[self.determined])
        return step, float(np.sum(along**2 / self.w[self.determined]))

    @property
    def undetermined(self) -> int:
        """Flat directions, of those that the family has: linear combinations that are zero as matrices do not count."""
        return _rank(self.family) - int(self.determined.sum()) if not self.degenerate else _rank(self.family)

    @property
    def relaxation_rates(self) -> np.ndarray:
        gamma, noise = float(self.problem.gamma), float(self.problem.noise_scale)
        w, v = np.linalg.eigh(self.k)
        keep = w > FLAT * max(w[-1], 0.0)
        if not keep.any() or not w[-1] > 0:
            return np.zeros(0)
        root = v[:, keep] / np.sqrt(w[keep])
        return 4 * gamma + 2 * noise * np.linalg.eigvalsh(root.T @ self.m @ root)


def _rank(family: list[Generator]) -> int:
    """Of the generators as matrices, from what they do to as many random vectors as that may take."""
    rng = np.random.default_rng(0)
    probes = rng.normal(size=(3, family[0].dim))
    images = [a.apply(probes).ravel() for a in family]
    return int(np.linalg.matrix_rank(np.array(images)))


def _line_search(
    problem: Any, family: list[Generator], now: _Local, step: np.ndarray, decrement: float
) -> tuple[_Local, Generator] | None:
    """The first of the step and its halves that lets F fall by a tenth of what its slope promises."""
    whole = family[0] * step[0]
    for a, s in zip(family[1:], step[1:]):
        whole = whole + a * s
    share = min(1.0, LONGEST / whole.norm) if whole.norm > 0 else 1.0
    for _ in range(30):
        taken = whole * share
        theta = taken.exp(1.0, now.theta)
        there = _potential(problem, theta)
        if there <= now.potential - 0.1 * share * decrement or (
            share == 1.0 and decrement < 1e-9 * now.potential and there <= now.potential * (1 + 64 * EPS)
        ):
            return _Local(problem, theta, family), taken
        share /= 2
    return None
