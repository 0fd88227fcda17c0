"""The stationary density of uw against the exponent of any depth by quadrature; it exists exactly for T < T_c."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from sgdsde.models import Population
from sgdsde.theory import StationaryLaw, critical_noise

V = np.array([0.3, 0.8, 1.5, 4.0])


@st.composite
def populations(draw):
    """x takes two values, y three for each: any moments within Cauchy and Schwarz."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = np.repeat(rng.uniform(0.3, 2.0, 2) * [1, -1], 3)
    y = draw(st.sampled_from([0.2, 1.0])) * x + rng.uniform(-1, 1, 6) * draw(st.sampled_from([0.1, 1.0, 3.0]))
    xx, xy = x * x, x * y
    a = np.cov(xx, xy, bias=True)
    law = Population(xx.mean(), xy.mean(), a[0, 0], a[0, 1], a[1, 1], np.mean(y * y))
    assume(law.beta2 > 0.05 and law.alpha1 * law.alpha3 - law.alpha2**2 > 1e-3 * law.alpha1 * law.alpha3)
    return law


@settings(max_examples=30)
@given(
    populations(), st.integers(1, 6), st.integers(1, 3), st.sampled_from([0.02, 0.1, 0.5]), st.sampled_from([0.0, 0.1])
)
def test_the_density_by_quadrature(law, K, d, T, gamma):
    D = K - 1

    def exponent(v):
        q = law.q(v)
        pull = d ** (1 - 2 / K) * (law.beta1 * v - law.beta2) / v ** (2 * D / K)
        decay = gamma * d ** (2 - 4 / K) * v ** (1 - 4 * D / K)
        return (pull + decay) / (K * T * q)

    v0 = law.alpha2 / law.alpha1
    log_p = []
    for v in V:
        points = [v0] if min(1.0, v) < v0 < max(1.0, v) else None
        integral = quad(exponent, 1.0, v, epsabs=1e-12, epsrel=1e-12, limit=300, points=points)[0]
        log_p.append(-3 * D / K * np.log(v) - np.log(law.q(v)) - integral)
    found = StationaryLaw(law, T, K, d, gamma).log_density(V)
    assert np.ptp(found - log_p) < 1e-8 * (1 + np.ptp(log_p))


@settings(max_examples=30)
@given(populations(), st.sampled_from([0.3, 0.99, 1.01, 3.0]), st.sampled_from([0.0, 0.02]))
def test_it_exists_below_the_transition(law, part, gamma):
    T_c = critical_noise(law, gamma)
    found = StationaryLaw(law, part * T_c, gamma=gamma)
    assert found.normalisable == (part < 1)
    assert found.tail_exponent == pytest.approx(-3.5)
    assert found.origin_exponent == pytest.approx(0.5 / part - 1.5)
    if part < 1:
        assert found.cdf(np.inf) == 1 and found.moment(2) < np.inf == found.moment(3)
    else:
        assert found.atoms == (0.0,)
