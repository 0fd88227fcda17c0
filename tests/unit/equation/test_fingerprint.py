"""Keys of functions: equal where the machine code would be, different where anything that is computed is."""

import math

import numba
import numpy as np
import pytest

from sgdsde.equation.fingerprint import fingerprint, globals_read


def made(value):
    return lambda t, y: (value * y[0],)


@pytest.mark.parametrize(
    "one, two",
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (1.0, 1.0 + 2**-52),
        (np.float32(1.0), np.float64(1.0)),
        (np.array([1.0, 2.0]), np.array([[1.0, 2.0]])),
        (np.array([1.0]), np.array([1])),
        ((1, (2.0, 3)), (1, (2.0, 3.0))),
        ("a", b"a"),
        (math.sin, math.cos),
        (made(1.0), made(2.0)),
        (numba.njit(made(1.0)), numba.njit(made(2.0))),
        (numba.njit(made(1.0)), numba.njit(fastmath=True)(made(1.0))),
        (numba.njit(made(1.0)), made(1.0)),
        (lambda t, y: 1.0, lambda t, y: -1.0),
        (lambda t, y: y[0], lambda t, y: y[1]),
        (lambda t, y, a=1.0: a, lambda t, y, a=2.0: a),
        (lambda t, y, *, a=1.0: a, lambda t, y, *, a=2.0: a),
        (lambda t, y: math.sin(t), lambda t, y: math.cos(t)),
    ],
)
def test_different(one, two):
    assert fingerprint(one) != fingerprint(two)
    assert fingerprint(made(one)) != fingerprint(made(two))
    hash(fingerprint(made(one)))


@pytest.mark.parametrize("value", [1.5, math.nan, (1, 2.0), None, "word", 2**80])
def test_equal_by_value(value):
    assert fingerprint(made(value)) == fingerprint(made(value))
    assert hash(fingerprint(made(value))) == hash(fingerprint(made(value)))


def test_equal_arrays_and_functions():
    assert fingerprint(made(np.arange(3.0))) == fingerprint(made(np.arange(3.0)))
    assert fingerprint(numba.njit(made(1.0))) == fingerprint(numba.njit(made(1.0)))
    two = [lambda t, y: math.sin(y[0] * t)] + [lambda t, y: math.sin(y[0] * t)]  # not on one line in general
    assert fingerprint(two[0]) == fingerprint(two[1])


def recursive(n):
    return 1 if n < 2 else recursive(n - 1) + other(n - 1)


def other(n):
    return recursive(n - 1) if n > 1 else 0


def test_functions_that_call_each_other():
    assert fingerprint(recursive) == fingerprint(recursive)


def test_an_unknown_object_counts_by_identity_and_stays_alive():
    class Thing:
        pass

    one, two = Thing(), Thing()
    assert fingerprint(made(one)) == fingerprint(made(one)) != fingerprint(made(two))
    key = fingerprint(Thing())
    assert all(fingerprint(Thing()) != key for _ in range(50))  # its address is not given away


def test_globals_are_told_from_attributes():
    def function(t, y):
        return [np.sqrt(c) for c in y] + (lambda: made)()(math.pi).math

    assert globals_read(function.__code__) == {"np", "made", "math"}
