"""ℓ_i = ½a_iθ²: the second moment of SGD, of its SDEs and of SVAG, exactly; weak orders without a Monte Carlo.

With a = E a_i, v = Var a_i, A = a + 2γ, t = ηn:

    SGD        E θ_n² = (1 - 2ηA + η²(A² + v/S))ⁿ θ_0²
    SDE        e^{(-2A + ηv/S)t} θ_0²
    order 2    e^{(-2A - ηA² + ηv/S)t} θ_0²
    SVAG(l)    (1 - 2ηA/l + η²A²/l² + η²v/(lS))^{ln} θ_0²

The modified SDE is of order 2 for expectations at fixed t, and yet *not* better for stationary variances: for ℓ = ½λθ²
with additive noise of variance s² per step, SGD has ηs²/(λ(2 - ηλ)) = (ηs²/2λ)(1 + ηλ/2 + …), the SDE the same with 1,
order 2 with 1 - ηλ/2. What repairs it is the diffusion (1 + ηλ/2)s as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["second_moment", "stationary_variance"]

DYNAMICS = ("sgd", "sde", "sde-2", "svag")


def second_moment(
    dynamics: str,
    n_steps: Any,
    learning_rate: float,
    curvature: float,
    variance: float,
    *,
    batch_size: int = 1,
    gamma: float = 0.0,
    splits: int = 1,
) -> np.ndarray:
    """E θ²/θ_0² after steps of SGD, or the same time t = η·step.

    Parameters
    ----------
    dynamics : {'sgd', 'sde', 'sde-2', 'svag'}
    n_steps : array_like
        Steps of SGD, n; any shape.
    learning_rate, curvature, variance, gamma : float
        η; a and v of the curvatures a_i; γ.
    batch_size : int
        With replacement.
    splits : int
        l of SVAG.

    Examples
    --------
    >>> [float(second_moment(d, 10, 0.2, 1.0, 0.5).round(4)) for d in ("sgd", "sde", "sde-2")]
    [0.0157, 0.0224, 0.015]
    """
    _check.choice("dynamics", dynamics, DYNAMICS)
    n, eta = _check.array("n_steps", n_steps), _check.positive("learning_rate", learning_rate)
    A = _check.number("curvature", curvature) + 2.0 * _check.number("gamma", gamma, least=0.0)
    v = _check.number("variance", variance, least=0.0) / _check.count("batch_size", batch_size)
    l = _check.count("splits", splits)
    if l != 1 and dynamics != "svag":
        raise ArgumentError(f"splits must be 1 for dynamics={dynamics!r}, got {l}")
    if dynamics in ("sgd", "svag"):
        if (n < 0).any() or (n != np.round(n)).any():
            raise ArgumentError(f"n_steps must be numbers of steps, 0, 1, …, got {_check.show(n_steps)}")
        return (1.0 - 2.0 * eta * A / l + (eta * A / l) ** 2 + eta * eta * v / l) ** (l * n)
    second = eta * A * A if dynamics == "sde-2" else 0.0
    return np.exp((-2.0 * A - second + eta * v) * eta * n)


def stationary_variance(dynamics: str, learning_rate: float, curvature: float, noise: float) -> float:
    """Var θ of ℓ = ½λθ² + √noise·ξθ in the long run.

    Parameters
    ----------
    dynamics : {'sgd', 'sde', 'sde-2', 'exact'}
        'exact' is the SDE with both the drift λ(1 + ηλ/2) and the noise (1 + ηλ/2)s; it errs by O(η³) alone.
    learning_rate, curvature : float
        η and λ, ηλ < 2.
    noise : float
        s², of the gradient of a batch.

    Examples
    --------
    >>> [round(stationary_variance(d, 0.1, 1.0, 1.0), 5) for d in ("sgd", "sde", "sde-2", "exact")]
    [0.05263, 0.05, 0.04762, 0.0525]
    """
    _check.choice("dynamics", dynamics, ("sgd", "sde", "sde-2", "exact"))
    eta, lam = _check.positive("learning_rate", learning_rate), _check.positive("curvature", curvature)
    s2, x = _check.number("noise", noise, least=0.0), 0.5 * eta * lam
    if dynamics == "sgd":
        if x >= 1:
            raise ArgumentError(
                f"learning_rate must be below 2/curvature for a stationary law, got eta·lambda = {2 * x:g}"
            )
        return eta * s2 / (2 * lam * (1 - x))
    return eta * s2 / (2 * lam) * {"sde": 1.0, "sde-2": 1 / (1 + x), "exact": 1 + x}[dynamics]
