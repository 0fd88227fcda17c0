"""κ = 4γ + 2σ²ρTr[ΣA²]/‖Aθ‖² is -dG/dC along the orbit."""

from hypothesis import given

from sgdsde.testing import assert_relaxation_rate
from sgdsde.testing import strategies as own


@given(own.cases())
def test_how_fast_a_charge_relaxes(case):
    assert_relaxation_rate(*case)
