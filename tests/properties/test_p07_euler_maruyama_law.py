"""C(θ') = (1 - 2γh)²C(θ) + vᵀAv for every noise, v = -h∇L + √(2σ²ρ)G dW from the dense factor."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.testing import assert_euler_maruyama_law
from sgdsde.testing import strategies as own


@given(own.cases(), st.floats(1e-3, 0.3), st.data())
def test_every_noise(case, h, data):
    m = case.problem.n_samples
    dW = np.sqrt(h) * data.draw(own.numbers((3, m)))
    assert_euler_maruyama_law(*case, dW, h, "per-sample")


@settings(max_examples=30)
@given(own.cases())
def test_the_square_root_of_the_covariance(case):
    assert_euler_maruyama_law(*case, factor="gram")


@given(own.cases(own.models().filter(lambda m: "rank-one" in m.factors), own.populations()), st.floats(1e-3, 0.3))
def test_a_law_of_the_data(case, h):
    assert_euler_maruyama_law(*case, dt=h)
