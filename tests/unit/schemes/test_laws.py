"""One-step laws, by quadrature over the noise: no Monte Carlo."""

import itertools

import numpy as np
import pytest

from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import methods, milstein, milstein_symmetric

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@kernel_uncached(INCREMENT)
def linear(out, x, t, h, v, p, data, work):
    """a x h + b x v."""
    for b in range(x.shape[1]):
        out[0, b] = p[0] * x[0, b] * h[b] + p[1] * x[0, b] * v[0, b]


@kernel_uncached(INCREMENT)
def bent(out, x, t, h, v, p, data, work):
    """a h + sin(x) v."""
    for b in range(x.shape[1]):
        out[0, b] = p[0] * h[b] + np.sin(x[0, b]) * v[0, b]


@kernel_uncached(CORRECTION)
def linear_correction(out, x, t, p, data, work):
    for b in range(x.shape[1]):
        out[0, b] = 0.5 * p[1] * p[1] * x[0, b]


@kernel_uncached(INCREMENT)
def crossed(out, x, t, h, v, p, data, work):
    """G = diag(x_2, x_1): a diagonal matrix, and not diagonal noise."""
    for b in range(x.shape[1]):
        out[0, b] = x[1, b] * v[0, b]
        out[1, b] = x[0, b] * v[1, b]


@kernel_uncached(INCREMENT)
def hyperbolic(out, x, t, h, v, p, data, work):
    """Every column is (x_2, x_1) times a function of the state: tangent to C = x_1² − x_2², and not commuting."""
    for b in range(x.shape[1]):
        along = np.cos(x[0, b]) * h[b]
        for j in range(v.shape[0]):
            along += np.sin((1 + j) * x[0, b] + 0.3 * j) * v[j, b]
        out[0, b] = x[1, b] * along
        out[1, b] = x[0, b] * along


def one_step_mean(take, scheme, noise, calculus, increment, x, h, p, made):
    """E of one step from x (d,), by Gauss-Hermite nodes in every direction of the noise."""
    m = 2 if increment is crossed else 1
    grid = np.array(list(itertools.product(range(8), repeat=m)))
    dW = np.sqrt(h) * NODES[grid].T
    weight = WEIGHTS[grid].prod(axis=1)
    n = len(grid)
    start = np.repeat(np.asarray(x, float)[:, None], n, axis=1)
    step, size = scheme.kernel(noise, calculus), scheme.work(len(x), m)[1]
    return take(step, increment, start, np.zeros(n), np.full(n, h), dW, p, size, made) @ weight


def mean_order(error):
    """Local order of the mean, from h = 2^-8 to 2^-12."""
    return np.log2(abs(error(2.0**-8) / error(2.0**-12))) / 4


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("name", ["euler-maruyama", "heun", "milstein", "milstein-symmetric"])
def test_the_mean_of_a_step_has_local_order_two(lab, name, calculus):
    """Linear equation: E X' = X exp(a h) in Itô form, X exp((a + b²/2) h) in Stratonovich form, up to h²."""
    scheme = methods[name]
    if calculus not in scheme.calculus:
        return
    a, b = 0.7, 1.1
    rate = a if calculus == "ito" else a + 0.5 * b * b

    def error(h):
        mean = one_step_mean(lab.take, scheme, "scalar", calculus, linear, [1.0], h, [a, b], linear_correction)
        return mean[0] - np.exp(rate * h)

    assert abs(mean_order(error) - 2) < 0.1


BENT = {"linear": (lambda y: 1.1 * y, lambda y: 1.1), "bent": (np.sin, np.cos)}


@pytest.mark.parametrize("drift_in_support", [False, True])
@pytest.mark.parametrize("shape", list(BENT))
@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_why_the_two_calculi_have_two_supports(calculus, shape, drift_in_support):
    """Over a support Y + b√h the Stratonovich step is biased by h^{3/2} as soon as b bends or a is in it; Itô's never.

    The mean of the step against a h + ½ b b' h, its exact value up to h².
    """
    a, y = -0.7, 1.0
    b, slope = BENT[shape]

    def error(h):
        dW = np.sqrt(h) * NODES
        double = 0.5 * (dW**2 - (h if calculus == "ito" else 0.0))
        support = y + b(y) * np.sqrt(h) + (a * h if drift_in_support else 0.0)
        mean = WEIGHTS @ (a * h + b(y) * dW + (b(support) - b(y)) * double / np.sqrt(h))
        return mean - a * h - (0.5 * b(y) * slope(y) * h if calculus == "stratonovich" else 0.0)

    if calculus == "ito" or (shape == "linear" and not drift_in_support):
        assert abs(error(2.0**-8)) < 1e-15
    else:
        assert abs(mean_order(error) - 1.5) < 0.1


@pytest.mark.parametrize("noise", ["scalar", "diagonal", "commutative"])
def test_the_stratonovich_step_has_no_such_bias(lab, noise):
    """The same mean through the kernel, with b = sin: local order 2."""

    def error(h):
        mean = one_step_mean(lab.take, milstein.SCHEME, noise, "stratonovich", bent, [1.0], h, [0.7], linear_correction)
        return mean[0] - 1.0 - 0.7 * h - 0.5 * np.sin(1.0) * np.cos(1.0) * h

    assert abs(mean_order(error) - 2) < 0.1


def test_a_diagonal_matrix_is_not_diagonal_noise(lab):
    """dX_1 = X_2 dW_1, dX_2 = X_1 dW_2, the same in both calculi: E X stays.

    The textbook Stratonovich step, which moves all components to a support b√h at once, makes it grow by h/2 a step, so
    by exp(1/2) at T = 1. Ours is right in the mean even where the noise was declared wrongly.
    """
    x, h = [1.0, 1.0], 2.0**-6
    dW = np.sqrt(h) * NODES
    support = 1.0 + 1.0 * np.sqrt(h)
    assert abs(WEIGHTS @ (1.0 + dW + (support - 1.0) * 0.5 * dW**2 / np.sqrt(h)) - (1 + h / 2)) < 1e-14

    made = lab.mixed_correction  # of noise that is not there: never called in Stratonovich form
    cases = [("milstein", "diagonal", "ito"), ("milstein", "diagonal", "stratonovich")]
    cases += [("milstein-symmetric", "general", "stratonovich"), ("heun", "general", "stratonovich")]
    for name, noise, calculus in cases:
        mean = one_step_mean(lab.take, methods[name], noise, calculus, crossed, x, h, [0.0], made)
        np.testing.assert_allclose(mean, x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_milstein_symmetric_keeps_a_charge_to_the_square_of_a_difference(lab, m):
    """C' − C = ¼ (b₁ − b₀)ᵀA(b₁ − b₀) for tangent columns and no drift: no term of order h, whatever the areas."""
    rng = np.random.default_rng(m)
    A = np.diag([1.0, -1.0])
    x, h = rng.normal(size=(2, 5)), np.zeros(5) + 1e-300  # no drift: a step of no length, with noise of any size
    dW = rng.normal(size=(m, 5))

    def noise(y):
        along = sum(np.sin((1 + j) * y[0] + 0.3 * j) * dW[j] for j in range(m))
        return np.stack([y[1] * along, y[0] * along])

    b0 = noise(x)
    b1 = noise(x + b0)
    step = milstein_symmetric.SCHEME.kernel("general", "stratonovich")
    after = lab.take(step, hyperbolic, x, np.zeros(5), h, dW, [0.0], 7)
    change = np.einsum("ib,ij,jb->b", after, A, after) - np.einsum("ib,ij,jb->b", x, A, x)
    law = 0.25 * np.einsum("ib,ij,jb->b", b1 - b0, A, b1 - b0)
    scale = (np.abs(x) + np.abs(b0) + np.abs(b1)).max() ** 2
    np.testing.assert_allclose(change, law, rtol=0, atol=1e-14 * scale)
    euler = x + b0
    assert np.abs(np.einsum("ib,ij,jb->b", euler, A, euler) - np.einsum("ib,ij,jb->b", x, A, x)).max() > 1e-2
