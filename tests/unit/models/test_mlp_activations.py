"""Elementary functions as arithmetic, and activations with their first and second derivatives."""

import numba
import numpy as np
import pytest
from numba import types
from scipy.special import erfcx, expit, log_ndtr, ndtr

from sgdsde._abi import VECTOR
from sgdsde._jit import inline, kernel_uncached
from sgdsde.models import activations, elementary
from sgdsde.models.activations import activate, bend, chain
from sgdsde.models.mlp import ACTIVATIONS

EPS = np.finfo(float).eps


def vectorized(function):
    @kernel_uncached(types.void(VECTOR, VECTOR))
    def apply(out, x):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    def call(x):
        out = np.empty(x.size)
        apply(out, np.ascontiguousarray(x, dtype=float))
        return out

    return call


@inline
def below(x):
    return elementary.normal_law(x)[0]


@inline
def density(x):
    return elementary.normal_law(x)[1]


TANH, LOGISTIC, EXP = (vectorized(f) for f in (elementary.tanh, elementary.logistic, elementary.exp_down))
BELOW, DENSITY = vectorized(below), vectorized(density)
SMALL = np.concatenate([10.0 ** np.linspace(-300, 0, 601), np.linspace(0, 3, 20_001)])
BOTH = np.concatenate([SMALL, -SMALL, np.linspace(-60, 60, 20_001)])


def error(found, wanted):
    """In units of eps, relative."""
    return (np.abs(found - wanted) / (EPS * np.abs(wanted) + np.finfo(float).tiny)).max()


def test_they_agree_with_the_library_to_a_few_units_of_the_last_place():
    assert error(TANH(BOTH), np.tanh(BOTH)) < 4
    assert error(EXP(-np.abs(BOTH)), np.exp(-np.abs(BOTH))) < 2
    assert error(EXP(np.linspace(-707, 0, 30_001)), np.exp(np.linspace(-707, 0, 30_001))) < 2
    assert error(LOGISTIC(BOTH), expit(BOTH)) < 4
    assert error(LOGISTIC(np.linspace(-700, 40, 10_001)), expit(np.linspace(-700, 40, 10_001))) < 4


def test_the_normal_law_keeps_its_digits_far_to_the_left():
    x = np.linspace(-3, 9, 20_001)
    assert error(BELOW(x), ndtr(x)) < 12
    assert error(DENSITY(x), np.exp(-x * x / 2) / np.sqrt(2 * np.pi)) < 40  # the square's rounding in the comparison
    # far to the left against e^{-x²/2} erfcx(-x/√2)/2, with x² exact for these x
    x = -np.arange(3, 37, 0.25)
    assert error(BELOW(x), 0.5 * np.exp(-x * x / 2) * erfcx(-x / np.sqrt(2))) < 8
    assert np.log(BELOW(x)) == pytest.approx(log_ndtr(x), rel=1e-14)


def test_ends_zeros_and_what_is_not_a_number():
    inf, nan = np.inf, np.nan
    assert np.array_equal(TANH(np.array([inf, -inf, 800.0, nan])), [1, -1, 1, nan], equal_nan=True)
    assert np.array_equal(np.signbit(TANH(np.array([0.0, -0.0]))), [False, True])
    assert np.array_equal(TANH(-BOTH), -TANH(BOTH))
    assert np.array_equal(LOGISTIC(np.array([inf, -inf, 0.0, nan])), [1, 0, 0.5, nan], equal_nan=True)
    assert np.array_equal(EXP(np.array([-inf, -1e300, -0.0, nan])), [0, 0, 1, nan], equal_nan=True)
    assert np.array_equal(BELOW(np.array([inf, -inf, 0.0, nan])), [1, 0, 0.5, nan], equal_nan=True)


def test_bits_do_not_depend_on_the_place_in_a_loop():
    x = np.random.default_rng(0).standard_normal(999)
    for f in (TANH, LOGISTIC, BELOW, DENSITY):
        assert np.array_equal(f(x), np.concatenate([f(x[:1]), f(x[1:6]), f(x[6:])]))


@kernel_uncached(types.void(types.int64, types.float64, *(VECTOR,) * 6))
def derivatives(kind, slope, a, first, second, ones, slopes, bends):
    activate(kind, slope, a, slopes, bends)
    for i in range(a.shape[0]):
        first[i] = a[i]
        second[i] = 1.0
    chain(kind, slope, first, ones, slopes)
    bend(kind, second, a, first, bends)


def three(name, z):
    a, n = z.copy(), z.size
    first, second, ones = np.empty(n), np.empty(n), np.ones(n)
    derivatives(ACTIVATIONS[name], 0.2, a, first, second, ones, np.empty(n), np.empty(n))
    return a, first, second


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_are_those_of_the_function(name):
    z, h = np.random.default_rng(1).uniform(-3, 3, 400), 1e-5
    z = z[np.abs(z) > 2 * h]
    up, down, here = three(name, z + h), three(name, z - h), three(name, z)
    assert here[1] == pytest.approx((up[0] - down[0]) / (2 * h), abs=1e-9)
    assert here[2] == pytest.approx((up[1] - down[1]) / (2 * h), abs=1e-9)


def test_kinks_and_what_is_not_a_number():
    z = np.array([0.0, -0.0, -1.0, 2.0])
    assert np.array_equal(three("relu", z)[0], [0, 0, 0, 2]) and np.array_equal(three("relu", z)[1], [0, 0, 0, 1])
    assert np.array_equal(three("leaky_relu", z)[0], [0, 0, -0.2, 2])
    assert np.array_equal(three("leaky_relu", z)[1], [0.2, 0.2, 0.2, 1])
    for name in ACTIVATIONS:
        assert np.isnan(three(name, np.array([np.nan]))[0][0])


def test_numbers_of_the_activations_are_those_of_the_kernels():
    names = {"identity": "IDENTITY", "leaky_relu": "LEAKY"}
    for name, number in ACTIVATIONS.items():
        assert getattr(activations, names.get(name, name.upper())) == number


def test_a_loop_over_them_is_made_of_packed_instructions():
    """What they are for: the compiled loop holds vectors of doubles, and no call of the C library."""

    @numba.njit(types.void(VECTOR, VECTOR), error_model="numpy", fastmath={"contract"})
    def loop(out, x):
        for i in range(x.shape[0]):
            out[i] = elementary.tanh(x[i])

    text = loop.inspect_llvm(loop.signatures[0])
    assert "x double>" in text and "@tanh" not in text and "@exp" not in text
