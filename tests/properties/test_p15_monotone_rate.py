"""λ ↦ G(e^{λA}θ) does not increase: the drift of a charge pushes back from both ends of an orbit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import assert_monotone_rate
from sgdsde.testing import strategies as own


@given(own.cases(), st.data())
def test_the_rate_falls_along_the_orbit(case, data):
    lams = np.unique([data.draw(own.group_parameters(case.generator)) for _ in range(6)])
    assert_monotone_rate(*case, lams)
