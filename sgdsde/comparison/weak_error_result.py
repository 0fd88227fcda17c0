"""WeakErrorResult: how the means of SGD leave those of its SDE as the learning rate grows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sgdsde.comparison.order_result import WeakOrderResult

__all__ = ["WeakErrorResult"]


@dataclass(frozen=True, repr=False, eq=False)
class WeakErrorResult(WeakOrderResult):
    """A measured weak error of SGD against its SDE, and its order in the learning rate.

    As a `WeakOrderResult`, with learning rates for steps: `by_function` holds a result for each function, and the
    lowest order decides.

    Attributes
    ----------
    learning_rates : (n_levels,) array
        From the largest; with scale="svag" η/l.
    batch_sizes : (n_levels,) array of int
    sgd, sde : dict of str to (n_levels,) array
        Means of each function, by name.
    sgd_stderr, sde_stderr : dict of str to (n_levels,) array
        Their standard errors, zero for exact means.
    difference, difference_stderr : dict of str to (n_levels,) array
        sgd - sde with its sign.
    variance_reduction : dict of str to float
        By what factor control variates made the variance of the difference smaller, at the smallest learning rate.
    """

    learning_rates: np.ndarray = field(default_factory=lambda: np.zeros(0))
    batch_sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    sgd: dict[str, np.ndarray] = field(default_factory=dict)
    sde: dict[str, np.ndarray] = field(default_factory=dict)
    sgd_stderr: dict[str, np.ndarray] = field(default_factory=dict)
    sde_stderr: dict[str, np.ndarray] = field(default_factory=dict)
    difference: dict[str, np.ndarray] = field(default_factory=dict)
    difference_stderr: dict[str, np.ndarray] = field(default_factory=dict)
    variance_reduction: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return super().__repr__().replace("WeakOrderResult", "WeakErrorResult", 1)
