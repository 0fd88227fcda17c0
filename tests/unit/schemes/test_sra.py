"""SRA1-3: the formulas of the pages in NumPy, their tableaus against the order conditions, and what they become."""

from importlib import import_module

import numpy as np
import pytest

from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import methods

NAMES = ["sra1", "sra2", "sra3"]
SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]
FREE = np.array([1.0, 0.7, 0.0, 0.9])  # noise that depends on time alone
STILL = np.array([1.0, 0.7, 0.0, 0.0])  # nor on that


def sra1(a, b, y, t, h, w, u):
    a1 = a(t, y)
    a2 = a(t + 3 / 4 * h, y + 3 / 4 * a1 * h + 3 / 2 * b(t + h) @ u)
    return y + (a1 / 3 + 2 * a2 / 3) * h + b(t + h) @ (w - u) + b(t) @ u


def sra2(a, b, y, t, h, w, u):
    a1 = a(t, y)
    a2 = a(t + 3 / 4 * h, y + 3 / 4 * a1 * h + 3 / 2 * b(t + h / 3) @ u)
    return y + (a1 / 3 + 2 * a2 / 3) * h + 3 / 2 * b(t + h / 3) @ u + b(t + h) @ (w - 3 / 2 * u)


def sra3(a, b, y, t, h, w, u):
    a1 = a(t, y)
    a2 = a(t + h, y + a1 * h)
    a3 = a(t + h / 2, y + (a1 + a2) / 4 * h + b(t + h) @ u + b(t) @ u / 2)
    return y + (a1 / 6 + a2 / 6 + 2 * a3 / 3) * h + b(t + h) @ (w - u) + b(t) @ u


FORMULAS = {"sra1": sra1, "sra2": sra2, "sra3": sra3}


def area(m, h):
    """H of every Brownian motion."""
    return np.random.default_rng([7, m, h.size]).normal(size=(m, h.size)) * np.sqrt(h / 12)


def stepped(lab, name, d, m, n, p):
    x, t, h, dW = lab.draw(d, m, n)
    H = area(m, h)
    scheme = methods[name]
    got = lab.take(scheme.kernel("additive", "ito"), lab.mixed, x, t, h, dW, p, scheme.work(d, m)[1], aux=H)
    return got, x, t, h, dW, H


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", SIZES)
def test_formula(lab, name, size):
    d, m, n = size
    got, x, t, h, dW, H = stepped(lab, name, d, m, n, FREE)
    for k in range(n):
        wanted = FORMULAS[name](
            lambda s, y: lab.drift(s, y, FREE),
            lambda s: lab.columns(s, np.zeros(d), FREE, m),
            x[:, k],
            t[k],
            h[k],
            dW[:, k],
            0.5 * dW[:, k] + H[:, k],
        )
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=2e-15)


@pytest.mark.parametrize("name", NAMES)
def test_order_conditions(name):
    A, B, alpha, c0, c1, beta1, beta2 = map(np.array, import_module(f"sgdsde.schemes.{name}").TABLEAU)
    e = np.ones(alpha.size)
    assert not np.triu(A).any() and not np.triu(B).any()
    found = [
        alpha @ e,
        alpha @ A @ e,
        alpha @ B @ e,
        alpha @ (B @ e) ** 2,
        beta1 @ e,
        beta2 @ e,
        beta1 @ c1,
        beta2 @ c1,
    ]
    np.testing.assert_allclose(found, [1, 1 / 2, 1, 3 / 2, 1, 0, 1, -1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(A @ e, c0, rtol=0, atol=1e-14)
    if methods[name].ode_order == 3:
        np.testing.assert_allclose([alpha @ c0**2, alpha @ A @ c0], [1 / 3, 1 / 6], rtol=0, atol=1e-14)


def test_sra1_and_sra2_are_one_method_where_noise_does_not_depend_on_time(lab):
    one, two = (stepped(lab, name, 3, 2, 8, STILL)[0] for name in ("sra1", "sra2"))
    np.testing.assert_allclose(one, two, rtol=0, atol=2e-15)
    other = [stepped(lab, name, 3, 2, 8, FREE)[0] for name in ("sra1", "sra2")]
    assert np.abs(other[0] - other[1]).max() > 1e-6


@kernel_uncached(INCREMENT)
def linear(out, x, t, h, v, p, data, work):
    for b in range(x.shape[1]):
        out[0, b] = 2.0 * h[b] + (1.0 + 3.0 * t[b]) * v[0, b]


@pytest.mark.parametrize("name", [*NAMES, "sea", "shark", "sriw1", "sriw2"])
def test_one_step_is_exact_for_a_constant_drift_and_noise_that_is_linear_in_time(lab, name):
    """dX = 2 dt + (1 + 3t) dW: X(h) = 2h + ΔW + 3∫ u dW, and ∫ u dW = hΔW − I_(1,0)."""
    h, dW = np.array([0.3, 0.7]), np.array([[0.4, -1.1]])
    H = area(1, h)
    scheme = methods[name]
    step, zero = scheme.kernel("additive", "stratonovich"), np.zeros((1, 2))
    x = lab.take(step, linear, zero, np.zeros(2), h, dW, np.zeros(0), scheme.work(1, 1)[1], aux=H)
    np.testing.assert_allclose(x, 2 * h + dW + 3 * (h * dW - h * (0.5 * dW + H)), rtol=0, atol=1e-15)
