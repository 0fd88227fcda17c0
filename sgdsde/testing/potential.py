"""The potential F of slow motion on an orbit, how fast a charge relaxes, and what its equilibrium depends on."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.symmetry import Charge, noise_equilibrium, orbit_potential
from sgdsde.testing._holding import BrokenLaw, hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, needs_samples, noise_of, read
from sgdsde.testing.equilibria import _condition, _end, _scale

__all__ = [
    "assert_degenerate_equilibrium",
    "assert_equilibrium_invariances",
    "assert_potential",
    "assert_relaxation_rate",
]

STEP = EPS ** (1 / 3)


def assert_potential(problem: Any, generator: Any, theta: Any, lams: Any = None) -> float:
    """F(e^{λA}θ), F = 2γ‖θ‖² + σ²ρTr Σ, is convex in λ, and dF/dλ = -dC/dt.

    Source: d²F/dλ² = Σ_k μ_k²(8γθ_k² + 4σ²ρΣ_kk) in the eigenbasis of A, from `assert_orbit_covariance`; F is the
    Kempf-Ness function of the orbit.

    Parameters
    ----------
    problem : SGD
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    lams : (n,) array_like, optional
        λ of equal distance; default nine in ±1/‖A‖.

    Notes
    -----
    Second differences to -1e-9 of the largest F, and 1e-24 of what its noise could be; the derivative by a central
    difference, to 1e-6 of 2‖A‖F.
    """
    a, x = read(problem, generator, theta)
    if a.norm == 0:
        return 0.0
    lams = np.linspace(-1, 1, 9) / a.norm if lams is None else _check.array("lams", lams, ("n",))
    words = {"problem": problem, "generator": a, "theta": x, "lams": lams}
    states = a.exp(lams, np.broadcast_to(x, (lams.size, a.dim)))
    values = orbit_potential(problem, states)
    largest = max(_scale(problem, a, state) for state in states) / a.norm
    bend = values[2:] - 2 * values[1:-1] + values[:-2]
    h = STEP / a.norm
    ends = orbit_potential(problem, np.stack([a.exp(h, x), a.exp(-h, x)]))
    scale = 2 * a.norm * ends.max() + _scale(problem, a, x)
    near = 1e-9 * np.abs(values).max() + 1e-24 * largest
    return max(
        hold("F(e^{λA}θ) is convex", np.minimum(bend, 0.0), 0.0, near, **words),
        hold("dF/dλ = -dC/dt", (ends[0] - ends[1]) / (2 * h), -Charge(a).rate(problem, x), 1e-6 * scale, **words),
    )


def assert_relaxation_rate(problem: Any, generator: Any, theta: Any) -> float:
    """-dG/dC = κ = 4γ + 2σ²ρTr[ΣA²]/‖Aθ‖² along the orbit, G = dC/dt: how fast a charge comes to rest.

    Source: dC/dλ = 2‖Aθ‖² and the slope of G (`assert_monotone_rate`).

    Parameters
    ----------
    problem, generator, theta : as in `assert_potential`
        With Aθ well above rounding; where ‖Aθ‖ < 1e-3‖A‖‖θ‖ nothing is asked.

    Notes
    -----
    By a central difference in λ, to 1e-5·κ and 1e-5 of the scale of G over ‖Aθ‖².
    """
    a, x = read(problem, generator, theta)
    speed = float(np.sum(a.apply(x) ** 2))
    if speed <= (1e-3 * a.norm) ** 2 * (x @ x):
        return 0.0
    charge, h = Charge(a), STEP / a.norm
    ends = np.stack([a.exp(h, x), a.exp(-h, x)])
    G, C = charge.rate(problem, ends), charge(ends)
    kappa = charge.relaxation_rate(problem, x)
    tolerance = 1e-5 * (kappa + _scale(problem, a, x) * a.norm / speed)
    return hold("κ = -dG/dC", -(G[0] - G[1]) / (C[0] - C[1]), kappa, tolerance, problem=problem, generator=a, theta=x)


def assert_equilibrium_invariances(problem: Any, generator: Any, theta: Any, factor: float = 3.0) -> float:
    """λ* stays as it is when γ and σ² are multiplied by one number, when every sample is there twice, and in any order.

    Parameters
    ----------
    problem : SGD
        With samples, with replacement (ρ knows how many samples there are).
    generator, theta : as in `assert_potential`
    factor : float
        > 0.

    Notes
    -----
    Tolerance 1e-10·(1 + |λ*|‖A‖)/‖A‖ and the rounding of G over its slope (`assert_equilibrium_on_orbit`).
    """
    needs_samples(problem, "the invariance under doubling")
    a, x = read(problem, generator, theta)
    factor = _check.positive("factor", factor)
    found = noise_equilibrium(problem, x, a)
    X, Y = np.asarray(problem.X), np.asarray(problem.Y)
    order = np.random.default_rng(0).permutation(len(X))
    numbers = {"learning_rate": problem.learning_rate, "batch_size": problem.batch_size, "gamma": problem.gamma}
    changed = {
        "γ and σ² times a number": problem.replace(
            learning_rate=factor * problem.learning_rate, gamma=factor * problem.gamma
        ),
        "every sample twice": type(problem)(problem.model, np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0), **numbers),
        "samples in another order": type(problem)(problem.model, X[order], Y[order], **numbers),
    }
    worst, words = 0.0, {"problem": problem, "generator": a, "theta": x, "factor": factor}
    for what, other in changed.items():
        there = noise_equilibrium(other, x, a)
        if there.status != found.status:
            raise BrokenLaw(f"the status is the same with {what}", np.nan, np.nan, 0.0, (), words)
        if found.status == "finite" and a.norm > 0:
            end = _end(found)
            tolerance = 1e-10 * (1 + abs(found.lam) * a.norm) / a.norm + _condition(problem, a, x, end)
            worst = max(worst, hold(f"λ* is the same with {what}", there.lam, found.lam, tolerance, **words))
    return worst


def assert_degenerate_equilibrium(problem: Any, generator: Any, theta: Any, lams: Any = None) -> float:
    """Without noise along A (AΣA = 0) and without decay the status is 'degenerate' and dC/dt = 0 on the whole orbit.

    Parameters
    ----------
    problem : SGD
        With γ = 0 and gradients that agree along A, as when all samples are one.
    generator, theta, lams : as in `assert_potential`

    Notes
    -----
    dC/dt to 64·d·eps·‖A‖·2σ²ρ·max‖g_i‖² at each point.
    """
    a, x = read(problem, generator, theta)
    found = noise_equilibrium(problem, x, a)
    words = {"problem": problem, "generator": a, "theta": x, "equilibrium": found}
    if found.status != "degenerate" or not np.isnan(found.lam):
        raise BrokenLaw("the equilibrium is degenerate", found.lam, np.nan, 0.0, (), words)
    lams = np.linspace(-1, 1, 5) / max(a.norm, EPS) if lams is None else _check.array("lams", lams, ("n",))
    states = a.exp(lams, np.broadcast_to(x, (lams.size, a.dim)))
    sizes = np.array([gradient_sizes(problem, state).max() for state in states])
    tolerance = ROUNDING * a.dim * a.norm * noise_of(problem) * sizes**2
    return hold("dC/dt = 0 on the orbit", Charge(a).rate(problem, states), 0.0, tolerance, lams=lams, **words)
