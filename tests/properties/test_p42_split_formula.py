"""Q_M(g·θ) = Tr[VVᵀgᵀMg] - Tr[UᵀUg⁻¹Mg⁻ᵀ], two matrices; one alone, Q_{gᵀMg}, for orthogonal g only."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sgdsde.models import DeepLinear
from sgdsde.symmetry import LayerAction
from sgdsde.testing import strategies as own

ACTION = LayerAction(DeepLinear([3, 2, 2]))


def size_of(g, M, theta):
    return 1e-10 * np.linalg.cond(g) ** 2 * np.linalg.norm(M, 2) * (theta @ theta) * max(1.0, np.linalg.norm(g, 2)) ** 2


@settings(max_examples=40)
@given(own.numbers((2, 2)), own.symmetric_matrices(2), own.states(ACTION.model))
def test_any_invertible_g(g, M, theta):
    assume(np.linalg.cond(g) < 100 and np.linalg.norm(g, 2) > 0.1)
    moved = ACTION.charge(M, ACTION.act(g, theta))
    assert abs(moved - ACTION.charge_after(g, M, theta)) <= 1e3 * size_of(g, M, theta)


@settings(max_examples=20)
@given(own.rotations(2), own.symmetric_matrices(2), own.states(ACTION.model))
def test_orthogonal_g(g, M, theta):
    moved = ACTION.charge(M, ACTION.act(g, theta))
    assert abs(moved - ACTION.charge(g.T @ M @ g, theta)) <= size_of(g, M, theta)


@given(st.floats(1.5, 3.0))
def test_the_printed_formula_is_off_for_others(c):
    theta, M = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]), np.diag([1.0, 0.0])
    g = np.diag([c, 1.0])
    moved = ACTION.charge(M, ACTION.act(g, theta))
    np.testing.assert_allclose(moved, c**2 - 4 / c**2, rtol=1e-12)
    np.testing.assert_allclose(ACTION.charge_after(g, M, theta), moved, rtol=1e-12)
    assert abs(ACTION.charge(g.T @ M @ g, theta) - moved) > 1
