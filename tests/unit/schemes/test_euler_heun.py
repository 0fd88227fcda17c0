"""Euler-Heun is the formula of its page: what stands there once more in NumPy, with a fixed dW."""

import numpy as np
import pytest

from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import milstein_symmetric
from sgdsde.schemes.euler_heun import SCHEME

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]


def formula(a, b, y, t, h, dW):
    support = y + b(t, y) @ dW
    return y + a(t, y) * h + 0.5 * (b(t, y) + b(t + h, support)) @ dW


def compare(lab, noise, calculus, size, p, diagonal=False):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    increment = lab.apart if diagonal else lab.mixed
    got = lab.take(SCHEME.kernel(noise, calculus), increment, x, t, h, dW, p, SCHEME.work(d, m)[1])
    for k in range(n):

        def drift(s, y):
            return lab.drift(s, y, p)

        def columns(s, y):
            return lab.columns(s, y, p, m, diagonal)

        wanted = formula(drift, columns, x[:, k], t[k], h[k], dW[:, k])
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_formula(lab, size):
    compare(lab, "general", "stratonovich", size, lab.p)


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_formula_for_diagonal_noise(lab, d, n):
    compare(lab, "diagonal", "stratonovich", (d, d, n), lab.p, diagonal=True)


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("size", SIZES)
def test_formula_for_additive_noise(lab, size, calculus):
    compare(lab, "additive", calculus, size, np.array([1.0, 0.7, 0.0, 0.4]))


def test_without_time_in_the_noise_it_is_milstein_symmetric(lab):
    p = np.array([1.0, 0.7, 1.3, 0.0])
    x, t, h, dW = lab.draw(3, 4, 8)
    one = lab.take(SCHEME.kernel("general", "stratonovich"), lab.mixed, x, t, h, dW, p, SCHEME.work(3, 4)[1])
    other = milstein_symmetric.SCHEME
    two = lab.take(other.kernel("general", "stratonovich"), lab.mixed, x, t, h, dW, p, other.work(3, 4)[1])
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)
    p[3] = 0.4
    one, two = (
        lab.take(s.kernel("general", "stratonovich"), lab.mixed, x, t, h, dW, p, s.work(3, 4)[1])
        for s in (SCHEME, other)
    )
    assert np.abs(one - two).max() > 1e-3


@kernel_uncached(INCREMENT)
def clock(out, x, t, h, v, p, data, work):
    """dX = t dW."""
    for b in range(x.shape[1]):
        out[0, b] = t[b] * v[0, b]


def test_what_noise_that_changes_with_time_costs(lab):
    """A step against ∫ s dW = h (½ΔW − H), H ~ N(0, h/12): mean square h³/12; with b at its start h³/3."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    h, weight = 0.3, np.outer(weights, weights).ravel() / weights.sum() ** 2
    dW, H = (np.sqrt(h) * z.ravel() for z in np.meshgrid(nodes, nodes / np.sqrt(12)))
    exact, zero, n = h * (0.5 * dW - H), np.zeros((1, dW.size)), dW.size
    for scheme, noise, wanted in [(SCHEME, "additive", h**3 / 12), (SCHEME, "scalar", h**3 / 12),
                                  (milstein_symmetric.SCHEME, "scalar", h**3 / 3)]:  # fmt: skip
        step = scheme.kernel(noise, "stratonovich")
        got = lab.take(step, clock, zero, np.zeros(n), np.full(n, h), dW[None], [0.0], scheme.work(1, 1)[1])[0]
        assert weight @ (got - exact) ** 2 == pytest.approx(wanted, rel=1e-12)
        assert abs(weight @ (got - exact)) < 1e-15
