"""What is drawn: a step of SGD, of any sampling, and of SVAG, has the mean and the covariance of its SDE."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.sgd.optimizers import SVAG
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import ROUNDING, gradient_sizes, needs_samples
from sgdsde.testing.steps import MOST, all_batches, count_batches, run_steps

__all__ = ["assert_sampling"]


def assert_sampling(problem: Any, theta: Any) -> float:
    """E θ' = θ - h∇L_γ and Cov θ' = h·2σ²ρΣ over all batches: what Euler-Maruyama of the SDE has for a step h.

    h = η for SGD, ρ = 1 with replacement and (N - S)/(N - 1) without (which one batch of an epoch is too); h = η/l for
    SVAG(l), over all pairs of batches. So the SDE has the two first moments of the dynamics right, and only those.
    Source: sampling from a finite population (Cochran 1977, theorem 2.2); SVAG: Li, Malladi & Arora 2021 (arXiv
    2102.12470).

    Parameters
    ----------
    problem : SGD
        With samples; plain, or with the optimizer SVAG.
    theta : (d,) array_like

    Raises
    ------
    ArgumentError
        If there are more than 4096 batches, or pairs of them.

    Notes
    -----
    Through the STEP kernel, against `gradient`, `covariance` and `noise_scale`. Tolerance 64·d·eps·(‖θ‖ + V) for the
    mean, V = w·h·max‖g_i‖, w the sum of the moduli of the weights of the two batches, 1 for SGD. For the covariance
    that times V, and the square of that.
    """
    needs_samples(problem, "this law")
    x = _check.array("theta", theta, (problem.model.dim,))
    optimizer = problem.optimizer
    if optimizer is not None and not isinstance(optimizer, SVAG):
        raise ArgumentError(f"problem must be plain SGD or SVAG for this law, got {problem!r}")
    batches, weight, h = all_batches(problem), 1.0, problem.learning_rate
    if optimizer is not None:
        if count_batches(problem) ** 2 > MOST:
            raise ArgumentError(f"problem has {len(batches) ** 2} pairs of batches and at most {MOST} are enumerated")
        batches = np.array([np.concatenate(pair) for pair in itertools.product(batches, repeat=2)])
        weight, h = float(np.abs(optimizer.numbers()).sum()), h / optimizer.l
    ends = run_steps(problem, x, batches)
    mean = ends.mean(axis=0)
    covariance = (ends - mean).T @ (ends - mean) / len(ends)
    moved = weight * h * gradient_sizes(problem, x).max()
    rounding = ROUNDING * x.size * (np.linalg.norm(x) + moved)
    words = {"problem": problem, "theta": x}
    return max(
        hold("E θ' = θ - h∇L_γ", mean, x - h * (problem.gradient(x) + 2 * problem.gamma * x), rounding, **words),
        hold(
            "Cov θ' = h·2σ²ρΣ", covariance, h * 2 * problem.noise_scale * problem.covariance(x),
            rounding * moved + rounding**2, **words,
        ),
    )  # fmt: skip
