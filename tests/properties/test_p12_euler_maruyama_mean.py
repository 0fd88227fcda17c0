"""E C(θ') = (1 - 2γh)²C + h²∇LᵀA∇L + 2σ²ρhTr[ΣA] of Euler-Maruyama, over all sign vectors in place of noise."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.testing import assert_euler_maruyama_mean
from sgdsde.testing import strategies as own


@settings(max_examples=60)
@given(own.cases(max_samples=7), st.floats(1e-3, 0.3))
def test_the_mean_over_all_signs(case, h):
    assert_euler_maruyama_mean(*case, h, "per-sample")


@given(own.cases(own.models().filter(lambda m: "rank-one" in m.factors), own.populations()), st.floats(1e-3, 0.3))
def test_of_a_law_of_the_data(case, h):
    assert_euler_maruyama_mean(*case, h)
