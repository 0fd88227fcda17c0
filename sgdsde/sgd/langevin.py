"""The Langevin equation dθ = -∇L_γ dt + s dW: the drift of SGD with noise that is the same in every direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._abi import INCREMENT
from sgdsde._address import address
from sgdsde._errors import ModelError
from sgdsde.equation._equation import Kernels
from sgdsde.sgd.continuous import SGDEquation
from sgdsde.sgd.factors import Factor

__all__ = ["Isotropic", "LangevinEquation"]


class LangevinEquation(SGDEquation):
    """dθ = -∇(L + γ‖θ‖²)dt + s dW (Itô; additive, so Stratonovich too), m = d. Made by `SGD.langevin`, for `solve`.

    Attributes
    ----------
    problem : Isotropic
        The `SGD` problem with Σ = I and 2σ²ρ = s²: `Charge.rate` and `ChargeLaw` of it have the means of this equation.
        A charge is no longer without a martingale, and the report of a law shows that in its remainder.
    s : float
    default_dt : float or callable
        As of `SGD.sde`; s does not depend on it.
    """

    def __init__(self, problem: Any, s: float) -> None:
        self.s = _check.number("s", s, least=0.0)
        self.problem = Isotropic(problem, self.s)
        self.order = 1
        self.model = problem.model
        self.dim = self.noise_dim = self.model.dim
        self.default_dt = problem.effective_learning_rate if problem.schedule is None else problem.schedule.lengths
        self.factor = Factor("isotropic", "isotropic", None)
        self.block, self.noise = self.model.block, "additive"
        self._python: Any = None

    def __repr__(self) -> str:
        return repr(self.problem)

    @property
    def exact_correction(self) -> bool:
        """True: it is zero."""
        return True

    def bind(self, t0: float, y0: np.ndarray, args: Any = None) -> LangevinEquation:
        """Itself, after a look at the start."""
        super().bind(t0, y0, args)
        return self

    def kernels(self, *, correction: bool = False) -> Kernels:
        """INCREMENT with the drift of the model's own; the correction is zero."""
        from sgdsde.equation.differences import no_correction
        from sgdsde.sgd.langevin_kernels import increment

        samples, made = self.problem.samples, self.model.compiled()
        words = map(float, address(made.increment, INCREMENT))
        p = np.concatenate([[self.problem.gamma, 0.0], samples.numbers, [self.s, *words]])
        return Kernels(increment, no_correction, p, samples.data, self.model.work(samples.n))

    def step_size(self) -> Any:
        """None: the rules of models are for the noise of SGD."""
        return None


class Isotropic:
    """An `SGD` problem with the noise s·I in place of √(2σ²ρ)·G: what laws of charges ask, for `LangevinEquation`."""

    def __init__(self, problem: Any, s: float) -> None:
        self._problem, self.s = problem, s
        self.model = _Silent(problem.model)
        self.noise_scale = self.sigma2 = 0.5 * s * s
        self.rho = 1.0
        self._variances: dict[Any, np.ndarray] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._problem, name)

    def __reduce__(self) -> Any:
        return Isotropic, (self._problem, self.s)

    def __repr__(self) -> str:
        return f"{self._problem!r}.langevin({self.s:g})"

    def covariance(self, theta: Any, block: str | None = None) -> np.ndarray:
        """The unit matrix (d, d), or of the size of a block."""
        at = slice(0, self.model.dim) if block is None else self.model.places()[block]
        return np.eye(at.stop - at.start)

    def factor(self, theta: Any, factor: Any = None) -> np.ndarray:
        """The unit matrix (d, d)."""
        return np.eye(self.model.dim)

    def per_sample_gradients(self, theta: Any) -> np.ndarray:
        """Refused: samples are not where this noise comes from."""
        raise ModelError(f"{self!r} has no noise of single samples")

    def gradient_moments(
        self, theta: Any, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """∇L (d,) and the diagonal (d,) of the unit matrix, in another basis."""
        mean, d = self._problem.gradient(theta), self.model.dim
        if transform is None:
            return mean, np.ones(d)
        if transform not in self._variances:
            rows = (np.eye(min(256, d - k), d, k) for k in range(0, d, 256))
            self._variances = {transform: sum(np.square(transform(units)).sum(axis=0) for units in rows)}
        return transform(mean[None])[0], self._variances[transform]


class _Silent:
    """A model without kernels of charge laws: those are for the noise of its samples."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def __reduce__(self) -> Any:
        return _Silent, (self._model,)

    def charge_track(self, generator: Any, gamma: float, X: Any, Y: Any) -> None:
        """None."""

    def charge_traces(self, generators: Any, X: Any, Y: Any) -> None:
        """None."""
