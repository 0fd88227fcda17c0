"""SEA and ShARK: the formulas of the pages in NumPy, with noise that depends on time, and their coefficients."""

import numpy as np
import pytest

from sgdsde.schemes import methods

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]
FREE = np.array([1.0, 0.7, 0.0, 0.9])
STILL = np.array([1.0, 0.7, 0.0, 0.0])


def sea(a, b, y, t, h, w, H):
    u = 0.5 * w + H
    return y + a(t + h, y + b(t) @ u) * h + b(t) @ w + (b(t + h) - b(t)) @ (0.5 * w - H)


def shark(a, b, y, t, h, w, H):
    z1 = y + b(t) @ H
    a1 = a(t, z1)
    a2 = a(t + 5 / 6 * h, z1 + 5 / 6 * (a1 * h + b(t) @ w))
    change = (b(t + 5 / 6 * h) - b(t)) @ (0.5 * w - H) / (5 / 6)
    return y + (0.4 * a1 + 0.6 * a2) * h + b(t) @ w + change


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("name, formula", [("sea", sea), ("shark", shark)])
@pytest.mark.parametrize("p", [FREE, STILL], ids=["time", "still"])
@pytest.mark.parametrize("size", SIZES)
def test_formula(lab, name, formula, p, size, calculus):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    H = np.random.default_rng([7, m, n]).normal(size=(m, n)) * np.sqrt(h / 12)
    scheme = methods[name]
    got = lab.take(scheme.kernel("additive", calculus), lab.mixed, x, t, h, dW, p, scheme.work(d, m)[1], aux=H)
    for k in range(n):
        wanted = formula(
            lambda s, y: lab.drift(s, y, p),
            lambda s: lab.columns(s, np.zeros(d), p, m),
            x[:, k],
            t[k],
            h[k],
            dW[:, k],
            H[:, k],
        )
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=2e-15)


def test_moments_of_the_supports():
    """Supports S_i = x_i ΔW + y_i H of drifts with weights α_i: Σ α_i S_i = I_(1,0)/h, and its square as ∫ W² du."""
    alpha, x, y, c = np.array([0.4, 0.6]), np.array([0, 5 / 6]), np.array([1, 1]), np.array([0, 5 / 6])
    np.testing.assert_allclose([alpha.sum(), alpha @ c, alpha @ x, alpha @ y], [1, 1 / 2, 1 / 2, 1], rtol=0, atol=1e-15)
    np.testing.assert_allclose(alpha @ (x**2 + y**2 / 12), 1 / 2, rtol=0, atol=1e-15)
