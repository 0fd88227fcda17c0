"""Models with per-sample gradients as compiled kernels: what SGD and its SDE descend.

Offers `DeepLinear` (any depth, matrix factorisation), `Product` (one input, one output, everything from moments of the
data), `DiagonalLinear` (any depth and width), `MLP` (six activations, three losses), `RadialNetwork` (hidden layers
that rotate), `ScaleInvariant` (weights over their norms), `LinearRegression`, `LogisticRegression`,
`SoftmaxRegression`, and `Model`, the protocol of a new one; `from_functions`, `from_torch`, `from_jax`, models of what
somebody else wrote; and `losses`. Nothing is compiled before a model is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.models import losses as losses
    from sgdsde.models.deep_linear import DeepLinear as DeepLinear
    from sgdsde.models.diagonal_linear import DiagonalLinear as DiagonalLinear
    from sgdsde.models.function_model import from_functions as from_functions
    from sgdsde.models.jax_model import from_jax as from_jax
    from sgdsde.models.linear_models import LinearRegression as LinearRegression
    from sgdsde.models.linear_models import LogisticRegression as LogisticRegression
    from sgdsde.models.linear_models import SoftmaxRegression as SoftmaxRegression
    from sgdsde.models.mlp import MLP as MLP
    from sgdsde.models.model import Model as Model
    from sgdsde.models.population import Population as Population
    from sgdsde.models.population import uw_gauss as uw_gauss
    from sgdsde.models.population import uw_label as uw_label
    from sgdsde.models.product import Product as Product
    from sgdsde.models.radial import RadialNetwork as RadialNetwork
    from sgdsde.models.scale_invariant import ScaleInvariant as ScaleInvariant
    from sgdsde.models.torch_model import from_torch as from_torch

_NAMES = {
    "DeepLinear": "deep_linear",
    "DiagonalLinear": "diagonal_linear",
    "LinearRegression": "linear_models",
    "LogisticRegression": "linear_models",
    "MLP": "mlp",
    "Model": "model",
    "Population": "population",
    "Product": "product",
    "RadialNetwork": "radial",
    "ScaleInvariant": "scale_invariant",
    "SoftmaxRegression": "linear_models",
    "from_functions": "function_model",
    "from_jax": "jax_model",
    "from_torch": "torch_model",
    "uw_gauss": "population",
    "uw_label": "population",
}

__all__ = [*_NAMES, "losses"]


def __getattr__(name: str) -> Any:
    if name == "losses":
        return import_module("sgdsde.models.losses")
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.models' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.models.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
