"""What a step of discrete dynamics does with the gradient of a batch: plain SGD, heavy-ball momentum, SVAG, Adam.

Offers `HeavyBall`, `SVAG`, `Adam`, given to `SGD(optimizer=)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["SVAG", "Adam", "HeavyBall", "Optimizer"]


class Optimizer:
    """Base of what `SGD(optimizer=)` takes."""

    name = ""
    batches = 1
    """Batches drawn for each step."""
    pace = 1.0
    """Time that a step takes, in learning rates."""
    parts = 1
    """Steps for each step of a schedule."""
    memory = 0
    """Numbers kept for each parameter beside it."""
    extra = 0
    """Numbers kept beside all of those."""

    def numbers(self) -> tuple[float, float, float]:
        """What the step reads."""
        raise NotImplementedError

    def kernel(self) -> Any:
        """The STEP kernel, made of the model's."""
        from sgdsde.sgd import steps

        return getattr(steps, self.name.replace("-", "_"))

    def start(self, theta0: np.ndarray) -> np.ndarray:
        """The whole state at the start: θ, then zeros."""
        rest = np.zeros((*theta0.shape[:-1], self.memory * theta0.shape[-1] + self.extra))
        return np.concatenate([theta0, rest], axis=-1)

    def size(self, d: int) -> int:
        """Length of the whole state."""
        return (1 + self.memory) * d + self.extra


@dataclass(frozen=True)
class HeavyBall(Optimizer):
    """v' = βv + ĝ + 2γθ, θ' = θ − ηv', from v = 0 (B. T. Polyak, USSR Comput. Math. Math. Phys. 4 (1964) 1).

    The state is [θ, v]. For small η it moves like SGD with the learning rate η/(1 − β): that is the rate of its SDE,
    of `sigma2` and of time. For a symmetry its charge obeys, exactly and for every batch, with B = θᵀAv,

        B' = βB + 2γC − ηv'ᵀAv',    C' = C − 2η(βB + 2γC) + η²v'ᵀAv',

    so at stationarity 2γ⟨C⟩ = (η/2)(1 + β)⟨vᵀAv⟩ (`symmetry.HeavyBallLaw`).

    Parameters
    ----------
    beta : float
        0 <= β < 1.
    """

    beta: float = 0.9
    name = "heavy-ball"
    memory = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", _check.number("beta", self.beta, least=0.0))
        if self.beta >= 1.0:
            raise ArgumentError(f"beta must be less than 1, got {self.beta:g}")

    @property
    def pace(self) -> float:  # type: ignore[override]
        return 1.0 / (1.0 - self.beta)

    def numbers(self) -> tuple[float, float, float]:
        return self.beta, 0.0, 0.0


@dataclass(frozen=True)
class SVAG(Optimizer):
    """SGD with l times more, smaller steps and gradients of the same noise: it tends to the SDE as l grows.

    θ' = θ − (η/l)(ĝ + 2γθ), ĝ = ½(1 + √(2l − 1))ĝ₁ + ½(1 − √(2l − 1))ĝ₂ of two independent batches: mean ∇L, covariance
    lΣ/S, not Gaussian (Z. Li, S. Malladi, S. Arora, NeurIPS 2021). l steps make one of SGD; time is t = (η/l)·step.

    Parameters
    ----------
    l : int
        1 is SGD.
    """

    l: int = 1
    name = "svag"
    batches = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", _check.count("l", self.l))

    @property
    def pace(self) -> float:  # type: ignore[override]
        return 1.0 / self.l

    @property
    def parts(self) -> int:  # type: ignore[override]
        return self.l

    def numbers(self) -> tuple[float, float, float]:
        from sgdsde.sgd.steps import svag_weights

        return *svag_weights(self.l), 0.0


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (D. P. Kingma, J. Ba, ICLR 2015, algorithm 1), the gradient being ĝ + 2γθ.

    m' = β₁m + (1 − β₁)ĝ, v' = β₂v + (1 − β₂)ĝ², θ' = θ − η m̂/(√v̂ + ε), m̂ = m'/(1 − β₁ᵏ), v̂ = v'/(1 − β₂ᵏ). The state is
    [θ, m, v, β₁ᵏ, β₂ᵏ]. Dividing componentwise turns the step away from the level set of a charge, θᵀA·(step) ≠ 0, so
    no law of a charge holds for it, and there is no SDE of it here: `sde` and `ChargeLaw` refuse it.

    Parameters
    ----------
    beta1, beta2 : float
        In [0, 1).
    epsilon : float
        > 0.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    name = "adam"
    memory = 2
    extra = 2

    def __post_init__(self) -> None:
        for name in ("beta1", "beta2"):
            value = _check.number(name, getattr(self, name), least=0.0)
            if value >= 1.0:
                raise ArgumentError(f"{name} must be less than 1, got {value:g}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))

    def start(self, theta0: np.ndarray) -> np.ndarray:
        state = super().start(theta0)
        state[..., -2:] = 1.0
        return state

    def numbers(self) -> tuple[float, float, float]:
        return self.beta1, self.beta2, self.epsilon
