"""C' = C((1 - 2ηγ)² - ĉ²) for ℓ(uw): each step of SGD multiplies the charge, and so does each of Euler-Maruyama."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sgdsde.models import Product
from sgdsde.testing import assert_uw_law
from sgdsde.testing import strategies as own


@given(own.problems(st.sampled_from([Product(), Product(scale=0.5)])), st.data())
def test_a_step_multiplies_the_charge(problem, data):
    dW = np.sqrt(problem.learning_rate) * data.draw(own.numbers((3, 1)))
    assert_uw_law(problem, data.draw(own.states(problem.model)), dW)
