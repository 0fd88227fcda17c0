"""One step against the stochastic Taylor formula, without Monte Carlo: where its order comes from.

With ΔW = √h z and H = √(h/12) z', a step less the Taylor formula of strong order γ is O(h^{γ+1/2}) at every z, and its
mean over z, here by Gauss-Hermite quadrature, O(h^{γ+1}): together strong order γ (G. Milstein 1987). For weak order 2
the mean of a function of the step is its expansion by the generator, to O(h³).
"""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sgdsde.schemes import methods

STEPS = 2.0 ** -np.arange(6, 9)
FREE = np.array([1.0, 0.7, 0.0, 0.9])
ADDITIVE = ["sra1", "sra2", "sra3", "sea", "shark"]
T, X = 0.4, np.array([0.3, -0.8, 1.1])


def nodes(k, count):
    """Points (k, n) and weights (n,) for the mean over k standard normal numbers."""
    z, w = np.polynomial.hermite_e.hermegauss(count)
    points, weights = itertools.product(z, repeat=k), itertools.product(w / w.sum(), repeat=k)
    return np.array(list(points)).T.copy(), np.array(list(weights)).prod(axis=1)


def slopes(errors):
    return np.diff(np.log2(errors)) / np.diff(np.log2(STEPS))


def drift(x, p):
    """a, a_t, ∇a and the second derivatives ∂²a_i/∂x_i²; all others are zero."""
    d = x.size
    phase = x + 0.5 * T
    jacobian = np.diag(np.cos(phase)) - 0.3 * np.roll(np.eye(d), 1, axis=1)
    return (
        p[0] * (np.sin(phase) - 0.3 * np.roll(x, -1)),
        0.5 * p[0] * np.cos(phase),
        p[0] * jacobian,
        -p[0] * np.sin(phase),
    )


def step(lab, name, noise, calculus, increment, x, h, dW, p, aux):
    n, d = dW.shape[1], x.size
    scheme = methods[name]
    block = np.repeat(x[:, None], n, axis=1)
    kernel, scratch = scheme.kernel(noise, calculus), scheme.work(d, dW.shape[0])[1]
    return lab.take(kernel, increment, block, np.full(n, T), np.full(n, h), dW, p, scratch, aux=aux) - block


def taylor(lab, noise, m, x, h, dW, H, p):
    """The step of strong order 1.5, Kloeden & Platen (10.4.1), for noise of entries b_i(t, x_i) or free of x."""
    d = x.size
    a, a_t, jacobian, second = drift(x, p)
    G = lab.columns(T, x, p, m, noise == "diagonal")
    shift = 1e-5
    G_t = (
        lab.columns(T + shift, x, p, m, noise == "diagonal") - lab.columns(T - shift, x, p, m, noise == "diagonal")
    ) / (2 * shift)
    dZ = h * (0.5 * dW + H)
    out = a[:, None] * h + G @ dW + jacobian @ G @ dZ + G_t @ (h * dW - dZ)
    out += 0.5 * h**2 * (a_t + jacobian @ a + 0.5 * (G**2).sum(axis=1) * second)[:, None]
    if noise != "additive":
        w, z = (dW, dZ) if noise == "diagonal" else (np.repeat(dW, d, axis=0), np.repeat(dZ, d, axis=0))
        b = (np.diag(G) if noise == "diagonal" else G[:, 0])[:, None]
        i = np.arange(d) * (noise == "diagonal")
        b1 = (-p[1] * p[2] * np.sin(p[2] * x + 0.2 * i + p[3] * T))[:, None]
        b2 = -(p[2] ** 2) * b
        out += 0.5 * b * b1 * (w**2 - h) + (a[:, None] * b1 + 0.5 * b**2 * b2) * (h * w - z)
        out += 0.5 * b * (b * b2 + b1**2) * (w**2 / 3 - h) * w
    return out


def against_taylor(lab, name, noise, d, m, p):
    """Slopes of the largest difference and of the mean difference."""
    z, weights = nodes(2 * m, 6 if m > 1 else 12)
    increment = lab.apart if noise == "diagonal" else lab.mixed
    errors, means = [], []
    for h in STEPS:
        dW, H = np.sqrt(h) * z[:m], np.sqrt(h / 12) * z[m:]
        made = step(lab, name, noise, "ito", increment, X[:d], h, dW, p, H)
        difference = made - taylor(lab, noise, m, X[:d], h, dW, H, p)
        errors.append(np.sqrt(difference**2 @ weights).max())
        means.append(np.abs(difference @ weights).max())
    return slopes(errors), slopes(means), np.array(means)


@pytest.mark.parametrize("name", ["sra1", "sra2", "sra3", "shark", "sriw1", "sriw2"])
@pytest.mark.parametrize("d, m", [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
def test_additive_noise_that_depends_on_time_has_strong_order_one_and_a_half(lab, name, d, m):
    errors, means, _ = against_taylor(lab, name, "additive", d, m, FREE)
    assert np.all(errors > 1.9) and np.all(means > 2.4)


@pytest.mark.parametrize("name", ["sriw1", "sriw2"])
@pytest.mark.parametrize("noise, d, m", [("scalar", 1, 1), ("scalar", 3, 1), ("diagonal", 1, 1), ("diagonal", 2, 2)])
def test_scalar_and_diagonal_noise_has_strong_order_one_and_a_half(lab, name, noise, d, m):
    errors, means, _ = against_taylor(lab, name, noise, d, m, lab.p)
    assert np.all(errors > 1.9) and np.all(means > 2.4)


@pytest.mark.parametrize("d, m", [(1, 1), (2, 2)])
def test_the_error_of_sea_is_a_mean(lab, d, m):
    """Nothing of O(h^{3/2}), and the mean that its page states."""
    errors, means, size = against_taylor(lab, "sea", "additive", d, m, FREE)
    assert np.all(errors > 1.9) and np.all(np.abs(means - 2) < 0.1)
    a, a_t, jacobian, second = drift(X[:d], FREE)
    squares = (lab.columns(T, X[:d], FREE, m) ** 2).sum(axis=1)
    stated = np.abs(0.5 * (a_t - jacobian @ a) - squares * second / 12).max()
    np.testing.assert_allclose(size[-1] / STEPS[-1] ** 2, stated, rtol=0.03)


def generator(x, p):
    """φ, Lφ and L²φ for φ = sin(x + 0.3) at (T, x), d = m = 1."""
    a, a_t, a1, a2 = (float(one.ravel()[0]) for one in drift(np.array([x]), p))
    phase = p[2] * x + p[3] * T
    b, b_t, b1 = p[1] * np.cos(phase), -p[1] * p[3] * np.sin(phase), -p[1] * p[2] * np.sin(phase)
    b2 = -(p[2] ** 2) * b
    f1, f2, f3, f4 = np.cos(x + 0.3), -np.sin(x + 0.3), -np.cos(x + 0.3), np.sin(x + 0.3)
    first = a * f1 + 0.5 * b**2 * f2
    in_time = a_t * f1 + b * b_t * f2
    slope = a1 * f1 + a * f2 + b * b1 * f2 + 0.5 * b**2 * f3
    bend = a2 * f1 + 2 * a1 * f2 + a * f3 + (b1**2 + b * b2) * f2 + 2 * b * b1 * f3 + 0.5 * b**2 * f4
    return first, in_time + a * slope + 0.5 * b**2 * bend


def weak_errors(lab, name, noise, p, x):
    """Mean of φ(Y') − φ(Y) less its expansion to h², for the halved steps."""
    z, weights = nodes(2, 24)
    first, second = generator(x, p)
    errors = []
    for h in STEPS:
        dW, H = np.sqrt(h) * z[:1], np.sqrt(h / 12) * z[1:]
        aux = H if methods[name].aux_for(noise, "ito") else None
        moved = step(lab, name, noise, "ito", lab.mixed, np.array([x]), h, dW, p, aux)[0]
        change = 2 * np.cos(x + 0.3 + moved / 2) * np.sin(moved / 2)
        errors.append(change @ weights - (h * first + 0.5 * h**2 * second))
    return np.array(errors)


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("x", [0.3, -0.5])
def test_weak_order_for_additive_noise(lab, name, x):
    found = slopes(np.abs(weak_errors(lab, name, "additive", FREE, x)))
    assert np.all(np.abs(found - methods[name].weak["additive"] - 1) < 0.15)


@pytest.mark.parametrize("name", ["sriw1", "sriw2"])
@pytest.mark.parametrize("x", [0.3, -0.5])
def test_weak_order_of_sri_is_one_and_a_half(lab, name, x):
    """Not 2, as has been stated: supports at √h to one side leave a term h^{5/2}; h³ is taken out by two steps."""
    errors = weak_errors(lab, name, "scalar", lab.p, x)
    assert methods[name].weak["scalar"] == methods[name].weak["diagonal"] == 1.5
    assert np.all(np.abs(np.diff(np.log2(np.abs(errors[:-1] - 8 * errors[1:]))) + 2.5) < 0.1)


@pytest.mark.parametrize("x", [0.3, -0.5])
def test_weak_order_of_sri2_is_one(lab, x):
    assert np.all(np.abs(slopes(np.abs(weak_errors(lab, "sri2", "scalar", lab.p, x))) - 2) < 0.1)


@pytest.mark.parametrize("name, calculus", [("sri2", "ito"), ("srs2", "stratonovich")])
@pytest.mark.parametrize("d, m", [(1, 1), (2, 2), (3, 2)])
def test_any_noise_has_strong_order_one(lab, name, calculus, d, m):
    """Against Milstein's formula, with areas of both signs where there are any."""
    z, weights = nodes(m, 8)
    z, weights = np.repeat(z, 2, axis=1), np.repeat(weights, 2) / 2
    sign, n = np.tile([1.0, -1.0], z.shape[1] // 2), z.shape[1]
    a, G = drift(X[:d], lab.p)[0], lab.columns(T, X[:d], lab.p, m)
    turns = np.zeros((d, m, m))  # (b^l·∇) b^k
    for k in range(m):
        for i in range(d):
            at = (i + k) % d
            slope = -lab.p[1] * lab.p[2] * np.sin(lab.p[2] * X[at] + 0.2 * k + lab.p[3] * T) / (1 + k)
            turns[i, :, k] = slope * G[at]
    errors, means = [], []
    for h in STEPS:
        dW = np.sqrt(h) * z
        I = 0.5 * (dW[:, None] * dW[None] - h * np.eye(m)[..., None] * (calculus == "ito"))
        I += 0.5 * h * sign * (np.eye(m, k=1) - np.eye(m, k=-1))[..., None]
        milstein = a[:, None] * h + G @ dW + np.einsum("ilk,lkn->in", turns, I)
        made = step(lab, name, "general", calculus, lab.mixed, X[:d], h, dW, lab.p, I.reshape(m * m, n))
        errors.append(np.sqrt((made - milstein) ** 2 @ weights).max())
        means.append(np.abs((made - milstein) @ weights).max())
    assert np.all(slopes(errors) > 1.4) and np.all(slopes(means) > 1.9)


ALL = [*ADDITIVE, "sriw1", "sriw2", "sri2", "srs2"]


@pytest.mark.parametrize("name", ALL)
def test_without_noise_it_has_its_ode_order(lab, name):
    """On a nonlinear equation that depends on time, whatever ΔW and the rest are."""
    scheme, still = methods[name], np.array([1.0, 0.0, 1.3, 0.4])
    calculus = scheme.calculus[0]
    exact = solve_ivp(lambda t, y: lab.drift(t, y, still), (0, 1), X, rtol=1e-12, atol=1e-13).y[:, -1]
    for noise in scheme.strong:
        m = 1 if noise == "scalar" else 3
        increment = lab.apart if noise == "diagonal" else lab.mixed
        aux, errors = scheme.aux_for(noise, calculus), []
        for n_steps in (64, 128):
            x, h = X[:, None], np.full(1, 1 / n_steps)
            rows = np.ones((aux.rows(3, m), 1)) if aux else None
            for k in range(n_steps):
                t, kernel = np.full(1, k / n_steps), scheme.kernel(noise, calculus)
                x = lab.take(kernel, increment, x, t, h, np.ones((m, 1)), still, scheme.work(3, m)[1], aux=rows)
            errors.append(np.linalg.norm(x[:, 0] - exact))
        assert abs(np.log2(errors[0] / errors[1]) - scheme.ode_order) < 0.05
