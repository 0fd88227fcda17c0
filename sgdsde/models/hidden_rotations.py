"""Rotations of hidden units, the symmetry of networks that see a hidden layer through its length and products alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.algebra.block import Block, Zero
from sgdsde.algebra.sandwich import Sandwich
from sgdsde.models.linear_symmetry import rotations
from sgdsde.models.naming import Named

__all__ = ["generator", "multiples", "symmetries"]


def symmetries(model: Any, own: dict[str, Callable[[], Generator]]) -> Named[Generator]:
    """Generators by name: some of a model's own, then "rotation(i,j)" in the plane of units i < j of each hidden layer.

    For more than one hidden layer "layer1:rotation(i,j)", …; a layer of h units has h(h - 1)/2.
    """
    return Named(own, rotations(model.dims, partial(_make, model)))


def generator(model: Any, B: Any, layer: int, name: str) -> Generator:
    """W_l ↦ -B W_l, b_l ↦ -B b_l, W_{l+1} ↦ W_{l+1} B for an antisymmetric B (n_l, n_l)."""
    if model.depth < 2:
        raise ArgumentError("generator needs a hidden layer, and a network of one matrix has none")
    layer = _check.count("layer", layer, most=model.depth - 1)
    n = model.dims[layer]
    B = _check.array("B", B)
    if B.shape != (n, n):
        raise ShapeError(f"B must have shape ({n}, {n}) for hidden layer {layer} of {model!r}, got {B.shape}")
    if not np.array_equal(B, -B.T):
        raise ArgumentError(f"B must be antisymmetric: {type(model).__name__} keeps its loss under rotations alone")
    return _make(model, B, layer, name)


def _make(model: Any, B: np.ndarray, layer: int, name: str) -> Generator:
    blocks: list[Block] = []
    for array, shape in model.shapes.items():
        grid = shape if len(shape) == 2 else (shape[0], 1)
        if array in (f"W{layer}", f"b{layer}"):
            blocks.append(Sandwich(grid, -B, None))
        elif array == f"W{layer + 1}":
            blocks.append(Sandwich(grid, None, B))
        else:
            blocks.append(Zero(int(np.prod(shape))))
    return Generator.blocks(blocks, name)


def multiples(model: Any, generator: Generator) -> dict[str, float] | None:
    """Name of each array -> α, of a generator that multiplies each array by a number α; None for another."""
    layers = generator.layers([shape if len(shape) == 2 else (shape[0], 1) for shape in model.shapes.values()])
    if layers is None:
        return None
    found = {}
    for name, pair in zip(model.shapes, layers):
        present = [m for m in pair if m is not None]
        if any(not np.array_equal(m, m[0, 0] * np.eye(len(m))) for m in present):
            return None
        found[name] = float(sum(m[0, 0] for m in present))
    return found
