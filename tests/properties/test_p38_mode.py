"""The closed form of the mode of uw solves p' = 0, and is the maximum inside v > 0 that the density has."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.models import uw_gauss
from sgdsde.theory import StationaryLaw, critical_noise, interior_mode


@settings(max_examples=40)
@given(st.floats(0.05, 2.0), st.floats(0.1, 2.0), st.floats(0.01, 0.99), st.sampled_from([0.0, 0.3]))
def test_the_mode(k, s, part, share):
    population = uw_gauss(k, s)
    gamma = share * k
    T = part * critical_noise(population, gamma)
    law, v = StationaryLaw(population, T, gamma=gamma), interior_mode(population, T, gamma)
    points = law.critical_points()
    if np.isnan(v):
        assert points.size == 0
        return
    scale = 3.5 * 2 * v * v + 20 * k * v + 5 * population.alpha3 + (v + k) / T
    assert abs(law.slope(v)) < 1e-12 * scale  # v q(v) d ln p/dv
    if points.size:
        np.testing.assert_allclose(points[-1], v, rtol=1e-6)
    assert law.log_density(v) >= law.log_density([v * (1 - 1e-3), v * (1 + 1e-3)]).max()
