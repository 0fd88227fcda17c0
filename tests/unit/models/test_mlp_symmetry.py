"""What the architecture of an MLP keeps, for each sample, and what it does not; the charges that follow."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.models import MLP, SoftmaxRegression
from sgdsde.models import charge_rows as rows

EPS = np.finfo(float).eps
rng = np.random.default_rng(8)
X = rng.standard_normal((25, 3))
LABELS = rng.integers(0, 2, 25)


def problem_of(model, **numbers):
    Y = LABELS if model.loss_function.name != "squared" else rng.standard_normal((25, model.dims[-1]))
    return sg.SGD(model, X, Y, **{"learning_rate": 0.05, "gamma": 0.02, **numbers})


KEPT = {
    "relu": MLP([3, 4, 3, 2], "relu"),
    "relu without biases": MLP([3, 4, 2], "relu", biases=False, loss="softmax"),
    "leaky relu": MLP([3, 2, 1], "leaky_relu", loss="logistic"),
    "identity": MLP([3, 4, 3, 2], "identity"),
    "identity, two layers": MLP([3, 4, 2], "identity", loss="softmax"),
}


@pytest.mark.parametrize("name", KEPT)
def test_declared_symmetries_hold_for_each_sample(name):
    model, problem = KEPT[name], problem_of(KEPT[name])
    symmetries = model.symmetries()
    assert len(symmetries) > 0
    for key, A in symmetries.items():
        assert A.name == key
        report = sg.check_symmetry(problem, A, model.init(0) + 0.1)
        assert report, str(report)


def test_names_say_which_weights_grow():
    model = MLP([3, 4, 3, 2], "relu")
    names = list(model.symmetries())
    assert names[:3] == ["W1/W2", "W1/W2[0]", "W1/W2[1]"] and len(names) == 1 + 4 + 1 + 3
    theta = rng.standard_normal(model.dim)
    arrays = model.unflatten(theta)
    A = model.symmetries()["W2/W3[1]"]
    moved = model.unflatten(A.exp(np.log(2.0), theta))
    assert moved["W2"][1] == pytest.approx(2 * arrays["W2"][1]) and moved["b2"][1] == pytest.approx(2 * arrays["b2"][1])
    assert moved["W3"][:, 1] == pytest.approx(arrays["W3"][:, 1] / 2)
    changed = sum(int((moved[k] != arrays[k]).sum()) for k in arrays)
    assert changed == 4 + 1 + 2
    charge = np.square(arrays["W2"]).sum(axis=1) + arrays["b2"] ** 2 - np.square(arrays["W3"]).sum(axis=0)
    assert A.quadratic(theta) == pytest.approx(charge[1])
    assert model.symmetries()["W2/W3"].quadratic(theta) == pytest.approx(charge.sum())


def test_they_are_made_when_they_are_asked_for():
    model = MLP([64, 700, 700, 10], "relu")  # all at once would be 1402 generators of half a million numbers
    symmetries = model.symmetries()
    assert len(symmetries) == 1402 and "W2/W3[699]" in symmetries
    assert "1402" in repr(symmetries)
    with pytest.raises(KeyError):
        symmetries["W3/W4"]


def test_what_is_no_symmetry_fails():
    relu, A = KEPT["relu"], KEPT["relu"].symmetries()["W1/W2[0]"]
    for activation in ("tanh", "sigmoid", "gelu"):
        assert MLP([3, 4, 3, 2], activation).symmetries() == {}
        assert not sg.check_symmetry(problem_of(MLP([3, 4, 3, 2], activation)), A)
    one_sided = Generator.diagonal(np.where(A.eigenvalues > 0, 1.0, 0.0))
    assert not sg.check_symmetry(problem_of(relu), one_sided)
    without_bias = A.eigenvalues.copy()
    without_bias[relu.places()["b1"]] = 0.0
    assert not sg.check_symmetry(problem_of(relu), Generator.diagonal(without_bias))
    rotation = KEPT["identity"].generator(np.array([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0.0]]))
    assert sg.check_symmetry(problem_of(KEPT["identity"]), rotation)
    assert not sg.check_symmetry(problem_of(relu), rotation)


def test_generators_of_other_matrices():
    model = KEPT["identity"]
    B = rng.standard_normal((3, 3))
    A = model.generator(B, layer=2)
    assert sg.check_symmetry(problem_of(model), A)
    theta = rng.standard_normal(model.dim)
    arrays, moved = model.unflatten(theta), model.unflatten(A.apply(theta))
    assert moved["W2"] == pytest.approx(-B @ arrays["W2"]) and moved["b2"] == pytest.approx(-B @ arrays["b2"])
    assert moved["W3"] == pytest.approx(arrays["W3"] @ B) and not moved["W1"].any() and not moved["b3"].any()
    S = np.diag([1.0, 2.0, 3.0])
    assert np.array_equal(KEPT["relu"].generator(S, layer=2).matrix, model.generator(S, layer=2).matrix)


def test_generators_that_are_no_symmetries_are_refused():
    with pytest.raises(ArgumentError, match="B must be diagonal for activation 'relu'"):
        KEPT["relu"].generator(np.ones((4, 4)))
    with pytest.raises(ArgumentError, match="generator needs activation .* got 'tanh'"):
        MLP([2, 2, 2]).generator(np.eye(2))
    with pytest.raises(ArgumentError, match="needs a hidden layer"):
        MLP([2, 2], "identity").generator(np.eye(2))
    with pytest.raises(ShapeError, match=r"B must have shape \(4, 4\) for hidden layer 1"):
        KEPT["relu"].generator(np.eye(3))
    with pytest.raises(ArgumentError, match="layer must be between 1 and 2"):
        KEPT["relu"].generator(np.eye(3), layer=3)


@pytest.mark.parametrize(
    "model", [MLP([3, 4, 2], loss="softmax"), SoftmaxRegression(3, 2), MLP([3, 2, 2], biases=False, loss="softmax")]
)
def test_translations_of_the_last_layer_change_no_loss(model):
    problem = problem_of(model)
    theta = rng.standard_normal(model.dim)
    g, losses = problem.per_sample_gradients(theta), problem.per_sample_losses(theta)
    translations = model.translations()
    assert len(translations) == model.dims[-2] + model.biases
    for v in translations.values():
        assert np.abs(g @ v).max() <= 64 * EPS * np.abs(g).max()
        assert problem.per_sample_losses(theta + 3.0 * v) == pytest.approx(losses, rel=1e-12, abs=1e-13)
        run = problem.run(theta, 20, rng=0)
        assert run.y[-1] @ v == pytest.approx((1 - 2 * 0.05 * 0.02) ** 20 * (theta @ v), rel=1e-12)
        sol = sg.solve(problem.sde(), (0.0, 1.0), theta, rng=0)
        assert sol.y[-1] @ v == pytest.approx((1 - 2 * 0.05 * 0.02) ** 20 * (theta @ v), rel=1e-11)


def test_there_are_none_with_other_losses():
    assert MLP([3, 2]).translations() == {} and MLP([3, 1], loss="logistic").translations() == {}
    v = SoftmaxRegression(3, 2).translations()["b1"]
    squared = problem_of(MLP([3, 2]))
    assert np.abs(squared.per_sample_gradients(np.ones(8)) @ v).min() > 1e-3


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_charge_of_relu_follows_the_exact_law_of_sgd(size):
    """C' = (1 - 2ηγ)² C + η² ĝᵀAĝ for every batch."""
    model = KEPT["relu"]
    problem = problem_of(model, batch_size=size)
    law = sg.ChargeLaw(sg.Charge(model.symmetries()["W1/W2[2]"]), problem)
    theta = rng.standard_normal(model.dim)
    run = problem.run(theta, 40, rng=3, t_eval="steps", track=law)
    decay = 1 - 2 * 0.05 * 0.02
    A = model.symmetries()["W1/W2[2]"]
    C = A.quadratic(run.y)
    v = run.y[1:] - decay * run.y[:-1]
    scale = np.square(run.y).sum(axis=1).max()
    assert np.abs(C[1:] - decay**2 * C[:-1] - A.quadratic(v)).max() <= 1e-13 * scale
    assert np.abs(C[1:] - C[:-1]).max() > 1e-6


def test_the_law_of_the_sde_is_tracked_by_the_models_own_kernel():
    model = KEPT["relu"]
    problem = problem_of(model, batch_size=2)
    A = model.symmetries()["W2/W3"]
    watcher = model.charge_track(A, problem.gamma, problem.X, problem.Y)
    theta = model.init(2)
    sol = sg.solve(problem.sde(), (0.0, 0.5), theta, rng=0, t_eval="steps", track=sg.ChargeLaw(sg.Charge(A), problem))
    acc, work = np.zeros((rows.CHARGE_ROWS, 1)), np.empty(sum(watcher.work))
    for x0, x1 in zip(sol.y[:-1], sol.y[1:]):
        one, h = (np.ascontiguousarray(x[:, None]) for x in (x0, x1)), np.full(1, 0.05)
        watcher.kernel(acc, *one, np.zeros(1), h, watcher.p, watcher.data, work)
    acc = acc[:, 0]
    decay = 1 - 2 * 0.05 * problem.gamma
    wanted = A.quadratic(sol.y[-1]) - A.quadratic(theta)
    found = (decay**2 - 1) * acc[rows.SUM_H_CHARGE] / 0.05 + acc[rows.SUM_QUADRATIC]
    assert found == pytest.approx(wanted, rel=1e-10)
    assert acc[rows.SUM_ABS_CROSS] <= 1e-12 * acc[rows.SUM_SCALE]
    sigma = [A.trace(problem.covariance(x)) for x in sol.y[:-1]]
    assert acc[rows.SUM_H_TRACE] == pytest.approx(0.05 * sum(sigma), rel=1e-10)


def test_generators_that_mix_arrays_have_no_kernel():
    model = KEPT["relu"]
    dense = Generator.from_matrix(np.ones((model.dim, model.dim)))
    assert model.charge_track(dense, 0.0, X, np.ones((25, 2))) is None
