"""No noise and no decay: every point of the orbit is an equilibrium; noise on one side alone: none is."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from sgdsde import SGD, noise_equilibrium
from sgdsde.models import DeepLinear
from sgdsde.testing import assert_degenerate_equilibrium
from sgdsde.testing import strategies as own


@given(st.data(), st.integers(1, 4))
def test_samples_that_agree(data, n):
    problem = data.draw(own.problems(own.models(), max_samples=1, gamma=0.0))
    problem = SGD(
        problem.model, np.repeat(problem.X, n, axis=0), np.repeat(problem.Y, n, axis=0), learning_rate=0.1, gamma=0.0
    )
    generator, theta = data.draw(own.generators(problem.model)), data.draw(own.states(problem.model))
    assert_degenerate_equilibrium(problem, generator, theta)


@given(own.numbers(1), own.numbers((4, 1)), own.numbers((4, 1)), st.booleans())
def test_noise_on_one_side_has_no_equilibrium(u, X, Y, second):
    """At w = 0 the noise moves w alone: C = u² - w² falls for ever; and the other way round."""
    problem = SGD(DeepLinear([1, 1, 1]), X, Y, learning_rate=0.1)
    theta = np.array([float(u[0]), 0.0] if second else [0.0, float(u[0])])
    assume(problem.covariance(theta).any())
    found = noise_equilibrium(problem, theta, problem.model.symmetries()["B=I"])
    assert found.lam == (np.inf if second else -np.inf)
    assert found.status == ("plus-infinity" if second else "minus-infinity")
