"""Why a warm-up of the learning rate helps: a stiff start is unstable at the rate that its own equilibrium would bear.

Two linear layers on W_2W_1 = V. With a rate η SGD bears about Tr H = 2/η (`stability` says when, and how much more
where outputs are many). Along θ_λ = (e^{-λ}W_1, e^λW_2), p = ‖W_2‖², m = ‖W_1‖², n_i = Tr Σ_{W_i},

    Tr H = 2·scale(d_y Tr[W_1Σ_xW_1ᵀ]e^{-2λ} + Tr Σ_x p e^{2λ}),
    dλ/dt = [σ²(n_2e^{-2λ} - n_1e^{2λ}) - 2γ(pe^{2λ} - me^{-2λ})] / (pe^{2λ} + me^{-2λ}),

which is all of the motion along the valley for a hidden width of 1, and that of the imbalance of the norms alone for
more. The time that a small rate needs to bring Tr H down to what a large one bears is an integral over λ. It is enough
and can be far more than is needed: near the limit of stability residuals are larger than the labels' noise, norms fall
faster, and a run that is thrown off the valley often comes back to a flatter part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.theory._table import refine
from sgdsde.theory.linear_network import layer_noise, read_layers
from sgdsde.theory.sharpness import hessian_trace
from sgdsde.theory.task import LinearTask

__all__ = ["WarmUp", "warm_up"]


@dataclass(frozen=True)
class WarmUp:
    """What `warm_up` finds.

    Attributes
    ----------
    trace_now, trace_end : float
        Tr H at the start, and where the rescaling comes to rest.
    stable_now, stable_end : float
        2/Tr H of the two.
    steps : float
        Steps at the small rate until Tr H = 2/(large rate): 0 if it is below from the start, inf if it never is.
    """

    trace_now: float
    trace_end: float
    stable_now: float
    stable_end: float
    steps: float


def warm_up(
    task: LinearTask, weights: Sequence[Any], small: float, large: float, batch_size: int = 1, gamma: float = 0.0
) -> WarmUp:
    """How many steps at a small learning rate make a start safe for a large one, by the noise on the valley alone.

    Parameters
    ----------
    task : LinearTask
    weights : two arrays
        W_1 and W_2 on the valley, W_2W_1 = V (where gradient flow from the start ends).
    small, large : float
        The two learning rates.
    batch_size : int
    gamma : float

    Returns
    -------
    WarmUp

    Examples
    --------
    >>> w = np.eye(1, 30)  # rank one, 30 inputs and outputs, label noise of variance 1/4, ‖W_2‖² = 38
    >>> task = LinearTask(w.T @ w, np.eye(30), 0.25 * np.eye(30))
    >>> found = warm_up(task, [w / 38**0.5, 38**0.5 * w.T], 0.001, 0.008)
    >>> round(found.trace_now), round(found.trace_end), round(found.stable_end, 4), round(found.steps)
    (2282, 120, 0.0167, 78024)
    """
    W1, W2 = (layers := read_layers(task, weights))[0], layers[-1]
    if len(layers) != 2:
        raise ArgumentError(f"weights must hold two layers, got {len(layers)}")
    if not np.allclose(W2 @ W1, task.V, atol=1e-6 * np.abs(task.V).max(initial=0.0)):
        raise ArgumentError("weights must have the product V of the task")
    small, large = _check.positive("small", small), _check.positive("large", large)
    gamma, sigma2 = _check.number("gamma", gamma, least=0.0), small / (2 * _check.count("batch_size", batch_size))
    n1, n2 = layer_noise(task, layers)
    p, m = float(np.sum(W2 * W2)), float(np.sum(W1 * W1))
    up, down = sigma2 * n2 + 2 * gamma * m, sigma2 * n1 + 2 * gamma * p
    if not (up > 0 and down > 0):
        raise ArgumentError("task must have noise in both layers, or gamma > 0")
    rest = 0.25 * float(np.log(up / down))

    def trace(lam: float) -> float:
        return hessian_trace(task, [np.exp(-lam) * W1, np.exp(lam) * W2])

    def time(lam: np.ndarray) -> np.ndarray:
        grown, shrunk = np.exp(2 * lam), np.exp(-2 * lam)
        return (p * grown + m * shrunk) / (up * shrunk - down * grown)

    now, end, target = trace(0.0), trace(rest), 2.0 / large
    if now <= target:
        steps = 0.0
    elif end >= target or rest == 0.0:
        steps = np.inf
    else:
        lam = brentq(lambda x: trace(x) - target, 0.0, rest, xtol=1e-14)
        steps = abs(float(refine(time, np.linspace(0.0, lam, 9))[1].sum())) / small
    return WarmUp(now, end, 2.0 / now, 2.0 / end, steps)
