"""The norm of weights of which only the direction matters: in every step of SGD it grows, by η²‖ĝ‖²."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde.models import ScaleInvariant
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import ROUNDING, gradient_sizes, needs_samples
from sgdsde.testing.steps import all_batches, batch_steps

__all__ = ["assert_norm_law"]


def assert_norm_law(problem: Any, theta: Any, block: str | None = None, batches: Any = None) -> float:
    """‖θ'‖² = (1 - 2ηγ)²‖θ‖² + η²‖ĝ‖² of weights that ℓ(cθ) = ℓ(θ) scales away; without decay it never decreases.

    Source: `assert_discrete_law` for A = 1: each sample's gradient is orthogonal to θ (van Laarhoven 2017, arXiv
    1706.05350).

    Parameters
    ----------
    problem : SGD
        Of `models.ScaleInvariant`, or of any model with a scale-invariant block.
    theta : (d,) array_like
        With no such block zero: there the loss has no value.
    block : str, optional
        Name of the one array of θ that is scale-invariant; default each for `ScaleInvariant(norm="layers")`, otherwise
        all of θ together.
    batches : (n, S) array_like of int, optional
        Default: every batch that SGD can draw.

    Notes
    -----
    Through the STEP kernel, against ĝ from the gradients of single samples. Tolerance 64·d·eps·(‖θ‖ + η·max‖g_i‖)², of
    the block; a decrease to as much.
    """
    needs_samples(problem, "this law")
    model = problem.model
    x = _check.array("theta", theta, (model.dim,))
    places = model.places()
    if block is not None:
        blocks = {name: places[name] for name in [_check.choice("block", block, list(places))]}
    elif isinstance(model, ScaleInvariant) and model.norm == "layers":
        blocks = places
    else:
        blocks = {"θ": slice(None)}
    batches = all_batches(problem) if batches is None else np.asarray(batches)
    eta, worst = problem.learning_rate, 0.0
    states, g = batch_steps(problem, x, batches), problem.per_sample_gradients(x)[batches].mean(axis=1)
    largest = eta * gradient_sizes(problem, x).max()
    for name, at in blocks.items():
        before, after = x[at] @ x[at], np.sum(states[:, at] ** 2, axis=1)
        wanted = (1 - 2 * eta * problem.gamma) ** 2 * before + eta**2 * np.sum(g[:, at] ** 2, axis=1)
        tolerance = ROUNDING * x.size * (np.sqrt(before) + largest) ** 2
        words: dict[str, Any] = {"problem": problem, "theta": x, "block": name, "batch": lambda i: batches[i[0]]}
        worst = max(worst, hold("‖θ'‖² = (1-2ηγ)²‖θ‖² + η²‖ĝ‖²", after, wanted, tolerance, **words))
        if problem.gamma == 0:
            fall = np.minimum(after - before, 0.0)
            worst = max(worst, hold("‖θ'‖² >= ‖θ‖² without decay", fall, 0.0, tolerance, **words))
    return worst
