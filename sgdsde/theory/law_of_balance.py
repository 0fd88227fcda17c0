"""The law of balance of a loss ℓ(u, w) = ℓ̃(uwᵀ), and of the model uw.

L. Ziyin, H. Li, M. Ueda, arXiv:2308.06671, Theorem 3.1: with T = η/S, path by path under the SDE of SGD,

    d(‖u‖² - ‖w‖²)/dt = -T(uᵀC₁u - wᵀC₂w) - 4γ(‖u‖² - ‖w‖²),

    C₁ = E[ÃᵀÃ] - E[Ã]ᵀE[Ã],   C₂ = E[ÃÃᵀ] - E[Ã]E[Ã]ᵀ,   Ã_ki = ∂ℓ̃/∂(u_i w_k).

Three slips of the paper are set right here: its Eq. (1) prints E[∇ℓ∇ℓᵀ] for the covariance; its Eq. (35) has the
indices the other way round than its text; and Corollary 3.3 has the rate TC₀ + γ where its own (7) has TC₀ + 4γ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ShapeError
from sgdsde.models import Population

__all__ = ["LawOfBalance", "uw_decay"]


@dataclass(frozen=True, eq=False)
class LawOfBalance:
    """C₁ (dim u) and C₂ (dim w) of `LawOfBalance.of`, at one product uwᵀ.

    Examples
    --------
    >>> law = LawOfBalance.of([[[1.0, 0.0]], [[-1.0, 2.0]]])  # two samples, dim w = 1, dim u = 2
    >>> law.C1, law.C2
    (array([[ 1., -1.],
           [-1.,  1.]]), array([[2.]]))
    >>> law.rate([1.0, 0.0], [1.0], T=0.1)
    0.1
    """

    C1: np.ndarray
    C2: np.ndarray

    @classmethod
    def of(cls, interactions: Any) -> LawOfBalance:
        """From Ã of each sample, (N, dim w, dim u): rows k for w, columns i for u."""
        A = _check.array("interactions", interactions, ("N", "dim w", "dim u"))
        if not len(A):
            raise ShapeError("interactions must hold at least one sample, got none")
        mean = A.mean(axis=0)
        # about the mean, so that no digits are lost
        D = A - mean
        return cls(np.einsum("nki,nkj->ij", D, D) / len(A), np.einsum("nki,nli->kl", D, D) / len(A))

    def rate(self, u: Any, w: Any, T: float, gamma: float = 0.0) -> float:
        """d(‖u‖² - ‖w‖²)/dt."""
        u, w = _check.array("u", u, (len(self.C1),)), _check.array("w", w, (len(self.C2),))
        T, gamma = _check.number("T", T, least=0.0), _check.number("gamma", gamma, least=0.0)
        return float(-T * (u @ self.C1 @ u - w @ self.C2 @ w) - 4.0 * gamma * (u @ u - w @ w))

    def ratio_bounds(self) -> tuple[float, float]:
        """Bounds on ‖u‖²/‖w‖² where the rate is zero at γ = 0: λ_min(C₂)/λ_max(C₁) and λ_max(C₂)/λ_min(C₁)."""
        one, two = np.linalg.eigvalsh(self.C1).clip(0.0), np.linalg.eigvalsh(self.C2).clip(0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(two[0] / one[-1]), float(two[-1] / one[0])


def uw_decay(population: Population, v: Any, T: float, gamma: float = 0.0, scale: float = 1.0) -> Any:
    """The rate 4(T·scale²·q(v) + γ) at which each u_i² - w_i² decays for ℓ = scale·(Σ_i u_iw_i x - y)².

    q(v) = α₁v² - 2α₂v + α₃ (the paper's Eq. (11) has a square too little). `v` may have any shape. A step of SGD
    multiplies u_i² - w_i² by (1 - 2ηγ)² - ĉ², ĉ = η·∂ℓ̂/∂(uw), which shrinks it only while |ĉ| < √2.

    Examples
    --------
    >>> from sgdsde.models import uw_gauss
    >>> uw_decay(uw_gauss(1.0, 1.0), 1.0, T=0.01, gamma=0.1)
    0.44
    """
    T, gamma = _check.number("T", T, least=0.0), _check.number("gamma", gamma, least=0.0)
    v, s = np.asarray(v, dtype=float), _check.positive("scale", scale)
    rate = 4.0 * (T * s * s * population.q(v) + gamma)
    return float(rate) if np.ndim(rate) == 0 else rate
