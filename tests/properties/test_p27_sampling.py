"""A step of SGD, with or without replacement, and of SVAG(l): mean -h∇L_γ, covariance h·2σ²ρΣ, by enumeration."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.testing import assert_sampling
from sgdsde.testing import strategies as own


@settings(max_examples=60)
@given(own.problems(sampler=own.samplers(), max_batches=36), st.data())
def test_mean_and_covariance(problem, data):
    assert_sampling(problem, data.draw(own.states(problem.model)))
