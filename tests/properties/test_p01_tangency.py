"""g_iᵀAθ = 0: no sample's gradient has a part along the symmetry, and no other direction is taken for one."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sgdsde import Generator, check_symmetry
from sgdsde.testing import BrokenLaw, assert_tangent
from sgdsde.testing import strategies as own


@given(own.cases())
def test_gradients_are_tangent(case):
    assert_tangent(*case)


@given(st.data())
def test_so_they_are_to_rotations_of_hidden_units(data):
    problem = data.draw(own.problems(own.models(products=False)))
    model, layer = problem.model, data.draw(st.integers(1, problem.model.depth - 1))
    B = data.draw(own.numbers((model.dims[layer],) * 2))
    assert_tangent(problem, model.generator(B - B.T, layer), data.draw(own.states(model)))


@given(own.cases(min_samples=2), st.data())
def test_the_check_of_the_package_agrees(case, data):
    problem, A, theta = case
    assert check_symmetry(problem, A, theta, n_states=1)
    wrong = Generator.diagonal(data.draw(own.numbers(A.dim).filter(np.any)))  # of which few are symmetries
    slopes = np.abs(problem.per_sample_gradients(theta) @ wrong.apply(theta)).max()
    sizes = np.linalg.norm(problem.per_sample_gradients(theta), axis=1).max() * np.linalg.norm(theta)
    assume(slopes > 1e-6 * sizes * wrong.norm)
    assert not check_symmetry(problem, wrong, theta, n_states=1)
    with pytest.raises(BrokenLaw, match="g_iᵀAθ = 0"):
        assert_tangent(problem, wrong, theta)
