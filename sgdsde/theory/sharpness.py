"""Tr ∇²L of linear networks: anywhere, at the noise equilibrium, and at its least among all networks with one product.

The loss is quadratic in each layer, so Tr ∇²L = 2·scale·Σ_i E‖∂f/∂W_i‖² = 2·scale·Σ_i ‖W_D…W_{i+1}‖² E‖h_{i-1}‖², h_i
the signal after layer i, at *every* θ, minimum or not, whatever the residuals. With π = Tr[Σ_ε^{-1}PSPᵀ], and τ, κ of
`linear_network`,

    equilibrium    Tr H = 2bκ^{D-1}[(D-1)aπ/τ + d_y],
    least          Tr H = 2D(d_y b)^{1/D} (‖VΣ_x^{1/2}‖_*)^{2-2/D},

‖·‖_* the sum of singular values. They agree where Σ_ε ∝ I: the noise is then a multiple of the curvature, and SGD goes
to the flattest network. Where label noise has a direction SGD may *sharpen*: for d_x = d_y = 2, V = Σ_x = I, Σ_ε =
diag(s_1, s_2) the first is 2√2(2(√s_1 + √s_2)/√a + √a(1/√s_1 + 1/√s_2)), 16 for s_1 = s_2 and without bound as s_2 → 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.theory.linear_network import backward, deep_linear_equilibrium, forward, read_layers
from sgdsde.theory.task import LinearTask, root, spectrum

__all__ = ["Sharpness", "equilibrium_sharpness", "hessian_trace", "least_sharpness", "sharpening"]


@dataclass(frozen=True)
class Sharpness:
    """Tr ∇²L of a network, and of where SGD takes it.

    Attributes
    ----------
    now, equilibrium, least : float
        At the weights given; at the noise equilibrium (γ = 0) of W_D…W_1 = V; the minimum over all such networks.
    verdict : str
        'flattens', 'sharpens' or 'stays': the sign of equilibrium - now.
    """

    now: float
    equilibrium: float
    least: float

    @property
    def verdict(self) -> str:
        change = self.equilibrium - self.now
        if abs(change) <= 1e-9 * self.now:
            return "stays"
        return "sharpens" if change > 0 else "flattens"


def hessian_trace(task: LinearTask, weights: Sequence[Any]) -> float:
    """Tr ∇²L (without weight decay, which adds 2γd) of W_D…W_1 for inputs with E xxᵀ = Σ_x; exact at every θ.

    Examples
    --------
    >>> hessian_trace(LinearTask([[1.0]], [[1.0]], [[0.0]]), [[[3.0]], [[2.0]]])  # 2(2² + 3²)
    26.0
    """
    layers = read_layers(task, weights)
    s = [float(np.trace(M)) for M in forward(task, layers)]
    t = [float(np.trace(M)) for M in backward(task, layers, np.eye(task.V.shape[0]))]
    return 2.0 * task.scale * sum(t[i] * s[i - 1] for i in range(1, len(layers) + 1))


def least_sharpness(task: LinearTask, depth: int = 2) -> float:
    """The minimum of Tr ∇²L over networks of `depth` layers with the product V: 4√(d_y Tr Σ_x)‖VΣ_x^{1/2}‖_* for two.

    Σ_x may be singular.

    Examples
    --------
    >>> least_sharpness(LinearTask(np.eye(2), np.eye(2), np.eye(2)))
    16.0
    """
    D = _check.count("depth", depth)
    e, Q = np.linalg.eigh(task.Sigma_x)
    nuclear = float(spectrum(task.V @ (Q * np.sqrt(np.maximum(e, 0.0))))[1].sum())
    return 2.0 * task.scale * D * (task.V.shape[0] * task.power) ** (1.0 / D) * nuclear ** (2.0 - 2.0 / D)


def equilibrium_sharpness(task: LinearTask, depth: int = 2) -> float:
    """Tr ∇²L at the noise equilibrium, in closed form; see the module."""
    found = deep_linear_equilibrium(task, depth)
    e, e_inverse = root(task.Sigma_eps)
    P, S, _ = spectrum(e @ task.V @ root(task.Sigma_x)[0])
    pi, tau = float(S @ np.sum((e_inverse @ P) ** 2, axis=0)), float(S.sum())
    D, kappa = len(found.weights), found.kappa
    inner = (D - 1) * task.noise * pi / tau + task.V.shape[0]
    return 2.0 * task.scale * task.power * kappa ** (D - 1) * inner


def sharpening(task: LinearTask, weights: Sequence[Any]) -> Sharpness:
    """Whether SGD flattens or sharpens, from the data: Tr ∇²L at `weights`, at its noise equilibrium, and at its least.

    Parameters
    ----------
    task : LinearTask
        Σ_x, Σ_ε positive definite.
    weights : sequence of D >= 2 arrays
        Start on W_D…W_1 = V: a small start sharpens by the growth of its norms, which is another effect.

    Returns
    -------
    Sharpness

    Examples
    --------
    >>> flat = [np.eye(2), np.eye(2)]
    >>> sharpening(LinearTask(np.eye(2), np.eye(2), np.diag([1.0, 0.01])), flat).verdict
    'sharpens'
    """
    layers = read_layers(task, weights)
    D = len(layers)
    return Sharpness(hessian_trace(task, layers), equilibrium_sharpness(task, D), least_sharpness(task, D))
