"""Euler-Maruyama with h = η moves a charge as SGD does, on average: both enumerated."""

from hypothesis import given, settings

from sgdsde.testing import assert_equal_means
from sgdsde.testing import strategies as own


@settings(max_examples=60)
@given(own.cases(max_samples=7))
def test_sgd_is_euler_maruyama_on_average(case):
    assert_equal_means(*case, "per-sample")
