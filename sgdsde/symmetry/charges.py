"""Charge: C(θ) = θᵀAθ + 2bᵀθ of J(θ) = Aθ + b, A symmetric; its rate under SGD and its SDE, how fast it relaxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, Generator, linear_and_shift
from sgdsde.run.watching import Watcher

__all__ = ["Charge", "ChargeTerms", "as_generator", "as_problem", "eigen_moments", "gradient_form", "pulls"]


class ChargeTerms(NamedTuple):
    """Exact mean change of a charge per unit time for steps of length h, in its parts."""

    decay: Any
    """-4γC + 4hγ²C; of an affine generator -4γθᵀ(Aθ + b) + 4hγ²θᵀAθ."""
    noise: Any
    """2σ²ρ Tr[ΣA]."""
    gradient: Any
    """h ∇LᵀA∇L; of an affine generator h(∇LᵀA∇L - 4γbᵀ∇L)."""

    @property
    def total(self) -> Any:
        """Their sum: E[ΔC]/h."""
        return self.decay + self.noise + self.gradient


class Charge:
    """The charge C(θ) = θᵀAθ of a symmetry θ ↦ e^{λA}θ with A = Aᵀ.

    When every ℓ_i keeps its value along e^{λA}θ, the SDE of SGD moves C without noise: dC = (-4γC + 2σ²ρTr[ΣA])dt.
    The values below do not check that; `check_symmetry` does.

    An `Affine` generator J = Aθ + b has C(θ) = θᵀAθ + 2bᵀθ, ∇C = 2J. Its law is dC = (-4γθ·J + 2σ²ρTr[ΣA])dt, and one
    step of SGD or of Euler-Maruyama, v the step without decay, h its length, a = 1 - 2γh, has exactly

        C' = a²θᵀAθ + 2a bᵀθ + vᵀAv + 4γh bᵀv    (J·v = 0 turns the cross terms into the last one).

    A translation, A = 0, also has bᵀv = 0, so that every step takes its charge to a times what it was.

    Parameters
    ----------
    generator : Generator, Affine or (d, d) array_like
        Symmetric A.
    name : str, optional
        For tables; default the generator's.

    Raises
    ------
    ArgumentError
        A is not symmetric. For an antisymmetric A, θᵀAθ is zero for every θ, and what its symmetry keeps is the
        identity θᵀAᵀ dθ = 0 (the polar angle in each rotated plane).

    Examples
    --------
    >>> charge = Charge(Generator.diagonal([1.0, -1.0]))
    >>> charge([3.0, 2.0])
    5.0
    >>> charge([[3.0, 2.0], [1.0, 1.0]])
    array([5., 0.])
    >>> Charge(Affine(Generator.diagonal([1.0, -1.0]), [1.0, 1.0]))([3.0, 2.0])
    15.0

    In the methods below `problem` is an `SGD` problem, θ has shape (..., d), results have shape (...), a float for one
    θ, and each θ costs one pass over the per-sample gradients.
    """

    def __init__(self, generator: Any, name: str | None = None) -> None:
        generator = as_generator(generator, affine=True)
        if not generator.is_symmetric:
            if generator.is_antisymmetric:
                raise ArgumentError(
                    f"generator must be symmetric: {generator!r} is antisymmetric, so θᵀAθ ≡ 0 and there is no such "
                    "charge. What its symmetry keeps is the angular identity θᵀAᵀdθ = 0 along every step"
                )
            raise ArgumentError(
                f"generator must be symmetric for a charge θᵀAθ, got {generator!r}: its gradient (A + Aᵀ)θ is not 2Aθ"
            )
        self.generator = generator
        self.name = str(name) if name is not None else f"C[{generator.name}]" if generator.name else "charge"

    def __repr__(self) -> str:
        return f"Charge({self.generator!r})"

    def __call__(self, theta: Any) -> Any:
        """C(θ) = θᵀAθ (+ 2bᵀθ) for θ of shape (..., d)."""
        return self.generator.quadratic(theta)

    def rate(self, problem: Any, theta: Any) -> Any:
        """-4γC + 2σ²ρ Tr[ΣA], the drift of C under the SDE; -4γθ·J in place of -4γC for an affine generator."""
        return _over_states(theta, lambda x: self._drift(problem, x))

    def residual(self, problem: Any, theta: Any) -> Any:
        """2γC - σ²ρ Tr[ΣA]: zero at the noise equilibrium, -rate/2 elsewhere; defined at γ = 0 as well."""
        return _over_states(theta, lambda x: -0.5 * self._drift(problem, x))

    def terms(self, problem: Any, theta: Any, dt: float | None = None) -> ChargeTerms:
        """E[ΔC]/h split into decay, noise and gradient term, exact for SGD and for Euler-Maruyama.

        Parameters
        ----------
        problem : SGD
        theta : array_like of shape (..., d)
        dt : float, optional
            Step h; default the learning rate, for which SGD and Euler-Maruyama have the same mean.

        Notes
        -----
        E[ΔC] = ((1-2hγ)² - 1)C + h²∇LᵀA∇L + 2σ²ρh Tr[ΣA]; for SGD 2σ²ρh = η²ρ/S. With b the mean of the law above.
        """
        h = float(as_problem(problem).learning_rate) if dt is None else _check.positive("dt", dt)
        gamma = float(problem.gamma)

        def parts(x: np.ndarray) -> np.ndarray:
            mean, var = eigen_moments(problem, self.generator, x)
            mu = self.generator.eigenvalues
            pull, square = pulls(self.generator, x)
            decay = -4.0 * gamma * pull + 4.0 * h * gamma**2 * square
            gradient = h * gradient_form(self.generator, mean, gamma)
            return np.array([decay, 2.0 * float(problem.noise_scale) * (mu @ var), gradient])

        values = np.moveaxis(_over_states(theta, parts, 3), -1, 0)
        return ChargeTerms(*(float(v) if v.ndim == 0 else v for v in values))

    def discrete_rate(self, problem: Any, theta: Any, dt: float | None = None) -> Any:
        """E[ΔC | θ]/h of one step h of SGD or Euler-Maruyama: `terms(...).total`; times h for a step."""
        return self.terms(problem, theta, dt).total

    def relaxation_rate(self, problem: Any, theta: Any) -> Any:
        """κ = 4γ + 2σ²ρ Tr[ΣA²]/‖Aθ‖², the rate at which C approaches its equilibrium on the orbit.

        NaN where Aθ = 0: the orbit is a point there. With b, (2γ(2Aθ + b)·J + 2σ²ρ Tr[ΣA²])/‖J‖²: 2γ of a translation.
        """

        def kappa(x: np.ndarray) -> float:
            _, var = eigen_moments(problem, self.generator, x)
            spread = float(self.generator.eigenvalues**2 @ var)
            j = self.generator.apply(x)
            speed = float(np.sum(j**2))
            if speed == 0.0:
                return np.nan
            linear, shift = linear_and_shift(self.generator)
            decay = 4.0 if shift is None else 2.0 * float((linear.apply(x) + j) @ j) / speed
            return decay * float(problem.gamma) + 2.0 * float(problem.noise_scale) * spread / speed

        return _over_states(theta, kappa)

    def _drift(self, problem: Any, x: np.ndarray) -> float:
        _, var = eigen_moments(problem, self.generator, x)
        noise = 2.0 * float(problem.noise_scale) * float(self.generator.eigenvalues @ var)
        return noise - 4.0 * float(problem.gamma) * pulls(self.generator, x)[0]

    def __observe__(self, equation: Any) -> Watcher:
        """C at the saved times of a run: `observe=charge`."""
        from sgdsde.symmetry import forms

        if equation.dim != self.generator.dim:
            raise ArgumentError(f"{self.name} acts on {self.generator.dim} components, the equation has {equation.dim}")
        return Watcher(forms.observe, forms.encode(self.generator), np.zeros(1), 1)


def pulls(generator: Generator | Affine, x: np.ndarray) -> tuple[float, float]:
    """θ·(Aθ + b), what a small decay acts on, and θᵀAθ: equal for a linear generator."""
    linear, shift = linear_and_shift(generator)
    square = linear.quadratic(x)
    return (square if shift is None else square + float(x @ shift)), square


def gradient_form(generator: Generator | Affine, mean: np.ndarray, gamma: float) -> float:
    """∇LᵀA∇L - 4γbᵀ∇L from ∇L in A's eigenbasis."""
    value = float(generator.eigenvalues @ mean**2)
    _, shift = linear_and_shift(generator)
    return value if shift is None else value - 4.0 * gamma * float(generator.to_eigenbasis(shift) @ mean)


@overload
def as_generator(value: Any, name: str = ..., *, affine: Literal[False] = ...) -> Generator: ...


@overload
def as_generator(value: Any, name: str = ..., *, affine: bool) -> Any: ...


def as_generator(value: Any, name: str = "generator", *, affine: bool = False) -> Any:
    """A Generator, or a square matrix made into one; an Affine one only where that is asked for."""
    if isinstance(value, Charge):
        value = value.generator
    if isinstance(value, Generator) or (affine and isinstance(value, Affine)):
        return value
    if isinstance(value, Affine):
        raise ArgumentError(
            f"{name} must be linear here, got {value!r}: one with a constant b is for check_symmetry, Charge, ChargeLaw"
        )
    if isinstance(value, (np.ndarray, list, tuple)):
        return Generator.from_matrix(_check.array(name, value, ("d", "d")))
    raise ArgumentError(f"{name} must be a Generator or a square matrix, got {_check.show(value)}")


def as_problem(value: Any, *needs: str) -> Any:
    """An `SGD` problem, or what has a model, gradients and numbers like one."""
    if not all(hasattr(value, name) for name in ("model", *(needs or ("gradient_moments", "gamma", "noise_scale")))):
        raise ArgumentError(f"problem must be an SGD problem, got {_check.show(value)}")
    return value


def eigen_moments(problem: Any, generator: Generator | Affine, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the gradient in A's eigenbasis: Tr[ΣA] = Σ_k μ_k var_k, ∇LᵀA∇L = Σ_k μ_k mean_k²."""
    if as_problem(problem).model.dim != generator.dim:
        raise ArgumentError(
            f"generator must act on the {problem.model.dim} parameters of the problem, got dim {generator.dim}"
        )
    return problem.gradient_moments(theta, transform=generator.to_eigenbasis)


def _over_states(theta: Any, function: Callable[[np.ndarray], Any], rows: int | None = None) -> Any:
    """function(θ) for every θ of an array (..., d)."""
    theta = _check.array("theta", theta, finite=False)
    if theta.ndim == 0 or theta.shape[-1] == 0:
        raise ShapeError(f"theta must have shape (..., d), got {theta.shape}")
    lead = theta.shape[:-1]
    values = np.array([function(x) for x in theta.reshape(-1, theta.shape[-1])])
    values = values.reshape(lead if rows is None else (*lead, rows))
    return float(values) if values.ndim == 0 else values
