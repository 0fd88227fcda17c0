"""The drift between Itô and Stratonovich: σ²ρΣ_j(G_j·∇)G_j = (σ²ρ/2)∇Tr Σ, and along Aθ it is -σ²ρTr[ΣA]."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.models import MLP, DeepLinear, Product
from sgdsde.testing import assert_correction, assert_orbit_correction
from sgdsde.testing import strategies as own

TANH = MLP([2, 3, 2], activation="tanh")


@settings(max_examples=40)
@given(own.problems(st.one_of(own.models(depths=(1, 2, 3, 4)), st.just(TANH))), st.data())
def test_the_kernel_against_differences(problem, data):
    theta = data.draw(own.states(problem.model))
    for factor in problem.model.factors:
        assert_correction(problem, theta, factor)


@settings(max_examples=20)
@given(own.cases(Product(), own.populations()))
def test_of_a_law_of_the_data(case):
    assert_correction(case.problem, case.theta)
    assert_orbit_correction(*case)


@settings(max_examples=40)
@given(own.cases(st.one_of(own.models(), own.relu_networks()), max_samples=6))
def test_along_the_orbit(case):
    assert_orbit_correction(*case, "per-sample")


@settings(max_examples=10)
@given(own.cases(DeepLinear([1, 2, 1]), min_samples=4, max_samples=4))
def test_of_another_factor_along_the_orbit(case):
    """The symmetric square root of Σ has another correction, with the same part along the orbit."""
    assert_orbit_correction(*case, "low-rank")
