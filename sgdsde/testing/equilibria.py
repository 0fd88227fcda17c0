"""The noise equilibrium on an orbit: the drift of the charge falls along it, so its root is one, and found."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.algebra import Generator
from sgdsde.symmetry import Charge, NoiseEquilibrium, noise_equilibrium
from sgdsde.testing._holding import BrokenLaw, hold
from sgdsde.testing._scales import ROUNDING, gradient_sizes, noise_of, read

__all__ = ["assert_closed_form", "assert_equilibrium", "assert_equilibrium_on_orbit", "assert_monotone_rate"]


def assert_monotone_rate(problem: Any, generator: Any, theta: Any, lams: Any = None) -> float:
    """λ ↦ G(e^{λA}θ) = -4γC + 2σ²ρTr[ΣA] does not increase, and its slope is the sum of squares that theory gives.

    dG/dλ = -Σ_k μ_k²(8γθ_k² + 4σ²ρΣ_kk) in the eigenbasis of A. Source: Ziyin et al. 2024 (arXiv 2402.07193, theorem
    4.3), from `assert_orbit_covariance`.

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    lams : (n,) array_like, optional
        λ, increasing; default nine values in ±1/‖A‖.

    Notes
    -----
    Each term of the slope is an exponential in λ, so that between two λ G falls by at least the smaller value of each
    term at the two ends, times their distance. That is checked, to 1e-12 of the largest 4γ‖A‖‖θ_λ‖² + 2σ²ρ‖A‖max‖g_i‖².
    """
    a, x = read(problem, generator, theta)
    if a.norm == 0:
        return 0.0
    lams = np.linspace(-1, 1, 9) / a.norm if lams is None else _check.array("lams", lams, ("n",))
    states = a.exp(lams, np.broadcast_to(x, (lams.size, a.dim)))
    rates = np.asarray(Charge(a).rate(problem, states))
    scales = [_scale(problem, a, state) for state in states]
    terms = np.array([_slope_terms(problem, a, state) for state in states])
    least = np.minimum(terms[:-1], terms[1:]).sum(axis=1) * np.diff(lams)
    rise = np.diff(rates) + least
    return hold(
        "G(e^{λA}θ) falls with λ, as fast as its slope", np.maximum(rise, 0.0), 0.0, 1e-12 * max(scales),
        problem=problem, generator=a, theta=x, lams=lams, rates=rates,
    )  # fmt: skip


def assert_equilibrium(problem: Any, generator: Any, theta: Any) -> float:
    """sign G(θ) = sign λ* = sign(C* - C), and G = 0 at a finite e^{λ*A}θ: charges move towards the noise equilibrium.

    Source: Ziyin et al. 2024 (arXiv 2402.07193, theorem 4.3): 2γC = σ²ρTr[ΣA] there.

    Parameters
    ----------
    problem, generator, theta : as in `assert_monotone_rate`

    Notes
    -----
    Signs are compared where |G(θ)| is above 1e-10 of its scale 4γ‖A‖‖θ‖² + 2σ²ρ‖A‖max‖g_i‖². G at the root to 1e-10
    of the scale there.
    """
    a, x = read(problem, generator, theta)
    found = noise_equilibrium(problem, x, a)
    rate, words = Charge(a).rate(problem, x), {"problem": problem, "generator": a, "theta": x, "equilibrium": found}
    worst = 0.0
    if abs(rate) > 1e-10 * _scale(problem, a, x):
        worst = hold("sign λ* = sign G(θ)", np.sign(found.lam), np.sign(rate), 0.0, **words)
        end = _end(found) if found.status == "finite" else x
        far = 1e-10 * a.norm * ((x @ x) + (end @ end))
        if abs(found.charge - a.quadratic(x)) > far:
            hold("sign(C* - C) = sign G(θ)", np.sign(found.charge - a.quadratic(x)), np.sign(rate), 0.0, **words)
    if found.status == "finite":
        at = _end(found)
        rest, near = 1e-10 * _scale(problem, a, at), 1e-12 * a.norm * (at @ at)
        worst = max(worst, hold("G(e^{λ*A}θ) = 0", Charge(a).rate(problem, at), 0.0, rest, **words))
        worst = max(worst, hold("C* = C(e^{λ*A}θ)", found.charge, a.quadratic(at), near, **words))
    return worst


def assert_equilibrium_on_orbit(problem: Any, generator: Any, theta: Any, lam: float) -> float:
    """λ*(e^{λA}θ) = λ*(θ) - λ and C*(e^{λA}θ) = C*(θ): the equilibrium belongs to the orbit, not to the point on it.

    Source: uniqueness in theorem 4.3 of Ziyin et al. 2024 (arXiv 2402.07193).

    Parameters
    ----------
    problem, generator, theta : as in `assert_monotone_rate`
    lam : float
        λ, with |λ|‖A‖ of order 1.

    Notes
    -----
    Tolerance 1e-8·(1 + |λ*|‖A‖)/‖A‖ for λ*, plus the rounding of G divided by its slope at the root, 64·d·eps·scale·
    e^{2|λ|‖A‖}/Σ_k μ_k²(8γθ_k² + 4σ²ρΣ_kk); for C* the same times dC/dλ = 2‖Aθ*‖². A status must not change.
    """
    a, x = read(problem, generator, theta)
    lam = _check.number("lam", lam)
    here, there = noise_equilibrium(problem, x, a), noise_equilibrium(problem, a.exp(lam, x), a)
    words = {"problem": problem, "generator": a, "theta": x, "lam": lam, "here": here, "there": there}
    if here.status != there.status:
        raise BrokenLaw("the status is the same on the whole orbit", np.nan, np.nan, 0.0, (), words)
    if here.status != "finite" or a.norm == 0:
        return 0.0
    root = _end(here)
    condition = _condition(problem, a, x, root) * np.exp(2 * abs(lam) * a.norm)
    tolerance = 1e-8 * (1 + abs(here.lam) * a.norm) / a.norm + condition
    speed = 2 * float(np.sum(a.apply(root) ** 2))
    charge_tolerance = speed * tolerance + 1e-8 * a.norm * float(root @ root)
    return max(
        hold("λ*(e^{λA}θ) + λ = λ*(θ)", there.lam + lam, here.lam, tolerance, **words),
        hold("C*(e^{λA}θ) = C*(θ)", there.charge, here.charge, charge_tolerance, **words),
    )


def assert_closed_form(problem: Any, generator: Any, theta: Any) -> float:
    """e^{4cλ*} = (2γb + σ²ρp)/(2γa + σ²ρm) for eigenvalues c, 0, -c of A, as for a rescaling or B = 1 of linear layers.

    a = ‖P₊θ‖², b = ‖P₋θ‖², p = Tr ΣP₊, m = Tr ΣP₋; at γ = 0 the law of balance of Ziyin et al. 2023 (arXiv 2308.06671).

    Parameters
    ----------
    problem, generator, theta : as in `assert_monotone_rate`
        With p + b > 0 and m + a > 0 well above rounding, so that the equilibrium is finite.

    Notes
    -----
    Tolerance 1e-10·(1 + |λ*|c)/c, plus the rounding of G over its slope at the root (`assert_equilibrium_on_orbit`).
    """
    a, x = read(problem, generator, theta)
    c, (mu, squares, variances) = a.norm, _spectrum(problem, a, x)
    if not np.all(np.isclose(np.abs(mu), c) | (mu == 0.0)) or c == 0:
        raise ArgumentError(f"generator must have the eigenvalues c, 0 and -c alone, got {np.unique(mu)}")
    gamma, noise, up, down = problem.gamma, noise_of(problem) / 2, mu > 0, mu < 0
    above = 2 * gamma * squares[down].sum() + noise * variances[up].sum()
    below = 2 * gamma * squares[up].sum() + noise * variances[down].sum()
    found = noise_equilibrium(problem, x, a)
    with np.errstate(divide="ignore"):
        wanted = (np.log(above) - np.log(below)) / (4 * c)
    words = {"problem": problem, "generator": a, "theta": x, "equilibrium": found}
    if found.theta is None or not np.isfinite(wanted):
        raise BrokenLaw("λ* is finite where both sides push", found.lam, float(wanted), 0.0, (), words)
    tolerance = 1e-10 * (1 + abs(wanted) * c) / c + _condition(problem, a, x, found.theta)
    return hold("e^{4cλ*} = (2γb + σ²ρp)/(2γa + σ²ρm)", found.lam, wanted, tolerance, **words)


def _end(found: NoiseEquilibrium) -> np.ndarray:
    """e^{λ*A}θ of a finite equilibrium."""
    assert found.theta is not None
    return found.theta


def _scale(problem: Any, a: Generator, x: np.ndarray) -> float:
    """4γ‖A‖‖θ‖² + 2σ²ρ‖A‖max‖g_i‖²: what G is the rest of."""
    largest = gradient_sizes(problem, x).max()
    return float(a.norm * (4 * problem.gamma * (x @ x) + noise_of(problem) * largest**2))


def _slope_terms(problem: Any, a: Generator, x: np.ndarray) -> np.ndarray:
    """-dG/dλ term by term: decay and noise of each component in the eigenbasis, (2d,)."""
    mu, squares, variances = _spectrum(problem, a, x)
    return np.concatenate([8 * problem.gamma * mu**2 * squares, 2 * noise_of(problem) * mu**2 * variances])


def _spectrum(problem: Any, a: Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues of A, and θ_k² and Σ_kk in its eigenbasis, (d,) each, from the dense Σ."""
    sigma = a.to_eigenbasis(a.to_eigenbasis(problem.covariance(x)).T)
    return a.eigenvalues, a.to_eigenbasis(x) ** 2, np.diagonal(sigma)


def _condition(problem: Any, a: Generator, x: np.ndarray, root: np.ndarray) -> float:
    """How far rounding of G, at θ and at the root, may move λ*."""
    slope = _slope_terms(problem, a, root).sum()
    rounding = ROUNDING * a.dim * max(_scale(problem, a, root), _scale(problem, a, x))
    return float(rounding / slope) if slope > 0 else np.inf
