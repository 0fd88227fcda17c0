"""Names and generators of the symmetries of linear layers, of products of two factors, and of rotated hidden units.

    W_l ↦ -B W_l, W_{l+1} ↦ W_{l+1} B: any B of a hidden layer that is linear, an antisymmetric one where the layer
    is seen through lengths and products alone;
    where W_{l+1} has one row u, δW_l[:, a] = P u, and where W_l has one column w, δW_{l+1}[a, :] = (P w)ᵀ, for an
    antisymmetric P: uᵀP u = 0.

"B[0,1]" is the symmetric B with 1 at (0, 1) and (1, 0), "rotation(0,1)" the antisymmetric one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from sgdsde.algebra import Generator, Scattered
from sgdsde.models.naming import Family

__all__ = ["crossings", "layer_label", "pair", "pairs", "product_pairs", "rotations", "shears"]

Make = Callable[[np.ndarray, int, str], Generator]
"""(B, layer, name) -> the generator of B."""


def pair(h: int, i: int, j: int, sign: float = 1.0) -> np.ndarray:
    """(h, h): 1 at (i, j), `sign` at (j, i); for i = j one 1."""
    B = np.zeros((h, h))
    B[j, i] = sign
    B[i, j] = 1.0
    return B


def layer_label(depth: int, layer: int) -> str:
    """In front of names: nothing for one hidden layer, else "layer1:", …"""
    return "" if depth == 2 else f"layer{layer}:"


def pairs(dims: tuple[int, ...], make: Make) -> Iterator[Family[Any]]:
    """All B of each hidden layer: the symmetric ones, then the antisymmetric ones."""
    for layer, h in enumerate(dims[1:-1], start=1):
        label = layer_label(len(dims) - 1, layer)
        if h > 1:  # else B = I is all
            yield Family(f"{label}B[", h, partial(_of_pair, make, h, layer, 1.0), charged=True, twice=True)
        yield from _rotations_of(label, h, layer, make)


def rotations(dims: tuple[int, ...], make: Make) -> Iterator[Family[Any]]:
    """The antisymmetric B of each hidden layer."""
    for layer, h in enumerate(dims[1:-1], start=1):
        yield from _rotations_of(layer_label(len(dims) - 1, layer), h, layer, make)


def _rotations_of(label: str, h: int, layer: int, make: Make) -> Iterator[Family[Any]]:
    yield Family(f"{label}rotation(", h, partial(_of_pair, make, h, layer, -1.0))


def _of_pair(make: Make, h: int, layer: int, sign: float, i: int, j: int, name: str) -> Generator:
    return make(pair(h, i, j, sign), layer, name)


def shears(dims: tuple[int, ...], places: dict[str, slice], biases: bool = False) -> Iterator[Family[Any]]:
    """What hidden layers between one input, or one output, have beside B.

    "shear[a](i,j)" moves column a of W_l, the matrix below, where W_{l+1} has one row; "shear[b](i,j)" the bias,
    which is one column more. "shear[out,a](i,j)" moves row a of W_{l+1} where W_l has one column, and no bias beside
    it. Between one and one, "crossing(i,j)" and "twist(i,j)" are their symmetric and antisymmetric sums.
    """
    dim = max(at.stop for at in places.values())
    for layer, h in enumerate(dims[1:-1], start=1):
        label, below, above = layer_label(len(dims) - 1, layer), dims[layer - 1], dims[layer + 1]
        down, up = places[f"W{layer}"].start, places[f"W{layer + 1}"].start
        rows = [range(up + a * h, up + (a + 1) * h) for a in range(above)]
        columns = [range(down + a, down + h * below, below) for a in range(below)]
        if above == below == 1 and not biases:
            yield from crossings(label, dim, columns[0], rows[0])
            continue
        if above == 1:
            for a in range(below):
                yield Family(f"{label}shear[{a}](", h, partial(_four, dim, SHEAR, columns[a], rows[0]))
            if biases:
                start = places[f"b{layer}"].start
                yield Family(f"{label}shear[b](", h, partial(_four, dim, SHEAR, range(start, start + h), rows[0]))
        if below == 1 and not biases:
            for a in range(above):
                yield Family(f"{label}shear[out,{a}](", h, partial(_four, dim, SHEAR, rows[a], columns[0]))


def crossings(label: str, dim: int, u: Sequence[int], w: Sequence[int]) -> Iterator[Family[Any]]:
    """Of u·w: u_i w_j - u_j w_i is half of the charge of "crossing(i,j)"; "twist(i,j)" has none."""
    yield Family(f"{label}crossing(", len(u), partial(_four, dim, CROSSING, u, w), charged=True)
    yield Family(f"{label}twist(", len(u), partial(_four, dim, TWIST, u, w))


def product_pairs(label: str, dim: int, u: Sequence[int], w: Sequence[int]) -> Iterator[Family[Any]]:
    """What u·w has beside the rescalings of one unit: with them all of so(h, h), h(2h - 1) generators.

    "mixing(i,j)" has the charge 2(u_iu_j - w_iw_j), "rotation(i,j)" turns u and w alike; `crossings` has the others.
    """
    yield Family(f"{label}mixing(", len(u), partial(_four, dim, MIXING, u, w), charged=True)
    yield from crossings(label, dim, u, w)
    yield Family(f"{label}rotation(", len(u), partial(_four, dim, ROTATION, u, w))


# Rows and columns are u_i, u_j, w_i, w_j.
SHEAR = ((0, 0, 0, 1), (0, 0, -1, 0), (0, 0, 0, 0), (0, 0, 0, 0))
CROSSING = ((0, 0, 0, 1), (0, 0, -1, 0), (0, -1, 0, 0), (1, 0, 0, 0))
TWIST = ((0, 0, 0, 1), (0, 0, -1, 0), (0, 1, 0, 0), (-1, 0, 0, 0))
MIXING = ((0, 1, 0, 0), (1, 0, 0, 0), (0, 0, 0, -1), (0, 0, -1, 0))
ROTATION = ((0, 1, 0, 0), (-1, 0, 0, 0), (0, 0, 0, 1), (0, 0, -1, 0))


def _four(dim: int, A: Any, u: Sequence[int], w: Sequence[int], i: int, j: int, name: str) -> Generator:
    """A on (u_i, u_j, w_i, w_j)."""
    return Generator.blocks([Scattered(dim, [u[i], u[j], w[i], w[j]], A)], name)
