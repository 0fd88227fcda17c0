"""How far a charge scatters around its exact mean in one step: the variance of ΔC for SGD and for Euler-Maruyama."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde.algebra import linear_and_shift
from sgdsde.symmetry.charges import Charge

__all__ = ["step_variance"]


def step_variance(problem: Any, charge: Charge, theta: np.ndarray, dt: float, dynamics: str) -> float:
    """Var[ΔC | θ] of one step of length dt; NaN for dynamics whose variance has no formula here.

    With centred per-sample gradients δ_i = g_i - ∇L, a_i = (A∇L - 2γb)·δ_i (b of an affine generator) and
    k_ij = δ_iᵀAδ_j:

    - Euler-Maruyama: 2(2σ²ρh)² Tr[(ΣA)²] + 4h²(2σ²ρh) ∇LᵀAΣA∇L.
    - SGD, batch S with replacement: η⁴ [4Var(a)/S + Var(k_ii)/S³ + 2(S-1)/S³ E[k_ij²] + 4Cov(a, k_ii)/S²]. Without
      replacement the noise is smaller by √ρ; the formula then scales each δ by it, exact for S = 1 and close otherwise.

    Tr[(ΣA)²] = E[k_ij²] and ∇LᵀAΣA∇L = Var(a). Costs the per-sample gradients and min(N, d)·N·d operations.
    """
    if getattr(problem, "n_samples", 1) is None:  # a law of the data: rows with the same covariance, from the factor
        mean, factor = problem.gradient(theta), problem.factor(theta)
        delta = factor.T * np.sqrt(factor.shape[1])
    else:
        g = np.asarray(problem.per_sample_gradients(theta))
        mean = g.mean(axis=0)
        delta = g - mean
    n, d = delta.shape
    linear, shift = linear_and_shift(charge.generator)
    moved = linear.apply(delta)
    a = delta @ (linear.apply(mean) if shift is None else linear.apply(mean) - 2.0 * float(problem.gamma) * shift)
    square = np.mean(a**2)

    def pairs() -> float:
        """E[k_ij²] over all pairs."""
        if n <= d:
            return float(np.sum((delta @ moved.T) ** 2)) / n**2
        product = delta.T @ moved / n
        return float(np.sum(product * product.T))

    if dynamics == "euler-maruyama":
        strength = 2 * float(problem.noise_scale) * dt
        return 2 * strength**2 * pairs() + 4 * dt**2 * strength * square
    if dynamics == "sgd":
        s, rho = int(problem.batch_size), float(problem.rho)
        own = np.einsum("nd,nd->n", delta, moved)
        total = 4 * rho * square / s + rho**2 * np.var(own) / s**3 + 4 * rho**1.5 * np.mean(a * own) / s**2
        if s > 1:
            total += 2 * rho**2 * (s - 1) / s**3 * pairs()
        return float(dt**4 * total)
    return float("nan")
