"""Matrices that generate linear symmetries, kept in their structure; the room knows nothing of SGD.

Offers `Generator` (apply, exp, eigenbasis, trace), its blocks, and the common ones: `rescaling`, `scaling`, `rotation`.
"""

from sgdsde.algebra.block import Block, Dense, Diagonal, Zero
from sgdsde.algebra.generator import Generator
from sgdsde.algebra.sandwich import Sandwich
from sgdsde.algebra.standard import rescaling, rotation, scaling

__all__ = ["Block", "Dense", "Diagonal", "Generator", "Sandwich", "Zero", "rescaling", "rotation", "scaling"]
