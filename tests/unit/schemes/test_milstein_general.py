"""Milstein with Lévy areas and with derivatives: the formula, exactness on a pair with an area, what it reduces to."""

import numpy as np
import pytest

from sgdsde import SDE
from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.equation import noise_structure
from sgdsde.equation.columns import columns_by_increments, with_columns
from sgdsde.random import Brownian, coarsen
from sgdsde.schemes import methods, milstein

BOTH = ("ito", "stratonovich")
SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]


def integrals(dW, h, calculus, seed=0):
    """Random rows of I or J (m m, n) that belong to dW: the symmetric part is exact, areas are of their size."""
    m, n = dW.shape
    A = np.random.default_rng(seed).normal(size=(m, m, n)) * h
    J = 0.5 * dW[:, None] * dW[None, :] + 0.5 * (A - A.transpose(1, 0, 2))
    if calculus == "ito":
        J = J - 0.5 * h * np.eye(m)[..., None]
    return J.reshape(m * m, n)


def ito_formula(a, b, y, t, h, dW, I):
    total = y + a(t, y) * h + b(t, y) @ dW
    for j in range(len(dW)):
        support = y + b(t, y)[:, j] * np.sqrt(h)
        for k in range(len(dW)):
            total = total + (b(t, support)[:, k] - b(t, y)[:, k]) * I[j, k] / np.sqrt(h)
    return total


def stratonovich_formula(a, b, y, t, h, dW, J):
    first = b(t, y) @ dW
    total = y + a(t, y) * h + first + 0.5 * (b(t, y + first) @ dW - first)
    A = 0.5 * (J - J.T)
    for j in range(len(dW)):
        support = y + b(t, y)[:, j] * np.sqrt(h)
        for k in range(len(dW)):
            total = total + (b(t, support)[:, k] - b(t, y)[:, k]) * A[j, k] / np.sqrt(h)
    return total


FORMULA = {"ito": ito_formula, "stratonovich": stratonovich_formula}


def general(lab, calculus, x, t, h, dW, aux):
    """One step for general noise of the lab's equation, with all its columns by its increment, in declared scratch."""
    d, m = len(x), len(dW)
    step, made = milstein.SCHEME.kernel("general", calculus), columns_by_increments(lab.mixed, m)
    size = milstein.SCHEME.work(d, m)[1] + d * m + d + m + 1
    return lab.take(step, lab.mixed, x, t, h, dW, lab.p, size, made=made, aux=aux)


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("size", SIZES)
def test_the_formula(lab, size, calculus):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    rows = integrals(dW, h, calculus)
    got = general(lab, calculus, x, t, h, dW, rows)
    for k in range(n):
        a = lambda s, y: lab.drift(s, y, lab.p)  # noqa: E731
        b = lambda s, y: lab.columns(s, y, lab.p, m)  # noqa: E731
        wanted = FORMULA[calculus](a, b, x[:, k], t[k], h[k], dW[:, k], rows[:, k].reshape(m, m))
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=2e-14)


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_column_is_the_scalar_path(lab, d, calculus):
    """N9: the same numbers through the general step with m = 1 and through the step for scalar noise."""
    x, t, h, dW = lab.draw(d, 1, 8)
    size = milstein.SCHEME.work(d, 1)[1]
    rows = integrals(dW, h, calculus)
    one = lab.take(milstein.SCHEME.kernel("scalar", calculus), lab.mixed, x, t, h, dW, lab.p, size)
    two = general(lab, calculus, x, t, h, dW, rows)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)
    assert np.abs(one - x).max() > 1e-2


@pytest.mark.parametrize("calculus", BOTH)
def test_without_areas_it_is_the_commutative_step(lab, calculus):
    """With A = 0 the general step is the step for commuting columns, whether they commute or not."""
    x, t, h, dW = lab.draw(2, 3, 8)
    J = 0.5 * dW[:, None] * dW[None, :] - (0.5 * h * np.eye(3)[..., None] if calculus == "ito" else 0.0)
    size = milstein.SCHEME.work(2, 3)[1]
    one = lab.take(milstein.SCHEME.kernel("commutative", calculus), lab.mixed, x, t, h, dW, lab.p, size)
    two = general(lab, calculus, x, t, h, dW, J.reshape(9, 8))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)


def test_what_each_kind_asks_for():
    for calculus in BOTH:
        aux = milstein.SCHEME.aux_for("general", calculus)
        assert aux.brownian == calculus and aux.rows(5, 3) == 9
        assert milstein.SCHEME.needs_for("general", calculus) == ("columns",)
        assert milstein.SCHEME.needs_for("general", calculus, derivative=True) == ()
        for noise in ("additive", "scalar", "diagonal", "commutative"):
            assert milstein.SCHEME.aux_for(noise, calculus) is None
            assert milstein.SCHEME.needs_for(noise, calculus) == ()


# N1: dX = (dW¹, dW², X¹ dW²), X³ = ∫W¹ dW², exact at any step if the area is the right one


@kernel_uncached(INCREMENT)
def pair(out, x, t, h, v, p, data, work):
    for b in range(x.shape[1]):
        out[0, b] = v[0, b]
        out[1, b] = v[1, b]
        out[2, b] = x[0, b] * v[1, b]


@kernel_uncached(CORRECTION)
def none(out, x, t, p, data, work):
    out[:] = np.nan


PATHS = 20
FINE = Brownian(2, (0, 1), rng=8, levels=12, n_paths=PATHS)


def walk(calculus, n_steps, transposed=False):
    """X at the end, and the fine sum of W¹ dW² (Itô) with the fine areas; the path and its integrals by Chen."""
    dW, I = FINE.grid(n_steps), FINE.iterated(n_steps, calculus=calculus)
    if transposed:
        I = I.swapaxes(-1, -2)
    x = np.zeros((3, PATHS))
    h = np.full(PATHS, 1.0 / n_steps)
    step, work, made = milstein.SCHEME.kernel("general", calculus), np.empty(10_000), columns_by_increments(pair, 2)
    for k in range(n_steps):
        aux = np.ascontiguousarray(I[:, k].reshape(PATHS, 4).T)
        increments = np.ascontiguousarray(dW[:, k].T)
        step(pair, made, x, h * k, h, increments, aux, np.zeros(2 * PATHS, np.int64), work, np.zeros(1), np.zeros(1))
    return x


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("n_steps", [4, 16, 64, 256])
def test_the_pair_is_exact_at_any_step(calculus, n_steps):
    fine, area = FINE.grid(4096), FINE.iterated(4096, calculus=calculus)
    before = np.cumsum(fine, axis=1) - fine
    wanted = (before[..., 0] * fine[..., 1] + area[..., 0, 1]).sum(axis=1)
    got = walk(calculus, n_steps)
    np.testing.assert_allclose(got[2], wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got[:2], fine.sum(axis=1).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("calculus", BOTH)
def test_a_transposed_area_is_caught(calculus):
    right, wrong = walk(calculus, 64), walk(calculus, 64, transposed=True)
    assert np.abs(right[2] - wrong[2]).max() > 0.05


def test_squared_increments_are_not_enough():
    """N4: areas left out altogether cost √h, and the error falls by half over four times the steps."""

    def error(n_steps):
        dW = FINE.grid(n_steps)
        before = np.cumsum(dW, axis=1) - dW
        symmetric = (before[..., 0] * dW[..., 1] + 0.5 * dW[..., 0] * dW[..., 1]).sum(axis=1)
        return np.sqrt(np.mean((symmetric - walk("stratonovich", n_steps)[2]) ** 2))

    assert error(4) > 0.1 and 1.2 < error(16) / error(64) < 3.3


# Strong order on nonlinear noise, areas from one path on all levels


def bent_drift(t, y):
    return 0.3 * np.sin(y[1]), -0.5 * y[0]


def bent(t, y):
    return (0.8 * np.cos(y[1]), 0.5 * y[0], 0.4), (0.3, 0.7 * np.sin(y[0]), 0.6 * np.cos(y[0] + y[1]))


def bent_derivative(t, y):
    s = -0.6 * np.sin(y[0] + y[1])
    return (
        ((0.0, -0.8 * np.sin(y[1])), (0.5, 0.0), (0.0, 0.0)),
        ((0.0, 0.0), (0.7 * np.cos(y[0]), 0.0), (s, s)),
    )


def ends(path, sde, levels):
    """The state at the end for each number of steps, all from one path and its integrals; (levels, n_paths, d)."""
    equation = sde.bind(0.0, [0.4, -0.2])
    k, calculus, n = equation.kernels(), sde.calculus, path.grid(1).shape[0]
    if not equation.has_derivative:
        k = with_columns(equation, k)
    step = milstein.SCHEME.kernel("general", calculus, derivative=equation.has_derivative)
    work = np.empty(k.work[0] + (milstein.SCHEME.work(2, 3)[1] + k.work[1]) * n)
    found = []
    dW, I = path.grid(levels[-1]), path.iterated(levels[-1], calculus="ito")
    for n_steps in reversed(levels):
        if dW.shape[1] != n_steps:
            dW, I, _ = coarsen(dW, I, factor=dW.shape[1] // n_steps)
        h = np.full(n, 1.0 / n_steps)
        shift = 0.0 if calculus == "ito" else 0.5 / n_steps * np.eye(3)
        x = np.repeat([[0.4], [-0.2]], n, axis=1)
        for s in range(n_steps):
            aux = np.ascontiguousarray((I[:, s] + shift).reshape(n, 9).T)
            noise = np.ascontiguousarray(dW[:, s].T)
            status = np.zeros(2 * n, np.int64)
            step(k.increment, k.correction or none, x, h * s, h, noise, aux, status, work, k.p, k.data)
        found.append(x.T.copy())
    return np.array(found[::-1])


@pytest.mark.parametrize("derivative", [None, bent_derivative])
@pytest.mark.parametrize("calculus", BOTH)
def test_strong_order_one_on_nonlinear_noise(calculus, derivative):
    """Between 2^4 and 2^7 steps against 2^11; d = 2, m = 3. The slope of 300 paths is known to 0.04: ½ is far off."""
    sde = SDE(bent_drift, bent, 2, "general", calculus, derivative=derivative)
    path = Brownian(3, (0, 1), rng=3, levels=11, n_paths=300)
    found = ends(path, sde, [16, 32, 64, 128, 2048])
    error = np.sqrt(((found[:-1] - found[-1]) ** 2).sum(axis=2).mean(axis=1))
    slope = -np.polyfit(np.log2([16, 32, 64, 128]), np.log2(error), 1)[0]
    assert 0.9 < slope < 1.15, (slope, error)


# N5: m ≠ d, commuting columns


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("noise", ["commutative", "general"])
def test_more_noises_than_components_that_commute(calculus, noise):
    """d = 2, m = 3, G_ij = x_i b_j: X_i exp(Σ_j b_j W_j (− ½|b|² t)), whether the areas are given or not; order 1."""
    b = np.array([0.5, -0.3, 0.4])

    def diffusion(t, y):
        return (0.5 * y[0], -0.3 * y[0], 0.4 * y[0]), (0.5 * y[1], -0.3 * y[1], 0.4 * y[1])

    sde = SDE(lambda t, y: (0.0, 0.0), diffusion, 2, noise, calculus)
    assert noise_structure(sde, [1.0, 2.0]).commutative
    equation = sde.bind(0.0, [1.0, 2.0])
    k, path = with_columns(equation, equation.kernels()), Brownian(3, (0, 1), rng=5, levels=8, n_paths=400)
    step, work = milstein.SCHEME.kernel(noise, calculus), np.empty(50_000)
    rate = -0.5 * b @ b if calculus == "ito" else 0.0
    exact = np.exp(rate + path.grid(1)[:, 0] @ b)[None] * [[1.0], [2.0]]
    errors = []
    for n_steps in (16, 32, 64, 128):
        dW, I = path.grid(n_steps), path.iterated(n_steps, calculus=calculus)
        x, h = np.repeat([[1.0], [2.0]], 400, axis=1), np.full(400, 1.0 / n_steps)
        for s in range(n_steps):
            aux = np.ascontiguousarray(I[:, s].reshape(400, 9).T) if noise == "general" else np.empty((0, 400))
            dWs = np.ascontiguousarray(dW[:, s].T)
            step(k.increment, k.correction, x, h, h, dWs, aux, np.zeros(800, np.int64), work, k.p, k.data)
        errors.append(np.sqrt(((x - exact) ** 2).mean()))
    slope = -np.polyfit(np.log2([16, 32, 64, 128]), np.log2(errors), 1)[0]
    assert 0.85 < slope < 1.2, (slope, errors)


# N2: a pair of rotations and scalings


@pytest.mark.parametrize(
    "second, commutes", [(lambda s, y: (s * y[0], s * y[1]), True), (lambda s, y: (s * y[0], 0.0), False)]
)
def test_the_detector_tells_a_pair_that_commutes(second, commutes):
    s = 0.7

    def diffusion(t, y):
        e = second(s, y)
        return (s * y[1], e[0]), (-s * y[0], e[1])

    found = noise_structure(SDE(lambda t, y: (0.0, 0.0), diffusion, 2, "general"), [1.0, 0.5])
    assert found.commutative is commutes and found.kind == ("commutative" if commutes else "general")


# Derivatives: one evaluation gives (10.3.3) as it stands

CASES = {
    "scalar": (lambda t, y: (np.sin(y[1]), y[0] * y[1]), lambda t, y: ((0.0, np.cos(y[1])), (y[1], y[0])), 1),
    "diagonal": (lambda t, y: (np.sin(y[0]), y[1] ** 2), lambda t, y: (np.cos(y[0]), 2.0 * y[1]), 2),
    "commutative": (bent, bent_derivative, 3),
    "general": (bent, bent_derivative, 3),
}


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("noise", CASES)
def test_with_the_derivative_it_is_the_book(lab, noise, calculus):
    diffusion, derivative, m = CASES[noise]
    equation = SDE(bent_drift, diffusion, 2, noise, calculus, derivative=derivative).bind(0.0, [0.5, 0.7])
    k, scheme = equation.kernels(), milstein.SCHEME
    x, t, h, dW = lab.draw(2, m, 8)
    I = integrals(dW, h, calculus)
    step = scheme.kernel(noise, calculus, derivative=True)
    assert step is not scheme.kernel(noise, calculus)
    size = (scheme.work(2, m)[1] + k.work[1]) * 8 + k.work[0]
    work = np.full(size + 50, np.nan)
    work[size:] = 7.25
    got, aux = x.copy(), I if noise == "general" else np.empty((0, 8))
    step(k.increment, none, got, t, h, dW, aux, np.zeros(16, np.int64), work, k.p, k.data)
    assert (work[size:] == 7.25).all()
    for c in range(8):
        y, square = x[:, c], np.outer(dW[:, c], dW[:, c]) - (h[c] * np.eye(m) if calculus == "ito" else 0.0)
        u = I[:, c].reshape(m, m) if noise == "general" else 0.5 * square
        G, D = np.array(diffusion(0.0, y)), np.array(derivative(0.0, y))
        if noise == "diagonal":
            G, D = np.diag(G), np.einsum("i,ij,ik->ijk", D, np.eye(2), np.eye(2))
        G, D = G.reshape(2, m), D.reshape(2, m, 2)
        wanted = y + np.array(bent_drift(0.0, y)) * h[c] + G @ dW[:, c] + np.einsum("ikl,lj,jk->i", D, G, u)
        np.testing.assert_allclose(got[:, c], wanted, rtol=0, atol=2e-14)


def test_a_scheme_without_a_step_for_derivatives_takes_its_own():
    assert methods["heun"].kernel("general", "stratonovich", derivative=True) is methods["heun"].step
    symmetric = methods["milstein-symmetric"]
    assert symmetric.kernel("scalar", "ito", derivative=True) is symmetric.kernel("scalar", "ito")
