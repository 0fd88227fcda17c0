"""2Aθ_mid·Δθ_∥ = ΔC for any two states and any symmetric A: the midpoint rule loses nothing of a charge."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sgdsde import Generator
from sgdsde.testing import assert_midpoint_projection
from sgdsde.testing import strategies as own


@given(st.integers(1, 30), st.integers(2, 4), st.booleans(), st.data())
def test_any_symmetric_matrix_and_any_states(d, n_times, diagonal, data):
    A = data.draw(own.numbers(d if diagonal else (d, d)))
    generator = Generator.diagonal(A) if diagonal else Generator.from_matrix((A + A.T) / 2)
    assert_midpoint_projection(generator, data.draw(own.numbers((2, n_times, d))))


@given(own.cases(), st.data())
def test_generators_of_models(case, data):
    states = np.stack([case.theta, data.draw(own.states(case.problem.model)), np.zeros(case.generator.dim)])
    assert_midpoint_projection(case.generator, states)
