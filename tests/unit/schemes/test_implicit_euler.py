"""Drift-implicit Euler: its equation holds to rounding, stiff steps are stable, zero noise leaves implicit Euler."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes.implicit_euler import SCHEME

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]


def one_step(lab, increment, x, h, dW, p=(0.0,)):
    """One step from t = 0, where columns may fail: (x, status)."""
    x, h, dW = np.array(x, float), np.ascontiguousarray(h, float), np.ascontiguousarray(dW, float)
    d, n = x.shape
    status, work = np.zeros(2 * n, np.int64), np.full((SCHEME.work(d, len(dW))[1] + 4) * n, np.nan)
    p, aux = np.array(p, float), np.empty((0, n))
    SCHEME.step(increment, lab.mixed_correction, x, np.zeros(n), h, dW, aux, status, work, p, np.zeros(1))
    return x, status


@pytest.mark.parametrize("size", SIZES)
def test_the_step_solves_its_equation(lab, size):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    got = lab.take(SCHEME.step, lab.mixed, x, t, h, dW, lab.p, SCHEME.work(d, m)[1])
    for k in range(n):
        noise = lab.columns(t[k], x[:, k], lab.p, m) @ dW[:, k]
        wanted = x[:, k] + lab.drift(t[k] + h[k], got[:, k], lab.p) * h[k] + noise
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=5e-13)


@kernel_uncached(INCREMENT)
def powers(out, x, t, h, v, p, data, work):
    """dx = (p0 x − p1 x³)dt + p2 dW."""
    for b in range(x.shape[1]):
        noise = p[2] * v[0, b] if v.shape[0] > 0 else 0.0
        out[0, b] = (p[0] * x[0, b] - p[1] * x[0, b] ** 3) * h[b] + noise


def test_bits_do_not_depend_on_the_block(lab):
    rng = np.random.default_rng(0)
    x, h, dW = rng.normal(size=(1, 8)), np.geomspace(1e-3, 30.0, 8), rng.normal(size=(1, 8))  # some columns with Newton
    whole, status = one_step(lab, powers, x, h, dW, [-1.0, 10.0, 0.5])
    assert not status.any()
    for k in range(8):
        alone, _ = one_step(lab, powers, x[:, [k]], h[[k]], dW[:, [k]], [-1.0, 10.0, 0.5])
        assert alone[0, 0] == whole[0, k]


def test_a_stiff_linear_step_divides_by_one_plus_z(lab):
    """hλ = 50, where Euler-Maruyama multiplies by −49; the variance of additive noise settles at σ²/(2λ + λ²h)."""
    x, dW = np.array([[1.0, -2.0, 0.0]]), np.array([[0.0, 1.0, 0.3]])
    got, status = one_step(lab, powers, x, np.full(3, 0.5), dW, [-100.0, 0.0, 0.7])
    assert not status.any()
    np.testing.assert_allclose(got, (x + 0.7 * dW) / 51.0, rtol=1e-12)
    z = 50.0
    assert abs(0.7**2 * 0.5 / ((1 + z) ** 2 - 1) - 0.7**2 / (2 * 100.0 + 100.0**2 * 0.5)) < 1e-15


@pytest.mark.parametrize("p0, p1, h", [(0.0, 1.0, 50.0), (0.0, 1.0, 1e6), (1.0, 1.0, 0.9), (-1.0, 1e4, 10.0)])
def test_stiff_cubes_are_solved(lab, p0, p1, h):
    """y − h(p0 y − p1 y³) = x has one real root for h p0 < 1; wide starts, and noise of any size."""
    x = np.array([[1e-3, 0.5, 3.0, -20.0, 1e3, 0.2]])
    dW = np.array([[0.0, 1.0, -2.0, 5.0, 0.0, 1e3]])
    got, status = one_step(lab, powers, x, np.full(6, h), dW, [p0, p1, 1.0])
    assert not status.any()
    for k, right in enumerate((x + dW)[0]):
        roots = np.roots([h * p1, 0.0, 1.0 - h * p0, -right])
        root = roots[np.abs(roots.imag).argmin()].real
        assert abs(got[0, k] - root) < 1e-9 * abs(root)


def test_no_root_fails_alone(lab):
    """p1 = −1 from x = 1: y − h(y + y³) = 1 has no root near for h = 0.9 and the others' steps are as they were."""
    h = np.array([0.01, 0.9, 0.02])
    got, status = one_step(lab, upward, np.ones((1, 3)), h, np.zeros((0, 3)))
    assert list(status) == [0, 2, 0, 0, 0, 0] and got[0, 1] == 1.0
    for k in (0, 2):
        assert abs(got[0, k] - (1 - np.sqrt(1 - 4 * h[k] * (1 + h[k]))) / (2 * h[k])) < 1e-12


@kernel_uncached(INCREMENT)
def upward(out, x, t, h, v, p, data, work):
    """x' = 1 + x²."""
    for b in range(x.shape[1]):
        out[0, b] = (1.0 + x[0, b] * x[0, b]) * h[b]


@kernel_uncached(INCREMENT)
def heat(out, x, t, h, v, p, data, work):
    """The heat equation on d points."""
    d = x.shape[0]
    for b in range(x.shape[1]):
        for i in range(d):
            left = x[i - 1, b] if i > 0 else 0.0
            right = x[i + 1, b] if i < d - 1 else 0.0
            out[i, b] = p[0] * (left - 2.0 * x[i, b] + right) * h[b]


@pytest.mark.parametrize("d, z", [(40, 30.0), (40, 50.0), (128, 1e5), (150, 50.0)])
def test_many_components(lab, d, z):
    """Up to 128 a Jacobian is made, however stiff the step; beyond, the fixed point solves moderately stiff ones."""
    x, p0 = np.random.default_rng(0).normal(size=(d, 3)), z / 4
    got, status = one_step(lab, heat, x, np.ones(3), np.zeros((0, 3)), [p0])
    assert not status.any()
    A = p0 * (np.eye(d, k=1) + np.eye(d, k=-1) - 2 * np.eye(d))
    np.testing.assert_allclose(got, np.linalg.solve(np.eye(d) - A, x), rtol=0, atol=1e-10)


def drift(t, y):
    return (np.sin(t) * y[1] - y[0], -y[0] * y[0] + np.cos(t))


def no_noise(t, y):
    return ((0.0 * y[0],), (0.0,))


def test_without_noise_it_is_implicit_euler():
    """Step by step to rounding, and order one; an explicit or half implicit step would be seen."""
    sde = sg.SDE(drift, no_noise, dim=2, noise="general")
    found = sg.solve(sde, (0, 1), [1.0, 0.3], method=SCHEME, dt=0.125, rng=0, t_eval="steps")
    for k in range(8):
        wanted = found.y[k] + 0.125 * np.array(drift(found.t[k + 1], found.y[k + 1]))
        np.testing.assert_allclose(found.y[k + 1], wanted, rtol=0, atol=1e-13)
    ends = [sg.solve(sde, (0, 1), [1.0, 0.3], method=SCHEME, dt=1 / n, rng=0).y[-1] for n in (16, 32, 4096)]
    errors = [np.abs(end - ends[2]).max() for end in ends[:2]]
    assert abs(np.log2(errors[0] / errors[1]) - 1) < 0.1


def test_square_root_noise_stays_finite():
    """Chemical Langevin equation: noise √x, explicit; a thousand paths to T = 100."""

    def reaction(t, y):
        return (-1.0 * y[0] + 0.5 * y[1], 1.0 * y[0] - 0.5 * y[1])

    def roots(t, y):
        a, b = np.sqrt(max(y[0], 0.0)), np.sqrt(max(0.5 * y[1], 0.0))
        return ((-a, b), (a, -b))

    sde = sg.SDE(reaction, roots, dim=2, noise="general")
    found = sg.solve(sde, (0, 100), [100.0, 100.0], method=SCHEME, dt=0.1, n_paths=1000, rng=0)
    assert found.success and found.n_diverged == 0
    np.testing.assert_allclose(found.y.sum(axis=-1), 200.0, rtol=1e-11)
    assert abs(found.mean()[-1, 0] - 200 / 3) < 5 * found.stderr()[-1, 0]
