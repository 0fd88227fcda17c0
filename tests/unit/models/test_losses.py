"""Losses of outputs: the formulas, their derivatives, large outputs, and what they take for targets."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, softmax

from sgdsde import losses
from sgdsde._errors import ArgumentError, ShapeError

rng = np.random.default_rng(5)
N, K = 7, 3
OUTPUTS, V = rng.standard_normal((2, N, K))
LABELS, SIGNS, ROWS = rng.integers(0, K, N), rng.integers(0, 2, (N, K)), rng.dirichlet(np.ones(K), N)
CASES = {
    "squared": (losses.squared, rng.standard_normal((N, K))),
    "logistic, 0 and 1": (losses.logistic, SIGNS),
    "logistic, signs": (losses.logistic, 2 * SIGNS - 1),
    "softmax, labels": (losses.softmax, LABELS),
    "softmax, rows": (losses.softmax, ROWS),
}


@pytest.fixture(params=list(CASES))
def pair(request):
    return CASES[request.param]


def test_values_are_those_of_the_formulas():
    Y = CASES["squared"][1]
    assert losses.squared.value(OUTPUTS, Y) == pytest.approx(np.square(OUTPUTS - Y).sum(axis=1), rel=1e-14)
    wanted = -np.log(expit((2 * SIGNS - 1) * OUTPUTS)).sum(axis=1)
    assert losses.logistic.value(OUTPUTS, SIGNS) == pytest.approx(wanted, rel=1e-13)
    assert np.array_equal(losses.logistic.value(OUTPUTS, 2 * SIGNS - 1), losses.logistic.value(OUTPUTS, SIGNS))
    p = softmax(OUTPUTS, axis=1)
    assert losses.softmax.value(OUTPUTS, LABELS) == pytest.approx(-np.log(p[np.arange(N), LABELS]), rel=1e-13)
    assert losses.softmax.value(OUTPUTS, ROWS) == pytest.approx(-(ROWS * np.log(p)).sum(axis=1), rel=1e-13)


def test_class_numbers_are_rows_with_a_one():
    one_hot = np.eye(K)[LABELS]
    for f in (losses.softmax.value, losses.softmax.gradient):
        assert f(OUTPUTS, LABELS) == pytest.approx(f(OUTPUTS, one_hot), rel=1e-14, abs=1e-15)
    assert np.array_equal(losses.softmax.value(OUTPUTS, LABELS[:, None]), losses.softmax.value(OUTPUTS, LABELS))


def test_derivatives_are_those_of_the_values(pair):
    loss, Y = pair
    h = 1e-5
    slope = [(loss.value(OUTPUTS + h * e, Y) - loss.value(OUTPUTS - h * e, Y)) / (2 * h) for e in np.eye(K)]
    assert loss.gradient(OUTPUTS, Y) == pytest.approx(np.stack(slope, axis=1), abs=1e-9)
    curved = (loss.gradient(OUTPUTS + h * V, Y) - loss.gradient(OUTPUTS - h * V, Y)) / (2 * h)
    assert loss.hessian_vector(OUTPUTS, Y, V) == pytest.approx(curved, abs=1e-9)


def test_one_output_may_be_a_vector():
    y, o = SIGNS[:, 0], OUTPUTS[:, 0]
    assert losses.logistic.gradient(o, y) == pytest.approx(losses.logistic.gradient(o[:, None], y[:, None])[:, 0])
    assert losses.squared.value(o, o + 1.0) == pytest.approx(np.ones(N))


@pytest.mark.parametrize("size", [50.0, 800.0, 1e5, 1e300])
def test_large_outputs_are_no_trouble(size):
    far = np.array([[size, -size, 0.0]])
    assert losses.softmax.value(far, [0]) == pytest.approx(0.0, abs=1e-20)
    assert losses.softmax.value(far, [2]) == pytest.approx(size, rel=1e-15)
    assert losses.softmax.gradient(far, [1])[0] == pytest.approx([1.0, -1.0, 0.0], abs=1e-20)
    assert losses.logistic.value(far, [[1, 1, 1]]) == pytest.approx(size + np.log(2), rel=1e-15)
    assert losses.logistic.gradient(far, [[0, 1, 1]])[0] == pytest.approx([1.0, -1.0, -0.5], rel=1e-15)
    for loss, Y in ((losses.softmax, [1]), (losses.logistic, [[0, 1, 1]])):
        assert np.isfinite(loss.hessian_vector(far, Y, np.ones((1, 3)))).all()


def test_small_losses_keep_their_digits():
    assert losses.logistic.value([40.0], [1])[0] == pytest.approx(np.exp(-40.0), rel=1e-14)
    assert losses.logistic.gradient([40.0], [1])[0] == pytest.approx(-np.exp(-40.0), rel=1e-14)
    assert losses.softmax.gradient([[300.0, 0.0]], [0])[0, 1] == pytest.approx(np.exp(-300.0), rel=1e-14)


def test_outputs_that_are_not_finite_are_not_hidden():
    from sgdsde.models.loss_calls import derivatives

    for loss, Y in ((losses.squared, [0.0, 0.0]), (losses.logistic, [1.0, 1.0]), (losses.softmax, [1.0])):
        O = np.array([[np.nan], [1.0]])
        value, slope, tangent = np.empty(1), O.copy(), np.ones((2, 1))
        derivatives(loss.kind, value, slope, tangent, O, np.array(Y), len(Y), np.ones(1))
        assert np.isnan(value[0]) and np.isnan(slope[0, 0])


@pytest.mark.parametrize(
    ("loss", "outputs", "Y", "error", "message"),
    [
        ("softmax", (2, 3), [0, 3], ArgumentError, r"class numbers 0\.\.2 .* got 3"),
        ("softmax", (2, 3), [0, 0.5], ArgumentError, r"class numbers .* got 0\.5"),
        ("softmax", (2, 3), [-1, 0], ArgumentError, "class numbers .* got -1"),
        ("softmax", (2, 3), [[1, 1, 0], [0, 1, 0]], ArgumentError, "probabilities"),
        ("softmax", (2, 3), [[2, -1, 0], [0, 1, 0]], ArgumentError, "probabilities"),
        ("softmax", (2, 3), [[0.5, 0.5]] * 2, ShapeError, r"\(n_samples, 3\) or class numbers"),
        ("softmax", (2, 1), [0, 0], ArgumentError, "at least 2 outputs"),
        ("logistic", (2, 1), [1, 2], ArgumentError, "labels ±1, or 0 and 1, .* got 2"),
        ("logistic", (2, 1), [-1, 0], ArgumentError, "got 0"),
        ("logistic", (2, 2), [1, 0], ShapeError, r"Y must have shape \(n_samples, 2\)"),
        ("squared", (2, 2), [1, 0], ShapeError, r"np\.eye\(2\)\[Y\]"),
        ("squared", (2, 1), [1, np.nan], ArgumentError, "Y must be finite"),
        ("squared", (2, 1), [1, 2, 3], ShapeError, "2 samples"),
        ("squared", (), 1.0, ShapeError, "outputs must have shape"),
    ],
)
def test_wrong_targets_are_refused(loss, outputs, Y, error, message):
    with pytest.raises(error, match=message):
        getattr(losses, loss).value(np.zeros(outputs), Y)


def test_losses_have_names_and_travel():
    for name in ("squared", "logistic", "softmax"):
        loss = getattr(losses, name)
        assert repr(loss) == f"losses.{name}" and pickle.loads(pickle.dumps(loss)) is loss
        assert losses.read_loss(name) is loss and losses.read_loss(loss) is loss
    with pytest.raises(ArgumentError, match="loss must be one of 'squared', 'logistic', 'softmax'"):
        losses.read_loss("hinge")
