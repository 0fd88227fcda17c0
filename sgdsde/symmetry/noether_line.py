"""Line integrals ∫J·dθ along straight pieces by adaptive Gauss-Legendre quadrature: a charge from its gradient."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from sgdsde._errors import ModelError

__all__ = ["line_integral"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
DEEPEST, MOST = 46, 20_000
"""Halvings of a piece, and evaluations of J on one piece."""


def line_integral(J: Callable[[np.ndarray], np.ndarray], points: np.ndarray, rtol: float) -> float:
    """∫J·dθ along the polygon `points` (k, d), to `rtol`·∫|J·dθ|.

    Twelve Gauss-Legendre nodes on a piece against twelve on each half of it; a half that disagrees is halved again. A
    kink of J costs a dozen halvings, a jump some forty. The ends of the polygon are never evaluated.

    Raises
    ------
    ModelError
        J is not finite on the way, or the sum does not settle: it has a pole there, or none of it can be trusted.
    """
    return float(sum(_piece(J, a, b, rtol) for a, b in pairwise(points)))


def _piece(J: Callable[[np.ndarray], np.ndarray], a: np.ndarray, b: np.ndarray, rtol: float) -> float:
    along = b - a
    if not along.any():
        return 0.0

    def rule(left: float, right: float) -> tuple[float, float]:
        s = 0.5 * (right - left) * NODES + 0.5 * (left + right)
        values = J(a + s[:, None] * along) @ along
        if not np.isfinite(values).all():
            where = float(s[int(np.argmin(np.isfinite(values)))])
            raise ModelError(
                f"J is not finite on the line from the origin to θ, {where:.3g} of the way: "
                "go around by via= (points in between), or give an origin= in the domain of J"
            )
        half = 0.5 * (right - left)
        return half * float(WEIGHTS @ values), half * float(WEIGHTS @ np.abs(values))

    first, size = rule(0.0, 1.0)
    open_, total, calls, scale = [(0.0, 1.0, first, size, 0)], 0.0, NODES.size, size
    while open_:
        left, right, whole, whole_size, depth = open_.pop()
        middle = 0.5 * (left + right)
        (one, one_size), (two, two_size) = rule(left, middle), rule(middle, right)
        calls += 2 * NODES.size
        scale = max(scale, one_size + two_size)
        # A share of the tolerance that adds up to it over 46 levels; rounding of the sum itself is always allowed.
        # ∫|J·dθ| has to settle as well, roughly: the two sides of a pole may cancel.
        settled = abs(one_size + two_size - whole_size) <= 1e-3 * scale
        if settled and abs(one + two - whole) <= 0.02 * rtol * scale + 4e-16 * (one_size + two_size):
            total += one + two
        elif depth >= DEEPEST or calls > MOST:
            raise ModelError(
                f"the line integral of J does not settle {middle:.6g} of the way from the origin to θ: J has a pole "
                "there, or varies faster than its own size; go around by via=, or give potential="
            )
        else:
            open_ += [(left, middle, one, one_size, depth + 1), (middle, right, two, two_size, depth + 1)]
    return total
