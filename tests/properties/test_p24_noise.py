"""Gξ = G(ξ + c1) = ∇Σc_iℓ_i: the matrix-free increment is one weighted gradient and does not see a common shift."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.testing import assert_noise
from sgdsde.testing import strategies as own


@settings(max_examples=60)
@given(own.problems(own.models(depths=(1, 2, 3))), st.data())
def test_noise_is_a_weighted_gradient(problem, data):
    xi = data.draw(own.numbers(problem.n_samples))
    assert_noise(problem, data.draw(own.states(problem.model)), xi, data.draw(st.floats(-3, 3)))
