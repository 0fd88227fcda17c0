"""Is A a symmetry of every sample's loss? Measured at several states, with a witness when it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.algebra import Affine, Generator, linear_and_shift
from sgdsde.random.stream import key_from
from sgdsde.symmetry.charges import as_generator, as_problem

__all__ = ["SymmetryReport", "Witness", "check_symmetry"]

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Witness:
    """One sample and one state at which the symmetry fails."""

    kind: str
    """'tangent': g_iᵀAθ is not zero; 'finite': ℓ_i(e^{λA}θ) is not ℓ_i(θ)."""
    sample: int
    theta: np.ndarray
    value: float
    """|g_iᵀAθ|, or |ℓ_i(e^{λA}θ) - ℓ_i(θ)|."""
    tolerance: float
    lam: float | None = None

    def __str__(self) -> str:
        what = (
            f"g_iᵀAθ = {self.value:.3g}"
            if self.lam is None
            else (f"|ℓ_i(e^(λA)θ) - ℓ_i(θ)| = {self.value:.3g} at λ = {self.lam:.3g}")
        )
        return f"sample {self.sample}: {what}, where rounding allows {self.tolerance:.3g}"


@dataclass(frozen=True)
class SymmetryReport:
    """Outcome of `check_symmetry`; true when the symmetry holds at every state tried."""

    holds: bool
    generator: Generator | Affine
    tangent: float
    """Largest |g_iᵀAθ| / tolerance over samples and states; at most 1 when the symmetry holds."""
    finite: float | None
    """Largest |ℓ_i(e^{λA}θ) - ℓ_i(θ)| / tolerance; None when the problem has no per-sample losses."""
    witness: Witness | None
    """The worst failure, None when there is none."""
    n_states: int
    n_samples: int

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        name = self.generator.name or "A"
        over = f"{self.n_states} states x {self.n_samples} samples"
        finite = "not tried" if self.finite is None else f"{self.finite:.2g}"
        head = f"{name} {'is' if self.holds else 'is not'} a symmetry of every sample's loss ({over})"
        lines = [head, f"  largest error / tolerance: tangent {self.tangent:.2g}, finite {finite}"]
        return "\n".join(lines + ([f"  {self.witness}"] if self.witness else []))


def check_symmetry(
    problem: Any,
    generator: Any,
    theta: Any = None,
    rng: Any = 0,
    *,
    n_states: int = 4,
    reach: float = 0.5,
) -> SymmetryReport:
    """Test ℓ_i(e^{λA}θ) = ℓ_i(θ) for every sample, at θ and at random states.

    Two tests at each state: the gradient of every sample is orthogonal to the orbit,
    |g_iᵀAθ| <= 64 d eps ‖A‖‖θ‖‖g_i‖, and the loss of every sample is kept by the finite group elements e^{±λA} with
    |λ|‖A‖ = `reach`, to 1e-12 d (1 + |ℓ_i|) e^{2|λ|‖A‖}. The second needs `problem.per_sample_losses`. Of an affine
    generator Aθ + b, ‖A‖‖θ‖ is ‖A‖‖θ‖ + ‖b‖ in both.
    A symmetry on average over samples, which is not enough for a charge without noise, fails. Where the data are a law
    without samples (`Population`), "sample 0" is the mean loss and the others are the columns of the noise factor.

    Parameters
    ----------
    problem : SGD
    generator : Generator, Affine or (d, d) array_like
        Any A; it need not be symmetric.
    theta : array_like of shape (d,) or (n, d), optional
        States to try first.
    rng : int or numpy.random.Generator
        Of the random states.
    n_states : int
        How many random states: normal, of the size of `model.init` where the model has one.
    reach : float
        |λ|‖A‖ of the finite test.

    Returns
    -------
    SymmetryReport
        True or false, with the worst ratio of each test and a witness (sample, state, value, tolerance) if it fails.

    Notes
    -----
    Costs one pass over the per-sample gradients, N·d doubles, for each state.
    """
    a = as_generator(generator, affine=True)
    if as_problem(problem, "per_sample_gradients").model.dim != a.dim:
        raise ArgumentError(f"generator must act on the {problem.model.dim} parameters of the problem, got dim {a.dim}")
    reach = _check.positive("reach", reach)
    random = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(key_from(rng))
    states = []
    if theta is not None:
        theta = _check.array("theta", theta)
        states = list(_check.array("theta", np.atleast_2d(theta) if theta.ndim else theta, ("n", a.dim)))
    size = _typical_size(problem, random)
    states += list(size * random.standard_normal((_check.count("n_states", n_states, least=0), a.dim)))
    if not states:
        raise ArgumentError("n_states must be at least 1 when no theta is given")
    _, shift = linear_and_shift(a)
    length = 0.0 if shift is None else float(np.linalg.norm(shift))
    has_losses = hasattr(problem, "per_sample_losses")
    tangent, finite, n_samples = 0.0, 0.0 if has_losses else None, 0
    worst: tuple[float, Witness | None] = (1.0, None)
    for x in states:
        g = _gradients(problem, x)
        n_samples = g.shape[0]
        direction = a.apply(x)
        value = np.abs(g @ direction)
        speed = a.norm * np.linalg.norm(x) + length
        tolerance = 64 * a.dim * EPS * speed * np.linalg.norm(g, axis=1)
        ratio, witness = _worst(value, tolerance, x, "tangent", None)
        tangent = max(tangent, ratio)
        worst = max(worst, (ratio, witness), key=lambda pair: pair[0])
        if finite is None:
            continue
        bound = a.norm + length / (float(np.linalg.norm(x)) or 1.0)
        lam = reach / bound if bound > 0 else 0.0
        losses = _losses(problem, x)
        tolerance = 1e-12 * a.dim * (1.0 + np.abs(losses)) * np.exp(2 * reach)
        for signed in (lam, -lam):
            value = np.abs(_losses(problem, a.exp(signed, x)) - losses)
            ratio, witness = _worst(value, tolerance, x, "finite", signed)
            finite = max(finite, ratio)
            worst = max(worst, (ratio, witness), key=lambda pair: pair[0])
    return SymmetryReport(worst[1] is None, a, tangent, finite, worst[1], len(states), n_samples)


def _gradients(problem: Any, x: np.ndarray) -> np.ndarray:
    """One row for each sample; of a law of the data, the mean gradient and the columns of the noise factor."""
    if getattr(problem, "n_samples", 1) is None:
        return np.vstack([problem.gradient(x), problem.factor(x).T])
    return np.asarray(problem.per_sample_gradients(x))


def _losses(problem: Any, x: np.ndarray) -> np.ndarray:
    if getattr(problem, "n_samples", 1) is None:
        return np.array([problem.loss(x)])
    return np.asarray(problem.per_sample_losses(x))


def _typical_size(problem: Any, random: np.random.Generator) -> float:
    if not hasattr(problem.model, "init"):
        return 1.0
    size = float(np.sqrt(np.mean(np.square(problem.model.init(rng=random)))))
    return size if np.isfinite(size) and size > 0 else 1.0


def _worst(
    value: np.ndarray, tolerance: np.ndarray, x: np.ndarray, kind: str, lam: float | None
) -> tuple[float, Witness | None]:
    """The largest value / tolerance, and a witness when it is above 1."""
    if not np.isfinite(value).all():
        raise ModelError(
            f"sample {int(np.argmin(np.isfinite(value)))} has a loss or gradient that is not finite at a state tried"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(value > 0, value / tolerance, 0.0)
    i = int(np.argmax(ratios))
    ratio = float(ratios[i])
    return ratio, Witness(kind, i, x, float(value[i]), float(tolerance[i]), lam) if ratio > 1 else None
