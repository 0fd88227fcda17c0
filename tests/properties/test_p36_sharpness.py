"""Tr H at the noise equilibrium is at least that of the flattest network, and equal to it for isotropic label noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.theory import LinearTask, deep_linear_equilibrium, equilibrium_sharpness, hessian_trace, least_sharpness


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4), st.integers(2, 4), st.booleans())
def test_sharpness(seed, d_x, d_y, depth, isotropic):
    rng = np.random.default_rng(seed)
    M, N = rng.standard_normal((d_x, d_x)), rng.standard_normal((d_y, d_y))
    Sigma_eps = 0.7 * np.eye(d_y) if isotropic else N @ N.T / d_y + 0.1 * np.eye(d_y)
    task = LinearTask(rng.standard_normal((d_y, d_x)), M @ M.T / d_x + 0.1 * np.eye(d_x), Sigma_eps)
    least, rest = least_sharpness(task, depth), equilibrium_sharpness(task, depth)
    weights = deep_linear_equilibrium(task, depth).weights
    assert hessian_trace(task, weights) == pytest.approx(rest, rel=1e-10)
    assert rest >= least * (1 - 1e-9)
    if isotropic or d_y == 1:
        assert rest == pytest.approx(least, rel=1e-9)
    g = np.eye(len(weights[0])) + 0.3 * rng.uniform(-1, 1, (len(weights[0]),) * 2)
    if np.linalg.cond(g) < 1e6:  # nor is any other network flatter
        moved = [g @ weights[0], weights[1] @ np.linalg.inv(g), *weights[2:]]
        assert hessian_trace(task, moved) >= least * (1 - 1e-9)
