"""One formula through two code paths gives the same numbers, and special kinds of noise reduce to simpler methods."""

import numpy as np
import pytest

from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import NOISE_KINDS, methods, milstein

BOTH = ("ito", "stratonovich")


@kernel_uncached(INCREMENT)
def diagonal_as_matrix(out, x, t, h, v, p, data, work):
    """The diagonal equation of the lab as a full matrix times v."""
    d, n = x.shape
    for b in range(n):
        for i in range(d):
            total = p[0] * (np.sin(x[i, b] + 0.5 * t[b]) - 0.3 * x[(i + 1) % d, b]) * h[b]
            for j in range(d):
                entry = p[1] * np.cos(p[2] * x[i, b] + 0.2 * i + p[3] * t[b]) if i == j else 0.0
                total += entry * v[j, b]
            out[i, b] = total


def scratch(scheme, d, m):
    return scheme.work(d, m)[1]


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_one_column_general_or_scalar(lab, d, calculus):
    x, t, h, dW = lab.draw(d, 1, 8)
    kernels = [milstein.SCHEME.kernel(noise, calculus) for noise in ("scalar", "commutative")]
    one, two = (lab.take(step, lab.mixed, x, t, h, dW, lab.p, scratch(milstein.SCHEME, d, 1)) for step in kernels)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)
    assert np.abs(one - x).max() > 1e-2


@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_diagonal_as_vector_or_matrix(lab, d, calculus):
    x, t, h, dW = lab.draw(d, d, 8)
    size = scratch(milstein.SCHEME, d, d)
    one = lab.take(milstein.SCHEME.kernel("diagonal", calculus), lab.apart, x, t, h, dW, lab.p, size)
    two = lab.take(milstein.SCHEME.kernel("commutative", calculus), diagonal_as_matrix, x, t, h, dW, lab.p, size)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-14)


PLAIN = [name for name in methods if methods[name].aux is None and methods[name].prepare is None]
"""Methods of increments alone; the others have tests of their own, and test_every_shape.py runs all."""


@pytest.mark.parametrize("name", [name for name in PLAIN if "commutative" in methods[name].strong])
def test_a_column_does_not_depend_on_its_block(lab, name):
    scheme = methods[name]
    x, t, h, dW = lab.draw(3, 2, 8)
    for calculus in scheme.calculus:
        step = scheme.kernel("commutative", calculus)
        whole = lab.take(step, lab.mixed, x, t, h, dW, lab.p, scratch(scheme, 3, 2))
        for b in range(8):
            part = [np.ascontiguousarray(one[..., b : b + 1]) for one in (x, t, h, dW)]
            alone = lab.take(step, lab.mixed, *part, lab.p, scratch(scheme, 3, 2))
            assert np.array_equal(alone[:, 0], whole[:, b])


# p of the lab: no dependence of the noise on the state
FREE_OF_STATE = np.array([1.0, 0.7, 0.0, 0.4])
NO_NOISE = np.array([1.0, 0.0, 1.3, 0.4])


@pytest.mark.parametrize("name", ["milstein", "milstein-symmetric"])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_additive_noise_is_euler_maruyama_in_both_calculi(lab, name, m):
    x, t, h, dW = lab.draw(3, m, 8)
    euler = lab.take(methods["euler-maruyama"].step, lab.mixed, x, t, h, dW, FREE_OF_STATE, 3)
    scheme = methods[name]
    for calculus in BOTH:
        for noise in ("additive", "commutative"):  # its own kernel, and what the full formula gives
            step = scheme.kernel(noise, calculus)
            got = lab.take(step, lab.mixed, x, t, h, dW, FREE_OF_STATE, scratch(scheme, 3, m))
            np.testing.assert_allclose(got, euler, rtol=0, atol=1e-14)


def test_additive_noise_costs_one_evaluation_whatever_the_calculus():
    for name in ("milstein", "milstein-symmetric"):
        for calculus in BOTH:
            assert methods[name].kernel("additive", calculus) is methods["euler-maruyama"].step


EXPLICIT = ("euler-maruyama", "euler-heun", "heun", "milstein-symmetric")


@pytest.mark.parametrize("name", EXPLICIT)
def test_without_noise_it_is_its_ode_method(lab, name):
    """b = 0: every kernel of the scheme is the same ODE step, Euler's or the trapezoidal one."""
    scheme = methods[name]
    x, t, h, dW = lab.draw(3, 3, 8)
    euler = np.stack([x[:, k] + h[k] * lab.drift(t[k], x[:, k], NO_NOISE) for k in range(8)], axis=1)
    ends = [lab.drift(t[k] + h[k], euler[:, k], NO_NOISE) for k in range(8)]
    trapezoid = np.stack([0.5 * (x[:, k] + euler[:, k] + h[k] * ends[k]) for k in range(8)], axis=1)
    wanted = {1: euler, 2: trapezoid}[scheme.ode_order]
    for calculus in scheme.calculus:
        for noise in scheme.strong:
            if noise == "scalar":
                continue
            increment = lab.apart if noise == "diagonal" else lab.mixed
            got = lab.take(scheme.kernel(noise, calculus), increment, x, t, h, dW, NO_NOISE, scratch(scheme, 3, 3))
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)


def test_every_kind_is_seen_here():
    assert set(NOISE_KINDS) == set(methods["heun"].strong)
