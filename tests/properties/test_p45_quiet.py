"""No noise: Euler-Maruyama is gradient descent, C_n is a sum of squares of its steps, C_0e^{-4γt} along the flow."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde import SGD
from sgdsde.models import Product, uw_label
from sgdsde.testing import assert_quiet_path
from sgdsde.testing import strategies as own


@settings(max_examples=30)
@given(own.cases(max_samples=1), st.integers(1, 4))
def test_samples_that_are_all_one(case, n):
    one, generator, theta = case
    X, Y = np.repeat(one.X, n, axis=0), np.repeat(one.Y, n, axis=0)
    problem = SGD(one.model, X, Y, learning_rate=one.learning_rate, gamma=one.gamma)
    assert_quiet_path(problem, generator, theta)


@settings(max_examples=10)
@given(own.cases(Product(), own.numbers(1).map(lambda k: uw_label(float(k[0]), 0.0))))
def test_a_law_of_the_data_without_noise(case):
    assert_quiet_path(*case)
