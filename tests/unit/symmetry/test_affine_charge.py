"""Charges θᵀAθ + 2bᵀθ of affine generators: their exact laws, step by step and in the mean over all batches."""

from itertools import product

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError
from sgdsde.algebra import Affine, Generator, rotation, translation
from sgdsde.symmetry import MotionTrack, OrbitProjection, noise_equilibrium
from sgdsde.symmetry.fluctuation import step_variance

X, Y = np.array([1.0, -0.5, 2.0]), np.array([0.3, 1.0, -0.2])
OFFSET = Affine(Generator.diagonal([1.0, -1.0]), [1.0, -2.0], "offset")  # of ((u + 1)(w + 2)x - y)²
THETA = np.array([0.7, -0.4])


@pytest.fixture
def shifted(make_uw):
    """ℓ = ((u + 1)(w + 2)x - y)²: the rescaling of uw around (-1, -2)."""

    def gradients(theta):
        u, w = theta[0] + 1, theta[1] + 2
        r = 2 * (u * w * X - Y) * X
        return np.stack([r * w, r * u], axis=1)

    problem = make_uw(X, Y, gamma=0.2)
    problem.losses, problem.gradients = lambda t: ((t[0] + 1) * (t[1] + 2) * X - Y) ** 2, gradients
    return problem


def test_it_is_checked_with_its_constant(shifted):
    report = sg.check_symmetry(shifted, OFFSET)
    assert report and report.finite is not None and "offset is a symmetry" in str(report)
    assert not sg.check_symmetry(shifted, OFFSET.linear)
    assert not sg.check_symmetry(shifted, Affine(OFFSET.linear, [1.0, -2.01]))
    assert not sg.check_symmetry(shifted, translation([1.0, 0.0]))


@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_each_step_and_the_mean_over_all_batches_obey_the_exact_law(shifted, gamma):
    problem = shifted.but(gamma=gamma)
    h, g, charge = problem.learning_rate, problem.per_sample_gradients(THETA), sg.Charge(OFFSET)
    a, linear, b = 1 - 2 * h * gamma, OFFSET.linear, OFFSET.shift
    changes = []
    for batch in product(range(3), repeat=problem.batch_size):
        v = -h * g[list(batch)].mean(axis=0)
        new = charge(a * THETA + v)
        law = a * a * linear.quadratic(THETA) + 2 * a * b @ THETA + linear.quadratic(v) + 4 * gamma * h * b @ v
        assert new == pytest.approx(law, abs=1e-14)
        changes.append(new - charge(THETA))
    assert np.mean(changes) == pytest.approx(h * charge.discrete_rate(problem, THETA), rel=1e-12)
    assert np.var(changes) == pytest.approx(step_variance(problem, charge, THETA, h, "sgd"), rel=1e-12)


def test_the_rate_is_the_limit_of_small_steps_and_relaxes_as_it_says(shifted):
    charge = sg.Charge(OFFSET)
    j, noise = OFFSET.apply(THETA), 2 * shifted.noise_scale * OFFSET.trace(shifted.covariance(THETA))
    assert charge.rate(shifted, THETA) == pytest.approx(-4 * shifted.gamma * THETA @ j + noise, rel=1e-12)
    assert charge.residual(shifted, THETA) == -charge.rate(shifted, THETA) / 2
    ahead, behind = OFFSET.exp(1e-5, THETA), OFFSET.exp(-1e-5, THETA)
    slope = (charge.rate(shifted, ahead) - charge.rate(shifted, behind)) / (charge(ahead) - charge(behind))
    assert charge.relaxation_rate(shifted, THETA) == pytest.approx(-slope, rel=1e-6)


def softmax(gamma=0.1):
    rng = np.random.default_rng(0)
    model = sg.models.SoftmaxRegression(2, 3)
    Xs, Ys = rng.standard_normal((6, 2)), rng.integers(0, 3, 6)
    return sg.SGD(model, Xs, Ys, learning_rate=0.1, batch_size=2, gamma=gamma)


def test_a_translation_of_softmax_decays_and_has_no_noise():
    problem = softmax()
    model, theta0 = problem.model, problem.model.init(1)
    for name, v in model.translations().items():
        charge = sg.Charge(translation(v, name))
        assert sg.check_symmetry(problem, charge)
        run = problem.run(theta0, 20, 3, rng=0, t_eval="steps", observe=charge)
        expected = charge(theta0) * (1 - 2 * 0.1 * 0.1) ** np.arange(21)
        assert np.allclose(charge(run.y), expected, rtol=0, atol=1e-14)
        assert np.allclose(np.squeeze(run.observed[charge.name]), expected, rtol=0, atol=1e-14)
        assert charge.relaxation_rate(problem, theta0) == pytest.approx(2 * problem.gamma, rel=1e-12)


def test_the_law_is_followed_along_a_run():
    problem = softmax()
    charge = sg.Charge(translation(problem.model.translations()["b1"], "b"))
    law = sg.ChargeLaw(charge, problem)
    report = law.report(problem.run(problem.model.init(1) + 1.0, 10, 3, rng=0, t_eval=6, track=law))
    assert np.abs(report.delta[:, -1]).min() > 0.01
    for zero in (report.remainder, report.defect, report.noise, report.gradient):
        assert np.abs(zero).max() < 1e-14
    assert report.remainder_size.max() < 1e-15


def test_the_law_of_a_shifted_product(shifted):
    """The exact sums of the law along Euler-Maruyama steps of a hand-written path."""
    from sgdsde.models import charge_rows as rows
    from sgdsde.symmetry.interpreted import _add, _laws

    law = sg.ChargeLaw(OFFSET, shifted)
    _laws[1] = law
    h, gamma, charge = 0.1, shifted.gamma, law.charge
    acc, x = np.zeros((rows.CHARGE_ROWS, 1)), THETA
    for k in range(4):
        new = (1 - 2 * h * gamma) * x - h * shifted.per_sample_gradients(x)[k % 3]
        _add(acc, x[:, None], new[:, None], np.array([h]), 1)
        x = new
    acc = acc[:, 0]
    decay = -4 * gamma * acc[rows.SUM_H_CHARGE] + 4 * gamma**2 * acc[rows.SUM_H2_CHARGE]
    assert decay + acc[rows.SUM_QUADRATIC] == pytest.approx(charge(x) - charge(THETA), abs=1e-13)
    assert acc[rows.SUM_ABS_CROSS] < 1e-13 and acc[rows.CHARGE] == charge(x)
    terms = charge.terms(shifted, THETA)
    pull, square, form, trace = law._row_terms(THETA, h)
    assert -4 * gamma * pull + 4 * gamma**2 * square == pytest.approx(h * terms.decay, rel=1e-12)
    assert form == pytest.approx(h * terms.gradient, rel=1e-12)
    assert 2 * shifted.noise_scale * trace == pytest.approx(h * terms.noise, rel=1e-12)


def test_what_cannot_take_a_constant_says_so(shifted):
    with pytest.raises(ArgumentError, match="antisymmetric"):
        sg.Charge(Affine(rotation(2, 0, 1), [1.0, 0.0]))
    for use in (
        lambda: noise_equilibrium(shifted, THETA, OFFSET),
        lambda: OrbitProjection(OFFSET),
        lambda: OrbitProjection(sg.Charge(OFFSET)),
        lambda: MotionTrack(OFFSET),
    ):
        with pytest.raises(ArgumentError, match="must be linear here"):
            use()
