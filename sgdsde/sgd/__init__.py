"""SGD on a model and data: its gradients and their covariance, its stochastic differential equation, and the recursion.

Offers `SGD`: `.sde()` gives the equation for `solve`, `.run()` runs discrete SGD in the same compiled engine; and
`schedules` of learning rates and `optimizers`, what a step does with a gradient.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.sgd import optimizers as optimizers
    from sgdsde.sgd import schedules as schedules
    from sgdsde.sgd.problem import SGD as SGD

__all__ = ["SGD", "optimizers", "schedules"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sgdsde.sgd' has no attribute {name!r}")
    value = import_module("sgdsde.sgd.problem").SGD if name == "SGD" else import_module(f"sgdsde.sgd.{name}")
    globals()[name] = value
    return value
