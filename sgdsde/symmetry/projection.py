"""OrbitProjection: after each step of any method, back along the orbit to where the charges must be."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._abi import TRACK
from sgdsde._address import address
from sgdsde._errors import OK, ArgumentError, ShapeError
from sgdsde.algebra import Diagonal, Generator, Sandwich
from sgdsde.run.watching import Watcher
from sgdsde.symmetry import forms
from sgdsde.symmetry.charges import Charge, as_problem, eigen_moments
from sgdsde.symmetry.checking import _losses, _typical_size
from sgdsde.symmetry.directions import as_named
from sgdsde.symmetry.law import ChargeLaw, _same

__all__ = ["OrbitProjection"]

RATES = ("start", "average")
EPS = float(np.finfo(float).eps)
REACH = 0.5
"""|λ|‖A‖ of the group elements with which symmetries are tried."""
PROBES = 8


class OrbitProjection:
    """A projection for `solve(..., project=)`: θ' ↦ gθ' with g in the symmetry group, so that charges obey their law.

    For symmetries e^{λA_a} of every sample's loss the SDE of SGD moves the charges C_a = θᵀA_aθ without noise, by
    dC_a = (-4γC_a + 2σ²ρTr[ΣA_a])dt. A step of a method adds an error to C_a, of Euler-Maruyama a martingale of strong
    order ½. This replaces θ' by exp(Σλ_aA_a)θ' (a product of such, where the A_a do not commute) with C_a(θ') equal to

        C_a(θ) + h φ(4γh)·(2σ²ρTr[ΣA_a] - 4γC_a(θ)),   φ(z) = (1 - e^{-z})/z,

    θ the state before the step: the exponential Euler method for the charges' own equation, of order 1 and without
    noise of its own; without gradient noise it is exact. What error is left in a charge comes from this and from the
    error of θ in the rate. No sample's loss changes, and the order of θ is kept, for what is corrected is no larger
    than the error of a step.

    Parameters
    ----------
    generators : Generator, Charge, a sequence or mapping of them, or Model
        Symmetric: one, or several, commuting or not, such as `DeepLinear.generator(B)` for several B. Of a model, and
        of its `symmetries()`, those that are linear and symmetric. One that is a linear combination of those before it
        is left out, for its charge follows.
    problem : SGD, optional
        Whose SDE is integrated: γ, the noise and Σ are read from it. None keeps the charges as they are: for an
        equation of which they are constants of the motion, such as `scaling(3)` on a sphere.
    rate : {"start", "average"}
        Where Tr[ΣA_a] is taken: at the state before the step, or the average of that and of the state after it, which
        halves the error of the charge and costs twice as much.

    Raises
    ------
    ArgumentError
        A generator is not symmetric (for an antisymmetric one θᵀAθ is zero always), is zero, is not a symmetry of the
        problem's losses, or the charges are not independent at a general state, so that not all of them can be chosen.

    Notes
    -----
    Newton's method on the group, column by column to rounding, 2 to 4 iterations of K products A_aθ and a K × K
    system; e^{λA} acts by layers, without a d × d matrix. Tr[ΣA_a] costs a pass over all samples for each generator,
    for those of `DeepLinear` one pass for all: in compiled code where the model has a kernel for the charge law of the
    generator, otherwise in Python. A path
    whose target cannot be reached on its orbit (‖θ‖² of a θ that is zero, say) stops with the status of a projection
    that did not converge, and keeps the state before the step.

    Examples
    --------
    >>> import numpy as np, sgdsde as sg
    >>> model = sg.models.Product()
    >>> problem = sg.SGD(model, sg.models.uw_label(), learning_rate=0.1)
    >>> projection = sg.OrbitProjection(model.symmetries(), problem)
    >>> projection.move([2.0, 1.0], 0.0)
    array([1.41421356, 1.41421356])
    >>> sol = sg.solve(problem.sde(), (0, 1), [2.0, 1.0], dt=0.05, rng=0, t_eval="steps", project=projection)
    >>> C = projection.charges[0](sol.y)
    >>> rate = projection.charges[0].rate(problem, sol.y)
    >>> bool(np.abs(np.diff(C) - 0.05 * rate[:-1]).max() < 1e-14)
    True
    """

    name = "orbit projection"

    def __init__(self, generators: Any, problem: Any = None, *, rate: str = "start") -> None:
        named = as_named(generators, charged=True)
        charges = [Charge(a.named(name)) for name, a in named.items()]
        self.rate = _check.choice("rate", rate, RATES)
        self.problem = None if problem is None else as_problem(problem)
        self.dim = charges[0].generator.dim
        for charge in charges:
            if charge.generator.norm == 0.0:
                raise ArgumentError(f"generators must not be zero, and {charge.generator!r} is")
        random = np.random.default_rng(0)
        if self.problem is not None:
            if problem.model.dim != self.dim:
                raise ArgumentError(f"generators act on {self.dim} components, the problem has {problem.model.dim}")
            if getattr(problem, "schedule", None) is not None:
                raise ArgumentError(
                    "problem must have one learning rate: the noise of a schedule changes along the run, and with it "
                    "the law of the charges; project the run over each rate, of problem.at_step(k), on its own"
                )
            for charge in charges:
                _check_symmetry(self.problem, charge.generator, random)
        kept = _independent([charge.generator for charge in charges], random)
        self.charges = tuple(charges[i] for i in kept)

    def __repr__(self) -> str:
        names = ", ".join(charge.generator.name for charge in self.charges)
        return f"OrbitProjection([{names}], {self.problem!r}{'' if self.rate == 'start' else ', rate=' + self.rate})"

    @property
    def generators(self) -> tuple[Generator, ...]:
        """The A_a of the charges that are projected."""
        return tuple(charge.generator for charge in self.charges)

    def move(self, theta: Any, charges: Any) -> np.ndarray:
        """The point gθ of the orbit at which the charges have given values.

        Parameters
        ----------
        theta : array_like of shape (..., d)
        charges : array_like of shape (..., K), or (...) for one generator
            Values of `self.charges`, in that order; one set for all θ, or one for each.

        Raises
        ------
        ArgumentError
            No point of the orbit of some θ has these charges, or Newton's method did not find it.

        Returns
        -------
        ndarray of shape (..., d)
        """
        from sgdsde.symmetry._projection_kernels import move
        from sgdsde.symmetry._projection_solver import solver_size

        theta, k = _check.array("theta", theta), len(self.charges)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        goal = _check.array("charges", charges)
        if k == 1 and goal.shape[-1:] != (1,):
            goal = goal[..., None]
        try:
            goal = np.broadcast_to(goal, (*theta.shape[:-1], k)).reshape(-1, k)
        except ValueError:
            wanted = (*theta.shape[:-1], k)
            raise ShapeError(f"charges must have a shape that fits {wanted}, got {np.shape(charges)}") from None
        x = np.array(theta.reshape(-1, self.dim).T, order="C")
        status = np.zeros(len(goal), np.int64)
        work = np.empty(solver_size.py_func(self.dim, k))
        move(x, np.array(goal.T, order="C"), status, self._numbers([]), work)
        if (status != OK).any():
            i = int(np.argmax(status != OK))
            raise ArgumentError(f"charges {goal[i]} are not those of a point that was found on the orbit of theta")
        return x.T.reshape(theta.shape)

    def __project__(self, equation: Any, scheme: Any) -> Watcher:
        """The PROJECT kernel; asked for by the runner."""
        from sgdsde.symmetry._projection_kernels import project
        from sgdsde.symmetry._projection_solver import solver_size

        if equation.dim != self.dim:
            raise ArgumentError(f"project: generators act on {self.dim} components, the equation has {equation.dim}")
        if equation.calculus == "discrete":
            raise ArgumentError("project: the charge of discrete SGD has a noise of its own, and is not projected")
        tracks, laws = [], []
        if self.problem is not None:
            if not _same(self.problem, getattr(equation, "problem", self.problem)):
                raise ArgumentError(f"project: the law is of {self.problem!r}, but the run is of {equation.problem!r}")
            if getattr(equation, "order", 1) != 1:
                raise ArgumentError("project: the law of a charge is of the SDE of order 1, and this is of order 2")
            self._check_factor(self.problem, equation)
            if self.problem.noise_scale > 0.0:
                laws = [ChargeLaw(charge, self.problem) for charge in self.charges]
                tracks = _together(self.problem, self.generators) or [_track(law) for law in laws]
        k, data = len(self.charges), np.zeros(0)
        for track in tracks:
            data = track.data if track.data.size > data.size else data  # of those that read any, the problem's
        fixed, per_path = (max((track.work[i] for track in tracks), default=0) for i in (0, 1))
        work = max(fixed, solver_size.py_func(self.dim, k)), per_path + k + max(k, _rows())
        return Watcher(project, self._numbers(tracks), data, 0, work, (tracks, laws))

    def _numbers(self, tracks: list[Watcher]) -> np.ndarray:
        """p of the kernels."""
        from sgdsde.symmetry._projection_solver import HEADER, ROW

        k = len(self.charges)
        gamma = 0.0 if self.problem is None else float(self.problem.gamma)
        strength = 0.0 if self.problem is None or not tracks else 2.0 * float(self.problem.noise_scale)
        plain = [_plain(a) for a in self.generators]
        one = k == 1 and len(plain[0].parts) == 1 and isinstance(plain[0].parts[0][1], Diagonal)
        head = [float(k), 4.0 * gamma, strength, float(self.rate == "average"), float(one), float(0 < len(tracks) < k)]
        forms_ = [forms.encode(a) for a in plain]
        numbers = [track.p for track in tracks] + [np.zeros(0)] * (k - len(tracks))
        table, at = np.zeros((k, ROW)), HEADER + k * ROW
        for a in range(k):
            words = address(tracks[a].kernel, TRACK) if a < len(tracks) else (0, 0, 0)
            start = at + forms_[a].size
            table[a] = self.generators[a].norm, at, start, numbers[a].size, *words
            at = start + numbers[a].size
        pairs = [part for pair in zip(forms_, numbers, strict=True) for part in pair]
        return np.concatenate([head, table.ravel(), *pairs])

    def _check_factor(self, problem: Any, equation: Any) -> None:
        """Whether the noise of this equation has the charge law: FᵀA_aθ = 0 and Tr[FFᵀA_a] = Tr[ΣA_a]."""
        factor = getattr(equation, "factor", None)
        if factor is None or factor.kind == "native" or factor.name in ("gram", "cholesky"):
            return
        random = np.random.default_rng(1)
        theta = _typical_size(problem, random) * random.standard_normal(self.dim)
        F = problem.factor(theta, factor.value)
        for a in self.generators:
            mean, var = eigen_moments(problem, a, theta)
            size = a.norm * (float(np.sum(F * F)) + float(var.sum()))
            off = abs(float(np.sum(F * a.apply(F.T).T)) - float(a.eigenvalues @ var))
            along = float(np.linalg.norm(F.T @ a.apply(theta))) / (np.linalg.norm(F) * np.linalg.norm(a.apply(theta)))
            if off > 1e-6 * size or along > 1e-6:
                raise ArgumentError(
                    f"project: with the factor {factor.name!r} the charge of {a.name or 'A'} does not follow its law, "
                    "for which the noise needs FFᵀ = Σ and no part along Aθ; use a factor of Σ, such as the default"
                )


def _plain(a: Generator) -> Generator:
    """The same generator as one diagonal of d numbers, if it is diagonal in whatever structure it has."""
    mu = np.zeros(a.dim)
    for start, block in a.parts:
        diagonal = isinstance(block, Diagonal)
        if isinstance(block, Sandwich):
            diagonal = all(m is None or np.array_equal(m, np.diag(np.diag(m))) for m in (block.left, block.right))
        if not diagonal:
            return a
        mu[start : start + block.size] = block.apply(np.ones(block.size))
    return Generator.diagonal(mu, a.name)


def _rows() -> int:
    from sgdsde.models.charge_rows import CHARGE_ROWS

    return CHARGE_ROWS


def _together(problem: Any, generators: tuple[Generator, ...]) -> list[Watcher]:
    """One kernel for the traces of all of several generators, where the model has one."""
    together = getattr(problem.model, "charge_traces", None)
    found = together(generators, problem.X, problem.Y) if together is not None and len(generators) > 1 else None
    return [] if found is None else [found]


def _track(law: ChargeLaw) -> Watcher:
    """The TRACK kernel of a law, whatever the method that is run."""
    problem = law.problem
    watcher = problem.model.charge_track(law.charge.generator, float(problem.gamma), problem.X, problem.Y)
    if watcher is None:
        from sgdsde.symmetry.interpreted import interpreted_track

        watcher = interpreted_track(law)
    return watcher


def _check_symmetry(problem: Any, a: Generator, random: np.random.Generator) -> None:
    """Whether e^{±λA} keeps the loss of every sample at a random state: that is what a projection relies on."""
    theta = _typical_size(problem, random) * random.standard_normal(a.dim)
    before = _losses(problem, theta)
    for lam in (REACH / a.norm, -REACH / a.norm):
        off = np.abs(_losses(problem, a.exp(lam, theta)) - before)
        if not (off <= 1e-9 * (1.0 + np.abs(before))).all():
            i = int(np.argmax(off))
            raise ArgumentError(
                f"generators must be symmetries of every sample's loss, and {a!r} is not: |ℓ_i(e^(λA)θ) - ℓ_i(θ)| = "
                f"{off[i]:.3g} for sample {i} at λ = {lam:.3g}; sg.check_symmetry(problem, generator) says more"
            )


def _independent(generators: list[Generator], random: np.random.Generator) -> list[int]:
    """Generators that none before them contain; an error where their charges depend on each other at every state."""
    states = random.standard_normal((PROBES, generators[0].dim))
    rows = np.array([a.apply(states).ravel() / a.norm for a in generators])
    kept, basis = [], np.zeros((0, rows.shape[1]))
    for i, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest -= basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if size > 1e-10 * np.linalg.norm(row):
            kept.append(i)
            basis = np.vstack([basis, rest / size])
    one = np.array([generators[i].apply(states[0]) / generators[i].norm for i in kept])
    rank = int(np.linalg.matrix_rank(one, tol=1e-10 * np.linalg.norm(one)))
    if rank < len(kept):
        raise ArgumentError(
            f"generators must have independent charges: of these {len(kept)} only {rank} can be chosen at a state "
            "(a hidden layer wider than inputs and outputs together ties them to each other); give fewer"
        )
    return kept
