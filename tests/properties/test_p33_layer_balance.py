"""Q = UᵀU - WWᵀ of two linear layers: its recursion entry by entry, C_B = Tr[BQ], and its drift under the SDE."""

from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_layer_balance
from sgdsde.testing import strategies as own


@given(own.problems(own.models(depths=(2,), products=False)), st.data())
def test_the_balance_of_two_layers(problem, data):
    B = data.draw(own.symmetric_matrices(problem.model.dims[1]))
    assert_layer_balance(problem, data.draw(own.states(problem.model)), B)
