"""u² - w² of SGD on ℓ(uw) keeps its sign and does not grow, as long as no |ĉ| is above 1 - 2ηγ."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sgdsde.models import Product
from sgdsde.testing import assert_uw_sign
from sgdsde.testing import strategies as own


@pytest.mark.filterwarnings("ignore::sgdsde.DivergenceWarning")  # large |ĉ|
@settings(max_examples=40)
@given(own.problems(st.builds(Product, st.integers(1, 3))), st.data(), st.integers(0, 99))
def test_paths(problem, data, seed):
    theta = data.draw(own.states(problem.model))
    slopes = 2 * problem.model.scale * (problem.model.value(theta) * problem.X - problem.Y) * problem.X
    assume(np.abs(slopes).max() > 0)
    # The largest |ĉ| at the start between 0 and 1.5: both sides of where the law begins.
    eta = data.draw(st.floats(0.01, 1.5)) / np.abs(slopes).max()
    problem = problem.replace(learning_rate=eta, gamma=min(problem.gamma, 0.2 / eta))
    path = problem.run(theta, 20, n_paths=3, rng=seed, t_eval="steps", threads=1)
    assert_uw_sign(problem, path)
