"""Where gradient descent with weight decay takes two linear layers: plain balance, and a product that is shrunk.

At a stationary point of L + γ‖θ‖² the two equations MW_1ᵀ + γW_2 = 0 and W_2ᵀM + γW_1 = 0 give W_2ᵀW_2 = W_1W_1ᵀ,
whatever the data. Of balanced factors ‖θ‖² = 2‖W_2W_1‖_*, so the product minimises scale·E‖Px - y‖² + 2γ‖P‖_*, a convex
problem: for Σ_x = s_x I the singular values of V less γ/(scale·s_x).
"""

from __future__ import annotations

import numpy as np

from sgdsde import _check
from sgdsde._errors import ModelError
from sgdsde.theory.balance import TwoLayers, split
from sgdsde.theory.task import LinearTask

__all__ = ["weight_decay_minimum"]


def weight_decay_minimum(task: LinearTask, gamma: float, *, hidden: int | None = None) -> TwoLayers:
    """The global minimum of L + γ‖θ‖² for two linear layers; the limit of gradient descent, noise apart.

    Parameters
    ----------
    task : LinearTask
        Σ_x positive definite.
    gamma : float
        γ > 0.
    hidden : int, optional
        h, at least the rank of the minimum (the default).

    Returns
    -------
    TwoLayers
        With W2ᵀW2 = W1W1ᵀ; its noise matrices are those of the task at the shrunk product, its sigma2 is 1.

    Raises
    ------
    ModelError
        Where the iteration does not converge: Σ_x singular, or too close to it.

    Notes
    -----
    Accelerated proximal gradient steps with restarts to rounding; for Σ_x ∝ I the first one is exact.

    Examples
    --------
    >>> layers = weight_decay_minimum(LinearTask(np.diag([2.0, 0.05]), np.eye(2), np.eye(2)), 0.1)
    >>> np.round(layers.W2 @ layers.W1, 12)
    array([[1.9, 0. ],
           [0. , 0. ]])
    """
    gamma = _check.positive("gamma", gamma)
    curvature = 2 * task.scale * float(np.linalg.eigvalsh(task.Sigma_x)[-1])
    if curvature <= 0:
        raise ModelError("weight_decay_minimum needs inputs, got Sigma_x = 0")
    step = 1.0 / curvature
    P = ahead = np.zeros_like(task.V)
    speed = 1.0
    for _ in range(100_000):
        A, S, Rt = np.linalg.svd(ahead - step * 2 * task.scale * (ahead - task.V) @ task.Sigma_x, full_matrices=False)
        new = (A * np.maximum(S - 2 * gamma * step, 0.0)) @ Rt
        moved = new - P
        if np.sum((ahead - new) * moved) > 0:  # overshot: start again
            speed = 1.0
        faster = 0.5 * (1 + np.sqrt(1 + 4 * speed * speed))
        off = float(np.abs(new - ahead).max())
        P, ahead, speed = new, new + (speed - 1) / faster * moved, faster
        if off <= 1e-15 * (1 + float(np.abs(task.V).max())):
            break
    else:
        raise ModelError("weight_decay_minimum did not converge: Sigma_x is too close to singular")
    W1, W2, S = split(P, np.eye(P.shape[1]), np.eye(P.shape[0]), hidden)
    return TwoLayers(W1, W2, gamma * S, gamma, 1.0, *task.noise_matrices(P))
