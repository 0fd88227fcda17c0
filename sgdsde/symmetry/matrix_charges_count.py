"""How many charges are independent, beside the dimension of the orbit and of the fibre that they are to tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models.model import Model
from sgdsde.models.naming import Named
from sgdsde.symmetry.charges import Charge, as_generator

__all__ = ["ChargeCount", "charge_rank", "count_charges"]


class ChargeCount(NamedTuple):
    """Of two linear layers at a generic θ = (W, U)."""

    charges: int
    """Independent entries of Q = UᵀU - WWᵀ."""
    orbit: int
    """Dimension of {(gW, Ug⁻¹)}."""
    fibre: int
    """Dimension of {(W', U'): U'W' = UW}."""

    @property
    def uncharged(self) -> int:
        """Directions along the orbit that no charge sees: rotations that leave Q alone."""
        return self.orbit - self.charges


def count_charges(n_in: int, width: int, n_out: int) -> ChargeCount:
    """Independent charges of U (n_out, h) and W (h, n_in), against the dimensions of orbit and fibre.

    Q has h(h + 1)/2 entries, and rank at most n_in + n_out. Where h is larger than that by k, a generic Q is one of the
    symmetric matrices of rank h - k, and only **h(h + 1)/2 - k(k + 1)/2** of its entries are independent; the usual
    count h(h + 1)/2 is right for k <= 0. The orbit of GL(h) has h² - (h - n_in)₊(h - n_out)₊ dimensions, the fibre
    h(n_in + n_out) - r(n_in + n_out - r), r = min(h, n_in, n_out): they agree unless min(n_in, n_out) < h <
    max(n_in, n_out), where the larger of W and U also moves along what the smaller never reaches.

    Examples
    --------
    >>> count_charges(64, 10, 10)
    ChargeCount(charges=55, orbit=100, fibre=100)
    >>> count_charges(1, 3, 1)  # not 6
    ChargeCount(charges=5, orbit=5, fibre=5)
    """
    n_in, h, n_out = (_check.count(k, v) for k, v in (("n_in", n_in), ("width", width), ("n_out", n_out)))
    over, rank = max(0, h - n_in - n_out), min(h, n_in, n_out)
    orbit = h * h - max(0, h - n_in) * max(0, h - n_out)
    fibre = h * (n_in + n_out) - rank * (n_in + n_out - rank)
    return ChargeCount(h * (h + 1) // 2 - over * (over + 1) // 2, orbit, fibre)


def charge_rank(generators: Any, theta: Any, rtol: float = 1e-9) -> int:
    """How many charges are independent near θ: the rank of their gradients, the rows A_aθ.

    Parameters
    ----------
    generators : Model, or Generators or Charges in a sequence or mapping
        Of a model, and of its `symmetries()`, those with charges: of a `DeepLinear` every symmetric B at every hidden
        layer.
    theta : (d,) array_like
        A generic one, for the generic count: the rank is lower at special points.
    rtol : float
        Singular values below that share of the largest count as zero.

    Examples
    --------
    >>> from sgdsde.models import DeepLinear
    >>> charge_rank(DeepLinear([1, 3, 1]), [0.3, -1.2, 0.5, 0.9, 0.2, -0.7])
    5
    """
    if isinstance(generators, Model):
        generators = generators.symmetries()
    if isinstance(generators, Named):  # all of a model's: those that have charges
        generators = generators.charged()
    if not isinstance(generators, (Mapping, Sequence)):
        raise ArgumentError(f"generators must be a model, a sequence or a mapping, got {_check.show(generators)}")
    many = generators.values() if isinstance(generators, Mapping) else generators
    listed = [Charge(as_generator(a)).generator for a in many]
    if not listed:
        return 0
    theta = _check.array("theta", theta, (listed[0].dim,))
    rows = np.array([a.apply(theta) for a in listed])
    s = np.linalg.svd(rows, compute_uv=False)
    return int(np.count_nonzero(s > _check.positive("rtol", rtol) * s[0])) if s[0] > 0 else 0
