"""λ*(e^{λA}θ) + λ = λ*(θ), C*(e^{λA}θ) = C*(θ): one equilibrium for a whole orbit."""

from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_equilibrium_on_orbit
from sgdsde.testing import strategies as own


@given(own.cases(min_samples=2), st.data())
def test_the_equilibrium_belongs_to_the_orbit(case, data):
    assert_equilibrium_on_orbit(*case, data.draw(own.group_parameters(case.generator)))
