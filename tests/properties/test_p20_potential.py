"""F = 2γ‖θ‖² + σ²ρTr Σ is convex along λ ↦ e^{λA}θ, and falls as fast as the charge rises."""

from hypothesis import given

from sgdsde.testing import assert_potential
from sgdsde.testing import strategies as own


@given(own.cases())
def test_the_potential_on_an_orbit(case):
    assert_potential(*case)
