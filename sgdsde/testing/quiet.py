"""A problem without noise: its SDE is gradient descent, and a charge decays and picks up h²∇LᵀA∇L a step, no more."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import EPS, ROUNDING, gradient_sizes, noise_of, read, slope
from sgdsde.testing.steps import sde_steps

__all__ = ["assert_quiet_path"]


def assert_quiet_path(problem: Any, generator: Any, theta: Any, dW: Any = None, dt: float | None = None) -> float:
    """Samples that all agree, g_i = ḡ: Euler-Maruyama is gradient descent with decay, whatever the dW, and for it

    C_n = (1 - 2γh)^{2n}C_0 + Σ_k (1 - 2γh)^{2(n-1-k)} h²∇L_kᵀA∇L_k, while along the gradient flow C(t) = C_0e^{-4γt}.
    Source: `assert_euler_maruyama_law` with G = 0, summed up; and dC/dt = -4γC.

    Parameters
    ----------
    problem : SGD
        Of samples that are all one, or of a law of the data without noise.
    generator : Generator or (d, d) array_like
        Symmetric.
    theta : (d,) array_like
    dW : (n, n_steps, m) array_like, optional
        Default 2 rows of 10 steps of √h·N(0, 1) from a fixed seed.
    dt : float, optional
        h; default the learning rate, or less, h·max‖∇g_i‖ <= ¼, so that gradient descent does not run away: rounding
        grows with it.

    Raises
    ------
    ArgumentError
        If there is noise.

    Notes
    -----
    Paths to n_steps·64·d·eps·(max‖θ‖ + V), V = (h + √(2σ²ρ)Σ|dW|)·max‖g_i‖ of the largest step, and ‖A‖ times that
    squared for C_n, which sums along the path itself. The flow by an integrator of order 8 (`scipy`, DOP853, rtol
    1e-10), to 1e-7·‖A‖‖θ‖².
    """
    a, x = read(problem, generator, theta)
    rate = float(problem.learning_rate)
    h = min(rate, 0.25 / max(slope(problem, x), EPS)) if dt is None else _check.positive("dt", dt)
    decay, size = 1 - 2 * problem.gamma * h, gradient_sizes(problem, x).max()
    if dW is None:
        m = problem.sde().noise_dim
        dW = np.sqrt(h) * np.random.default_rng(0).standard_normal((2, 10, m))
    dW = _check.array("dW", dW, ("n", "n_steps", "m"))
    noise = float(np.abs(problem.factor(x)).max(initial=0.0))
    if noise > ROUNDING * x.size * size:
        raise ArgumentError(f"problem must have gradients that agree for this law, got a factor of {noise:.3g}")
    paths, n = sde_steps(problem, x, dW, h), dW.shape[1]
    start, descent = a.quadratic(x), [x]
    for _ in range(n):
        descent.append(decay * descent[-1] - h * problem.gradient(descent[-1]))
    steps = h * np.array([problem.gradient(state) for state in descent[:-1]])
    charges = [start]
    for step in steps:
        charges.append(decay**2 * charges[-1] + a.quadratic(step))
    sizes = max(gradient_sizes(problem, state).max() for state in descent)
    reach = np.linalg.norm(descent, axis=1).max()
    reach += (h + np.sqrt(noise_of(problem)) * np.abs(dW).sum(axis=2).max(initial=0.0)) * sizes
    flow = solve_ivp(
        lambda t, y: -problem.gradient(y) - 2 * problem.gamma * y, (0.0, n * h), x, "DOP853", rtol=1e-10,
        atol=1e-12 * np.linalg.norm(x), t_eval=h * np.arange(n + 1),
    )  # fmt: skip
    rounding = n * ROUNDING * x.size
    words = {"problem": problem, "generator": a, "theta": x, "dt": h}
    law = "C_n = (1-2γh)^{2n}C_0 + Σ(1-2γh)^{2(n-1-k)}h²∇L_kᵀA∇L_k"
    return max(
        hold("without noise Euler-Maruyama is gradient descent", paths, np.array(descent), rounding * reach, **words),
        hold(law, a.quadratic(paths), np.array(charges), rounding * a.norm * reach**2, **words),
        hold(
            "C(t) = C_0e^{-4γt} along the flow", a.quadratic(flow.y.T), start * np.exp(-4 * problem.gamma * flow.t),
            1e-7 * a.norm * (x @ x), **words,
        ),
    )  # fmt: skip
