"""Models as values: symmetries, starts, populations, data and what is refused."""

import pickle

import numpy as np
import pytest

from sgdsde._abi import INITIAL
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import DeepLinear, Population, Product, uw_gauss, uw_label
from sgdsde.models.population import moments
from sgdsde.random.stream import normals

EPS = np.finfo(float).eps


def test_every_sample_is_unmoved_along_the_symmetries(case):
    g = case.dense()[0]
    for name, A in case.model.symmetries().items():
        assert A.name == name
        direction = A.apply(case.theta)
        scale = (A.norm * np.linalg.norm(case.theta) + np.linalg.norm(direction)) * np.linalg.norm(g, axis=1)
        assert (np.abs(g @ direction) <= 64 * case.model.dim * EPS * scale).all()
        moved = A.exp(0.7, case.theta)
        assert case.loss_of(moved) == pytest.approx(case.loss_of(case.theta), rel=1e-11, abs=1e-11)
        assert np.abs(moved - case.theta).max() > 0.01


def test_the_generator_of_two_layers_is_that_of_the_theory(make_case):
    model = DeepLinear([3, 2, 4])
    rng = np.random.default_rng(3)
    B = rng.standard_normal((2, 2))
    wanted = np.zeros((14, 14))
    wanted[:6, :6], wanted[6:, 6:] = -np.kron(B, np.eye(3)), np.kron(np.eye(4), B.T)
    assert np.array_equal(model.generator(B).matrix, wanted)  # K1, where B is symmetric
    W, U = model.unflatten(rng.standard_normal(14)).values()
    theta = model.flatten(W1=W, W2=U)
    S = B + B.T
    assert model.generator(S).quadratic(theta) == pytest.approx(np.trace(U @ S @ U.T) - np.trace(W.T @ S @ W))
    case = make_case(model, 5)
    assert np.abs(case.dense()[0] @ model.generator(B).apply(case.theta)).max() <= 1e-12 * np.abs(case.dense()[0]).max()


def test_deeper_networks_have_a_basis_of_every_b_for_each_hidden_layer():
    model = DeepLinear([2, 3, 4, 2])
    names = list(model.symmetries())
    assert names[:4] == ["layer1:B=I", "layer2:B=I", "layer1:B[0,0]", "layer1:B[0,1]"] and len(names) == 2 + 9 + 16
    assert "layer2:rotation(2,3)" in names and len(model.symmetries().charged()) == 2 + 6 + 10
    B = np.zeros((4, 4))
    B[1, 3] = B[3, 1] = 1.0
    assert np.array_equal(model.symmetries()["layer2:B[1,3]"].matrix, model.generator(B, 2).matrix)
    for wrong in ("layer2:B[3,1]", "layer2:B(1,3)", "layer3:B[0,0]", "layer1:B[0,3]", "rotation(0,1)", "B[01,2]", 3):
        assert wrong not in model.symmetries()
    assert len(DeepLinear([10, 2000, 10]).symmetries()) == 1 + 2000**2  # none is made
    assert DeepLinear([2, 3]).symmetries() == {}
    with pytest.raises(ShapeError, match=r"B must have shape \(4, 4\) for hidden layer 2"):
        model.generator(np.eye(3), layer=2)
    with pytest.raises(ArgumentError, match="layer must be between 1 and 2"):
        model.generator(np.eye(3), layer=3)
    with pytest.raises(ArgumentError, match="needs a hidden layer"):
        DeepLinear([2, 3]).generator(np.eye(2))


def test_product_has_rescalings_of_neighbours():
    assert list(Product().symmetries()) == ["W1/W2"]
    assert Product().symmetries()["W1/W2"].quadratic([3.0, 2.0]) == 5.0
    names = list(Product(width=2, depth=3).symmetries())
    assert names == ["W1/W2", "W1/W2[0]", "W1/W2[1]", "W2/W3", "W2/W3[0]", "W2/W3[1]"]
    two = Product(width=2).symmetries()
    assert list(two)[3:] == ["mixing(0,1)", "crossing(0,1)", "twist(0,1)", "rotation(0,1)"]
    assert two["mixing(0,1)"].quadratic([2.0, 3.0, 5.0, 7.0]) == 2 * (2 * 3 - 5 * 7)
    assert two["crossing(0,1)"].quadratic([2.0, 3.0, 5.0, 7.0]) == 2 * (2 * 7 - 3 * 5)
    assert two["twist(0,1)"].is_antisymmetric and two["rotation(0,1)"].is_antisymmetric
    assert list(Product(width=2, depth=3).symmetries()["W2/W3[1]"].eigenvalues) == [0, 0, 0, 1, 0, -1]


def test_a_start_is_made_of_numbers_of_its_seed():
    model = DeepLinear([4, 9, 1])
    raw = normals(7, 0, purpose=INITIAL, count=45)
    wanted = np.concatenate([raw[:36] / 2, raw[36:] / 3])
    assert model.init(rng=7) == pytest.approx(wanted, rel=1e-15)
    assert np.array_equal(model.init(7, scale=2.0), 2.0 * model.init(7))
    assert np.array_equal(model.init(np.random.default_rng(1)), model.init(np.random.default_rng(1)))
    assert not np.array_equal(model.init(), model.init())
    u = normals(7, 0, purpose=INITIAL, count=8)
    assert Product(width=4).init(7) == pytest.approx(np.concatenate([u[:4], u[4:] / 2]), rel=1e-15)


def test_populations_have_the_moments_of_their_law():
    k, s = 0.7, 0.4
    x, w = np.polynomial.hermite_e.hermegauss(8)
    w = w / w.sum()
    X, E = (a.ravel() for a in np.meshgrid(x, x))
    weight = np.outer(w, w).ravel()
    for law, xs, ys in ((uw_gauss(k, s), X, k * X + s * E), (uw_label(k, s), np.ones(64), k + s * E)):
        xx, xy = xs * xs, xs * ys
        mean = [weight @ xx, weight @ xy]
        spread = [weight @ (a - m) ** 2 for a, m in ((xx, mean[0]), (xy, mean[1]))]
        cov = weight @ ((xx - mean[0]) * (xy - mean[1]))
        found = [law.beta1, law.beta2, law.alpha1, law.alpha2, law.alpha3, law.y2]
        assert found == pytest.approx([*mean, spread[0], cov, spread[1], weight @ ys**2], abs=1e-12)


def test_a_population_and_its_samples_give_one_covariance_and_gradient():
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((2, 11))
    model = Product(width=3, depth=3, scale=0.5)
    theta = rng.standard_normal(9)
    samples, law = model.samples(X, Y), model.samples(moments(X, Y), None)
    assert model.loss(theta, law) == pytest.approx(model.loss(theta, samples), rel=1e-12)
    assert model.gradient(theta, law) == pytest.approx(model.gradient(theta, samples), rel=1e-12)
    assert model.covariance(theta, law) == pytest.approx(model.covariance(theta, samples), rel=1e-12)
    assert model.gradient_moments(theta, law)[1] == pytest.approx(np.diag(model.covariance(theta, samples)), rel=1e-12)
    with pytest.raises(ModelError, match="gradients of single samples need samples X, Y"):
        model.per_sample_gradients(theta, law)
    with pytest.raises(ModelError, match="need samples"):
        model.noise("per-sample", law)


def test_samples_of_an_interpolating_model_have_no_noise():
    model = Product()
    samples = model.samples([1.0, 2.0, -1.0], [2.0, 4.0, -2.0])
    assert np.abs(model.factor([1.0, 2.0], samples)).max() <= 1e-7
    assert np.isfinite(model.factor([1.0, 2.0], samples)).all()


def test_data_are_checked_and_copied_once():
    model = DeepLinear([2, 1])
    X, Y = np.ones((3, 2), dtype=np.float32), [1, 2, 3]
    samples = model.samples(X, Y)
    assert samples.Y.shape == (3,) and samples.X.dtype == np.float64
    again = model.samples(samples.X, samples.Y)
    assert again.data is samples.data
    X[:] = 7.0
    assert (samples.X == 1.0).all()
    other = model.samples(samples.X[:2], samples.Y[:2])
    assert not np.shares_memory(other.data, samples.data)


def test_views_of_one_vector_of_the_users_are_checked_and_copied_too():
    base = np.arange(1.0, 41.0)
    X, Y = base[:30].reshape(10, 3), base[30:]  # laid out as the kernels read them, by chance
    with pytest.raises(ShapeError, match=r"X must have shape \(n_samples, 5\)"):
        DeepLinear([5, 1]).samples(X, Y)
    with pytest.raises(ShapeError, match="same number of samples"):
        DeepLinear([3, 1]).samples(base[:24].reshape(8, 3), base[24:])
    samples = DeepLinear([3, 1]).samples(X, Y)
    base[0] = np.nan
    assert samples.X[0, 0] == 1.0
    with pytest.raises(ArgumentError, match="X must be finite"):
        DeepLinear([3, 1]).samples(X, Y)


def test_data_of_one_model_are_refused_by_another_and_cannot_be_written_to():
    samples = DeepLinear([2, 1]).samples(np.ones((3, 2)), np.ones(3))
    with pytest.raises(ShapeError, match=r"X must have shape \(n_samples, 1\)"):
        Product().samples(samples.X, samples.Y)
    for view in (samples.X, samples.Y):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 7.0


@pytest.mark.parametrize("transform", ["x", lambda g: g[:, :1], lambda g: None, lambda g: g.sum(), lambda g: g.T])
def test_a_transform_gives_rows_like_those_it_gets(case, transform):
    if case.n == case.model.dim == 1:
        pytest.skip("all shapes are one")
    if case.model.dim == 1 and callable(transform):
        pytest.skip("one component is all components")
    with pytest.raises(ArgumentError, match="transform"):
        case.model.gradient_moments(case.theta, case.samples, transform)


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        (np.ones((3, 3)), np.ones(3), ShapeError, r"X must have shape \(n_samples, 2\).*d_x = 2.*got \(3, 3\)"),
        (np.ones(3), np.ones(3), ShapeError, r"X must have shape \(n_samples, 2\)"),
        (np.ones((3, 2)), np.ones((3, 2)), ShapeError, r"Y must have shape \(n_samples, 1\) or \(n_samples,\)"),
        (np.ones((3, 2)), np.ones(4), ShapeError, r"same number of samples, got X \(3, 2\) and Y \(4,\)"),
        (np.ones((0, 2)), np.ones(0), ShapeError, "at least one sample"),
        (np.ones((3, 2)), np.array([1, np.nan, 2]), ArgumentError, r"Y must be finite, got nan at index \(1,\)"),
        (np.full((3, 2), np.inf), np.ones(3), ArgumentError, "X must be finite"),
        ([["a", "b"]], [1.0], ArgumentError, "X must hold real numbers"),
        (np.ones((3, 2)), None, ModelError, "needs samples X and Y"),
        (np.ones((3, 2)), np.ones((1, 3)), ShapeError, r"Y must have .*got \(1, 3\)"),
        (uw_gauss(), None, ModelError, "needs samples X and Y"),
    ],
)
def test_wrong_data_are_refused(X, Y, error, message):
    with pytest.raises(error, match=message):
        DeepLinear([2, 1]).samples(X, Y)


def test_labels_are_told_how_to_become_rows():
    with pytest.raises(ShapeError, match=r"got \(4,\); labels 0\.\.2 become rows by np\.eye\(3\)\[Y\]"):
        DeepLinear([2, 3]).samples(np.ones((4, 2)), np.array([0, 1, 2, 0]))


def test_wrong_models_are_refused():
    for dims in ([3], "33", 3, [3, 0], [3, 2.5], [3, True]):
        with pytest.raises(ArgumentError, match="dims"):
            DeepLinear(dims)
    with pytest.raises(ArgumentError, match="scale must be positive"):
        DeepLinear([2, 2], scale=0.0)
    with pytest.raises(ArgumentError, match="depth must be"):
        Product(depth=0)
    with pytest.raises(ArgumentError, match="alpha2"):
        Population(1.0, 1.0, 1.0, 2.0, 1.0, 1.0)
    with pytest.raises(ArgumentError, match=r"beta2 must satisfy .* got 5² > 0·0"):
        Population(0.0, 5.0, 1.0, 0.0, 1.0, 0.0)
    with pytest.raises(ArgumentError, match="alpha2"):
        Population(1.0, 1.0, 1.0, 1e200, 1.0, 1.0)
    with pytest.raises(ModelError, match="Y must be None"):
        Product().samples(uw_gauss(), [1.0])
    with pytest.raises(ArgumentError, match="scale must be at least 0"):
        Product().init(0, scale=-1.0)


def test_models_are_pickled(case):
    again = pickle.loads(pickle.dumps(case.model))
    assert repr(again) == repr(case.model) and again.shapes == case.model.shapes
    assert np.array_equal(again.losses(case.theta, case.samples), case.model.losses(case.theta, case.samples))
