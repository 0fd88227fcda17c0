"""The symmetries that the architecture of an `MLP` has: rescalings of hidden units, translations of the last layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, Generator, Scattered, translation
from sgdsde.algebra.block import Block, Diagonal, Zero
from sgdsde.algebra.sandwich import Sandwich
from sgdsde.models import linear_symmetry
from sgdsde.models.naming import Family, Named

__all__ = ["generator", "packed", "symmetries", "translations"]


def symmetries(model: Any) -> Named[Generator | Affine]:
    """See `MLP.symmetries`."""
    own: dict[str, Callable[[], Any]] = {}
    families: list[Family[Any]] = []
    if model.activation == "identity":
        families += linear_symmetry.pairs(model.dims, partial(_make, model))
        families += linear_symmetry.shears(model.dims, model.places(), bool(model.biases))
    for layer in range(1, model.depth):
        n = model.dims[layer]
        if model.activation == "identity":
            name = f"{linear_symmetry.layer_label(model.depth, layer)}B=I"
            own[name] = partial(_make, model, np.ones(n), layer, name)
        elif model.activation in ("relu", "leaky_relu"):
            name = f"W{layer}/W{layer + 1}"
            own[name] = partial(_make, model, -np.ones(n), layer, name)
            for unit in range(n):
                own[f"{name}[{unit}]"] = partial(_unit, model, unit, layer, f"{name}[{unit}]")
    if model.activation == "identity" and model.biases:
        for layer in range(1, model.depth):
            for unit in range(model.dims[layer]):
                name = f"b{layer}/b{layer + 1}[{unit}]"
                own[name] = partial(_bias, model, unit, layer, name)
    for name in _translated(model):
        own[name] = partial(_translation, model, name)
    return Named(own, families)


def translations(model: Any) -> Mapping[str, np.ndarray]:
    """See `MLP.translations`."""
    return Named({name: partial(_direction, model, name) for name in _translated(model)})


def _translated(model: Any) -> list[str]:
    """The names of what softmax does not see."""
    if model.loss_function.name != "softmax":
        return []
    top = model.depth
    return ([f"b{top}"] if model.biases else []) + [f"W{top}[:,{j}]" for j in range(model.dims[-2])]


def _translation(model: Any, name: str) -> Affine:
    return translation(_direction(model, name), name)


def _bias(model: Any, unit: int, layer: int, name: str) -> Affine:
    """b_l ↦ b_l + λe_unit, b_{l+1} ↦ b_{l+1} - λW_{l+1}e_unit: what a linear layer passes on, taken back."""
    places, columns, rows = model.places(), model.dims[layer], model.dims[layer + 1]
    first = places[f"W{layer + 1}"].start + unit
    seen, moved = range(first, first + rows * columns, columns), places[f"b{layer + 1}"]
    A = np.zeros((2 * rows, 2 * rows))
    A[rows:, :rows] = -np.eye(rows)
    shift = np.zeros(model.dim)
    shift[places[f"b{layer}"].start + unit] = 1.0
    return Affine(Generator.blocks([Scattered(model.dim, [*seen, *range(moved.start, moved.stop)], A)]), shift, name)


def _direction(model: Any, name: str) -> np.ndarray:
    array, _, column = name.partition("[:,")
    block = np.zeros(model.shapes[array])
    block[(slice(None), int(column[:-1])) if column else slice(None)] = 1.0
    v = np.zeros(model.dim)
    v[model.places()[array]] = block.ravel()
    return v


def generator(model: Any, B: Any, layer: int, name: str) -> Generator:
    """See `MLP.generator`."""
    if model.depth < 2:
        raise ArgumentError("generator needs a hidden layer, and a network of one matrix has none")
    layer = _check.count("layer", layer, most=model.depth - 1)
    n = model.dims[layer]
    B = _check.array("B", B)
    if B.shape != (n, n):
        raise ShapeError(f"B must have shape ({n}, {n}) for hidden layer {layer} of {model!r}, got {B.shape}")
    diagonal = np.diagonal(B)
    is_diagonal = np.array_equal(np.diag(diagonal), B)
    if model.activation in ("relu", "leaky_relu") and not is_diagonal:
        raise ArgumentError(f"B must be diagonal for activation {model.activation!r}: its units rescale one by one")
    if model.activation not in ("identity", "relu", "leaky_relu"):
        raise ArgumentError(f"generator needs activation 'identity', 'relu' or 'leaky_relu', got {model.activation!r}")
    return _make(model, diagonal if is_diagonal else B, layer, name)


def _unit(model: Any, unit: int, layer: int, name: str) -> Generator:
    diagonal = np.zeros(model.dims[layer])
    diagonal[unit] = -1.0
    return _make(model, diagonal, layer, name)


def _make(model: Any, B: np.ndarray, layer: int, name: str) -> Generator:
    """W_l ↦ -B W_l, b_l ↦ -B b_l, W_{l+1} ↦ W_{l+1} B for B (n, n), or its diagonal (n,)."""
    blocks: list[Block] = []
    for array, shape in model.shapes.items():
        into, out = array in (f"W{layer}", f"b{layer}"), array == f"W{layer + 1}"
        size = int(np.prod(shape))
        if not into and not out:
            blocks.append(Zero(size))
        elif B.ndim == 1:
            blocks.append(Diagonal(np.repeat(-B, size // B.size) if into else np.tile(B, size // B.size)))
        else:
            grid = shape if len(shape) == 2 else (size, 1)
            blocks.append(Sandwich(grid, -B, None) if into else Sandwich(grid, None, B))
    return Generator.blocks(blocks, name)


def packed(model: Any, generator: Generator) -> np.ndarray | None:
    """The numbers of a generator as `mlp_charge` reads them; None where it does not act array by array."""
    grids = [shape if len(shape) == 2 else (shape[0], 1) for shape in model.shapes.values()]
    layers = generator.layers(grids)
    if layers is None:
        return None
    numbers = [np.array([generator.norm])]
    for pair in layers:
        kinds, values = zip(*(_packed_factor(m) for m in pair))
        numbers += [np.array(kinds, dtype=np.float64), *values]
    return np.concatenate(numbers)


def _packed_factor(matrix: np.ndarray | None) -> tuple[int, np.ndarray]:
    """Kind and numbers of L or R."""
    absent, scalar, diagonal, whole = range(4)
    if matrix is None:
        return absent, np.empty(0)
    entries = np.diagonal(matrix)
    if not np.array_equal(np.diag(entries), matrix):
        return whole, matrix.ravel()
    if (entries == entries[0]).all():
        return scalar, entries[:1].copy()
    return diagonal, entries.copy()
