"""The sign of the charge u² - w² of a product, along paths of SGD."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models import Product
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, needs_samples

__all__ = ["assert_uw_sign"]


def assert_uw_sign(problem: Any, trajectory: Any) -> float:
    """C = ‖u‖² - ‖w‖² of SGD on ℓ(u·w) never changes sign, nor does |C| grow, as long as |ĉ| <= 1 - 2ηγ.

    ĉ = η·∂ℓ̂/∂(u·w), which for every batch is at most the largest η|∂ℓ_i/∂(u·w)|. Where that is above 1 - 2ηγ nothing
    is asked of a step. Source: C' = C((1 - 2ηγ)² - ĉ²), `assert_uw_law`, for any width.

    Parameters
    ----------
    problem : SGD
        Of `models.Product(width)` of depth 2, with samples.
    trajectory : Solution or (..., n_steps + 1, d) array_like
        Every step of `problem.run` (`t_eval="steps"`).

    Notes
    -----
    To 16·eps·(‖u‖² + ‖w‖²)(1 + c)², c = the largest that ĉ could be if nothing in it cancelled.

    Examples
    --------
    >>> import sgdsde as sg
    >>> problem = sg.SGD(sg.models.Product(), [1.0, 2.0, -1.0], [0.5, 1.0, 1.0], learning_rate=0.1)
    >>> assert_uw_sign(problem, problem.run([1.5, 0.5], 50, n_paths=3, rng=0, t_eval="steps")) <= 1
    True
    """
    needs_samples(problem, "this law")
    model = problem.model
    if not isinstance(model, Product) or model.depth != 2:
        raise ArgumentError(f"problem must be of models.Product() of depth 2, got {model!r}")
    states = _check.array("trajectory", getattr(trajectory, "y", trajectory), finite=False)
    x, y, strength = np.ravel(problem.X), np.ravel(problem.Y), 2 * problem.learning_rate * model.scale
    with np.errstate(over="ignore", invalid="ignore"):  # of paths that run away, of which nothing is asked
        value = model.value(states[..., :-1, :])[..., None]
        asked = np.abs(strength * (value * x - y) * x).max(axis=-1) <= 1 - 2 * problem.learning_rate * problem.gamma
    start, end = states[..., :-1, :][asked], states[..., 1:, :][asked]
    u, w = np.split(start, 2, axis=-1)
    cancelling = np.abs(u * w).sum(axis=-1)[:, None] * np.abs(x) + np.abs(y)
    most = (strength * cancelling * np.abs(x)).max(axis=-1)
    rounding = 16 * EPS * np.sum(start**2, axis=-1) * (1 + most) ** 2
    before, after = _charge(start), _charge(end)
    kept = np.where(before == 0, 1.0, np.sign(before)) * after
    words: dict[str, Any] = {"problem": problem, "theta": lambda i: start[i[0]]}
    return max(
        hold("|C| does not grow", np.maximum(np.abs(after), np.abs(before)), np.abs(before), rounding, **words),
        hold("C keeps its sign", np.minimum(kept, 0.0), 0.0, rounding, **words),
    )


def _charge(states: np.ndarray) -> np.ndarray:
    u, w = np.split(states, 2, axis=-1)
    return np.sum((u - w) * (u + w), axis=-1)
