"""How ∫J∘dθ moves under SGD and its SDE, for any J with J·g_i = 0: the rate, and the mean of one step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models.model import NUMBERS_AT_ONCE, SAMPLES_AT_ONCE, Model
from sgdsde.symmetry.charges import ChargeTerms, as_problem
from sgdsde.symmetry.noether_fields import Field

__all__ = ["Run", "centred_gradients", "noise_form", "rate", "read_run", "terms"]

COVERED = ("sgd", "euler-maruyama")
"""Methods for which `terms` is the mean of a step."""


def centred_gradients(problem: Any, theta: np.ndarray) -> Iterator[np.ndarray]:
    """Rows δ with (1/N)Σδδᵀ = Σ, a few at a time: g_i - ∇L; of a law of the data √m times its factor's m columns."""
    if getattr(problem, "n_samples", 1) is None:
        factor = problem.factor(theta)
        yield factor.T * np.sqrt(factor.shape[1])
        return
    model = problem.model
    if not isinstance(model, Model):  # something with the functions of a problem
        g = np.asarray(problem.per_sample_gradients(theta))
        yield g - g.mean(axis=0)
        return
    mean, n = problem.gradient(theta), problem.samples.n
    rows = max(1, min(SAMPLES_AT_ONCE, NUMBERS_AT_ONCE // model.dim))
    for start in range(0, n, rows):
        yield model.per_sample_gradients(theta, problem.samples, start, min(n, start + rows)) - mean


def noise_form(field: Field, problem: Any, theta: np.ndarray) -> float:
    """Tr[Σ∇J]."""
    total, count = 0.0, 0
    for delta in centred_gradients(problem, theta):
        total += float(np.sum(field.form(theta, delta)))
        count += len(delta)
    return total / max(count, 1)


def rate(field: Field, problem: Any, theta: np.ndarray) -> float:
    """-2γθ·J + σ²ρ Tr[Σ∇J]."""
    _fits(field, problem)
    pull = float(theta @ field.apply(theta))
    return -2.0 * float(problem.gamma) * pull + float(problem.noise_scale) * noise_form(field, problem, theta)


def terms(field: Field, problem: Any, theta: np.ndarray, h: float) -> ChargeTerms:
    """E[J∘Δθ]/h for a step h of SGD (h = η) or Euler-Maruyama; with a = ∇L + 2γθ,

    -2γθ·J + σ²ρ Tr[Σ∇J] + (h/2)aᵀ∇Ja, exact for an affine J, else up to O(h²).
    """
    _fits(field, problem)
    return _terms(field, problem, theta, h)[0]


def _terms(field: Field, problem: Any, theta: np.ndarray, h: float) -> tuple[ChargeTerms, float]:
    """`terms`, and the rate, which has the same noise."""
    gamma, mean = float(problem.gamma), problem.gradient(theta)
    decayed, both = field.form(theta, np.stack([2.0 * gamma * theta, mean + 2.0 * gamma * theta]))
    pull = -2.0 * gamma * float(theta @ field.apply(theta))
    noise = float(problem.noise_scale) * noise_form(field, problem, theta)
    return ChargeTerms(pull + 0.5 * h * float(decayed), noise, 0.5 * h * float(both - decayed)), pull + noise


def _fits(field: Field, problem: Any) -> None:
    if as_problem(problem, "gradient", "gamma", "noise_scale").model.dim != field.dim:
        raise ArgumentError(f"{field.name} acts on {field.dim} components, the problem has {problem.model.dim}")


class Run(NamedTuple):
    """States of a run, (n_paths, n_times, d), and what is known of the steps between them."""

    states: np.ndarray
    t: np.ndarray
    method: str
    step: float | None
    """The step, where every step was saved."""
    problem: Any


def read_run(field: Any, solution: Any, problem: Any = None) -> Run:
    """A Solution of `SGD.run`, or of `solve` with the SDE of an SGD problem."""
    if not all(hasattr(solution, k) for k in ("y", "t", "method", "steps", "dt")):
        raise ArgumentError(f"solution must be a Solution of solve or of SGD.run, got {type(solution).__name__}")
    states = np.asarray(solution.y)
    if states.shape[-1] != field.dim:
        raise ShapeError(f"solution must hold {field.dim} components for {field.name}, got {states.shape[-1]}")
    states = states.reshape(-1, *states.shape[-2:])
    own = getattr(solution, "problem", None)
    if getattr(own, "order", 1) != 1:
        raise ArgumentError("solution must be of the SDE of order 1: the law is of that, and this is of order 2")
    own = getattr(own, "problem", own)  # the SDE of a problem has it as `problem`
    problem = own if problem is None else problem
    if not hasattr(problem, "model"):
        raise ArgumentError("problem must be given: the solution is not of an SGD problem or its SDE")
    if getattr(problem, "schedule", None) is not None:
        raise ArgumentError("problem must have a constant learning rate: with a schedule the noise is of no one rate")
    steps = np.asarray(solution.steps)
    dense = steps.size > 1 and bool(np.all(np.diff(steps) == 1))
    method = str(solution.method)
    known = method in COVERED and getattr(problem, "optimizer", None) is None
    return Run(states, np.asarray(solution.t), method, float(solution.dt) if dense and known else None, problem)


def along(field: Field, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Rate of the SDE at the saved states, (n_paths, n_times), and the predicted change over each interval.

    Where every step was saved, that is the mean of one step from its start; else the rate by the trapezoidal rule.
    """
    _fits(field, run.problem)
    rates = np.full(run.states.shape[:-1], np.nan)
    means = np.full((len(rates), max(run.t.size - 1, 0)), np.nan)
    for path, states in enumerate(run.states):
        for k, x in enumerate(states):
            if not np.isfinite(x).all():
                continue
            if run.step is None or k == means.shape[1]:
                rates[path, k] = rate(field, run.problem, x)
                continue
            found, rates[path, k] = _terms(field, run.problem, x, run.step)
            means[path, k] = run.step * found.total
    if run.step is None:
        means = 0.5 * (rates[:, 1:] + rates[:, :-1]) * np.diff(run.t)
    return rates, means
