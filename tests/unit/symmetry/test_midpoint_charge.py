"""What three integrators do to a charge of SGD's SDE: noise of h^½, of h, and none.

Two layers of a linear network; C = ‖U‖² − ‖W‖² for θ = [W, U], whose exact rate is −4γC + 2σ²Tr[ΣA] with
Tr[ΣA] = TrΣ_U − TrΣ_W, written out here from the per-sample gradients. The defect of a path is
C(T) − C(0) − Σ h·rate, the rate taken at the start of each step, and at its midpoint for the implicit midpoint rule.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import DeepLinear
from sgdsde.sgd import SGD

N, T, PATHS = 12, 0.5, 256
LEVELS = (16, 64, 256)


@pytest.fixture(scope="module")
def network():
    """A 3-2-2 network near the minimum of its loss, off balance along the orbit of its symmetry."""
    rng = np.random.default_rng(0)
    X = 0.6 * rng.normal(size=(N, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(N, 2))
    model = DeepLinear([3, 2, 2])
    problem = SGD(model, X, Y, learning_rate=0.02, gamma=0.01)
    theta = model.init(rng=3)
    for _ in range(3000):
        theta = theta - 0.05 * (problem.gradient(theta) + 2 * problem.gamma * theta)
    return SimpleNamespace(problem=problem, theta=model.symmetries()["B=I"].exp(0.15, theta), X=X, Y=Y)


def charge(theta):
    return (theta[..., 6:] ** 2).sum(axis=-1) - (theta[..., :6] ** 2).sum(axis=-1)


def rate(network, theta):
    """−4γC + 2σ²ρ(TrΣ_U − TrΣ_W) for θ of shape (..., 10)."""
    W, U = theta[..., :6].reshape(*theta.shape[:-1], 2, 3), theta[..., 6:].reshape(*theta.shape[:-1], 2, 2)
    hidden = np.einsum("nx,...hx->...nh", network.X, W)
    r = np.einsum("...nh,...oh->...no", hidden, U) - network.Y
    g_U = 2 * np.einsum("...no,...nh->...noh", r, hidden)
    g_W = 2 * np.einsum("...no,...oh,nx->...nhx", r, U, network.X)
    trace = [np.var(g, axis=-3).sum(axis=(-1, -2)) for g in (g_U, g_W)]
    problem = network.problem
    return -4 * problem.gamma * charge(theta) + 2 * problem.noise_scale * (trace[0] - trace[1])


def defects(network, method, n_steps, midpoint=False):
    """(PATHS, n_steps): ΔC − h·rate of every step."""
    h = T / n_steps
    found = sg.solve(
        network.problem.sde(), (0, T), network.theta, method=method, dt=h, n_paths=PATHS, rng=1, t_eval="steps"
    )
    assert found.success
    y = found.y
    at = 0.5 * (y[:, 1:] + y[:, :-1]) if midpoint else y[:, :-1]
    return charge(y[:, 1:]) - charge(y[:, :-1]) - h * rate(network, at)


def test_the_rate_is_that_of_the_package(network):
    generator = network.problem.model.symmetries()["B=I"]
    assert abs(rate(network, network.theta) - sg.Charge(generator).rate(network.problem, network.theta)) < 1e-14


@pytest.mark.parametrize("method, power, margin", [("euler-maruyama", 0.5, 0.15), ("milstein-symmetric", 1.0, 0.25)])
def test_the_defect_of_explicit_methods_is_noise(network, method, power, margin):
    """The std of 256 paths is known to 4.4 %, so a slope over a factor of 16 to 0.023 (one sigma)."""
    spread = [defects(network, method, n).sum(axis=1).std() for n in LEVELS]
    slopes = np.log(np.divide(spread[:-1], spread[1:])) / np.log(4)
    assert spread[-1] > 1e-5
    assert abs(np.mean(slopes) - power) < margin, slopes


@pytest.mark.parametrize("n_steps", LEVELS)
def test_the_implicit_midpoint_has_no_defect(network, n_steps):
    defect = defects(network, "implicit-midpoint", n_steps, midpoint=True)
    total = defect.sum(axis=1)
    assert total.std() < 1e-13 and np.abs(total).max() < 5e-13
    assert np.abs(defect).max() < 1e-13  # of a charge near 2, which itself spreads:
    moved = defects(network, "implicit-midpoint", n_steps)  # the rate at the start of the step
    assert moved.sum(axis=1).std() > 1e-5


def test_deep_networks_and_all_generators(network):
    """Three layers, generators of both hidden layers that are symmetric matrices: ΔC = h·rate at the midpoint."""
    rng = np.random.default_rng(2)
    X, Y = 0.5 * rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    model = DeepLinear([2, 3, 2, 2])
    problem = SGD(model, X, Y, learning_rate=0.02, gamma=0.02)
    theta = model.init(rng=1)
    found = sg.solve(
        problem.sde(), (0, 0.2), theta, method="implicit-midpoint", dt=0.02, n_paths=4, rng=0, t_eval="steps"
    )
    generators = model.symmetries().charged()
    assert len(generators) >= 2
    for generator in generators.values():
        c = sg.Charge(generator)
        C, middle = c(found.y), 0.5 * (found.y[:, 1:] + found.y[:, :-1])
        assert np.abs(C[:, 1:] - C[:, :-1] - 0.02 * c.rate(problem, middle)).max() < 1e-12
        assert np.abs(C - C[:, :1]).max() > 1e-4
