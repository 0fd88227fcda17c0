"""The implicit midpoint rule moves a charge by h·rate at the middle of the step: there is no noise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.models import DeepLinear, Product
from sgdsde.testing import assert_midpoint_rate
from sgdsde.testing import strategies as own


@settings(max_examples=40)
@given(own.cases(), st.sampled_from(["per-sample", None]))
def test_a_charge_without_noise(case, factor):
    assert_midpoint_rate(*case, factor=factor)


@settings(max_examples=20)
@given(own.cases(Product(), own.populations()))
def test_of_a_law_of_the_data(case):
    assert_midpoint_rate(*case)


@settings(max_examples=20)
@given(own.cases(st.sampled_from([DeepLinear([2, 2, 1]), Product(width=2)]), learning_rate=0.01), own.numbers((3, 8)))
def test_whatever_the_noise(case, noise):
    size = np.linalg.norm(case.problem.per_sample_gradients(case.theta))
    dW = noise[:, : case.problem.n_samples] / (10 + size)
    assert_midpoint_rate(*case, dW=dW, dt=0.01 / (10 + size), factor="per-sample")
