"""What `ou_splitting` computes once for a run: the linear part of the drift, the noise, and their matrices for h."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sgdsde._errors import ArgumentError
from sgdsde.schemes._ou_matrices import SCRATCH, ou_matrices

__all__ = ["LARGEST", "numbers", "prepare"]

LARGEST = 32
"""Largest d: matrix exponentials of d × d matrices, in scratch, for every step length that occurs."""
PROBES = 8
LINEAR = 1e-10
"""A drift is linear when it differs from Bx + c by less than this fraction of the terms of that sum."""


def numbers(d: int) -> int:
    """How many numbers `prepare` makes: B, Q, c, h, whether there is a remainder, and the four matrices for h."""
    return 6 * d * d + d + 2


def prepare(equation: Any, kernels: Any, t0: float, y0: np.ndarray, h: float) -> np.ndarray:
    """B, Q = GGᵀ (zero if G depends on time), c, h, 1.0 if the drift is more than Bx + c, and the matrices for h.

    Raises
    ------
    ArgumentError
        d is too large, the drift is not finite around y0, or the noise depends on the state.
    """
    d = equation.dim
    if d > LARGEST:
        raise ArgumentError(
            f"method 'ou-splitting' takes at most {LARGEST} components, as it exponentiates d × d matrices, and this "
            f"equation has {d}: use 'euler-maruyama' or 'implicit-midpoint'"
        )
    drift, noise = _functions(equation, kernels)
    rng = np.random.default_rng(0)
    size = max(1.0, float(np.abs(y0).max()))
    states = y0[:, None] + size * rng.normal(size=(d, PROBES))
    times = t0 + h * np.concatenate([[0.0, 1.0], rng.uniform(0.0, 1000.0, PROBES - 2)])

    G = noise(t0, y0)
    others = [noise(t, x) for t, x in zip(times, states.T, strict=True)]
    tolerance = LINEAR * np.abs(G).max(initial=0.0)
    if any(np.abs(noise(t0, x) - G).max(initial=0.0) > tolerance for x in states.T):
        raise ArgumentError(
            "method 'ou-splitting' takes additive noise, and this diffusion depends on the state (it differs between "
            "y0 and states around it): declare another kind of noise, and use a method that takes it"
        )
    steady = all(np.abs(other - G).max(initial=0.0) <= tolerance for other in others)

    B, c = _linear(drift, t0, y0, float(2.0 ** np.round(np.log2(size))))
    remainder = True
    if np.isfinite(B).all():
        found = np.stack([drift(t, x[:, None])[:, 0] for t, x in zip(times, states.T, strict=True)], axis=1)
        terms = np.abs(B) @ np.abs(states) + np.abs(c)[:, None] + np.abs(found)
        remainder = not (np.abs(B @ states + c[:, None] - found) <= LINEAR * terms).all()
    if remainder:
        B, c = _linear(drift, t0, y0, 2.0**-17 * size)
        if not np.isfinite(B).all():
            raise ArgumentError("method 'ou-splitting' needs a drift that is finite around y0, to take its derivative")
    Q = G @ G.T if steady else np.zeros((d, d))
    matrices = np.empty(4 * d * d)
    ou_matrices(matrices, B.ravel(), Q.ravel(), h, d, np.empty(SCRATCH * d * d))
    return np.concatenate([B.ravel(), Q.ravel(), c, [h, float(remainder)], matrices])


def _linear(drift: Callable, t: float, y0: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """B by central differences over `step`, and c = f(y0) − B y0."""
    shifts = step * np.eye(y0.size)
    with np.errstate(all="ignore"):
        B = (drift(t, y0[:, None] + shifts) - drift(t, y0[:, None] - shifts)) / (2.0 * step)
        return np.ascontiguousarray(B), drift(t, y0[:, None])[:, 0] - B @ y0


def _functions(equation: Any, kernels: Any) -> tuple[Callable, Callable]:
    """f(t, x) for x (d, n), and G(t, x) (d, m) at one state, from the compiled increment."""
    d, m = equation.dim, equation.noise_dim

    def call(t: float, x: np.ndarray, h: float, v: np.ndarray) -> np.ndarray:
        n = x.shape[1]
        out = np.zeros((d, n))
        work = np.empty(kernels.work[0] + kernels.work[1] * n + 8)
        block = np.array(x, dtype=np.float64, order="C")
        kernels.increment(out, block, np.full(n, float(t)), np.full(n, h), v, kernels.p, kernels.data, work)
        pending = getattr(equation, "pending_error", None)
        if pending is not None and pending() is not None:  # outside of the domain of the function
            out[:] = np.nan
        return out

    def drift(t: float, x: np.ndarray) -> np.ndarray:
        return call(t, x, 1.0, np.zeros((m, x.shape[1])))

    def noise(t: float, x: np.ndarray) -> np.ndarray:
        return call(t, np.repeat(x[:, None], m, axis=1), 0.0, np.eye(m)) if m else np.zeros((d, 0))

    return drift, noise
