"""The SDE of SGD as an equation: dθ = -∇(L + γ‖θ‖²)dt + √(2σ²ρ) G(θ)dW, with any factor G of Σ."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.equation._equation import Kernels
from sgdsde.sgd.factors import read_factor
from sgdsde.sgd.label_noise import collapsed

__all__ = ["SGDEquation"]

PYTHON_BLOCK = 8
"""Paths side by side where a factor runs through Python."""


class SGDEquation:
    """The SDE of an `SGD` problem with one factor. Made by `SGD.sde`, handed to `solve`.

    Attributes
    ----------
    problem : SGD
    model : Model
    dim, noise_dim : int
        d and m; m of a function is known once it has been bound to a start.
    noise, calculus : str
        "general" ("scalar" for a rank-one factor, "additive" for a constant one) and "ito".
    default_dt : float or callable
        The learning rate; with a schedule a function of (t0, t1), the lengths of its steps.
    factor : Factor
        As it was read.
    """

    calculus = "ito"
    args: tuple[Any, ...] = ()

    def __init__(self, problem: Any, factor: Any = None, order: int = 1) -> None:
        self.problem = problem
        self.order = order
        self.model = problem.model
        self.dim = self.model.dim
        self.default_dt: Any = problem.effective_learning_rate
        if problem.schedule is not None:
            self.default_dt = problem.schedule.lengths
        self.factor = read_factor(problem, factor)
        self.block: int | None = None
        self.noise = "general"
        self.noise_dim = 0
        if self.factor.kind == "native":
            self.noise_dim, self.noise = self.model.noise(self.factor.value, problem.samples)
            self.block = self.model.block
        elif self.factor.kind == "constant":
            self.noise_dim, self.noise = self.factor.value.shape[1], "additive"
            self.block = self.model.block
        else:
            self.block = PYTHON_BLOCK
            if self.factor.name in ("gram", "cholesky"):
                self.noise_dim = self.dim
        self._python: Any = None

    def __repr__(self) -> str:
        order = "" if self.order == 1 else f", order={self.order}"
        return f"{self.problem!r}.sde(factor={self.factor.name!r}{order})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_python": None}

    def bind(self, t0: float, y0: np.ndarray, args: Sequence[Any] | None = None) -> SGDEquation:
        """Itself, after a look at the start; with a function for a factor a copy that knows m."""
        if args is not None:
            raise ArgumentError("args must be None for the SDE of SGD: its numbers belong to the SGD problem")
        theta = _check.array("y0", y0, (self.dim,))
        if self.factor.kind != "function" or self.noise_dim:
            return self
        found = self.factor.value(theta)
        if not np.isfinite(found).all():
            raise ModelError(f"factor {self.factor.name} must be finite at the start, got {_check.show(found)}")
        bound = copy.copy(self)
        bound.noise_dim = found.shape[1]
        return bound

    @property
    def exact_correction(self) -> bool:
        """Whether ½ Σ_j (b_j·∇)b_j has a closed form, and is not made by column differences."""
        native = self.factor.kind == "native" and self.model.compiled(self.factor.value).correction is not None
        return native or self.factor.kind == "constant"

    @property
    def strength(self) -> float:
        """s = √(2σ²ρ), by which every factor is multiplied."""
        return float(np.sqrt(2.0 * self.problem.noise_scale))

    def kernels(self, *, correction: bool = False) -> Kernels:
        """INCREMENT, and CORRECTION = (σ²ρ/2)∇Tr Σ for the model's own factors, by column differences for others."""
        problem, samples = self.problem, self.problem.samples
        if self.factor.kind == "function":
            kernels = self._python_kernels()
        else:
            work = self.model.work(samples.n)
            p = np.concatenate([[problem.gamma, self.strength], samples.numbers])
            made = self.model.compiled(self.factor.value if self.factor.kind == "native" else None)
            if self.factor.kind == "native":
                kernels = Kernels(made.increment, made.correction, p, samples.data, work)
                if problem.label_noise is not None and self.factor.value == "per-sample":
                    kernels = collapsed(kernels, self.model, samples, problem.drawn)
            else:
                from sgdsde.equation.differences import no_correction
                from sgdsde.sgd.explicit import constant_increment

                data = np.concatenate([samples.data, self.strength * self.factor.value.ravel()])
                kernels = Kernels(constant_increment(made.increment), no_correction, p, data, work)
        if correction and kernels.correction is None:
            from sgdsde.equation.differences import column_correction

            made_correction, work = column_correction(kernels.increment, self.dim, self.noise_dim, kernels.work)
            kernels = kernels._replace(correction=made_correction, work=work)
        if self.order == 2:
            from sgdsde.sgd.second_order import second_order

            knows = samples.n > 0 and self.factor.kind != "function"  # whether p and data are the model's
            hessian = self.model.compiled().hessian if knows else None
            eta, n = problem.learning_rate, problem.samples.n
            kernels = second_order(kernels, hessian, eta, self.dim, n)
        if problem.schedule is None:
            return kernels
        from sgdsde.sgd.scheduled import scheduled

        return scheduled(kernels, problem.schedule, self.noise_dim)

    def numbers(self) -> tuple[Any, ...]:
        """What a checkpoint knows this equation by; the kernels' own numbers may hold addresses of this process."""
        problem, factor = self.problem, self.factor
        own = [self.order, problem.gamma, self.strength, problem.learning_rate]
        schedule = () if problem.schedule is None else (problem.schedule.starts, problem.schedule.rates)
        given = (factor.value,) if factor.kind == "constant" else (factor.name.encode(),)
        return np.array(own), *self.model.identity(problem.samples), *schedule, *given

    def step_size(self) -> Any:
        """The kernel of `step_size="auto"`, the model's own; None where it has none, or not for this factor.

        With a schedule it is that of the largest learning rate.
        """
        problem, factor = self.problem, self.factor
        if factor.kind != "native" and factor.name not in ("gram", "cholesky"):
            return None
        if problem.schedule is not None:
            problem = problem.replace(learning_rate=float(problem.schedule.rates.max()))
        return self.model.step_size(problem)

    def pending_error(self) -> BaseException | None:
        """What a factor's function raised inside a kernel since the last call, for the runner to raise."""
        return self._python.taken() if self._python is not None else None

    def _python_kernels(self) -> Kernels:
        from sgdsde.sgd.explicit import PythonFactor, python_increment

        if self._python is None:
            self._python = PythonFactor(self.problem, self.factor.value, self.strength, self.noise_dim)
        return Kernels(python_increment, None, np.array([float(self._python.number)]), np.zeros(0), (0, 0))
