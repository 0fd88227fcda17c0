"""What a law says when it fails, and when it does."""

import pickle

import numpy as np
import pytest

from sgdsde.testing import BrokenLaw
from sgdsde.testing._holding import hold


def test_the_ratio_is_that_of_the_worst_place():
    assert hold("law", [1.0, 2.0, 3.0], [1.0, 2.5, 3.0], [1.0, 2.0, 0.0]) == 0.25
    assert hold("law", 1.0, 1.0, 0.0) == 0.0
    assert hold("law", np.empty((0, 3)), 1.0, 0.0) == 0.0


@pytest.mark.parametrize("got, tolerance", [(1.5, 0.4), (np.nan, 1e300), (np.inf, 1e300), (1.0 + 1e-15, 0.0)])
def test_too_far_and_not_finite_break_the_law(got, tolerance):
    with pytest.raises(BrokenLaw):
        hold("law", [1.0, got], 1.0, tolerance)


def test_the_witness_is_that_of_the_worst_place():
    theta = np.arange(3.0)
    with pytest.raises(BrokenLaw) as caught:
        hold("E = mc²", [[0.0, 0.1], [0.0, -7.0]], 0.0, 0.5, theta=theta, batch=lambda i: f"number {i[1]}")
    error = caught.value
    assert isinstance(error, AssertionError)
    assert (error.law, error.got, error.wanted, error.tolerance, error.index) == ("E = mc²", -7.0, 0.0, 0.5, (1, 1))
    assert error.witness["theta"] is theta and error.witness["batch"] == "number 1"
    for words in ("E = mc²: got -7.0, wanted 0.0", "14 times the tolerance", "at index 1, 1", "theta = [0., 1., 2.]"):
        assert words in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
