"""E ΔC of SGD over all N^S batches, and over all C(N, S) with ρ = (N - S)/(N - 1), is the formula; `Charge` says so."""

from hypothesis import given

from sgdsde.testing import assert_discrete_mean
from sgdsde.testing import strategies as own


@given(own.cases(replacement=True))
def test_the_mean_over_all_batches(case):
    assert_discrete_mean(*case)


@given(own.cases(min_samples=2, replacement=False))
def test_the_mean_over_all_subsets(case):
    assert_discrete_mean(*case)
