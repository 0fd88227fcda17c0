"""NoetherCharge: C_J with ∇C_J = J, for a symmetry whose infinitesimal action J(θ) need not be linear."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.run.watching import Watcher
from sgdsde.symmetry import noether_law
from sgdsde.symmetry.charges import ChargeTerms, as_problem
from sgdsde.symmetry.noether_activations import elementwise_field
from sgdsde.symmetry.noether_checking import TangencyReport, check_tangency
from sgdsde.symmetry.noether_fields import AffineField, Curl, FunctionField, as_field
from sgdsde.symmetry.noether_line import line_integral
from sgdsde.symmetry.noether_report import NoetherReport

__all__ = ["NoetherCharge"]


class NoetherCharge:
    """The charge C_J of a symmetry Q_λ with J(θ) = dQ_λ(θ)/dλ at λ = 0, where J is a gradient: ∇C_J = J.

    When J(θ)·∇ℓ_i(θ) = 0 for every sample (`check`), the SDE of SGD moves C_J without noise,

        dC_J = (-2γθ·J + σ²ρ Tr[Σ∇J]) dt.

    Such a function exists, on a domain without holes, exactly where ∂_iJ_j = ∂_jJ_i for all i and j. That is tested,
    and a J that fails has no charge; what it has is the Stratonovich increment J∘dθ, which obeys the same law
    (`circulation`).

    Parameters
    ----------
    J : callable, Generator, Affine, pair (A, b) or (d, d) array_like
        θ (d,) -> (d,); or J = Aθ + b, whose charge is ½θᵀAθ + bᵀθ: half of that of `Charge`.
    dim : int, optional
        d, for a J that is a function.
    jacobian : callable, optional
        θ -> ∇J (d, d), row i and column j being ∂_jJ_i; central differences of J without.
    potential : callable, optional
        θ -> C_J(θ), in closed form; compared with the line integral at `states`. Without, and for a function, values
        are line integrals of J from `origin`, where they are zero.
    origin : array_like of shape (d,), optional
        Default 0. J has to be defined on the straight line from there to θ, its ends apart.
    states : array_like of shape (n, d), optional
        Where J is tried; default four normal ones.
    name : str, optional
    rtol : float
        Of the line integral, relative to ∫|J·dθ|.

    Raises
    ------
    ModelError
        J is not a gradient (the message names the pair i, j and both derivatives), is not finite at a state tried, or
        does not agree with `jacobian` or `potential`.

    Notes
    -----
    The test is local and of some states: it cannot see a hole. J = (-y, x)/(x² + y²) passes, and its line integral is
    the angle, which grows by 2π around the origin: values then depend on the way (`via`). On the whole of R^d there are
    no holes.

    A rate costs one pass over the per-sample gradients, with two calls of J for each of min(N, d) directions where
    there is no Jacobian. `NoetherCharge.elementwise` makes the charges of tanh, sigmoid, ReLU and linear units.

    Examples
    --------
    >>> charge = NoetherCharge(lambda x: np.array([x[0] * x[1] ** 2, x[0] ** 2 * x[1]]), dim=2)
    >>> round(charge([2.0, 3.0]), 9)
    18.0
    >>> NoetherCharge(lambda x: np.array([-x[1], x[0]]), dim=2)
    Traceback (most recent call last):
    ...
    sgdsde._errors.ModelError: J is not a gradient: ∂_0J_1 = 1 and ∂_1J_0 = -1 ...
    """

    def __init__(
        self,
        J: Any,
        dim: int | None = None,
        *,
        jacobian: Any = None,
        potential: Any = None,
        origin: Any = None,
        states: Any = None,
        name: str | None = None,
        rtol: float = 1e-10,
    ) -> None:
        self.field = as_field(J, dim, jacobian, name)
        self.dim = self.field.dim
        self.name = str(name) if name is not None else f"C[{self.field.name}]"
        self.rtol = _check.positive("rtol", rtol)
        self.origin = np.zeros(self.dim) if origin is None else _check.array("origin", origin, (self.dim,))
        if potential is not None and not callable(potential):
            raise ArgumentError(f"potential must be a function θ -> C(θ), got {_check.show(potential)}")
        self._potential = potential
        if states is None:
            tried = self.origin + np.random.default_rng(0).standard_normal((4, self.dim))
        else:
            tried = _check.array("states", np.atleast_2d(np.asarray(states)), ("n", self.dim))
        for x in tried[:1] if isinstance(self.field, AffineField) else tried:
            self._try(x)
        if potential is not None:
            self._try_potential(tried)

    @classmethod
    def elementwise(
        cls, problem: Any, unit: int | None = None, *, activation: str | None = None, name: str | None = None
    ) -> NoetherCharge:
        """C = ½‖W2‖² - Σ P(W1), P' = σ/σ': the charge of Uσ(Vx) with orthogonal inputs, of all hidden units or of one.

        Parameters
        ----------
        problem : SGD or Model
            Of `models.MLP([n, h, …, m], biases=False)` or another model with matrices W1 and W2 (without b1): then of
            its first hidden layer. Different inputs have to be orthogonal, as one-hot ones are; of a model alone the
            inputs are the unit vectors. For inputs of length |x_i|, C = ½‖W2‖² - Σ_i P(W1 x_i)/|x_i|².
        unit : int, optional
            Number of a hidden unit.
        activation : {"identity", "tanh", "sigmoid", "relu", "leaky_relu"}, optional
            Default the model's own.

        Notes
        -----
        The symmetry is finite too: W2 ↦ e^λW2 and σ ↦ e^{-λ}σ (`flow`), for every λ >= 0.

        Examples
        --------
        >>> from sgdsde.models import MLP
        >>> charge = NoetherCharge.elementwise(MLP([2, 1, 1], "sigmoid", biases=False))
        >>> charge([0.0, 0.0, 3.0])  # 9/2 - 2(0 + e⁰)
        2.5
        """
        model = getattr(problem, "model", problem)
        field = elementwise_field(model, getattr(problem, "X", None), unit, activation)
        if unit is not None:
            field.name += f"[{unit}]"
        return cls(field, name=name)

    def __repr__(self) -> str:
        return f"NoetherCharge({self.name!r}, dim={self.dim})"

    # --- values -------------------------------------------------------------------------------------------------------

    def __call__(self, theta: Any, via: Any = None) -> Any:
        """C_J(θ) for θ of shape (..., d); a closed form, or ∫J·dθ from `origin`, straight or through points `via`."""
        theta = self._theta(theta)
        if via is None and (closed := self._closed(theta)) is not None:
            return closed
        between = np.empty((0, self.dim)) if via is None else _check.array("via", np.atleast_2d(via), ("n", self.dim))
        flat = theta.reshape(-1, self.dim)
        values = np.array([self._integral(np.vstack([self.origin, between, x])) for x in flat])
        return float(values[0]) if theta.ndim == 1 else values.reshape(theta.shape[:-1])

    def gradient(self, theta: Any) -> np.ndarray:
        """∇C_J = J(θ), (..., d)."""
        return self.field.apply(self._theta(theta))

    def jacobian(self, theta: Any) -> np.ndarray:
        """∇J (d, d), the Hessian of C_J, for one θ."""
        return self.field.jacobian(_check.array("theta", theta, (self.dim,)))

    def curl(self, theta: Any) -> Curl:
        """The pair (i, j) of the largest ∂_iJ_j - ∂_jJ_i at one θ."""
        return self.field.curl(_check.array("theta", theta, (self.dim,)))

    def flow(self, lam: float, theta: Any) -> np.ndarray:
        """Q_λ(θ): where the symmetry takes one θ. ArgumentError where its group does not reach λ."""
        return self.field.flow(_check.number("lam", lam), _check.array("theta", theta, (self.dim,)))

    # --- laws ---------------------------------------------------------------------------------------------------------

    def rate(self, problem: Any, theta: Any) -> Any:
        """-2γθ·J + σ²ρ Tr[Σ∇J], the drift of C_J under the SDE, (...) for θ (..., d)."""
        return self._each(theta, lambda x: noether_law.rate(self.field, problem, x))

    def residual(self, problem: Any, theta: Any) -> Any:
        """2γθ·J - σ²ρ Tr[Σ∇J]: zero at the noise equilibrium; for J = Aθ that of `Charge`."""
        return self._each(theta, lambda x: -noether_law.rate(self.field, problem, x))

    def terms(self, problem: Any, theta: Any, dt: float | None = None) -> ChargeTerms:
        """E[ΔC_J]/h of one step of SGD or Euler-Maruyama in its parts, exact for an affine J, else up to O(h²).

            decay + noise + gradient = -2γθ·J + σ²ρ Tr[Σ∇J] + (h/2)(∇L + 2γθ)ᵀ∇J(∇L + 2γθ)

        `dt` is h, by default the learning rate. `decay` is what is left without a gradient.
        """
        h = float(as_problem(problem, "gradient").learning_rate) if dt is None else _check.positive("dt", dt)
        theta = self._theta(theta)
        rows = np.array([noether_law.terms(self.field, problem, x, h) for x in theta.reshape(-1, self.dim)])
        parts = rows.T.reshape(3, *theta.shape[:-1])
        return ChargeTerms(*(float(v) if v.ndim == 0 else v for v in parts))

    def discrete_rate(self, problem: Any, theta: Any, dt: float | None = None) -> Any:
        """E[ΔC_J | θ]/h: `terms(...).total`."""
        return self.terms(problem, theta, dt).total

    def report(self, solution: Any, problem: Any = None) -> NoetherReport:
        """C_J along a run beside its law.

        Parameters
        ----------
        solution : Solution
            With its paths kept. With `t_eval="steps"` of SGD or Euler-Maruyama the prediction adds up the means of
            single steps; otherwise it is the rate of the SDE, integrated over the saved states.
        problem : SGD, optional
            Default the solution's.
        """
        run = noether_law.read_run(self.field, solution, problem)
        values = np.full(run.states.shape[:-1], np.nan)
        finite = np.isfinite(run.states).all(axis=-1)
        values[finite] = self(run.states[finite])
        rates, means = noether_law.along(self.field, run)
        return NoetherReport.of(self.name, run, values, rates, means)

    def check(self, problem: Any, theta: Any = None, rng: Any = 0, **options: Any) -> TangencyReport:
        """Is J·∇ℓ_i = 0 for every sample? See `check_tangency`."""
        return check_tangency(problem, self.field, theta, rng, **options)

    def __observe__(self, equation: Any) -> Watcher:
        """C_J at the saved times of a run: `observe=charge`. Compiled for an affine J, else a call into Python."""
        if equation.dim != self.dim:
            raise ArgumentError(f"{self.name} acts on {self.dim} components, the equation has {equation.dim}")
        if isinstance(self.field, AffineField) and self._potential is None:
            from sgdsde.symmetry import forms

            return Watcher(forms.observe, forms.encode(0.5 * self.field.generator), np.zeros(1), 1)
        from sgdsde.run.python_observer import PythonObserver, python_observe

        observer = PythonObserver(self.name, lambda t, y: self(y), (), 1)
        return Watcher(python_observe, observer.p(), np.zeros(1), 1, (0, 0), observer)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _closed(self, theta: np.ndarray) -> Any:
        if self._potential is None:
            return self.field.potential(theta)
        flat = [_check.number("what potential returns", self._potential(x.copy())) for x in theta.reshape(-1, self.dim)]
        return flat[0] if theta.ndim == 1 else np.array(flat).reshape(theta.shape[:-1])

    def _integral(self, points: np.ndarray) -> float:
        return line_integral(self.field.apply, points, self.rtol)

    def _theta(self, theta: Any) -> np.ndarray:
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"theta must have shape (..., {self.dim}), got {theta.shape}")
        return theta

    def _each(self, theta: Any, function: Any) -> Any:
        theta = self._theta(theta)
        values = np.array([function(x) for x in theta.reshape(-1, self.dim)]).reshape(theta.shape[:-1])
        return float(values) if values.ndim == 0 else values

    def _try(self, x: np.ndarray) -> None:
        """J is finite at x, its Jacobian the one given, and symmetric."""
        if not np.isfinite(self.field.apply(x)).all():
            raise ModelError(f"{self.field.name} is not finite at θ = {_check.show(x)}: give states= in its domain")
        if isinstance(self.field, FunctionField):
            self.field.check_jacobian(x)
        curl = self.field.curl(x)
        if not curl.vanishes:
            i, j = curl.i, curl.j
            raise ModelError(
                f"{self.field.name} is not a gradient: ∂_{i}J_{j} = {curl.ij:.6g} and ∂_{j}J_{i} = {curl.ji:.6g} at a "
                f"state tried (tolerance {curl.tolerance:.2g}), so no charge has it for a gradient. What it has is the "
                "Stratonovich circulation J∘dθ: circulation(solution, J)"
            )

    def _try_potential(self, tried: np.ndarray) -> None:
        values = [float(self._closed(x)) for x in tried]
        for first, second, a, b in zip(tried[:-1], tried[1:], values[:-1], values[1:]):
            wanted = self._integral(np.stack([first, second]))
            if abs(b - a - wanted) > 1e-7 * (abs(a) + abs(b) + abs(wanted)):
                raise ModelError(
                    f"potential must have J for its gradient: between two states it changes by {b - a:.9g}, "
                    f"the line integral of J by {wanted:.9g}"
                )
