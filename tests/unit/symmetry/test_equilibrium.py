"""Noise equilibria: closed form, infinite and degenerate answers, extreme sizes, orbits."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError
from sgdsde.algebra import Generator, rescaling, rotation, scaling
from sgdsde.symmetry import Charge, noise_equilibrium, orbit_coordinate

THETA = np.random.default_rng(7).standard_normal(10)


class Given:
    """A problem that is nothing but its gradient's mean and variance in the standard basis, at any θ."""

    def __init__(self, mean, var, gamma, noise_scale=0.5):
        self.mean, self.var = np.asarray(mean, float), np.asarray(var, float)
        self.gamma, self.noise_scale = gamma, noise_scale
        self.model = type("M", (), {"dim": self.mean.size})()

    def gradient_moments(self, theta, transform=None):
        if transform is None:
            return self.mean, self.var
        q = transform(np.eye(self.mean.size))
        return self.mean @ q, self.var @ q**2  # independent components


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 0.3])
def test_the_closed_form_for_eigenvalues_one(make_two_layer, gamma):
    problem = make_two_layer(gamma=gamma, rho=0.7)
    a = Generator.layered([(2, 3), (2, 2)], [(-np.eye(2), None), (None, np.eye(2))])
    sigma, up = np.diag(problem.covariance(THETA)), a.eigenvalues > 0
    s = problem.noise_scale
    p, m, plus, minus = sigma[up].sum(), sigma[~up].sum(), np.sum(THETA[up] ** 2), np.sum(THETA[~up] ** 2)
    lam = np.log((2 * gamma * minus + s * p) / (2 * gamma * plus + s * m)) / 4
    found = noise_equilibrium(problem, THETA, a)
    assert found.status == "finite"
    assert found.lam == pytest.approx(lam, abs=1e-13)
    assert found.charge == pytest.approx(plus * np.exp(2 * lam) - minus * np.exp(-2 * lam), rel=1e-11)


@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_the_residual_is_zero_there_for_any_spectrum(make_two_layer, gamma):
    problem = make_two_layer(gamma=gamma)
    symmetries = problem.model.symmetries()
    wide = 3.0 * symmetries["B00"] + 0.2 * symmetries["B11"] + 0.1 * symmetries["B01"]
    for a in (*symmetries.values(), wide):
        found, charge = noise_equilibrium(problem, THETA, a), Charge(a)
        scale = problem.noise_scale * np.sum(np.abs(a.eigenvalues)) * np.trace(problem.covariance(found.theta))
        assert abs(charge.residual(problem, found.theta)) < 1e-12 * scale
        assert np.allclose(found.theta, a.exp(found.lam, THETA))
        assert charge(found.theta) == pytest.approx(found.charge, abs=1e-12 * np.sum(found.theta**2))
        assert found.relaxation_rate == pytest.approx(charge.relaxation_rate(problem, found.theta), rel=1e-10)
        assert found.rate_at_start == pytest.approx(charge.rate(problem, THETA), rel=1e-12)
        assert found.charge_at_start == charge(THETA)
        assert np.sign(found.rate_at_start) == np.sign(found.lam) == np.sign(found.charge - charge(THETA))


def test_moving_the_start_along_its_orbit_moves_the_root_and_not_the_equilibrium(make_two_layer):
    problem = make_two_layer()
    for a in problem.model.symmetries().values():
        first, second = noise_equilibrium(problem, THETA, a), noise_equilibrium(problem, a.exp(0.7, THETA), a)
        assert second.lam == pytest.approx(first.lam - 0.7, abs=1e-12)
        assert second.charge == pytest.approx(first.charge, rel=1e-11)
        assert np.allclose(second.theta, first.theta, atol=1e-11)
        moved = orbit_coordinate(problem, np.stack([first.theta, a.exp(0.7, first.theta)]), a)
        assert np.allclose(moved, [0.0, 0.7], atol=1e-12)


def test_noise_on_one_side_alone_drives_the_charge_away():
    for sign, status in ((1.0, "plus-infinity"), (-1.0, "minus-infinity")):
        found = noise_equilibrium(Given([1, 1], [1, 2], 0.0), [1.0, 1.0], sign * scaling(2))
        assert found.status == status and found.lam == sign * np.inf and found.charge == sign * np.inf
        assert found.theta is None and np.isnan(found.relaxation_rate)
        assert np.sign(found.rate_at_start) == sign
    # Noise on u alone: λ* = +inf. With u = 0 the charge -w² e^{-2λ} tends to 0, not to infinity.
    assert noise_equilibrium(Given([0, 0], [1, 0], 0.0), [1.0, 2.0], rescaling(2)).status == "plus-infinity"
    assert noise_equilibrium(Given([0, 0], [1, 0], 0.0), [0.0, 2.0], rescaling(2)).charge == 0.0
    # Decay alone on the other side makes it finite: scale invariance with weight decay, ‖θ‖⁴ = σ²TrΣ̂/2γ (C2).
    found = noise_equilibrium(Given([1, 1], [1, 2], 0.1), [1.0, 1.0], scaling(2))
    assert found.status == "finite"
    assert found.charge**2 == pytest.approx(0.5 * 3 * 2 / (2 * 0.1), rel=1e-12)


def test_no_noise_and_no_decay_is_degenerate_and_balanced_noise_is_not():
    found = noise_equilibrium(Given([3, 4], [0, 0], 0.0), [1.0, 2.0], rescaling(2))
    assert found.status == "degenerate" and np.isnan(found.lam) and np.isnan(found.charge) and found.theta is None
    balanced = noise_equilibrium(Given([3, 4], [2, 2], 0.0), [1.0, 2.0], rescaling(2))
    assert balanced.status == "finite" and balanced.lam == 0.0  # Tr[ΣA] = 0, but AΣA is not
    assert noise_equilibrium(Given([1, 1], [1, 1], 0.1), [1.0, 1.0], 0 * rescaling(2)).status == "degenerate"
    assert noise_equilibrium(Given([1, 1], [1, 1], 0.0, 0.0), [1.0, 1.0], rescaling(2)).status == "degenerate"


def test_rounding_is_not_noise(make_two_layer):
    problem = make_two_layer(gamma=0.0)
    plain = problem.gradients
    same = problem.but(
        gradients=lambda theta: np.repeat(plain(theta)[:1], 7, axis=0) * (1 + 1e-16 * np.arange(7)[:, None])
    )
    for a in problem.model.symmetries().values():
        assert noise_equilibrium(same, THETA, a).status == "degenerate"
    # In a dense basis, noise along one eigenvector leaves rounding in the others.
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    a = Generator.from_matrix(q @ np.diag([1.0, -1.0, 2.0, -2.0]) @ q.T)
    g = np.array([[1.0], [-1.0], [3.0]]) * q[:, 0]
    one = problem.but(gradients=lambda theta: g)
    one.model = type("M", (), {"dim": 4})()
    assert noise_equilibrium(one, np.ones(4), a).status == "plus-infinity"


def test_roots_and_starts_far_out_do_not_overflow():
    a = rescaling(2)
    with np.errstate(all="raise", under="ignore"):
        found = noise_equilibrium(Given([0, 0], [1e300, 1e-300], 0.0), [1e-150, 1e150], a)
    assert found.lam == pytest.approx(np.log(1e300) / 2, rel=1e-14) and found.lam > 300
    assert found.status == "finite" and np.allclose(found.theta, [1.0, 1.0], rtol=1e-10)
    assert found.charge == pytest.approx(0.0, abs=1e-10)
    far = noise_equilibrium(Given([0, 0], [1e-200, 1e200], 1e-3), [1e100, 1e-100], a)  # λμ = 230, one orbit of ...
    near = noise_equilibrium(Given([0, 0], [1.0, 1.0], 1e-3), [1.0, 1.0], a)  # ... this one
    assert far.charge == pytest.approx(near.charge, abs=1e-12) and near.lam == pytest.approx(0.0, abs=1e-15)
    assert far.lam == pytest.approx(near.lam - np.log(1e100), rel=1e-13)
    wide = noise_equilibrium(
        Given([0, 0, 0], [1e250, 1e-20, 1.0], 0.0), np.ones(3), Generator.diagonal([1e-3, -1.0, -1e-2])
    )
    assert wide.status == "finite" and np.isfinite(wide.lam)


def test_what_is_refused(make_two_layer):
    problem = make_two_layer()
    with pytest.raises(ArgumentError, match="gamma must be at least 0"):
        noise_equilibrium(problem.but(gamma=-0.1), THETA, problem.model.symmetries()["B00"])
    with pytest.raises(ArgumentError, match="generator must be symmetric"):
        noise_equilibrium(problem, THETA, rotation(10, 0, 1))
    with pytest.raises(ArgumentError, match=r"theta must have shape \(10,\), got \(2, 10\)"):
        noise_equilibrium(problem, np.stack([THETA, THETA]), problem.model.symmetries()["B00"])
    with pytest.raises(ArgumentError, match="theta must be finite"):
        noise_equilibrium(problem, THETA * np.nan, problem.model.symmetries()["B00"])


def test_orbit_coordinates_of_runaways_and_lost_states():
    problem = Given([1, 1], [1, 2], 0.0)
    assert orbit_coordinate(problem, [1.0, 1.0], scaling(2)) == -np.inf
    values = orbit_coordinate(problem, [[1.0, 1.0], [np.nan, 1.0]], rescaling(2))
    assert values[0] == pytest.approx(-np.log(0.5) / 4) and np.isnan(values[1])
