"""Σ has no negative eigenvalue, rank at most N - 1, the trace of the centred gradients, and is GGᵀ."""

from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_covariance
from sgdsde.testing import strategies as own


@given(own.problems(own.models(depths=(1, 2, 3))), st.data())
def test_the_covariance_of_gradients(problem, data):
    assert_covariance(problem, data.draw(own.states(problem.model)))
