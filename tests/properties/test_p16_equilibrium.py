"""sign G(θ) = sign λ* = sign(C* - C), and G = 0 at the equilibrium: a charge moves towards it from both sides."""

from hypothesis import given

from sgdsde.testing import assert_equilibrium
from sgdsde.testing import strategies as own


@given(own.cases(min_samples=2))
def test_charges_move_towards_the_equilibrium(case):
    assert_equilibrium(*case)
