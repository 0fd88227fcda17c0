"""The charge law evaluated in Python at each tracked step: for models without a compiled kernel of their own for it.

Complete and slow: a call into Python and a pass over the per-sample gradients for each path and tracked step. The
kernel is compiled once; its number p[0] says whose law it works for. With a constant part b, the rows hold the parts of
the law of `Charge`: θ·(Aθ + b) where it says h C, θᵀAθ at h² C, ∇LᵀA∇L - 4γbᵀ∇L, and vᵀAv + 4γh bᵀv as the quadratic.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numba
import numpy as np

from sgdsde._abi import TRACK
from sgdsde._jit import kernel
from sgdsde.algebra import linear_and_shift
from sgdsde.models import charge_rows as rows
from sgdsde.run.watching import Watcher
from sgdsde.symmetry.charges import eigen_moments, gradient_form, pulls

__all__ = ["interpreted_track"]

_laws: WeakValueDictionary[int, Any] = WeakValueDictionary()


def interpreted_track(law: Any) -> Watcher:
    """A TRACK kernel for this law, in this process, as long as the law lives."""
    _laws[id(law)] = law
    return Watcher(track, np.array([float(id(law))]), np.zeros(1), rows.CHARGE_ROWS)


def _add(acc: np.ndarray, x0: np.ndarray, x1: np.ndarray, h: np.ndarray, number: float) -> None:
    law = _laws[int(number)]
    problem, generator = law.problem, law.charge.generator
    for b in range(x0.shape[1]):
        theta, moved = np.ascontiguousarray(x0[:, b]), np.ascontiguousarray(x1[:, b])
        if not (np.isfinite(theta).all() and np.isfinite(moved).all()):
            acc[:, b] = np.nan
            continue
        gamma = float(problem.gamma)
        decay = 1.0 - 2.0 * gamma * h[b]
        v = moved - decay * theta
        linear, shift = linear_and_shift(generator)
        cross = 2.0 * decay * (generator.apply(theta) @ v)
        pull, square = pulls(generator, theta)
        quadratic, norm = linear.quadratic(v), linear.norm
        if shift is not None:
            quadratic += 4.0 * gamma * h[b] * float(shift @ v)
            norm += float(np.linalg.norm(shift)) / (float(np.linalg.norm(theta)) or 1.0)
        mean, var = eigen_moments(problem, generator, theta)
        form = gradient_form(generator, mean, gamma)
        rows.add_step.py_func(
            acc, b, h[b], pull, form, generator.eigenvalues @ var, cross, quadratic, generator.quadratic(moved),
            norm, theta @ theta, v @ v,
        )  # fmt: skip
        acc[rows.SUM_H2_CHARGE, b] += h[b] ** 2 * (square - pull)  # of θᵀAθ alone, and of θ·(Aθ + b) in the row above


@kernel(TRACK, nogil=False)
def track(acc, x0, x1, t, h, p, data, work):
    number = p[0]
    with numba.objmode():
        _add(acc, x0, x1, h, number)
