"""Matrices that generate linear symmetries, kept in their structure; the room knows nothing of SGD.

Offers `Generator` (apply, exp, eigenbasis, trace), its blocks, `Affine` for J(θ) = Aθ + b, and the common ones:
`rescaling`, `scaling`, `rotation`, `translation`.
"""

from sgdsde.algebra.affine import Affine, linear_and_shift
from sgdsde.algebra.block import Block, Dense, Diagonal, Zero
from sgdsde.algebra.generator import Generator
from sgdsde.algebra.sandwich import Sandwich
from sgdsde.algebra.scattered import Scattered
from sgdsde.algebra.standard import rescaling, rotation, scaling, translation

__all__ = [
    "Affine",
    "Block",
    "Dense",
    "Diagonal",
    "Generator",
    "Sandwich",
    "Scattered",
    "Zero",
    "linear_and_shift",
    "rescaling",
    "rotation",
    "scaling",
    "translation",
]
