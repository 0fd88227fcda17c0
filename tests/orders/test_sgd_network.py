"""Strong orders for the SDE of SGD on a network: two layers, label noise, one Brownian motion for each sample.

The columns do not commute and there are N of them, so no method without Lévy areas has more than 1/2 for θ. The charge
of a symmetry is another matter: what is measured is its defect, C(t) − C(0) − ∫(−4γC + 2σ²Tr[ΣA])dt with the integral
summed along the computed path, which is zero for the exact solution. It has order 1 for the step
without areas and 1/2 for Euler-Maruyama. Gates are five standard errors (false alarm 1e-6), seeds fixed.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sgdsde.algebra import Generator
from sgdsde.comparison.order import strong_order
from sgdsde.equation import noise_structure
from sgdsde.models import DeepLinear
from sgdsde.schemes import heun, methods
from sgdsde.sgd import SGD
from sgdsde.symmetry import Charge, ChargeLaw

N, T = 12, 0.25
COST = {"rng": 1, "sigmas": 5, "threads": 1}
CHARGE_LEVELS, EULER_LEVELS, STATE_LEVELS = (16, 32, 64, 128, 256), (32, 64, 128, 256, 512), (16, 32, 64, 128)


@pytest.fixture(scope="module")
def network():
    """A 3-2-2 network near the minimum of its loss, where label noise drives it, off balance along the orbit."""
    rng = np.random.default_rng(0)
    X = 0.6 * rng.normal(size=(N, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(N, 2))
    model = DeepLinear([3, 2, 2])
    problem = SGD(model, X, Y, learning_rate=0.02, gamma=0.01)
    theta = model.init(rng=3)
    for _ in range(3000):
        theta = theta - 0.05 * (problem.gradient(theta) + 2 * problem.gamma * theta)
    generator = model.symmetries()["B=I"]
    return SimpleNamespace(problem=problem, theta=generator.exp(0.15, theta), generator=generator)


def defect_order(network, method, levels=CHARGE_LEVELS, *, generator=None, factor=None, expected=1.0, n_paths=500):
    """Order of the defect of the charge of `generator`, by default that of the network's symmetry."""
    law = ChargeLaw(Charge(network.generator if generator is None else generator), network.problem)

    def defect(solution):
        report = law.report(solution, size=False)
        return (report.delta - report.continuous)[:, -1]

    return strong_order(
        network.problem.sde(factor), network.theta, (0, T), method, track=law, functional=defect, reference=0.0,
        n_steps=levels, n_paths=n_paths, expected=expected, **COST,
    )  # fmt: skip


def test_there_is_a_motion_per_sample_and_they_do_not_commute(network):
    equation = network.problem.sde().bind(0.0, network.theta)
    assert equation.noise_dim == N and equation.noise == "general"
    assert not noise_structure(network.problem.sde(), network.theta).commutative


@pytest.mark.parametrize(
    "method, levels, order", [("euler-maruyama", EULER_LEVELS, 0.5), ("milstein-symmetric", CHARGE_LEVELS, 1.0)]
)
def test_order_of_the_charge(network, method, levels, order):
    result = defect_order(network, method, levels, expected=order)
    low, high = result.interval
    assert result.verdict == "consistent", result.explain()
    assert order - 0.5 < low <= order <= high < order + 0.5, result.explain()


def test_order_of_the_state_stays_one_half(network):
    result = strong_order(
        network.problem.sde(), network.theta, (0, T), "milstein-symmetric", n_steps=STATE_LEVELS, n_paths=400, **COST
    )
    low, high = result.interval
    assert result.verdict == "consistent" and result.expected == 0.5, result.explain()
    assert 0.0 < low <= 0.5 <= high < 1.0, result.explain()


# What it takes: noise along the gradients, a symmetry of the loss, and the correction. Without one of them the defect
# stays, at whatever step length.


def stays(result):
    return result.verdict == "inconsistent" and result.interval[1] < 0.25


def test_isotropic_noise_of_the_same_size_breaks_the_law(network):
    d = network.theta.size
    size = np.sqrt(np.trace(network.problem.covariance(network.theta)) / d)
    result = defect_order(network, "milstein-symmetric", factor=size * np.eye(d), n_paths=200)
    assert stays(result), result.explain()


def test_what_is_no_symmetry_has_no_such_charge(network):
    result = defect_order(
        network, "milstein-symmetric", generator=Generator.diagonal(np.ones(network.theta.size)), n_paths=200
    )
    assert stays(result), result.explain()


def test_the_step_needs_its_correction(network):
    scheme = replace(methods["milstein-symmetric"], step=heun.step)
    result = defect_order(network, scheme, n_paths=200)
    assert stays(result), result.explain()
