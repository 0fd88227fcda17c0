"""R_zR_zᵀ = |z|²·1, R_ze_1 = z, det R_z = |z|^h, R_z⁻¹z = e_1, with zeros and negative tails too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde._errors import ArgumentError
from sgdsde.symmetry import radial_rotation, spherical_angles
from sgdsde.testing import strategies as own


@settings(max_examples=40)
@given(st.integers(1, 7).flatmap(lambda h: own.numbers(h)).filter(np.any))
def test_r_z(z):
    R, r, h = radial_rotation(z), np.linalg.norm(z), z.size
    tolerance = 1e-12 * r
    np.testing.assert_allclose(R @ R.T, r**2 * np.eye(h), atol=tolerance * r)
    np.testing.assert_allclose(R[:, 0], z, atol=tolerance)
    np.testing.assert_allclose(np.linalg.solve(R, z), np.eye(h)[0], atol=1e-12)
    assert np.linalg.det(R / r) == pytest.approx(1.0 if h > 1 else np.sign(z[0]), abs=1e-12)
    if h == 1:
        return  # without an angle
    alpha = spherical_angles(z)
    built = r * np.append(np.cos(alpha), 1.0) * np.cumprod(np.append(1.0, np.sin(alpha)))
    np.testing.assert_allclose(built, z, atol=tolerance)


@given(st.integers(1, 5))
def test_zero_has_none(h):
    with pytest.raises(ArgumentError, match="z must not be zero"):
        radial_rotation(np.zeros(h))
