"""ℓ_i(e^{λA}θ) = ℓ_i(θ): the losses of single samples are the same on the whole orbit."""

from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_losses_kept
from sgdsde.testing import strategies as own


@given(own.cases(), st.data())
def test_losses_are_kept(case, data):
    assert_losses_kept(*case, data.draw(own.group_parameters(case.generator)))
