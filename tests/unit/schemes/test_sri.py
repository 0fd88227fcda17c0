"""SRIW1 and SRIW2: the formulas of the pages in NumPy, all 25 order conditions, and what is not evaluated."""

from importlib import import_module

import numpy as np
import pytest

from sgdsde.schemes import methods

NAMES = ["sriw1", "sriw2"]
SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 3) for n in (1, 3, 8) if m in (1, d)]


def sums(b, w, H, h, beta2):
    """The noise of the last line, which both methods share up to β²."""
    b1, b2, b3, b4 = b
    root, i11, i111 = np.sqrt(h), 0.5 * (w**2 - h), (w**3 - 3 * h * w) / 6
    return (
        (-b1 + 4 / 3 * b2 + 2 / 3 * b3) * w
        + (beta2[0] * b1 + beta2[1] * b2 + beta2[2] * b3) * i11 / root
        + (2 * b1 - 4 / 3 * b2 - 2 / 3 * b3) * (0.5 * w + H)
        + (-2 * b1 + 5 / 3 * b2 - 2 / 3 * b3 + b4) * i111 / h
    )


def sriw1(a, b, y, t, h, w, H):
    u, root = 0.5 * w + H, np.sqrt(h)
    a1, b1 = a(t, y), b(t, y)
    a2 = a(t + 3 / 4 * h, y + 3 / 4 * a1 * h + 3 / 2 * b1 * u)
    b2 = b(t + h / 4, y + a1 / 4 * h + b1 / 2 * root)
    b3 = b(t + h, y + a1 * h - b1 * root)
    b4 = b(t + h / 4, y + a1 / 4 * h + (-5 * b1 + 3 * b2 + b3 / 2) * root)
    return y + (a1 / 3 + 2 / 3 * a2) * h + sums((b1, b2, b3, b4), w, H, h, (-1, 4 / 3, -1 / 3))


def sriw2(a, b, y, t, h, w, H):
    u, root = 0.5 * w + H, np.sqrt(h)
    a1, b1 = a(t, y), b(t, y)
    a2 = a(t + h, y + a1 * h)
    b2 = b(t + h / 4, y + a1 / 4 * h - b1 / 2 * root)
    a3 = a(t + h / 2, y + (a1 + a2) / 4 * h + (b1 + b2 / 2) * u)
    b3 = b(t + h, y + a1 * h + b1 * root)
    b4 = b(t + h / 4, y + a3 / 4 * h + (2 * b1 - b2 + b3 / 2) * root)
    return y + (a1 / 6 + a2 / 6 + 2 / 3 * a3) * h + sums((b1, b2, b3, b4), w, H, h, (1, -4 / 3, 1 / 3))


FORMULAS = {"sriw1": sriw1, "sriw2": sriw2}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", SIZES)
def test_formula(lab, name, size):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    H = np.random.default_rng([7, m, n]).normal(size=(m, n)) * np.sqrt(h / 12)
    scheme = methods[name]
    for noise in ("scalar", "diagonal"):
        if (m == 1) if noise == "scalar" else (m == d):
            increment = lab.apart if noise == "diagonal" else lab.mixed

            def b(s, y, noise=noise):
                G = lab.columns(s, y, lab.p, m, noise == "diagonal")
                return np.diag(G) if noise == "diagonal" else G[:, 0]

            step = scheme.kernel(noise, "ito")
            got = lab.take(step, increment, x, t, h, dW, lab.p, scheme.work(d, m)[1], aux=H)
            for k in range(n):
                wanted = FORMULAS[name](lambda s, y: lab.drift(s, y, lab.p), b, x[:, k], t[k], h[k], dW[:, k], H[:, k])
                np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=4e-15)


def conditions(tableau):
    """(left side, right side) of the conditions for strong order 1.5."""
    A0, A1, B0, B1, alpha, _, _, b1, b2, b3, b4 = map(np.array, tableau)
    e = np.ones(alpha.size)
    A0e, A1e, B0e, B1e = A0 @ e, A1 @ e, B0 @ e, B1 @ e
    one = [(alpha @ e, 1), (b1 @ e, 1), (b2 @ e, 0), (b3 @ e, 0), (b4 @ e, 0)]
    one += [(b1 @ B1e, 0), (b2 @ B1e, 1), (b3 @ B1e, 0), (b4 @ B1e, 0)]
    one += [(alpha @ A0e, 1 / 2), (alpha @ B0e, 1), (alpha @ B0e**2, 3 / 2)]
    one += [(b1 @ A1e, 1), (b2 @ A1e, 0), (b3 @ A1e, -1), (b4 @ A1e, 0)]
    one += [(b1 @ B1e**2, 1), (b2 @ B1e**2, 0), (b3 @ B1e**2, -1), (b4 @ B1e**2, 2)]
    one += [(b1 @ B1 @ B1e, 0), (b2 @ B1 @ B1e, 0), (b3 @ B1 @ B1e, 0), (b4 @ B1 @ B1e, 1)]
    return [*one, (b1 @ A1 @ B0e / 2 + b3 @ A1 @ B0e / 3, 0)]


@pytest.mark.parametrize("name", NAMES)
def test_order_conditions(name):
    tableau = import_module(f"sgdsde.schemes.{name}").TABLEAU
    pairs = conditions(tableau)
    assert len(pairs) == 25
    np.testing.assert_allclose(*zip(*pairs), rtol=0, atol=1e-14)
    A0, A1, B0, B1, alpha, c0, c1 = map(np.array, tableau[:7])
    assert not any(np.triu(matrix).any() for matrix in (A0, A1, B0, B1))
    np.testing.assert_allclose([A0.sum(axis=1), A1.sum(axis=1)], [c0, c1], rtol=0, atol=1e-14)
    if methods[name].ode_order == 3:
        np.testing.assert_allclose([alpha @ c0**2, alpha @ A0 @ c0], [1 / 3, 1 / 6], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name, additive", [("sriw1", "sra1"), ("sriw2", "sra3")])
def test_additive_noise_is_the_method_of_that_family(lab, name, additive):
    """The full formula, where b is constant, is the method that additive noise gets; also the scratch is enough."""
    still = np.array([1.0, 0.7, 0.0, 0.0])
    x, t, h, dW = lab.draw(3, 3, 8)
    H = np.random.default_rng(3).normal(size=(3, 8)) * np.sqrt(h / 12)
    scheme = methods[name]
    one = lab.take(scheme.kernel("diagonal", "ito"), lab.apart, x, t, h, dW, still, scheme.work(3, 3)[1], aux=H)
    for calculus in ("ito", "stratonovich"):
        assert scheme.kernel("additive", calculus) is methods[additive].step
        assert scheme.aux_for("additive", calculus).brownian == "space-time"
    two = lab.take(methods[additive].step, lab.apart, x, t, h, dW, still, scheme.work(3, 3)[1], aux=H)
    np.testing.assert_allclose(one, two, rtol=0, atol=4e-15)
    for d, m in [(1, 40), (40, 1), (1, 1)]:
        assert scheme.work(d, m)[1] >= methods[additive].work(d, m)[1]
