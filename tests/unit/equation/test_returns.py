"""The pass that makes tuples of returned lists: what it changes, and that it leaves alone what it must."""

import numba
import numpy as np
import pytest
from numba.core import types

from sgdsde.equation.freezing import frozen
from sgdsde.equation.returns import TupleReturns

one = np.array([1.5, 2.0])


def pair(t, y):
    return [y[0], 1.0]


def named(t, y):
    out = np.array([y[0], 1.0])
    return out


def nested(t, y):
    return [[y[0], 1], (0, y[1])]


def branches(t, y):
    if y[0] > 1:
        return np.asarray([y[0], 2], dtype=np.float64)
    return [2.0, y[1]]


def changed(t, y):
    out = [y[0], 1.0]
    out[0] = 3.0
    return out


def twice(t, y):
    row = [y[0], 1.0]
    return [row, row]


def one_branch(t, y):
    if y[0] > 1:
        return np.array([y[0], 2.0])
    return np.ones(2)


def truncated(t, y):
    return np.array([y[0], 1.0], dtype=np.int64)


def grown(t, y):
    out = [y[0]]
    out.append(2.0)
    return out


def sliced(t, y):
    return np.array([y[0], y[1]])[::-1]


def compiled(function, pipeline_class):
    made = frozen(function, pipeline_class)
    value = made(0.0, one.copy())
    return made.overloads[made.signatures[0]].signature.return_type, value


@pytest.mark.parametrize("function", [pair, named, nested, branches])
def test_becomes_a_tuple_with_the_same_values(function):
    kind, value = compiled(function, TupleReturns)
    assert isinstance(kind, types.BaseTuple)
    np.testing.assert_array_equal(np.array(value, dtype=float), np.array(function(0.0, one), dtype=float))


@pytest.mark.parametrize("function", [changed, twice, one_branch, truncated, grown, sliced])
def test_stays_what_it_was(function):
    kind, value = compiled(function, TupleReturns)
    if function is twice:  # only the outer list is used once
        assert all(isinstance(row, types.List) for row in kind.types)
    else:
        assert isinstance(kind, (types.List, types.Array))
    np.testing.assert_array_equal(np.array(value, dtype=float), np.array(function(0.0, one), dtype=float))


def test_other_functions_are_not_touched():
    assert isinstance(compiled(pair, None)[0], types.List)
    assert isinstance(numba.njit(pair)(0.0, one), list)
