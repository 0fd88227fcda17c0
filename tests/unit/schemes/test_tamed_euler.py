"""Tamed Euler: Euler-Maruyama's direction, a bounded length, and no explosion where Euler-Maruyama has one."""

import warnings

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import Product, uw_gauss
from sgdsde.schemes.tamed_euler import SCHEME
from sgdsde.sgd import SGD

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]


@pytest.mark.parametrize("size", SIZES)
def test_formula(lab, size):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    x *= 20.0
    got = lab.take(SCHEME.step, lab.mixed, x, t, h, dW, lab.p, SCHEME.work(d, m)[1])
    for k in range(n):
        change = lab.drift(t[k], x[:, k], lab.p) * h[k] + lab.columns(t[k], x[:, k], lab.p, m) @ dW[:, k]
        wanted = x[:, k] + change / np.sqrt(1.0 + np.sqrt(h[k]) * change @ change)
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=1e-14 * np.abs(x).max())


def test_the_direction_is_eulers_and_the_length_is_bounded(lab):
    x, t, h, dW = lab.draw(3, 2, 64)
    x *= 10.0 ** np.linspace(-3, 6, 64)
    euler = sg.methods["euler-maruyama"]
    long = lab.take(euler.step, lab.mixed, x, t, h, dW, lab.p, euler.work(3, 2)[1]) - x
    short = lab.take(SCHEME.step, lab.mixed, x, t, h, dW, lab.p, SCHEME.work(3, 2)[1]) - x
    rounding = 1e-15 * (np.abs(x) + np.abs(long)).max(axis=0)
    cross = np.cross(long.T, short.T)
    assert (np.abs(cross).max(axis=1) <= 8 * rounding * np.abs(long).max(axis=0) + 1e-300).all()
    assert ((long * short).sum(axis=0) > 0).all()
    assert (np.linalg.norm(short, axis=0) <= h**-0.25 + 8 * rounding).all()
    assert (np.linalg.norm(long, axis=0) > 1e3).any()


def test_it_does_not_explode_on_a_cubic_drift():
    """dX = −X³dt + dW from X = 30 with h = 0.1, where Euler-Maruyama multiplies by −89 at the first step."""

    def drift(t, y):
        return (-y[0] * y[0] * y[0],)

    def diffusion(t, y):
        return (1.0,)

    sde = sg.SDE(drift, diffusion, dim=1, noise="additive")
    found = sg.solve(sde, (0, 20), [30.0], method=SCHEME, dt=0.1, n_paths=2000, rng=0)
    assert found.success and np.abs(found.y[:, -1]).max() < 4.0
    with pytest.warns(sg.DivergenceWarning):
        other = sg.solve(sde, (0, 20), [30.0], method="euler-maruyama", dt=0.1, n_paths=50, rng=0)
    assert other.n_diverged == 50


def test_it_does_not_explode_on_uw_gauss_and_its_bias_at_low_temperature_is_small():
    """T = 0.1: half of Euler-Maruyama's paths explode by t = 50; the median of uw is that of the closed form."""
    problem = SGD(Product(), uw_gauss(), learning_rate=0.1, batch_size=1)
    cost = {"dt": 0.01, "n_paths": 500, "rng": 1}
    found = sg.solve(problem.sde(), (0, 50), [1.0, 1.0], method=SCHEME, **cost)
    assert found.success and found.n_diverged == 0
    assert np.abs(found.y[..., 0] ** 2 - found.y[..., 1] ** 2).max() < 1e-12  # u = w stays: Δ is along (1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.DivergenceWarning)
        other = sg.solve(problem.sde(), (0, 50), [1.0, 1.0], method="euler-maruyama", **cost)
    assert other.n_diverged > 50


def test_without_noise_it_is_of_order_one():
    def drift(t, y):
        return (np.sin(t) * y[1] - y[0], -y[0] * y[0] + np.cos(t))

    def diffusion(t, y):
        return ((0.0,), (0.0,))

    sde = sg.SDE(drift, diffusion, dim=2, noise="general")
    ends = [sg.solve(sde, (0, 1), [1.0, 0.3], method=SCHEME, dt=1 / n, rng=0).y[-1] for n in (16, 32, 8192)]
    errors = [np.abs(end - ends[2]).max() for end in ends[:2]]
    assert abs(np.log2(errors[0] / errors[1]) - 1) < 0.1


def test_the_mean_of_a_step_is_eulers_up_to_h_squared(lab):
    """By quadrature: E Δ/√(1 + √h|Δ|²) − a h = O(h^{5/2}), so the weak order stays 1.0."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def bias(h):
        n = nodes.size
        x, t, hs, dW = np.full((1, n), 0.4), np.zeros(n), np.full(n, h), (nodes * np.sqrt(h))[None, :]
        got = lab.take(SCHEME.step, lab.mixed, x, t, hs, dW, lab.p, SCHEME.work(1, 1)[1])
        return weights @ (got - x)[0] - lab.drift(0.0, np.array([0.4]), lab.p)[0] * h

    assert 2.3 < np.log2(abs(bias(2.0**-6) / bias(2.0**-8))) / 2 < 2.7
