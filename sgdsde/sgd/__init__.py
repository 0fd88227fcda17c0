"""SGD on a model and data: its gradients and their covariance, its stochastic differential equation, and the recursion.

Offers `SGD`: `.sde()` gives the equation for `solve`, `.run()` runs discrete SGD in the same compiled engine; and
`schedules` of learning rates, `optimizers`, what a step does with a gradient, and `LowRank`, a factor of few columns.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.sgd import optimizers as optimizers
    from sgdsde.sgd import schedules as schedules
    from sgdsde.sgd.factors import LowRank as LowRank
    from sgdsde.sgd.problem import SGD as SGD

_NAMES = {"LowRank": "factors", "SGD": "problem"}

__all__ = ["SGD", "LowRank", "optimizers", "schedules"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sgdsde.sgd' has no attribute {name!r}")
    found = import_module(f"sgdsde.sgd.{_NAMES.get(name, name)}")
    value = getattr(found, name) if name in _NAMES else found
    globals()[name] = value
    return value
