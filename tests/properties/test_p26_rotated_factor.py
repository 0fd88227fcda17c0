"""G with dW and GO with Oᵀdw drive the same path, and (GO)(GO)ᵀ = Σ: the SDE knows the covariance alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.testing import assert_rotated_factor
from sgdsde.testing import strategies as own


@settings(max_examples=40)
@given(own.problems(max_samples=6, learning_rate=st.floats(1e-3, 0.1)), st.data())
def test_a_factor_is_free_up_to_a_rotation(problem, data):
    theta, m = data.draw(own.states(problem.model)), problem.n_samples
    size = np.linalg.norm(problem.per_sample_gradients(theta), axis=1).max()
    h = problem.learning_rate * min(1.0, (0.1 * np.linalg.norm(theta) / (1e-12 + problem.learning_rate * size)) ** 2)
    dW = np.sqrt(h) * data.draw(own.numbers((2, 3, m)))
    assert_rotated_factor(problem, theta, data.draw(own.rotations(m)), dW, h, "per-sample")
