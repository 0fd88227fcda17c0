"""Which arrays of a model are the two matrices around a hidden layer, and what its hidden units do."""

from __future__ import annotations

from typing import Any, NamedTuple

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models.deep_linear import DeepLinear
from sgdsde.models.diagonal_linear import DiagonalLinear
from sgdsde.models.product import Product
from sgdsde.models.radial import RadialNetwork
from sgdsde.models.scale_invariant import ScaleInvariant

__all__ = ["HiddenLayer", "hidden_layer", "units_of"]


class HiddenLayer(NamedTuple):
    """Names of the arrays around a hidden layer."""

    below: str
    """W_l (h, n), into it."""
    above: str
    """W_{l+1} (m, h), out of it."""
    bias: str | None
    """b_l (h,), or None."""


def hidden_layer(model: Any, layer: int = 1) -> HiddenLayer:
    """The arrays W_l (h, n), W_{l+1} (m, h) and b_l (h,) of a model, or an ArgumentError that says what is wanted."""
    layer = _check.count("layer", layer)
    below, above, bias = f"W{layer}", f"W{layer + 1}", f"b{layer}"
    shapes = getattr(model, "shapes", {})
    chained = hasattr(model, "unflatten") and not isinstance(model, (Product, DiagonalLinear))
    chained = chained and all(len(shapes.get(name, ())) == 2 for name in (below, above))
    if not (chained and shapes[above][1] == shapes[below][0]):
        raise ArgumentError(
            f"model must have a hidden layer {layer}: matrices {below} (h, n) and {above} (m, h), got {model!r}"
        )
    return HiddenLayer(below, above, bias if bias in shapes else None)


def units_of(model: Any) -> str | None:
    """What the hidden units of a model do: the name of an activation, "radial", another word, or None: not known."""
    if isinstance(model, DeepLinear):
        return "identity"
    if isinstance(model, RadialNetwork):
        return "radial"
    if isinstance(model, ScaleInvariant):
        return "scale-invariant"
    return getattr(model, "activation", None)
