"""SGD on a model and data: its gradients and their covariance, its stochastic differential equation, and the recursion.

Offers `SGD`: `.sde()` gives the equation for `solve`, `.run()` runs discrete SGD in the same compiled engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.sgd.problem import SGD as SGD

__all__ = ["SGD"]


def __getattr__(name: str) -> Any:
    if name != "SGD":
        raise AttributeError(f"module 'sgdsde.sgd' has no attribute {name!r}")
    from sgdsde.sgd.problem import SGD

    globals()["SGD"] = SGD
    return SGD
