"""The drift between Itô and Stratonovich: c = ½Σ_j(b_j·∇)b_j, what it is for SGD's noise, and what along an orbit."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ModelError
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, noise_of, read, slope

__all__ = ["assert_correction", "assert_orbit_correction"]

STEP = EPS ** (1 / 3)


def assert_correction(problem: Any, theta: Any, factor: Any = None) -> float:
    """c = σ²ρΣ_j(G_j·∇)G_j, column by column, and for a model's own factor (σ²ρ/2)∇Tr Σ: the CORRECTION kernel.

    The Stratonovich form of the SDE has the drift -∇(L + γ‖θ‖²) - c. Source: Σ_j(G_j·∇)G_j = (1/N)Σ_i H_i(g_i - ḡ), H_i
    the Hessians, which is half the gradient of Tr Σ = mean‖g_i‖² - ‖ḡ‖²; Another factor of
    the same Σ has another c.

    Parameters
    ----------
    problem : SGD
    theta : (d,) array_like
        Not within 1e-5 of a kink.
    factor : as in `SGD.sde`
        One with a correction in closed form: the model's own.

    Notes
    -----
    Against central differences of `factor` along its columns and of Tr Σ, to 1e-5 of σ²ρ·Σ_j‖(G_j·∇)G_j‖; rounding
    of the differences, 64·d·eps·Σ_j‖G_j‖·max‖g_i‖ over their step, and of the kernel, 64·d·eps·max‖∇g_i‖·max‖g_i‖,
    are added.
    """
    x = _check.array("theta", theta, (problem.model.dim,))
    sde = problem.sde(factor)
    if not sde.exact_correction:
        raise ModelError(f"factor must have a correction in closed form for this law, got {sde!r}")
    kernel, half = correction(sde, x), noise_of(problem) / 2
    parts, lost, rounding = _columns(problem, x, factor)
    words = {"problem": problem, "theta": x, "factor": factor}
    tolerance = half * (1e-5 * np.linalg.norm(parts, axis=1).sum() + lost + rounding)
    found = [hold("c = σ²ρΣ_j(G_j·∇)G_j", kernel, half * parts.sum(axis=0), tolerance, **words)]
    if sde.factor.kind == "native":
        slope = np.array([
            (_trace(problem, x + s * e, factor) - _trace(problem, x - s * e, factor)) / (2 * s)
            for s, e in zip(STEP * (1 + np.abs(x)), np.eye(x.size))
        ])  # fmt: skip
        found.append(hold("c = (σ²ρ/2)∇Tr Σ", kernel, half / 2 * slope, tolerance, **words))
    return max(found)


def assert_orbit_correction(problem: Any, generator: Any, theta: Any, factor: Any = None) -> float:
    """2θᵀA·c = -2σ²ρTr[ΣA] for every factor: along the orbit the correction is the noise's part of the charge's drift.

    So the Stratonovich equation moves C by its drift alone. Source: θᵀAG_j = 0 for all θ, so θᵀA(G_j·∇)G_j = -G_jᵀAG_j.

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    factor : as in `SGD.sde`
        One that does not leak along the orbit.

    Notes
    -----
    To 1e-10 of σ²ρ‖A‖(‖θ‖Σ_j‖(G_j·∇)G_j‖ + Tr Σ), for a correction by differences to 1e-5 of it.
    """
    a, x = read(problem, generator, theta)
    sde = problem.sde(factor).bind(0.0, x)
    parts, lost, rounding = _columns(problem, x, factor)
    near, lost = (1e-10, 0.0) if sde.exact_correction else (1e-5, lost)
    scale = np.linalg.norm(x) * np.linalg.norm(parts, axis=1).sum() + np.sum(problem.factor(x, factor) ** 2)
    return hold(
        "2θᵀAc = -2σ²ρTr[ΣA]", 2 * a.apply(x) @ correction(sde, x), -noise_of(problem) * a.trace(problem.covariance(x)),
        noise_of(problem) * a.norm * (near * scale + np.linalg.norm(x) * (lost + rounding)),
        problem=problem, generator=a, theta=x, factor=factor,
    )  # fmt: skip


def correction(sde: Any, x: np.ndarray) -> np.ndarray:
    """c (d,) at θ, by the CORRECTION kernel."""
    kernels = sde.kernels(correction=True)
    fixed, per_path = kernels.work
    out = np.empty((x.size, 1))
    kernels.correction(out, x[:, None].copy(), np.zeros(1), kernels.p, kernels.data, np.empty(fixed + per_path))
    return out[:, 0]


def _columns(problem: Any, x: np.ndarray, factor: Any) -> tuple[np.ndarray, float, float]:
    """(G_j·∇)G_j by differences, (m, d), and the rounding of them, and that of Hessians times gradients."""
    G = problem.factor(x, factor)
    lengths, reach = np.linalg.norm(G, axis=0), STEP * (1 + np.linalg.norm(x))
    parts = np.zeros_like(G.T)
    for j in np.flatnonzero(lengths):
        s = reach / lengths[j]
        ends = [problem.factor(x + sign * s * G[:, j], factor)[:, j] for sign in (1, -1)]
        parts[j] = (ends[0] - ends[1]) / (2 * s)
    largest = gradient_sizes(problem, x).max()
    rounding = ROUNDING * x.size * largest
    return parts, float(rounding * lengths.sum() / reach), float(rounding * slope(problem, x))


def _trace(problem: Any, x: np.ndarray, factor: Any) -> float:
    """Tr Σ = Tr GGᵀ."""
    return float(np.sum(problem.factor(x, factor) ** 2))
