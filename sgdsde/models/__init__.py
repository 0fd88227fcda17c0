"""Models with per-sample gradients as compiled kernels: what SGD and its SDE descend.

Offers `DeepLinear` (any depth, matrix factorisation), `Product` (one input, one output, everything from moments of the
data) and `Model`, the protocol of a new one. Nothing is compiled before a model is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.models.deep_linear import DeepLinear as DeepLinear
    from sgdsde.models.model import Model as Model
    from sgdsde.models.population import Population as Population
    from sgdsde.models.population import uw_gauss as uw_gauss
    from sgdsde.models.population import uw_label as uw_label
    from sgdsde.models.product import Product as Product

_NAMES = {
    "DeepLinear": "deep_linear",
    "Model": "model",
    "Population": "population",
    "Product": "product",
    "uw_gauss": "population",
    "uw_label": "population",
}

__all__ = ["DeepLinear", "Model", "Population", "Product", "uw_gauss", "uw_label"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.models' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.models.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
