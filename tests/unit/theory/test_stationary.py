"""Stationary laws: no flux under their own equation, distributions that are known, and the digits of the literature."""

import pickle

import numpy as np
import pytest
from scipy import stats

from sgdsde._errors import ArgumentError, ModelError
from sgdsde.models import Population, Product, uw_gauss, uw_label
from sgdsde.sgd import SGD
from sgdsde.theory import StationaryLaw, critical_noise, interior_mode, reduced_sde

V = np.array([0.15, 0.4, 0.7, 0.95, 1.6, 3.0, 8.0])
DERIVATIVE = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])  # order 8
HUMP = Population(1.3, 1.1, 2.0, 1.9, 2.5, 3.0)  # β₁ is not 1
EXACT = Population(0.7, 0.7 * 1.3, 2.0, 2.0 * 1.3, 2.0 * 1.3**2, 0.7 * 1.3**2)  # y = 1.3 x: q(1.3) = 0


def flux(law, log_p, v, stratonovich=False):
    """a - bb' - ½b² (ln p)' (Itô) over the sum of what cancels: no probability flows."""
    h = 2e-3 * np.minimum(np.abs(v), 1.0)
    points = v[:, None] + h[:, None] * np.arange(-4, 5)
    slope, change = (f(points) @ DERIVATIVE / h for f in (log_p, law.diffusion))
    b = law.diffusion(v)
    terms = np.stack([law.drift(v), -(0.5 if stratonovich else 1.0) * b * change, -0.5 * b * b * slope])
    return np.max(np.abs(terms.sum(axis=0)) / np.abs(terms).sum(axis=0))


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("width, gamma", [(1, 0.0), (3, 0.2)])
def test_no_probability_flows(depth, width, gamma):
    for population in (HUMP, uw_label(0.8, 0.5), Population(1.0, 0.6, 1.5, 0.0, 0.0, 2.0)):
        for branch in (1, -1) if depth > 1 else (None,):
            law = StationaryLaw(population, 0.08, depth, width, gamma, branch=branch)
            assert flux(law, law.log_density, V * (branch or 1)) < 1e-9
    for calculus in ("ito", "stratonovich") if depth > 1 else ():
        law = StationaryLaw(HUMP, 0.08, depth, width, gamma, calculus=calculus, scale=0.6)
        assert flux(law, law.log_density, V, calculus == "stratonovich") < 1e-9
        assert flux(law, law.log_density, V, calculus != "stratonovich") > 1e-3


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_probability_flows_where_y_is_kx(depth):
    law = StationaryLaw(EXACT, 0.1, depth, gamma=0.2)
    v = V[V < 1.2]
    assert law.support == ((0.0, 1.3) if depth > 1 else (-np.inf, 1.3))
    assert flux(law, law.log_density, v) < 1e-9
    pulled = Population(0.7, 1.5, 2.0, 2.6, 3.38, 4.0)  # y = 1.3 x + c/x: v is driven past k
    law = StationaryLaw(pulled, 0.1, depth)
    assert law.support == (1.3, np.inf)
    assert flux(law, law.log_density, V[V > 1.4]) < 1e-9


@pytest.mark.parametrize("depth", [2, 3, 7])
def test_no_probability_flows_at_extreme_sizes(depth):
    law = StationaryLaw(HUMP, 0.08, depth)
    tiny = np.array([1e-20, 1e-29, 1e-40])  # on both sides of where an exponent by quadrature hands over to its powers
    assert flux(law, law.log_density, tiny) < 1e-9
    assert (
        np.ptp(law.log_density(10.0 ** np.arange(20, 31)) - law.tail_exponent * np.log(10) * np.arange(20, 31)) < 1e-9
    )


def test_the_deep_limit():
    law = StationaryLaw.deep(HUMP, 0.3, 0.1)
    assert flux(law, law.log_density, V) < 1e-9 and law.atoms == (0.0,)
    law = StationaryLaw.deep(HUMP, 0.3)
    for depth, close in ((50, 0.02), (400, 0.0025)):
        finite = StationaryLaw(HUMP, 0.3 * 3 / depth, depth, 3)
        assert abs(finite.mean() / law.mean() - 1) < close
        assert finite.tail_exponent == pytest.approx(-5 + 3 / depth)
    assert law.tail_exponent == -5 and law.origin_exponent == np.inf
    with pytest.raises(ModelError, match="no equation in the time of SGD"):
        law.sde()


def test_printed_forms_that_are_wrong():
    law = StationaryLaw(EXACT, 0.1, gamma=0.2)
    k, a1, b1, T, gamma = 1.3, 2.0, 0.7, 0.1, 0.2
    theta = (b1 - gamma / k) / (2 * T * a1 * k)

    def log_p(v, strength):
        power = (theta - 1.5) * np.log(v) - (2 + theta) * np.log(k - v)
        return power - strength / (2 * T * a1) / (k * (k - v))

    v = V[V < 1.2]
    assert flux(law, lambda v: log_p(v, gamma), v) < 1e-9
    assert flux(law, lambda v: log_p(v, b1 * gamma), v) > 1e-2  # (107) as printed
    # T_c/3 and T_c belong to two factors alone: three have a density at any T, and with weight decay at none
    for T in (1e-3, 0.1, 10.0):
        assert StationaryLaw(HUMP, T, 3).normalisable
        assert StationaryLaw(HUMP, T, 3, gamma=1e-3).atoms == (0.0,)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_two_factors_against_the_printed_density(gamma):
    b1, b2, a1, a2, a3, T = 1.3, 1.1 - gamma, 2.0, 1.9, 2.5, 0.1
    root = np.sqrt(a1 * a3 - a2**2)
    log_p = (b2 / (2 * a3 * T) - 1.5) * np.log(V) - (1 + b2 / (4 * a3 * T)) * np.log(a1 * V**2 - 2 * a2 * V + a3)
    log_p -= (a3 * b1 - a2 * b2) / (2 * T * a3 * root) * np.arctan((a1 * V - a2) / root)
    law = StationaryLaw(HUMP, T, gamma=gamma)
    assert np.ptp(law.logpdf(V) - log_p) < 1e-12
    assert np.array_equal(law.pdf(V), StationaryLaw(HUMP, T, width=4, gamma=gamma).pdf(V))  # any width


def test_known_distributions():
    # constant noise, two factors: v is gamma distributed
    law = StationaryLaw(uw_label(0.8, 0.5), 0.1)
    known = stats.gamma(0.8 / (2 * 0.25 * 0.1) - 0.5, scale=2 * 0.25 * 0.1)
    np.testing.assert_allclose(law.pdf(V), known.pdf(V), rtol=1e-11)
    np.testing.assert_allclose(law.cdf(V), known.cdf(V), rtol=1e-11)
    np.testing.assert_allclose(law.sf(V), known.sf(V), rtol=1e-9, atol=1e-38)
    np.testing.assert_allclose([law.mean(), law.var(), law.moment(7)], [*known.stats(), known.moment(7)], rtol=1e-11)
    # one factor: a normal law for constant noise, an inverse gamma law where y = kx
    law = StationaryLaw(uw_label(0.8, 0.5), 0.1, 1, gamma=0.25)
    known = stats.norm(0.8 / 1.25, np.sqrt(0.1 * 0.25 / 1.25))
    np.testing.assert_allclose(law.cdf([0.3, 0.6, 1.0]), known.cdf([0.3, 0.6, 1.0]), rtol=1e-11)
    law = StationaryLaw(EXACT, 0.1, 1, gamma=0.2)
    a = 1 + 0.9 / (0.1 * 2.0)
    known = stats.invgamma(a, scale=0.2 * 1.3 / (0.1 * 2.0))
    np.testing.assert_allclose(law.sf([-0.5, 0.5, 1.0]), known.cdf(1.3 - np.array([-0.5, 0.5, 1.0])), rtol=1e-10)
    assert law.mean() == pytest.approx(0.7 * 1.3 / 0.9, rel=1e-12)
    assert np.isfinite(law.moment(5)) and not np.isfinite(law.moment(6))  # p ~ |v|^-6.5


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_exact_moment_identities(gamma):
    # E d(ln v) = 0 for two factors, E dv = 0 and E d(v²) = 0 for one
    law = StationaryLaw(HUMP, 0.1, gamma=gamma)
    first, second = law.mean(), law.moment(2)
    q = 2.0 * second - 2 * 1.9 * first + 2.5
    assert 1.3 * first + 0.1 * q == pytest.approx(1.1 - gamma, rel=1e-12)
    law = StationaryLaw(HUMP, 0.1, 1, gamma=gamma)
    first, second = law.mean(), law.moment(2)
    assert first == pytest.approx(1.1 / (1.3 + gamma), rel=1e-12)
    q = 2.0 * second - 2 * 1.9 * first + 2.5
    assert (1.3 + gamma) * second - 1.1 * first == pytest.approx(0.1 * q, rel=1e-11)
    assert law.var() == pytest.approx(second - first**2, rel=1e-10)


def test_fluctuations_invert():
    """Means and variances of uw, k = s = 1, T_c = 1/3, by a sum over 8 million points of ln v down to -4000.

    Sums that leave out small v, as a grid in v does, give .586 ± .361 at T = .2 and .323 ± .290 at T = .3: up to three
    quarters too much, since half of the probability is below 1e-4 there.
    """
    wanted = {
        0.02: (0.9782760045880, 0.0426279533223),
        0.05: (0.9376308291864, 0.1198017946684),
        0.1: (0.8449364709346, 0.2512729472806),
        0.2: (0.5809051199044, 0.3720966817166),
        0.25: (0.4037205494116, 0.3370097179828),
        0.3: (0.1820915731194, 0.1942065167054),
    }
    for T, (mean, variance) in wanted.items():
        law = StationaryLaw(uw_gauss(1.0, 1.0), T)
        assert law.mean() == pytest.approx(mean, rel=1e-11)
        assert law.var() == pytest.approx(variance, rel=1e-7)  # of the sum, which ends at v = e^60
        assert law.moment(3) == np.inf
    assert StationaryLaw(uw_gauss(), 0.3).cdf(1e-4) > 0.5
    assert StationaryLaw(uw_gauss(), 0.05).mode() == pytest.approx(0.8864, abs=5e-5)
    assert StationaryLaw(uw_gauss(), 0.1).mode() == pytest.approx(0.8032, abs=5e-5)


def test_close_to_the_transition_and_beyond():
    T_c = critical_noise(uw_gauss())
    below, above = StationaryLaw(uw_gauss(), T_c * (1 - 1e-4)), StationaryLaw(uw_gauss(), T_c)
    assert below.normalisable and 0 < below.mean() < 1e-3 and below.cdf(1e-200) > 0.9
    assert above.atoms == (0.0,) and not above.normalisable
    assert (above.mean(), above.var(), above.mode(), above.ppf(0.3), above.expect(np.cos)) == (0, 0, 0, 0, 1)
    np.testing.assert_array_equal(above.cdf([-1.0, 0.0, 1.0]), [0, 1, 1])
    np.testing.assert_array_equal(above.sf([-1.0, 0.0, 1.0]), [1, 0, 0])
    assert not above.sample(3, 0).any()
    with pytest.raises(ModelError, match="no density"):
        above.pdf(1.0)
    assert StationaryLaw(uw_gauss(1.0, 0.0), 0.1).atoms == (1.0,)
    both = StationaryLaw(uw_gauss(1.0, 0.0), 0.6)
    assert both.atoms == (0.0, 1.0)
    with pytest.raises(ModelError, match="depends on the path"):
        both.mean()
    assert not StationaryLaw(uw_gauss(), 0.1, branch=-1).normalisable  # the sign of v is that of E xy


@pytest.mark.parametrize("law", [
    StationaryLaw(HUMP, 0.2), StationaryLaw(HUMP, 0.1, 5, 2), StationaryLaw(HUMP, 0.2, 1),
    StationaryLaw(EXACT, 0.1, gamma=0.2), StationaryLaw(uw_gauss(-0.7, 1.0), 0.1),
], ids=repr)  # fmt: skip
def test_distribution_functions_agree(law):
    u = np.array([1e-9, 1e-3, 0.2, 0.5, 0.77, 0.999, 1 - 1e-9])
    v = law.ppf(u)
    np.testing.assert_allclose(law.cdf(v), u, rtol=1e-12)
    np.testing.assert_allclose(law.sf(v), 1 - u, rtol=1e-7)
    np.testing.assert_array_equal(law.ppf([0.0, 1.0]), law.support)
    h = 1e-4 * np.abs(v[2:5])
    np.testing.assert_allclose((law.cdf(v[2:5] + h) - law.cdf(v[2:5] - h)) / (2 * h), law.pdf(v[2:5]), rtol=1e-5)
    assert law.cdf(-np.inf) == 0 and law.cdf(np.inf) == 1 and np.isnan(law.cdf(np.nan))
    below, above = law.support[0] - 1.0, law.support[1] + 1.0
    if np.isfinite(below):
        assert law.pdf(below) == law.cdf(below) == 0
    if np.isfinite(above):
        assert law.pdf(above) == law.sf(above) == 0
    assert law.expect(lambda v: np.ones_like(v)) == pytest.approx(1.0, rel=1e-12)
    sample = law.sample(4000, rng=5)
    assert stats.kstest(sample, law.cdf).pvalue > 1e-6
    assert np.array_equal(law.sample(7, rng=5), sample[:7])
    assert pickle.loads(pickle.dumps(law)).ppf(0.3) == law.ppf(0.3)


def test_the_other_sign_is_the_mirror_image():
    one, two = StationaryLaw(uw_gauss(0.7, 1.0), 0.1, 3), StationaryLaw(uw_gauss(-0.7, 1.0), 0.1, 3)
    np.testing.assert_allclose(one.pdf(V), two.pdf(-V), rtol=1e-14)
    assert (one.mean(), one.moment(2), one.mode()) == (-two.mean(), two.moment(2), -two.mode())


def test_critical_points():
    law = StationaryLaw(uw_gauss(), 0.15)  # between T_c/3 and T*: infinite at 0, a minimum, a maximum
    low, high = law.critical_points()
    assert law.mode() == 0.0 and law.origin_exponent < 0
    assert high == pytest.approx(interior_mode(uw_gauss(), 0.15), rel=1e-12)
    assert law.pdf(low) < min(law.pdf(0.9 * low), law.pdf(1.1 * low)) and law.pdf(high) > law.pdf(1.1 * high)
    for law in (StationaryLaw(HUMP, 0.05, 4), StationaryLaw(HUMP, 0.3, 1), StationaryLaw.deep(HUMP, 0.2)):
        peak = law.mode()
        around = law.pdf(peak * (1 + 1e-4 * np.array([-1, 1])))
        assert np.all(around < law.pdf(peak))


def test_of_a_problem():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50)
    y = 0.8 * x + 0.3 * rng.standard_normal(50)
    problem = SGD(Product(2, 3, scale=0.5), x, y, learning_rate=0.1, batch_size=2)
    law = StationaryLaw.of(problem)
    from sgdsde.models.population import moments

    data = moments(x, y)
    direct = StationaryLaw(data, 0.05, 3, 2, scale=0.5)
    assert law.mean() == pytest.approx(direct.mean(), rel=1e-12)
    # the whole network, balanced: the drift and noise of v by Itô's formula
    v = 0.7
    theta = np.full(6, (v / 2) ** (1 / 3))
    model, G = problem.model, problem.factor(theta)[:, 0] * np.sqrt(2 * problem.noise_scale)
    g = model.slope(theta)
    hessian = np.array([(model.slope(theta + e) - model.slope(theta - e)) / 2e-5 for e in 1e-5 * np.eye(6)])
    assert law.drift(v) == pytest.approx(-problem.gradient(theta) @ g + 0.5 * G @ hessian @ G, rel=1e-8)
    assert law.diffusion(v) == pytest.approx(G @ g, rel=1e-12)
    with pytest.raises(ArgumentError, match="problem must be an SGD on Product"):
        StationaryLaw.of(None)


def test_refusals():
    with pytest.raises(ArgumentError, match="branch must be None for depth=1"):
        StationaryLaw(uw_gauss(), 0.1, 1, branch=1)
    with pytest.raises(ArgumentError, match="branch must be 1, -1 or None"):
        StationaryLaw(uw_gauss(), 0.1, branch=2)
    with pytest.raises(ArgumentError, match="u must lie in"):
        StationaryLaw(uw_gauss(), 0.1).ppf(1.1)
    with pytest.raises(ModelError, match="needs gradient noise"):
        StationaryLaw(Population(1.0, 1.0, 0.0, 0.0, 0.0, 1.0), 0.1)
    with pytest.raises(ModelError, match="E x² > 0"):
        StationaryLaw(Population(0.0, 0.0, 0.0, 0.0, 1.0, 1.0), 0.1)
    with pytest.raises(ArgumentError, match="coordinate='log' is written for"):
        reduced_sde(uw_gauss(), 0.1, coordinate="log", calculus="stratonovich")


def test_simulation_of_three_factors():
    law, rng, n = StationaryLaw(uw_gauss(), 0.1, 3), np.random.default_rng(2), 4000
    sde = reduced_sde(uw_gauss(), 0.1, 3, coordinate="log")
    z, t, end = np.full(n, -0.1), np.zeros(n), 2.0
    left = np.arange(n)
    while left.size:  # Euler-Maruyama with steps that follow the state
        f, g = (part(0.0, (z[left],), *sde.args)[0] for part in (sde.drift, sde.diffusion))
        h = np.minimum(0.04 / (1 + np.abs(f) + g * g), end - t[left])
        z[left] += f * h + g * np.sqrt(h) * rng.standard_normal(left.size)
        t[left] += h
        left = left[t[left] < end]
    assert stats.kstest(np.exp(z), law.cdf).statistic < 2.7 / np.sqrt(n) + 0.01
    for wrong in (StationaryLaw(uw_gauss(), 0.05, 3), StationaryLaw(uw_gauss(), 0.1, 3, calculus="stratonovich")):
        assert stats.kstest(np.exp(z), wrong.cdf).statistic > 0.07
    law.sde().bind(0.0, [0.5])  # checks the derivative against differences
