"""e^{4cλ*} = (2γb + σ²ρp)/(2γa + σ²ρm) for eigenvalues ±c and 0: the law of balance, and what decay makes of it."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from sgdsde.models.naming import charged
from sgdsde.testing import assert_closed_form
from sgdsde.testing import strategies as own


def is_diagonal(matrix):
    return np.array_equal(matrix, np.diag(np.diagonal(matrix)))


@given(own.problems(min_samples=2), st.data())
def test_the_root_is_the_closed_form(problem, data):
    known = [A for A in charged(problem.model.symmetries()).values() if is_diagonal(A.matrix)]
    A = data.draw(st.sampled_from(known))
    A, theta = data.draw(st.sampled_from([1.0, -0.5, 2.0])) * A, data.draw(own.states(problem.model))
    sigma = np.diagonal(problem.covariance(theta))
    pushes = problem.gamma * theta**2, problem.noise_scale * sigma  # A is diagonal here
    mu = np.diagonal(A.matrix)  # in the order of θ, which that of `A.eigenvalues` need not be
    up, down = mu > 0, mu < 0
    above, below = pushes[0][down].sum() + pushes[1][up].sum(), pushes[0][up].sum() + pushes[1][down].sum()
    assume(min(above, below) > 1e-9 * (1 + max(above, below)))
    assert_closed_form(problem, A, theta)
