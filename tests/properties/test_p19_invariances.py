"""λ* knows neither the unit of time, nor how often all samples are counted, nor their order."""

from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_equilibrium_invariances
from sgdsde.testing import strategies as own


@given(own.cases(replacement=True), st.floats(0.1, 10.0))
def test_what_an_equilibrium_does_not_depend_on(case, factor):
    assert_equilibrium_invariances(*case, factor)
