"""What follows from charges: functions f(Q) of them, and the charge of a step with a matrix for a learning rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.symmetry import noether_law
from sgdsde.symmetry.charges import ChargeTerms, as_generator, as_problem

__all__ = ["ChargeFunction", "PreconditionedCharge"]

EPS = float(np.finfo(float).eps)


class ChargeFunction:
    """f(C_1, …, C_k) of charges: kept where they are kept, and d f = Σ_a ∂_a f dC_a under the SDE.

    There is no second-order term of Itô's formula, because charges have no noise: f need not be linear for that. In one
    step of SGD Δf = Σ_a ∂_a f ΔC_a up to the square of ΔC, which is O(η⁴) at γ = 0.

    Parameters
    ----------
    charges : Charge, NoetherCharge, MatrixCharge, UnitCharges, or a sequence of them
    f : callable
        (k,) -> float, the k values in order, matrices raveled.
    gradient : callable, optional
        (k,) -> (k,); central differences of f without.
    name : str, optional

    Examples
    --------
    >>> from sgdsde.models import DeepLinear
    >>> from sgdsde.symmetry.matrix_charges import MatrixCharge
    >>> det = ChargeFunction(MatrixCharge(DeepLinear([1, 2, 1])), lambda q: q[0] * q[3] - q[1] * q[2], name="det Q")
    >>> det([3.0, 0.0, 2.0, 1.0])
    -9.0
    """

    def __init__(
        self, charges: Any, f: Callable[[np.ndarray], Any], gradient: Any = None, name: str | None = None
    ) -> None:
        self.charges = list(charges) if isinstance(charges, Sequence) else [charges]
        for charge in self.charges:
            if not (callable(charge) and hasattr(charge, "rate")):
                raise ArgumentError(f"charges must be charges with a value and a rate, got {_check.show(charge)}")
        if not callable(f) or not (gradient is None or callable(gradient)):
            raise ArgumentError("f and gradient must be functions of the values (k,) of the charges")
        self.f, self._gradient = f, gradient
        self.name = name if name is not None else getattr(f, "__name__", "f").replace("<lambda>", "f")

    def __repr__(self) -> str:
        return f"ChargeFunction({self.name} of {', '.join(str(c.name) for c in self.charges)})"

    def _values(self, theta: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ravel(charge(theta)) for charge in self.charges])

    def __call__(self, theta: Any) -> Any:
        """f of the charges at θ (..., d), shape (...)."""
        return self._each(theta, lambda x: _check.number("what f returns", self.f(self._values(x))))

    def rate(self, problem: Any, theta: Any) -> Any:
        """Σ_a ∂_a f · rate of C_a, the drift of f under the SDE, shape (...)."""

        def one(x: np.ndarray) -> float:
            slopes = self.slopes(self._values(x))
            return float(slopes @ np.concatenate([np.ravel(charge.rate(problem, x)) for charge in self.charges]))

        return self._each(theta, one)

    def discrete_rate(self, problem: Any, theta: Any, dt: float | None = None) -> Any:
        """Σ_a ∂_a f · E[ΔC_a]/h, the mean of Δf/h in a step up to the square of ΔC, shape (...)."""

        def one(x: np.ndarray) -> float:
            rates = [np.ravel(charge.discrete_rate(problem, x, dt)) for charge in self.charges]
            return float(self.slopes(self._values(x)) @ np.concatenate(rates))

        return self._each(theta, one)

    def slopes(self, values: np.ndarray) -> np.ndarray:
        """∂f at values (k,) of the charges."""
        if self._gradient is not None:
            return _check.array("what gradient returns", self._gradient(values.copy()), values.shape)
        steps = EPS ** (1 / 3) * (1.0 + np.abs(values))
        moved = np.diag(steps)
        apart = [float(self.f(values + row)) - float(self.f(values - row)) for row in moved]
        return np.array(apart) / (2.0 * steps)

    @staticmethod
    def _each(theta: Any, function: Any) -> Any:
        theta = _check.array("theta", theta, finite=False)
        if theta.ndim == 0:
            raise ShapeError(f"theta must have shape (..., d), got {theta.shape}")
        values = np.array([function(x) for x in theta.reshape(-1, theta.shape[-1])]).reshape(theta.shape[:-1])
        return float(values) if values.ndim == 0 else values


class PreconditionedCharge:
    """C = θᵀE⁻¹Mθ, the charge of a symmetry M under steps with a matrix E for a learning rate.

    θ' = (1 - 2ηγ)θ - ηEĝ (decay apart, as in AdamW) is plain SGD in the coordinates E^{-1/2}θ, where the generator is
    E^{-1/2}ME^{1/2}. There is a charge where that is symmetric, that is **where ME is**; for a symmetric M, where it
    commutes with E. Then for every batch

        C' = (1 - 2ηγ)²C + η² ĝᵀMEĝ,    dC = (-4γC + 2σ²ρ Tr[ΣME])dt.

    Diagonal rescalings keep their charge under any diagonal E; a generator that mixes two coordinates keeps it only
    where their rates are equal. An E that follows the gradients, as Adam's, is no constant, and there is none.

    Parameters
    ----------
    generator : Generator or (d, d) array_like
        M, of a symmetry of every sample's loss; not necessarily symmetric.
    E : (d,) or (d, d) array_like
        Relative learning rates, positive; or a symmetric positive definite matrix.

    Raises
    ------
    ArgumentError
        ME is not symmetric: the message names the pair of components.

    Examples
    --------
    >>> from sgdsde.algebra import rescaling
    >>> charge = PreconditionedCharge(rescaling(2), [1.0, 4.0])
    >>> charge([3.0, 2.0])
    8.0
    """

    def __init__(self, generator: Any, E: Any, name: str | None = None) -> None:
        self.generator = as_generator(generator)
        self.dim = self.generator.dim
        E = _check.array("E", E)
        if E.shape not in ((self.dim,), (self.dim, self.dim)):
            raise ShapeError(f"E must have shape ({self.dim},) or ({self.dim}, {self.dim}), got {E.shape}")
        if E.ndim == 2 and np.abs(E - E.T).max() > 64 * EPS * np.abs(E).max():
            raise ArgumentError("E must be symmetric")
        least = float(E.min() if E.ndim == 1 else np.linalg.eigvalsh(E)[0])
        if least <= 0:
            raise ArgumentError(
                f"E must be positive, its smallest {'entry' if E.ndim == 1 else 'eigenvalue'} is {least:g}"
            )
        self.E = E
        product = self._times(self.generator.matrix.T).T if E.ndim == 2 else self.generator.matrix * E
        apart = np.abs(product - product.T)
        i, j = sorted(int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))
        if apart[i, j] > 64 * self.dim * EPS * np.abs(product).max(initial=0.0):
            raise ArgumentError(
                f"E must make ME symmetric, and it has {product[i, j]:.6g} at ({i}, {j}), {product[j, i]:.6g} at "
                f"({j}, {i}): no charge; steps still have θᵀMᵀE⁻¹Δθ = 0 at γ = 0, at their start"
            )
        self.name = name if name is not None else f"C[{self.generator.name or 'M'}, E]"

    def __repr__(self) -> str:
        return f"PreconditionedCharge({self.generator!r})"

    def _times(self, rows: np.ndarray) -> np.ndarray:
        """E v for each row v."""
        return rows * self.E if self.E.ndim == 1 else rows @ self.E

    def __call__(self, theta: Any) -> Any:
        """θᵀE⁻¹Mθ for θ (..., d)."""
        theta = self._read(theta)
        flat = theta.reshape(-1, self.dim)
        divided = flat / self.E if self.E.ndim == 1 else np.linalg.solve(self.E, flat.T).T
        values = np.sum(divided * self.generator.apply(flat), axis=-1).reshape(theta.shape[:-1])
        return float(values) if values.ndim == 0 else values

    def form(self, rows: np.ndarray) -> np.ndarray:
        """gᵀMEg for rows g (..., d)."""
        return np.sum(rows * self.generator.apply(self._times(rows)), axis=-1)

    def step(self, theta: Any, gradient: Any, learning_rate: float, gamma: float = 0.0) -> Any:
        """C after θ' = (1 - 2ηγ)θ - ηEĝ: (1 - 2ηγ)²C + η²ĝᵀMEĝ."""
        eta = _check.positive("learning_rate", learning_rate)
        decay = 1.0 - 2.0 * eta * _check.number("gamma", gamma, least=0.0)
        value = decay**2 * np.asarray(self(theta)) + eta**2 * self.form(self._read(gradient, "gradient"))
        return float(value) if np.ndim(value) == 0 else value

    def rate(self, problem: Any, theta: Any) -> Any:
        """-4γC + 2σ²ρ Tr[ΣME]: of dθ = -(E∇L + 2γθ)dt + √(2σ²ρ)E G dW, shape (...)."""
        return self._each(problem, theta, lambda x: -4.0 * float(problem.gamma) * self(x) + self._noise(problem, x))

    def terms(self, problem: Any, theta: Any) -> ChargeTerms:
        """E[ΔC]/η of a step of SGD with the learning rate ηE, exactly, for one θ (d,)."""
        x = _check.array("theta", theta, (self.dim,))
        eta, gamma = float(as_problem(problem, "gradient").learning_rate), float(problem.gamma)
        decay = (-4.0 * gamma + 4.0 * eta * gamma**2) * self(x)
        return ChargeTerms(decay, self._noise(problem, x), eta * float(self.form(problem.gradient(x))))

    def _noise(self, problem: Any, x: np.ndarray) -> float:
        total, count = 0.0, 0
        for delta in noether_law.centred_gradients(problem, x):
            total += float(self.form(delta).sum())
            count += len(delta)
        return 2.0 * float(problem.noise_scale) * total / max(count, 1)

    def _read(self, theta: Any, name: str = "theta") -> np.ndarray:
        theta = _check.array(name, theta, finite=False)
        if theta.ndim == 0 or theta.shape[-1] != self.dim:
            raise ShapeError(f"{name} must have shape (..., {self.dim}), got {theta.shape}")
        return theta

    def _each(self, problem: Any, theta: Any, function: Any) -> Any:
        if as_problem(problem, "gradient", "gamma", "noise_scale").model.dim != self.dim:
            raise ArgumentError(f"{self.name} acts on {self.dim} components, the problem has {problem.model.dim}")
        theta = self._read(theta)
        values = np.array([function(x) for x in theta.reshape(-1, self.dim)]).reshape(theta.shape[:-1])
        return float(values) if values.ndim == 0 else values
