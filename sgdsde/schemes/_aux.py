"""What steps need of the Brownian path beyond its increments: iterated integrals and space-time areas, as `Aux`.

The kernels of iterated integrals are compiled when `iterated` is called: a page calls it where it makes its Scheme.
"""

from __future__ import annotations

import math

from sgdsde._abi import AUX, AUXILIARY
from sgdsde._jit import kernel
from sgdsde.random.normal import fill_normals
from sgdsde.schemes._scheme import Aux

__all__ = ["fill_space_time", "iterated", "space_time"]

INV_ROOT_12 = 1.0 / math.sqrt(12.0)


@kernel(AUX)
def fill_space_time(aux, dW, h, path, step, key, p, data, work):
    """aux[j] = H_j = (1/h) ∫ (W_j(u) − (u/h) ΔW_j) du ~ N(0, h/12), independent of ΔW; I_(j,0) = h (½ΔW_j + H_j)."""
    rows = aux.shape[0]
    fill_normals(aux, step * rows, path, AUXILIARY, key)
    for j in range(rows):  # a square root for every number is cheaper than to go down columns
        for b in range(aux.shape[1]):
            aux[j, b] *= math.sqrt(h[b]) * INV_ROOT_12


def space_time() -> Aux:
    """H of every Brownian motion, m rows (J. Foster, H. Oberhauser, T. Lyons 2020)."""
    return Aux(fill_space_time, rows=lambda d, m: m, brownian="space-time")


def iterated(calculus: str) -> Aux:
    """I_(i,j) (Itô) or J_(i,j) (Stratonovich) in row i·m + j, i the earlier index; the areas err by h^{3/2}."""
    from sgdsde.random import levy_kernels

    fill = levy_kernels.fill_ito if calculus == "ito" else levy_kernels.fill_stratonovich
    work = levy_kernels.integrals_work
    return Aux(fill, rows=lambda d, m: m * m, work=lambda d, m: work(m), brownian=calculus)
