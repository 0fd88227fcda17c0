"""What an `SGD` problem is at a θ: losses, gradients, covariance and factors, and where its SDE can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sgdsde.models.model import Model, Samples
from sgdsde.sgd.factors import leak, lost_part, read_factor

if TYPE_CHECKING:
    from sgdsde.sgd.validity import Validity

__all__ = ["Evaluations"]


class Evaluations:
    """Base of `SGD`: everything that follows from the model and the samples at a θ."""

    model: Model
    samples: Samples

    def loss(self, theta: Any) -> Any:
        """L(θ), the mean loss without weight decay: shape (...) for θ of shape (..., d), a float for one θ."""
        return self.model.loss(theta, self.samples)

    def gradient(self, theta: Any) -> np.ndarray:
        """∇L(θ) without weight decay, shape (..., d)."""
        return self.model.gradient(theta, self.samples)

    def per_sample_losses(self, theta: Any) -> np.ndarray:
        """ℓ_i(θ), shape (N,), for θ of shape (d,)."""
        return self.model.losses(theta, self.samples)

    def per_sample_gradients(self, theta: Any) -> np.ndarray:
        """g_i = ∇ℓ_i(θ), shape (N, d), for θ of shape (d,)."""
        return self.model.per_sample_gradients(theta, self.samples)

    def gradient_moments(
        self, theta: Any, transform: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and variance (d,) over samples of the gradient in another basis, without N·d or d·d numbers.

        `transform` is linear and maps rows (n, d) to rows (n, d). In the eigenbasis of a symmetric A with eigenvalues
        μ, Tr[ΣA] = Σ_k μ_k var_k and ∇LᵀA∇L = Σ_k μ_k mean_k².
        """
        return self.model.gradient_moments(theta, self.samples, transform)

    def covariance(self, theta: Any, block: str | None = None) -> np.ndarray:
        """Σ(θ), the covariance of one sample's gradient, (d, d); or its diagonal block for one array, `block="W1"`."""
        return self.model.covariance(theta, self.samples, block)

    def factor(self, theta: Any, factor: Any = None) -> np.ndarray:
        """G (d, m) with GGᵀ = Σ(θ): the model's default, (d, N) with columns (g_i - ḡ)/√N, or another (see `sde`)."""
        theta = self.model.check_theta(theta, one=True)
        read = read_factor(self, factor)
        if read.kind == "native":
            return self.model.factor(theta, self.samples, read.value)
        return read.value.copy() if read.kind == "constant" else read.value(theta)

    def factor_leak(self, theta: Any, A: Any, factor: Any = None) -> float:
        """How much a factor leaks along a symmetry: ‖GᵀAθ‖/(‖G‖‖Aθ‖), in [0, 1]; 0 for an exact one.

        Parameters
        ----------
        theta : (d,) array_like
        A : Generator or (d, d) array_like
        factor : as in `sde`
        """
        theta = self.model.check_theta(theta, one=True)
        return leak(self.factor(theta, factor), A, theta)

    def factor_loss(self, theta: Any, factor: Any) -> float:
        """Which part of Tr Σ another factor F lacks or adds, ‖Σ - FFᵀ‖/Tr Σ in the trace norm: 0 for an exact one.

        Of a low-rank factor it is the sum of the eigenvalues left out over that of all.

        Parameters
        ----------
        theta : (d,) array_like
        factor : as in `sde`
        """
        return lost_part(self.factor(theta), self.factor(theta, factor))

    def validity(self, theta: Any, generators: Any = None) -> Validity:
        """Where the SDE can be trusted at θ, and how many steps a charge takes: see `sgd.validity.Validity`.

        Costs the per-sample gradients a few at a time, once and once for each symmetric generator (the first 64 of the
        model's `symmetries()`, or a mapping of others), and up to 60 Hessian-vector products. Of a law of the data it
        takes the closed forms, and the gradients of 4096 fresh samples for the kurtosis.
        """
        from sgdsde.sgd.validity import validity

        return validity(self, theta, generators)
