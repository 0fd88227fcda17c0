"""Checks of arguments: clean values of all the types people have, and one sentence for the rest."""

from fractions import Fraction

import numpy as np
import pytest

from sgdsde import _check
from sgdsde._errors import ArgumentError, ShapeError


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), Fraction(4, 2)])
def test_a_number_is_a_float(value):
    clean = _check.number("x", value)
    assert clean == 2.0 and type(clean) is float
    assert _check.positive("x", value) == 2.0


@pytest.mark.parametrize(
    "value", ["2", None, True, np.bool_(True), 1j, np.nan, np.inf, -np.inf, [2.0], np.ones(1), 10**400]
)
def test_what_is_no_finite_number(value):
    with pytest.raises(ArgumentError, match="^x must be a finite real number, got "):
        _check.number("x", value)


def test_bounds_of_numbers():
    assert _check.number("x", 0.0, least=0.0, most=1.0) == 0.0 and _check.number("x", 1, most=1) == 1.0
    with pytest.raises(ArgumentError, match="x must be between 0 and 1, got 1.5"):
        _check.number("x", 1.5, least=0.0, most=1.0)
    with pytest.raises(ArgumentError, match="x must be at least 0, got -1"):
        _check.number("x", -1, least=0.0)
    for bad in (0, -1e-300):
        with pytest.raises(ArgumentError, match="x must be positive"):
            _check.positive("x", bad)


def test_a_count_is_an_integer():
    for value in (3, np.int64(3), np.uint8(3), np.array(3)):
        clean = _check.count("n", value)
        assert clean == 3 and type(clean) is int
    for bad in (3.0, "3", None, True, np.bool_(True), [3], np.array([3, 4])):
        with pytest.raises(ArgumentError, match="n must be an integer, got"):
            _check.count("n", bad)
    with pytest.raises(ArgumentError, match="n must be at least 1, got 0"):
        _check.count("n", 0)
    with pytest.raises(ArgumentError, match="n must be between 2 and 5, got 6"):
        _check.count("n", 6, least=2, most=5)
    assert _check.count("n", 2**70) == 2**70


def test_flags_and_choices():
    assert _check.flag("f", np.bool_(False)) is False and _check.flag("f", True) is True
    for bad in (0, 1, "yes", None):
        with pytest.raises(ArgumentError, match="f must be True or False"):
            _check.flag("f", bad)
    assert _check.choice("c", "b", iter("ab")) == "b"
    for bad in ("c", 1, None, ["a"]):
        with pytest.raises(ArgumentError, match="c must be one of 'a', 'b', got"):
            _check.choice("c", bad, "ab")


def test_an_array_is_new_contiguous_and_double():
    source = np.arange(6, dtype=np.int32).reshape(2, 3).T
    clean = _check.array("a", source, (3, None))
    assert clean.dtype == np.float64 and clean.flags.c_contiguous and clean.base is None
    clean[0, 0] = 9
    assert source[0, 0] == 0 and np.array_equal(_check.array("a", [True, 2]), [1.0, 2.0])
    assert _check.array("a", 3).shape == () and np.isnan(_check.array("a", [np.nan], finite=False)[0])


@pytest.mark.parametrize(
    ("value", "shape", "error", "match"),
    [
        ([1, [2, 3]], None, ShapeError, "a must be a rectangular array of numbers"),
        ([1j], None, ArgumentError, "a must hold real numbers, got dtype complex128"),
        (["x"], None, ArgumentError, "a must hold real numbers"),
        (None, None, ArgumentError, "a must hold real numbers, got dtype object"),
        (np.zeros(3), (2,), ShapeError, r"a must have shape \(2,\), got \(3,\)"),
        (np.zeros((2, 3)), ("n", 2), ShapeError, r"a must have shape \(n, 2\), got \(2, 3\)"),
        (np.zeros(3), (None, 2), ShapeError, r"a must have shape \(any, 2\), got \(3,\)"),
        ([[0.0, np.inf]], None, ArgumentError, r"a must be finite, got inf at index \(0, 1\)"),
    ],
)
def test_arrays_that_cannot_be_used(value, shape, error, match):
    with pytest.raises(error, match=match):
        _check.array("a", value, shape)


def test_times_increase_and_lie_within_the_span():
    assert _check.times("t", (0, 0.5, 1), 0.0, 1.0).tolist() == [0, 0.5, 1]
    assert _check.times("t", [0.1 + 0.2], 0.0, 0.3).tolist() == [0.3]  # above by rounding alone
    assert _check.times("t", [0.3, 0.1 + 0.2], 0.0, 0.3).tolist() == [0.3]
    for bad, match in (
        ([], "at least one time"),
        ([0.5, 0.5], "must increase strictly"),
        ([0.5, 0.4], "must increase strictly"),
        ([0.5, 1.0 + 1e-12], r"must lie within t_span \[0.0, 1.0\], got \[0.5, 1.000000000001\]"),
        ([-1e-12, 0.5], "must lie within t_span"),
        ([[0.1]], "must have shape"),
        (np.nan, "must have shape"),
    ):
        with pytest.raises(ArgumentError, match=match):
            _check.times("t", bad, 0.0, 1.0)
    far = _check.times("t", [1e9 + 1.0], 1e9, 1e9 + 1)
    assert far.tolist() == [1e9 + 1]
    with pytest.raises(ArgumentError, match="must lie within"):
        _check.times("t", [1e9 + 1.001], 1e9, 1e9 + 1)


def test_values_are_shown_in_few_words():
    assert _check.show(np.zeros((2, 3))) == "an array of shape (2, 3) and dtype float64"
    assert _check.show("x") == "'x'" and _check.show(list(range(100))).endswith("… (list)")
    assert len(_check.show("x" * 1000)) < 80


def test_masked_entries_are_refused_and_not_read_through():
    with pytest.raises(ArgumentError, match="x must have no masked entries, got 1 of 3"):
        _check.array("x", np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))
    assert _check.array("x", np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]
