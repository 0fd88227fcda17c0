"""H_iAθ = -Ag_i: how gradients change along the orbit, by central differences of the compiled gradients."""

from hypothesis import given

from sgdsde.testing import assert_curvature
from sgdsde.testing import strategies as own


@given(own.cases())
def test_gradients_turn_along_the_orbit(case):
    assert_curvature(*case)
