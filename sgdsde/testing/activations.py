"""The balance of each hidden unit of a network with relu or leaky relu, in every step of SGD."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.models import MLP
from sgdsde.symmetry import Charge
from sgdsde.testing._holding import hold
from sgdsde.testing._scales import ROUNDING, gradient_sizes, needs_samples
from sgdsde.testing.steps import all_batches, batch_steps

__all__ = ["assert_unit_balance"]


def assert_unit_balance(problem: Any, theta: Any, batches: Any = None) -> float:
    """q = ‖u_i‖² - ‖w_i‖² - b_i² of every hidden unit i: q' = (1 - 2ηγ)²q + η²(‖ĝ_u‖² - ‖ĝ_w‖² - ĝ_b²), for each batch.

    w_i and b_i lead into the unit, u_i out of it. And -q is the charge of the generator "W1/W2[i]". Source: φ(cz) =
    cφ(z) for c > 0, so the unit may be rescaled (Du, Hu, Lee 2018, arXiv 1806.00900, theorem 2.1, for gradient flow);
    `assert_discrete_law`. At a kink it holds for every subgradient, because z = 0 there.

    Parameters
    ----------
    problem : SGD
        Of `models.MLP` with hidden layers and activation "relu", "leaky_relu" or "identity".
    theta : (d,) array_like
    batches : (n, S) array_like of int, optional
        Default: every batch that SGD can draw.

    Notes
    -----
    Through the STEP kernel, against ĝ from the gradients of single samples. Tolerance 64·d·eps·(‖θ‖ + η·max‖g_i‖)².
    Where rounding alone decides on which side of a kink a unit is, the two may take different sides.
    """
    needs_samples(problem, "this law")
    model = problem.model
    if not isinstance(model, MLP) or model.depth < 2 or model.activation not in ("relu", "leaky_relu", "identity"):
        raise ArgumentError(f"problem must be of an MLP with hidden layers and relu or leaky relu, got {model!r}")
    x = _check.array("theta", theta, (model.dim,))
    batches = all_batches(problem) if batches is None else np.asarray(batches)
    eta = problem.learning_rate
    states = batch_steps(problem, x, batches)
    wanted = (1 - 2 * eta * problem.gamma) ** 2 * _balances(model, x)
    wanted = wanted + eta**2 * _balances(model, problem.per_sample_gradients(x)[batches].mean(axis=1))
    tolerance = ROUNDING * x.size * (np.linalg.norm(x) + eta * gradient_sizes(problem, x).max()) ** 2
    words = {"problem": problem, "theta": x}
    law = "q' = (1-2ηγ)²q + η²(‖ĝ_u‖² - ‖ĝ_w‖² - ĝ_b²)"
    worst = hold(law, _balances(model, states), wanted, tolerance, **words, batch=lambda i: batches[i[0]])
    if model.activation == "identity":
        return worst
    names = [f"W{k}/W{k + 1}[{i}]" for k in range(1, model.depth) for i in range(model.dims[k])]
    known = model.symmetries()
    charges = np.stack([Charge(known[name])(states) for name in names], axis=-1)
    return max(worst, hold("-q is the unit's charge", charges, -_balances(model, states), tolerance, **words))


def _balances(model: MLP, theta: np.ndarray) -> np.ndarray:
    """q of every hidden unit, layer after layer, (..., units)."""
    arrays = model.unflatten(theta)
    found = []
    for into, out in pairwise(range(1, model.depth + 1)):
        q = np.sum(arrays[f"W{out}"] ** 2, axis=-2) - np.sum(arrays[f"W{into}"] ** 2, axis=-1)
        found.append(q - arrays[f"b{into}"] ** 2 if model.biases else q)
    return np.concatenate(found, axis=-1)
