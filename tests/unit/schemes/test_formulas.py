"""Each page's formula, written in NumPy from its docstring, against its kernel on the same numbers."""

import numpy as np
import pytest

from sgdsde.schemes import euler_maruyama, heun, milstein, milstein_symmetric

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 3, 4) for n in (1, 3, 8)]
BOTH = ("ito", "stratonovich")


def compare(lab, scheme, noise, calculus, size, formula):
    d, m, n = size
    diagonal = noise == "diagonal"
    x, t, h, dW = lab.draw(d, m, n)
    fixed, per_path = scheme.work(d, m)
    assert fixed == 0
    increment = lab.apart if diagonal else lab.mixed
    got = lab.take(scheme.kernel(noise, calculus), increment, x, t, h, dW, lab.p, per_path)
    for k in range(n):
        wanted = formula(
            lambda s, y: lab.drift(s, y, lab.p),
            lambda s, y: lab.columns(s, y, lab.p, m, diagonal),
            x[:, k],
            t[k],
            h[k],
            dW[:, k],
        )
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_euler_maruyama(lab, size):
    def formula(a, b, y, t, h, dW):
        return y + a(t, y) * h + b(t, y) @ dW

    compare(lab, euler_maruyama.SCHEME, "general", "ito", size, formula)


@pytest.mark.parametrize("size", SIZES)
def test_heun(lab, size):
    def formula(a, b, y, t, h, dW):
        predicted = y + a(t, y) * h + b(t, y) @ dW
        mean_drift = 0.5 * (a(t, y) + a(t + h, predicted))
        return y + mean_drift * h + 0.5 * (b(t, y) + b(t + h, predicted)) @ dW

    compare(lab, heun.SCHEME, "general", "stratonovich", size, formula)


def ito_milstein(a, b, y, t, h, dW):
    m = dW.size
    integrals = 0.5 * (np.outer(dW, dW) - h * np.eye(m))
    total = y + a(t, y) * h + b(t, y) @ dW
    for j in range(m):
        support = y + b(t, y)[:, j] * np.sqrt(h)
        for k in range(m):
            total = total + (b(t, support)[:, k] - b(t, y)[:, k]) * integrals[j, k] / np.sqrt(h)
    return total


def stratonovich_milstein(a, b, y, t, h, dW):
    first = b(t, y) @ dW
    return y + a(t, y) * h + first + 0.5 * (b(t, y + first) @ dW - first)


MILSTEIN = {"ito": ito_milstein, "stratonovich": stratonovich_milstein}


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("size", SIZES)
def test_milstein_commutative(lab, size, calculus):
    compare(lab, milstein.SCHEME, "commutative", calculus, size, MILSTEIN[calculus])


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("size", [s for s in SIZES if s[1] == 1])
def test_milstein_scalar(lab, size, calculus):
    compare(lab, milstein.SCHEME, "scalar", calculus, size, MILSTEIN[calculus])


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("size", [s for s in SIZES if s[0] == s[1]])
def test_milstein_diagonal(lab, size, calculus):
    def by_component(a, b, y, t, h, dW):
        g = np.diag(b(t, y))
        moved = np.diag(b(t, y + g * np.sqrt(h)))
        return y + a(t, y) * h + g * dW + (moved - g) * 0.5 * (dW**2 - h) / np.sqrt(h)

    compare(lab, milstein.SCHEME, "diagonal", calculus, size, MILSTEIN[calculus])
    if calculus == "ito":
        compare(lab, milstein.SCHEME, "diagonal", calculus, size, by_component)


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("noise", ["general", "commutative", "scalar"])
@pytest.mark.parametrize("size", SIZES)
def test_milstein_symmetric(lab, size, noise, calculus):
    if noise == "scalar" and size[1] > 1:
        return

    def formula(a, b, y, t, h, dW):
        first = b(t, y) @ dW
        again = b(t, y + first) @ dW
        c = lab.correction(t, y, lab.p, dW.size) if calculus == "ito" else 0.0
        return y + a(t, y) * h + first + 0.5 * (again - first) - c * h

    compare(lab, milstein_symmetric.SCHEME, noise, calculus, size, formula)
