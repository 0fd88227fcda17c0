"""Gradient descent: ‖Q_end - Q_0‖_* <= Ση²‖∇L‖² <= 2η(L_0 - L_end) over a run that descends, Q = UᵀU - WWᵀ."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.symmetry import descent_budget
from sgdsde.testing import strategies as own


def steepest(problem, theta):
    """‖∇²L‖ by its columns."""
    rows = [problem.model.hessian_vector(theta, e, problem.samples) for e in np.eye(problem.model.dim)]
    return np.abs(np.linalg.eigvalsh((np.array(rows) + np.array(rows).T) / 2)).max()


@settings(max_examples=30)
@given(own.problems(own.models(depths=(2, 3), products=False), gamma=0.0), st.floats(0.05, 0.9), st.data())
def test_the_budget_of_a_run(problem, share, data):
    theta = 0.5 * data.draw(own.states(problem.model))
    eta = share / max(steepest(problem, theta), 1e-3)
    for layer in range(1, problem.model.depth):
        budget = descent_budget(problem.replace(learning_rate=eta), theta, 6, layer)
        scale = np.abs(budget.charge).max() + theta @ theta
        assert budget.step_error <= 1e-13 * scale + 1e-14
        slack = 1e-12 * scale
        assert budget.change <= budget.path + slack
        assert budget.path <= budget.squares.sum() * (1 + 1e-9) + slack
        if budget.descends:
            assert budget.squares.sum() <= budget.bound * (1 + 1e-9) + 1e-12 * eta * budget.losses[0]
