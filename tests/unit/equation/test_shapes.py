"""Shapes: what each noise kind takes and refuses, and that one error says so before anything is compiled."""

import re

import numpy as np
import pytest

from sgdsde import SDE, ModelError, ShapeError
from sgdsde._errors import ArgumentError


def still(t, y):
    return np.zeros(len(y))


def form_of(diffusion, d, noise):
    bound = SDE(still, diffusion, d, noise).bind(0.0, np.arange(1.0, d + 1))
    return bound.form, bound.noise_dim


@pytest.mark.parametrize("d", [1, 2, 3])
def test_forms_and_number_of_noises(d):
    def vector(t, y):
        return tuple(y)

    def column(t, y):
        return y.reshape(-1, 1)

    assert form_of(vector, d, "scalar") == ("column", 1)
    assert form_of(column, d, "scalar") == ("matrix", 1)
    assert form_of(vector, d, "diagonal") == ("diagonal", d)
    assert form_of(column, d, "general") == ("matrix", 1)
    for m in (1, 2, 3, 4):
        for noise in ("general", "commutative"):
            assert form_of(lambda t, y, m=m: np.outer(y, np.ones(m)), d, noise) == ("matrix", m)
        assert form_of(lambda t, y, m=m: np.ones((d, m)).tolist(), d, "additive") == ("matrix", m)
    assert form_of(lambda t, y: [2.0] * d, d, "additive") == ("diagonal", d)


def test_nothing_is_guessed_from_d_equal_m():
    # A (2,) return has one meaning under 'diagonal' and none under 'general'.
    assert form_of(lambda t, y: (1.0, 0.5), 2, "diagonal") == ("diagonal", 2)
    with pytest.raises(ShapeError, match=re.escape("(2,)") + ".*" + re.escape("(2, m)") + ".*'diagonal'"):
        form_of(lambda t, y: (1.0, 0.5), 2, "general")
    with pytest.raises(ShapeError, match=re.escape("(2, 2)") + ".*'diagonal' wants.*" + re.escape("(2,)")):
        form_of(lambda t, y: ((1.0, 0.0), (0.0, 0.5)), 2, "diagonal")


@pytest.mark.parametrize(
    "noise, returned",
    [
        ("general", (1.0, 2.0, 3.0)),
        ("general", ((1.0, 2.0), (3.0, 4.0))),  # transposed, or too few rows
        ("general", 1.0),
        ("general", np.ones((3, 2, 1))),
        ("general", np.ones((3, 0))),
        ("commutative", (1.0, 2.0, 3.0)),
        ("scalar", ((1.0, 2.0),) * 3),
        ("scalar", ((1.0, 2.0, 3.0),)),
        ("scalar", (1.0, 2.0)),
        ("diagonal", ((1.0,), (2.0,), (3.0,))),
        ("diagonal", (1.0, 2.0)),
        ("additive", np.ones((2, 3))),
        ("additive", 2.0),
    ],
)
def test_wrong_diffusions(noise, returned):
    with pytest.raises(ShapeError, match=f"diffusion .*returned.*noise='{noise}' wants"):
        form_of(lambda t, y: returned, 3, noise)


@pytest.mark.parametrize("returned", [(1.0,), np.ones((2, 1)), [[1.0], [2.0]], 3.0, np.ones((1, 2)), (), np.ones(3)])
def test_wrong_drifts(returned):
    with pytest.raises(ShapeError, match=r"drift .*returned.*2 numbers, shape \(2,\), is wanted"):
        SDE(lambda t, y: returned, lambda t, y: (1.0, 1.0), 2, "diagonal").bind(0.0, [1.0, 1.0])


def test_a_number_stands_for_one_component_where_that_is_unambiguous():
    def one(t, y):
        return 2.0 * y[0]

    for noise, form in (("scalar", "column"), ("diagonal", "diagonal"), ("additive", "diagonal")):
        bound = SDE(one, (lambda t, y: 2.0) if noise == "additive" else one, 1, noise).bind(0.0, [1.0])
        assert (bound.form, bound.noise_dim) == (form, 1)
    with pytest.raises(ShapeError, match="a single number, 2,"):
        SDE(one, one, 1, "general").bind(0.0, [1.0])


@pytest.mark.parametrize("y0", [np.ones((2, 2)), 1.0, np.ones((1, 4))])
def test_a_state_is_one_dimensional(y0):
    with pytest.raises(ShapeError, match=r"y0 must have shape \(4,\).*flatten"):
        SDE(still, still, 4, "diagonal").bind(0.0, y0)


def test_a_state_of_another_length_or_kind():
    sde = SDE(still, still, 2, "diagonal")
    with pytest.raises(ShapeError, match=r"y0 must have shape \(2,\), got \(3,\)"):
        sde.bind(0.0, [1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError, match="y0 must be finite"):
        sde.bind(0.0, [1.0, np.nan])
    assert sde.bind(0, np.array([5, 5], dtype=np.uint8)).y0.dtype == np.float64  # no arithmetic in 8 bits


def test_additive_noise_that_is_not():
    def diffusion(t, y):
        return (0.5, 0.1 * y[0])

    with pytest.raises(ModelError, match=r"additive.*diffusion.*changes with y"):
        SDE(still, diffusion, 2, "additive").bind(0.0, [1.0, 1.0])
    # Time is no state, and neither is a y that is read for its length only.
    SDE(still, lambda t, y: (1.0 + t, len(y)), 2, "additive").bind(0.5, [1.0, 1.0])


def test_additive_noise_that_fails_at_another_state():
    def diffusion(t, y):
        if y[0] > 1.0:
            raise ValueError("too far")
        return (1.0,)

    with pytest.raises(ModelError, match="additive"):
        SDE(still, diffusion, 1, "additive").bind(0.0, [1.0])
