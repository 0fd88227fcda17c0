"""GᵀAθ = 0 for every factor of the covariance, to the digits that its making keeps."""

import pytest
from hypothesis import given, settings

from sgdsde.testing import assert_factor_tangent
from sgdsde.testing import strategies as own


@pytest.mark.parametrize("factor", ["per-sample", "gram", "cholesky"])
@settings(max_examples=50)
@given(case=own.cases())
def test_factors_do_not_leak(factor, case):
    assert_factor_tangent(*case, factor)


@settings(max_examples=50)
@given(own.cases(own.models().filter(lambda m: "rank-one" in m.factors), own.populations()))
def test_the_factor_of_a_law_of_the_data(case):
    assert_factor_tangent(*case)
