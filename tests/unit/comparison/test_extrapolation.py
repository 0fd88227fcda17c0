"""Extrapolation against closed forms: exact polynomials, least squares by hand, the law of limit and chi²."""

import numpy as np
import pytest
from scipy.stats import chi2

import sgdsde as sg
from sgdsde import ArgumentError, ShapeError

STEPS = np.array([0.4, 0.2, 0.1, 0.05])


@pytest.mark.parametrize("powers", [(1,), (2,), (1, 2), (0.5, 1.5)])
def test_polynomials_are_found_exactly(powers):
    c = np.array([0.7, -1.3])[: len(powers)]
    values = 2.0 + sum(one * STEPS**power for one, power in zip(c, powers))
    found = sg.richardson(STEPS, values, [0.1, 0.2, 0.1, 0.3], powers=powers)
    assert found.limit == pytest.approx(2.0, abs=1e-12) and found.coefficients == pytest.approx(c)
    assert found.chi2 == pytest.approx(0.0, abs=1e-20) and found.dof == 3 - len(powers)
    assert found.gap == pytest.approx(values - 2.0)


def test_two_steps_are_the_rule_of_every_book():
    found = sg.richardson([0.2, 0.1], [1.5, 1.3], [0.01, 0.02])
    assert found.limit == pytest.approx(2 * 1.3 - 1.5) and found.stderr == pytest.approx(np.hypot(2 * 0.02, 0.01))
    assert found.dof == 0 and np.isnan(found.p_value) and not found.good
    assert "nothing tells whether the fit is good" in found.table()


def test_values_that_share_their_noise():
    """Limit, its error, those of the gaps, and chi² against their laws over many draws of correlated values."""
    rng = np.random.default_rng(0)
    root = 0.05 * (np.tril(rng.normal(size=(4, 4))) + np.eye(4))
    draws = 1.0 + 3.0 * STEPS + rng.normal(size=(2000, 4)) @ root.T
    found = [sg.richardson(STEPS, one, root @ root.T) for one in draws]
    limits, gaps = np.array([one.limit for one in found]), np.array([one.gap for one in found])
    assert abs(limits.mean() - 1.0) < 5 * found[0].stderr / np.sqrt(2000)
    assert limits.std() == pytest.approx(found[0].stderr, rel=0.08)
    assert gaps.std(axis=0) == pytest.approx(found[0].gap_stderr, rel=0.08)
    assert gaps.mean(axis=0) == pytest.approx(3.0 * STEPS, abs=5 * found[0].gap_stderr.max() / np.sqrt(2000))
    assert np.mean([one.chi2 for one in found]) == pytest.approx(2.0, abs=5 * 2 / np.sqrt(2000))
    one = found[3]
    assert one.p_value == pytest.approx(chi2.sf(one.chi2, 2))
    assert found[0].errors == pytest.approx(np.sqrt(np.diag(root @ root.T)))


def test_a_curve_is_no_line():
    found = sg.richardson(STEPS, 1.0 + STEPS + 2 * STEPS**2, [0.005] * 4)
    assert not found.good and found.p_value < 1e-6 and "BAD" in found.table()
    assert sg.richardson(STEPS, 1.0 + STEPS + 2 * STEPS**2, [0.005] * 4, powers=(1, 2)).good


@pytest.mark.parametrize("steps, values, errors, more, error, words", [
    ([0.1, 0.2], [1.0], [1.0, 1.0], {}, ShapeError, "steps and values"),
    ([0.1, 0.1], [1.0, 1.0], [1.0, 1.0], {}, ArgumentError, "steps must be positive and different"),
    ([0.1, -0.1], [1.0, 1.0], [1.0, 1.0], {}, ArgumentError, "steps must be positive and different"),
    ([0.1, 0.2], [1.0, 1.0], [1.0, 0.0], {}, ArgumentError, "errors must be positive"),
    ([0.1, 0.2], [1.0, 1.0], [1.0], {}, ShapeError, "errors must be"),
    ([0.1, 0.2], [1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], {}, ArgumentError, "positive definite"),
    ([0.1, 0.2], [1.0, 1.0], [1.0, 1.0], {"powers": (1, 2)}, ArgumentError, "fewer than the 2 steps"),
    ([0.1, 0.2, 0.3], [1.0] * 3, [1.0] * 3, {"powers": (1, 1)}, ArgumentError, "powers must be different"),
    ([0.1, 0.2, 0.4], [1.0] * 3, [1.0] * 3, {"powers": (1, 1 + 1e-15)}, ArgumentError, "powers must tell the steps"),
])  # fmt: skip
def test_arguments_are_named(steps, values, errors, more, error, words):
    with pytest.raises(error, match=words):
        sg.richardson(steps, values, errors, **more)
