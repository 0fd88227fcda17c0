"""What is refused of a person's loss, gradient, arguments and data, and what their own errors carry."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import from_functions

X, Y = np.array([1.0, 2.0, -1.0, 0.5]), np.array([0.5, 1.0, 1.0, -2.0])


def loss(theta, x, y):
    return (theta[0] * theta[1] * x - y) ** 2


def slope(theta, x, y):
    r = 2.0 * (theta[0] * theta[1] * x - y) * x
    return np.array([r * theta[1], r * theta[0]])


@pytest.mark.parametrize(
    "make_loss, make_gradient, error, message",
    [
        (lambda t, x, y: np.array([1.0, 2.0]), None, ShapeError, "one number for one sample"),
        (lambda t, x, y: 1.0 + 0j, None, ModelError, "real number"),
        (lambda t, x, y: np.nan, None, ModelError, "loss is not finite at the start"),
        (None, lambda t, x, y: np.zeros(3), ShapeError, r"shape \(2,\), got \(3,\)"),
        (None, lambda t, x, y: np.zeros((2, 1)), ShapeError, r"got \(2, 1\)"),
        (None, lambda t, x, y: np.array([0.0, np.inf]), ModelError, r"component theta\[1\]"),
    ],
)
def test_what_functions_may_not_return(make_loss, make_gradient, error, message):
    fine, flat = (lambda t, x, y: t[0] * x), (lambda t, x, y: np.array([x, 0.0]))
    with pytest.raises(error, match=message):
        sg.SGD(from_functions(make_loss or fine, make_gradient or flat, dim=2), X, Y, learning_rate=0.1)


def test_functions_must_not_change_what_they_are_given():
    def changes(theta, x, y):
        theta *= 2.0
        return theta.copy()

    with pytest.raises(ModelError, match="gradient must not change theta in place"):
        sg.SGD(from_functions(lambda t, x, y: t @ t, changes, dim=2), X, Y, learning_rate=0.1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"gradient": None}, "'differences' takes central differences"),
        ({"loss": 3}, "loss must be a function"),
        ({"dim": 2, "shapes": {"a": (2,)}}, "give dim or shapes"),
        ({"dim": None}, "give dim or shapes"),
        ({"dim": None, "shapes": {"a": 2}}, r"shapes\['a'\] must be a name and a tuple"),
        ({"symmetries": {"A": np.eye(3)}}, r"symmetries\['A'\] must have shape \(2, 2\)"),
        ({"symmetries": {"A": sg.Generator.diagonal([1.0, 1.0, 1.0])}}, "must act on the 2 parameters"),
        ({"symmetries": [np.eye(2)]}, "symmetries must map names"),
        ({"theta0": [1.0]}, r"theta0 must have shape \(2,\)"),
        ({"args": 3.0}, "args must be a tuple"),
    ],
)
def test_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        from_functions(**{"loss": loss, "gradient": slope, "dim": 2, **options})


def test_data():
    model = from_functions(loss, slope, dim=2)
    with pytest.raises(ModelError, match="needs samples X and Y"):
        sg.SGD(model, X, learning_rate=0.1)
    with pytest.raises(ShapeError, match="same number of samples"):
        sg.SGD(model, X, Y[1:], learning_rate=0.1)
    with pytest.raises(ShapeError, match="at least one sample"):
        sg.SGD(model, X[:0], Y[:0], learning_rate=0.1)
    problem = sg.SGD(model, X, Y, learning_rate=0.1)
    with pytest.raises(ValueError, match="read-only"):
        problem.X[0] = 1.0


def test_what_a_function_raises_is_told_with_its_name_and_sample():
    def loss(theta, x, y):
        return theta[5] * 0.0

    def gradient(theta, x, y):
        raise ValueError("boo")

    for functions, error, note in (
        ((loss, lambda theta, x, y: theta), IndexError, "raised by loss(theta, x, y, *args) for sample 0"),
        ((lambda theta, x, y: 0.0, gradient), ValueError, "raised by gradient(theta, x, y, *args) for sample 0"),
        ((lambda theta, x: 0.0, gradient), TypeError, "called with theta (2,), x (1,), y ()"),
    ):
        model = sg.models.from_functions(*functions, dim=2)
        with pytest.raises(error) as caught:
            sg.SGD(model, np.ones((4, 1)), np.ones(4), learning_rate=0.1)
        assert any(note in text for text in caught.value.__notes__)
