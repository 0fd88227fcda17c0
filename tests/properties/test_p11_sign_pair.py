"""One noise of dW = ±√h: the two charges differ by the cross term -4h^{3/2}√(2σ²ρ)∇LᵀAG, and by nothing else."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.models import Product
from sgdsde.testing import assert_sign_pair
from sgdsde.testing import strategies as own


@settings(max_examples=40)
@given(own.cases(st.builds(Product, st.integers(1, 3), st.integers(2, 4))))
def test_the_rank_one_factor(case):
    assert_sign_pair(*case)


@settings(max_examples=20)
@given(own.cases(Product(), own.populations()))
def test_a_law_of_the_data(case):
    assert_sign_pair(*case)


@settings(max_examples=40)
@given(own.cases(own.models(products=False), min_samples=2, max_samples=2))
def test_two_samples(case):
    """Their covariance has rank one."""
    assert_sign_pair(*case)
