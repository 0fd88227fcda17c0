"""SVAG extrapolated: to the mean of the SDE where that is known, and the distance of SGD from it."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import ArgumentError, ModelError

A = np.array([0.2, 0.5, 2.4])
ETA, TIME = 0.25, 1.0


@pytest.fixture(scope="module")
def problem():
    """ℓ_i = ½a_iθ²: E θ^k of each step is a product of numbers."""
    model = sg.models.LinearRegression(1, biases=False, scale=0.5)
    return sg.SGD(model, np.sqrt(A)[:, None], np.zeros(3), learning_rate=ETA)


def sde(k):
    return np.exp(TIME * (-k * A.mean() + 0.5 * k * (k - 1) * ETA * A.var()))


def svag(k, l):
    root = np.sqrt(2 * l - 1)
    a = 0.5 * (1 + root) * A[:, None] + 0.5 * (1 - root) * A
    return np.mean((1 - ETA / l * a) ** k) ** (l * round(TIME / ETA))


OF = {"θ²": lambda y: y[:, 0] ** 2, "θ³": lambda y: y[:, 0] ** 3}


def test_the_limit_is_the_mean_of_the_sde(problem):
    report = sg.svag_extrapolation(
        problem, [1.0], TIME, (8, 1, 4, 2, 16), functions=OF, n_paths=8000, rng=0, powers=(1, 2)
    )
    assert report.l.tolist() == [1, 2, 4, 8, 16] and list(report) == ["θ²", "θ³"]
    for k, one in zip((2, 3), report.values()):
        assert one.steps == pytest.approx(1.0 / report.l)
        assert one.values == pytest.approx([svag(k, l) for l in report.l], abs=5 * one.errors.max())
        assert abs(one.limit - sde(k)) < 5 * one.stderr and one.good
        assert abs(one.gap[0] - (svag(k, 1) - sde(k))) < 5 * one.gap_stderr[0]
        assert abs(one.gap[0]) > 5 * one.gap_stderr[0]  # how far SGD is from its SDE is seen
    # another temperature is another limit
    assert abs(report["θ²"].limit - np.exp(TIME * (-2 * A.mean() + 2 * ETA * A.var()))) > 5 * report["θ²"].stderr
    text = repr(report)
    assert "SGD (l = 1) is" in text and "1/l" in text and "chi2" in text


def test_a_control_variate_changes_the_error_alone(problem):
    with_one, without = (
        sg.svag_extrapolation(problem, [1.0], TIME, functions=OF, n_paths=2000, rng=1, control_variate=on)["θ²"]
        for on in (True, False)
    )
    assert with_one.stderr < 0.7 * without.stderr
    assert abs(with_one.limit - without.limit) < 5 * without.stderr


@pytest.mark.parametrize("changes, error, words", [
    ({"l": (1, 2)}, ArgumentError, "l must be at least 3 different numbers"),
    ({"l": (1, 2, 2)}, ArgumentError, "l must be at least 3 different numbers"),
    ({"l": 4}, ArgumentError, "l must be a sequence"),
    ({"problem": 1}, ArgumentError, "problem must be an SGD problem"),
    ({"time": 0.3}, ArgumentError, "time = 0.3 must be a whole number of steps"),
    ({"theta0": [1.0, 2.0]}, sg.ShapeError, "theta0 must have shape"),
    ({"optimizer": sg.optimizers.HeavyBall(0.5)}, ModelError, "problem must be without an optimizer"),
    ({"powers": (1, 2, 3, 4)}, ArgumentError, "l must leave more than 4 levels"),
])  # fmt: skip
def test_arguments_are_named(problem, changes, error, words):
    changes = dict(changes)
    if "optimizer" in changes:
        changes["problem"] = problem.replace(optimizer=changes.pop("optimizer"))
    arguments = {"problem": problem, "theta0": [1.0], "time": TIME, "n_paths": 100, "rng": 0} | changes
    with pytest.raises(error, match=words):
        sg.svag_extrapolation(**arguments)
