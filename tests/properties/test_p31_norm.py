"""‖θ'‖² = (1 - 2ηγ)²‖θ‖² + η²‖ĝ‖² of scale-invariant weights: without decay their norm never decreases."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sgdsde.testing import assert_norm_law
from sgdsde.testing import strategies as own


@settings(max_examples=60)
@given(own.problems(own.scale_invariant_networks(), max_batches=64), st.data())
def test_the_norm_of_all_or_of_each_layer(problem, data):
    theta = data.draw(own.states(problem.model))
    assume(all(np.any(block) for block in problem.model.unflatten(theta).values()))
    assert_norm_law(problem, theta)
