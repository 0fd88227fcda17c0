"""Charges against dense NumPy: value, sign, rates, exact one-step means by enumeration."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from sgdsde._errors import ArgumentError
from sgdsde.algebra import Dense, Diagonal, Generator, Sandwich, rescaling, rotation, scaling
from sgdsde.symmetry import Charge

THETA = np.random.default_rng(5).standard_normal(10)


def test_the_charge_of_two_layers_has_the_sign_of_the_theory(make_two_layer):
    problem = make_two_layer()
    for name in ("B00", "B01", "B11"):
        a = problem.model.symmetries()[name]
        b = a.parts[1][1].right
        w, u = problem.split(THETA)
        expected = np.trace(u @ b @ u.T) - np.trace(w.T @ b @ w)  # K1
        assert Charge(a)(THETA) == pytest.approx(expected, rel=1e-14)
    assert Charge(a)(np.stack([THETA, 2 * THETA])).shape == (2,)


def test_rate_residual_and_relaxation_are_those_of_the_dense_formulas(make_two_layer):
    problem = make_two_layer(rho=0.6)
    for a in problem.model.symmetries().values():
        charge, dense, sigma = Charge(a), a.matrix, problem.covariance(THETA)
        c, trace = THETA @ dense @ THETA, np.trace(sigma @ dense)
        s = problem.sigma2 * 0.6
        assert charge.rate(problem, THETA) == pytest.approx(-4 * problem.gamma * c + 2 * s * trace, rel=1e-12)
        assert charge.residual(problem, THETA) == pytest.approx(2 * problem.gamma * c - s * trace, rel=1e-12)
        kappa = 4 * problem.gamma + 2 * s * np.trace(sigma @ dense @ dense) / np.sum((dense @ THETA) ** 2)
        assert charge.relaxation_rate(problem, THETA) == pytest.approx(kappa, rel=1e-12)
        both = charge.rate(problem, np.stack([THETA, -THETA]))
        assert both.shape == (2,) and both[0] == charge.rate(problem, THETA)


def test_relaxation_is_the_slope_of_the_rate_along_the_orbit(make_two_layer):
    problem = make_two_layer()
    for a in problem.model.symmetries().values():
        charge, step = Charge(a), 1e-5
        ends = [a.exp(s, THETA) for s in (step, -step)]
        slope = np.subtract(*(charge.rate(problem, x) for x in ends)) / np.subtract(*(charge(x) for x in ends))
        assert charge.relaxation_rate(problem, THETA) == pytest.approx(-slope, rel=1e-7)  # B3: dG/dC = -κ


@pytest.mark.parametrize("batch_size", [1, 2])
def test_the_discrete_rate_is_the_mean_over_all_batches(make_two_layer, batch_size):
    problem = make_two_layer(batch_size=batch_size, n=5)
    eta, gamma, g = problem.learning_rate, problem.gamma, problem.per_sample_gradients(THETA)
    for a in problem.model.symmetries().values():
        charge = Charge(a)
        steps = [(1 - 2 * eta * gamma) * THETA - eta * g[list(batch)].mean(axis=0)
                 for batch in product(range(5), repeat=batch_size)]  # fmt: skip
        mean = np.mean([charge(x) for x in steps]) - charge(THETA)
        assert eta * charge.discrete_rate(problem, THETA) == pytest.approx(mean, rel=1e-12)
        terms = charge.terms(problem, THETA)
        assert terms.total == pytest.approx(charge.discrete_rate(problem, THETA), rel=1e-15)
        assert terms.gradient == pytest.approx(eta * a.quadratic(problem.gradient(THETA)), rel=1e-12)
        assert isinstance(terms.noise, float)
        assert charge.terms(problem, np.stack([THETA, THETA]), dt=0.01).decay.shape == (2,)


def test_terms_at_a_smaller_step_are_those_of_euler_maruyama(make_two_layer):
    problem, h = make_two_layer(n=4), 0.02
    gamma, strength = problem.gamma, 2 * problem.noise_scale * h
    delta = problem.per_sample_gradients(THETA) - problem.gradient(THETA)
    factor = delta.T / np.sqrt(4)
    for a in problem.model.symmetries().values():
        charge = Charge(a)
        ends = [(1 - 2 * h * gamma) * THETA - h * problem.gradient(THETA) + np.sqrt(strength) * factor @ np.array(xi)
                for xi in product([-1.0, 1.0], repeat=4)]  # fmt: skip
        mean = np.mean([charge(x) for x in ends]) - charge(THETA)
        assert h * charge.discrete_rate(problem, THETA, dt=h) == pytest.approx(mean, rel=1e-11)


def test_a_generator_without_a_charge_is_refused_with_the_reason():
    with pytest.raises(ArgumentError, match=r"antisymmetric, so θᵀAθ ≡ 0.*angular identity"):
        Charge(rotation(3, 0, 2))
    with pytest.raises(ArgumentError, match=r"generator must be symmetric.*not 2Aθ"):
        Charge([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ArgumentError, match="generator must be a Generator or a square matrix, got 'B=I'"):
        Charge("B=I")


def test_a_matrix_is_a_generator_and_a_wrong_size_is_named(make_uw):
    assert Charge([[0.0, 1.0], [1.0, 0.0]])([2.0, 3.0]) == 12.0
    with pytest.raises(ArgumentError, match="must act on the 2 parameters of the problem, got dim 3"):
        Charge(scaling(3)).rate(make_uw(), np.ones(3))
    assert np.isnan(Charge(rescaling(2)).relaxation_rate(make_uw(), np.zeros(2)))


@pytest.mark.parametrize(
    "generator",
    [
        rescaling(10),
        Generator.blocks(
            [Sandwich((2, 3), [[1.0, 2.0], [2.0, 0.5]], np.diag([1.0, 0, -1]) + 0.5), *scaling(4).parts[0][1:]]
        ),
        Generator.from_matrix(np.outer(THETA, THETA) + np.eye(10)),
        Generator.blocks(
            [
                *(block for _, block in rescaling(4).parts),
                Dense([[1.0, 2.0], [2.0, 0.0]]),
                Diagonal([1.0, 2.0, 3.0, 5.0]),
            ]
        ),
        rescaling(10) - rescaling(10),
    ],
    ids=["diagonal", "layered", "dense", "mixed", "zero"],
)
def test_the_compiled_observer_gives_the_charge(generator):
    charge = Charge(generator, name="C")
    watcher = charge.__observe__(SimpleNamespace(dim=10))
    x = np.random.default_rng(0).standard_normal((10, 3))
    out = np.full((watcher.rows, 3), np.nan)
    watcher.kernel(out, x, np.zeros(3), watcher.p, watcher.data, np.empty(0))
    assert np.allclose(out[0], charge(x.T), rtol=1e-13, atol=1e-14)
    with pytest.raises(ArgumentError, match="C acts on 10 components, the equation has 9"):
        charge.__observe__(SimpleNamespace(dim=9))
