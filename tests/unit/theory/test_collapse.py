"""Collapse of uw under SGD and its SDE: exponents by quadrature and enumeration, transitions, regimes."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad

from sgdsde._errors import ArgumentError
from sgdsde.models import Population, uw_gauss, uw_label
from sgdsde.models.population import moments
from sgdsde.theory import (
    StationaryLaw,
    critical_learning_rate,
    critical_noise,
    interior_mode,
    regimes,
    sde_exponent,
    sgd_exponent,
    sgd_exponent_gauss,
)
from sgdsde.theory.collapse import mean_log


@pytest.mark.parametrize("centre, spread", [(0.0, 1.0), (0.3, 0.2), (1.0, 0.5), (2.9, 0.1), (3.1, 0.1), (1.0, 1e-3)])
def test_the_mean_logarithm_of_a_normal_number(centre, spread):
    def f(x):
        return np.log(abs(centre + spread * x)) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

    zero = -centre / spread
    inner = [zero] if abs(zero) < 12 else []
    pieces = [-12, *inner, 12]
    wanted = sum(quad(f, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0] for a, b in pairwise(pieces))
    assert mean_log(np.array(centre), np.array(spread)) == pytest.approx(wanted, abs=2e-11)


def test_exponents_by_enumeration():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(5), rng.standard_normal(5)
    eta, gamma = 0.3, 0.1
    logs = [np.log(abs(1 - 2 * eta * gamma + 2 * eta * np.mean(b))) for b in product(x * y, repeat=3)]
    assert sgd_exponent(x, y, eta, 3, gamma) == pytest.approx(2 / eta * np.mean(logs), rel=1e-13)
    assert sgd_exponent([1.0], [-0.5], 1.0) == -np.inf
    with pytest.raises(ArgumentError, match="at most 2000000 different batches"):
        sgd_exponent(rng.standard_normal(60), rng.standard_normal(60), 0.1, 20)


@pytest.mark.parametrize("batch_size", [1, 2, 50])
def test_the_gaussian_exponent_by_other_integrals(batch_size):
    k, s, eta, gamma, S = 0.4, 0.7, 0.25, 0.1, batch_size
    # Σx² is chi squared, and then a normal number: Gauss-Hermite converges slowly at the logarithm, so many points
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    r = np.linspace(0, np.sqrt(S) + 10, 4001)[1:]
    log_p = (S - 1) * np.log(r) - r * r / 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    m = k * r**2 / S + s * r / S * nodes[:, None]
    values = weights / weights.sum() @ np.log(np.abs(1 - 2 * eta * gamma + 2 * eta * m))
    assert sgd_exponent_gauss(k, s, eta, S, gamma) == pytest.approx(2 / eta * p @ values, rel=0.02)
    # small steps: the exponent of the SDE, and its second order
    for small in (1e-3, 1e-4):
        law = uw_gauss(k, s)
        first = sde_exponent(law, small / S, gamma)
        pull = k - gamma
        assert sgd_exponent_gauss(k, s, small, S, gamma) == pytest.approx(
            first - 4 * small * pull**2, abs=3e2 * small**2
        )


def test_the_sde_has_a_transition_that_sgd_lacks():
    law = uw_gauss(1.0, 1.0)
    assert critical_noise(law) == pytest.approx(1 / 3)
    assert critical_learning_rate(lambda eta: sgd_exponent_gauss(1.0, 1.0, eta)) == np.inf
    # with little signal they agree
    for k, found in ((0.2, 0.2122), (0.1, 0.0917), (0.05, 0.0487)):
        eta = critical_learning_rate(lambda eta, k=k: sgd_exponent_gauss(k, 1.0, eta))
        assert eta == pytest.approx(found, abs=6e-5)
    x, e = np.repeat([0.5, 1.5], 2), np.tile([1.0, -1.0], 2)
    for k, sgd, sde in ((0.5, 0.970, 0.417), (0.2, 0.218, 0.194), (0.1, 0.1021, 0.0992), (0.05, 0.05026, 0.04990)):
        y = k * x + e
        assert critical_learning_rate(lambda eta, y=y: sgd_exponent(x, y, eta)) == pytest.approx(sgd, rel=1e-3)
        assert critical_noise(moments(x, y)) == pytest.approx(sde, rel=2e-3)


def test_the_second_order_is_closer_to_sgd_for_every_batch_size():
    law, k = uw_gauss(0.2, 1.0), 0.2
    for S in (1, 4, 16):
        first, second = critical_noise(law), critical_noise(law, order=2, batch_size=S)
        assert second == pytest.approx(0.2 / (1.08 + S * 0.04))
        small = 1e-4  # the exponent itself, to second order in η
        exact, plain = sgd_exponent_gauss(k, 1.0, small, S), sde_exponent(law, small / S)
        assert plain - exact == pytest.approx(4 * small * k * k, rel=0.02)
        if S > 1:
            assert second < first


@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize(
    "law", [uw_gauss(1.0, 1.0), uw_gauss(0.1, 1.0), uw_gauss(1.0, 0.5), uw_label(1.0, 1.0)], ids=repr
)
def test_regimes_by_looking_at_the_density(law, gamma):
    found = regimes(law, gamma)
    for T, divergent in ((0.999 * found.diverges, False), (1.001 * found.diverges, True)):
        assert (StationaryLaw(law, T, gamma=gamma).origin_exponent < 0) == divergent
    for T, inside in ((0.999 * found.loses_mode, True), (1.001 * found.loses_mode, False)):
        if T < found.collapses:
            points = StationaryLaw(law, T, gamma=gamma).critical_points()
            assert (points.size > 0) == inside
            assert np.isnan(interior_mode(law, T, gamma)) != inside
            if inside:
                assert points[-1] == pytest.approx(interior_mode(law, T, gamma), rel=1e-6)
    for T, there in ((0.999 * found.collapses, True), (1.001 * found.collapses, False)):
        assert StationaryLaw(law, T, gamma=gamma).normalisable == there
    assert 0 < found.diverges <= found.loses_mode <= found.collapses < np.inf


def test_the_gaussian_thresholds():
    for k, s in ((1.0, 1.0), (0.3, 0.7), (1.0, 0.5)):
        wanted = (4 * k + np.sqrt(42) * s) / (4 * (21 * s * s - 8 * k * k)) if 21 * s * s > 8 * k * k else np.inf
        assert regimes(uw_gauss(k, s)).discriminant == pytest.approx(wanted, rel=1e-12)
        assert regimes(uw_gauss(-k, s)) == regimes(uw_gauss(k, s))
    # small T: β₂/β₁ + (10α₂β₂/β₁² - 7α₁β₂²/β₁³ - 3α₃/β₁)T
    law, T = Population(1.3, 1.1, 2.0, 1.9, 2.5, 3.0), 1e-5
    slope = 10 * 1.9 * 1.1 / 1.3**2 - 7 * 2.0 * 1.1**2 / 1.3**3 - 3 * 2.5 / 1.3
    assert (interior_mode(law, T) - 1.1 / 1.3) / T == pytest.approx(slope, rel=1e-3)


def test_critical_noise_of_other_depths():
    law = uw_gauss(1.0, 1.0)
    assert [critical_noise(law, depth=K) for K in (1, 2, 3, np.inf)] == [np.inf, pytest.approx(1 / 3), np.inf, np.inf]
    assert [critical_noise(law, 0.1, depth=K) for K in (1, 2, 3)] == [np.inf, pytest.approx(0.3), 0.0]
    assert critical_noise(law, 2.0) == 0.0
    assert critical_noise(law, scale=0.5) == pytest.approx(2 / 3)
    for K in (1, 2, 3, 4):
        for gamma in (0.0, 0.1):
            for T in (0.01, 0.2, 0.4):
                there = StationaryLaw(law, T, K, gamma=gamma).normalisable
                assert there == (T < critical_noise(law, gamma, K))
    with pytest.raises(ArgumentError, match="order must be 1 unless depth is 2"):
        critical_noise(law, depth=3, order=2)
