"""Σ(e^{λA}θ) = e^{-λA}Σ(θ)e^{-λA}: the covariance of gradients turns against the state."""

from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_orbit_covariance
from sgdsde.testing import strategies as own


@given(own.cases(), st.data())
def test_the_covariance_turns(case, data):
    assert_orbit_covariance(*case, data.draw(own.group_parameters(case.generator)))


@given(st.data())
def test_under_any_matrix_of_the_hidden_units(data):
    problem = data.draw(own.problems(own.models(products=False)))
    model, layer = problem.model, data.draw(st.integers(1, problem.model.depth - 1))
    A = model.generator(data.draw(own.numbers((model.dims[layer],) * 2)), layer)
    assert_orbit_covariance(problem, A, data.draw(own.states(model)), data.draw(own.group_parameters(A)))
