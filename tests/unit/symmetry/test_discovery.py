"""The symmetries that are found are those that the models have: no more, no fewer, and with the right algebra."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.algebra import Affine, Generator, rescaling, scaling, translation
from sgdsde.models import MLP, DeepLinear, Product, SoftmaxRegression, uw_gauss
from sgdsde.symmetry import discover_symmetries

RNG = np.random.default_rng(0)
X3, Y3 = RNG.standard_normal((12, 3)), RNG.standard_normal((12, 3))
CLASSES = RNG.integers(0, 3, 12)


@pytest.fixture
def plain(make_uw):
    """Problems from functions of θ."""
    kind = type(make_uw())
    return lambda dim, losses, gradients, shapes: kind(dim, losses, gradients, shapes, {})


def data(dx, dy, n=12):
    return X3[:n, :dx], Y3[:n, :dy]


def checked(found, problem):
    """Each generator again, by the strict test, and as many independent ones as `dim`."""
    assert found.dim == len(found.generators) and not found.failed and found.clear
    theta = RNG.standard_normal((found.dim_theta + 2, found.dim_theta))
    acts = np.array([a.apply(theta).ravel() for a in found.generators])
    assert np.linalg.matrix_rank(acts) == found.dim
    for a in found.generators:
        assert sg.check_symmetry(problem, a, n_states=2)
    return found


@pytest.mark.parametrize("dims", [[2, 2, 2], [3, 2, 3], [2, 3, 2], [3, 3, 2]])
def test_two_linear_layers_have_exactly_gl(dims):
    model, h = DeepLinear(dims), dims[1]
    problem = sg.SGD(model, *data(dims[0], dims[2]), learning_rate=0.1)
    found = checked(discover_symmetries(problem), problem)
    assert (found.type, found.dim) == (f"gl({h})", h * h) and found.complete
    assert (len(found.symmetric), len(found.antisymmetric)) == (h * (h + 1) // 2, h * (h - 1) // 2)
    s = found.structure
    assert (s.centre, s.derived, s.radical) == (1, h * h - 1, 1)
    assert s.killing == (h * (h + 1) // 2 - 1, h * (h - 1) // 2, 1)
    assert found.declared == tuple(model.symmetries()) and found.declared_missing == found.extra == ()
    for i, a in enumerate(found.symmetric[:h]):  # units one by one, as few entries as there can be
        b = np.diag(np.eye(h)[i])
        assert np.allclose(np.abs(a.matrix), np.abs(model.generator(b).matrix))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_product_has_so_h_h(width):
    problem = sg.SGD(Product(width), X3[:, 0], Y3[:, 0], learning_rate=0.1)
    found = checked(discover_symmetries(problem), problem)
    assert found.dim == width * (2 * width - 1) and len(found.symmetric) == width**2
    assert found.type == {1: "abelian(1)", 2: "sl(2) + sl(2) = so(2,2)", 3: "sl(4) = so(3,3)"}[width]
    assert found.declared_missing == () and found["W1/W2" if width == 1 else "W1/W2[0]"].is_symmetric
    if width > 1:
        assert found.structure.killing == (width**2, width * (width - 1), 0)


def test_one_input_adds_to_gl():
    for dims, count, name in (([1, 2, 2], 6, "gl(2) ⋉ abelian(2)"), ([1, 3, 3], 18, "gl(3) ⋉ abelian(9)")):
        found = discover_symmetries(DeepLinear(dims), *data(1, dims[2]))
        assert (found.dim, found.type) == (count, name)


def test_deep_linear_nets_have_a_gl_for_each_layer_and_nothing_else():
    found = discover_symmetries(DeepLinear([2, 2, 3, 2]), *data(2, 2))
    assert (found.dim, found.type) == (13, "gl(2) + gl(3)") and found.structure.centre == 2
    assert {a.name.partition(":")[0] for a in found.generators} == {"layer1", "layer2"} and found.extra == ()


def test_relu_has_one_rescaling_for_each_unit_and_these_are_the_declared_ones():
    model = MLP([2, 3, 2], activation="relu")
    problem = sg.SGD(model, *data(2, 2), learning_rate=0.1)
    found = checked(discover_symmetries(problem), problem)
    assert [a.name for a in found.generators] == [f"W1/W2[{i}]" for i in range(3)]
    assert found.type == "abelian(3)" and found.extra == () and found.declared_missing == ()
    deep = discover_symmetries(MLP([2, 2, 2, 2], activation="relu", biases=False), *data(2, 2))
    assert deep.dim == 4 and deep.extra == ()


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "gelu"])
def test_a_generic_network_has_none(activation):
    found = discover_symmetries(MLP([2, 3, 2], activation=activation), *data(2, 2))
    assert found.dim == 0 and found.type == "none" and found.dead == () and found.gap.other > 1e-4
    assert str(found).splitlines()[0].endswith(": none")


def test_softmax_has_translations():
    model = SoftmaxRegression(2, 3)
    problem = sg.SGD(model, X3[:, :2], CLASSES, learning_rate=0.1)
    found = checked(discover_symmetries(problem), problem)
    assert {a.name for a in found.translations} == {"b1", "W1[:,0]", "W1[:,1]"} and found.dim == 3
    for a in found.translations:
        assert np.allclose(a.shift, model.translations()[a.name], atol=1e-12)
    mixed = discover_symmetries(MLP([2, 2, 3], activation="relu", loss="softmax"), X3[:, :2], CLASSES)
    assert mixed.type == "abelian(2)" and len(mixed.translations) == 3 and mixed.extra == ()
    assert "abelian(2) and 3 translations" in str(mixed)


def radial(h=3, dx=2, dy=2):
    """f = U σ(Vx), σ(z) = z·tanh|z|/|z|: rotations of the hidden layer."""
    X, Y = X3[:, :dx], Y3[:, :dy]

    def parts(theta):
        v, u = theta[: h * dx].reshape(h, dx), theta[h * dx :].reshape(dy, h)
        z = X @ v.T
        n = np.linalg.norm(z, axis=1, keepdims=True)
        return u, z, n, np.tanh(n) / n, (z * np.tanh(n) / n) @ u.T - Y

    def gradients(theta):
        u, z, n, f, r = parts(theta)
        back = 2 * r @ u
        slope = (1 / np.cosh(n) ** 2 - f) / n**2
        delta = f * back + slope * z * np.sum(z * back, axis=1, keepdims=True)
        g = [np.einsum("nh,nx->nhx", delta, X), np.einsum("no,nh->noh", 2 * r, f * z)]
        return np.concatenate([a.reshape(len(X), -1) for a in g], axis=1)

    return h * (dx + dy), lambda t: (parts(t)[4] ** 2).sum(axis=1), gradients, {"V": (h, dx), "U": (dy, h)}


def test_radial_activations_have_so_h(plain):
    problem = plain(*radial())
    found = checked(discover_symmetries(problem), problem)
    assert (found.type, found.dim) == ("so(3)", 3) and len(found.antisymmetric) == 3 and not found.symmetric
    assert found.structure.killing == (0, 3, 0)
    assert discover_symmetries(plain(*radial(h=2))).type == "so(2)"


def normalised(together, h=3, dx=2, dy=2):
    """f = U W x / (‖W‖‖U‖), or over ‖W‖² + ‖U‖²."""
    X, Y, cut = X3[:, :dx], Y3[:, :dy], h * dx

    def parts(theta):
        w, u = theta[:cut].reshape(h, dx), theta[cut:].reshape(dy, h)
        a, b = np.sum(w * w), np.sum(u * u)
        return w, u, a, b, (a + b if together else np.sqrt(a * b))

    def losses(theta):
        w, u, _, _, n = parts(theta)
        return ((X @ w.T @ u.T / n - Y) ** 2).sum(axis=1)

    def gradients(theta):
        w, u, a, b, n = parts(theta)
        out = X @ w.T @ u.T / n
        r = 2 * (out - Y)
        along = np.sum(r * out, axis=1)[:, None, None]
        g_w = np.einsum("nh,nx->nhx", r @ u, X) / n - along * w * (2 / n if together else 1 / a)
        g_u = np.einsum("no,nh->noh", r, X @ w.T) / n - along * u * (2 / n if together else 1 / b)
        return np.concatenate([g_w.reshape(len(X), -1), g_u.reshape(len(X), -1)], axis=1)

    return cut + h * dy, losses, gradients, {"W1": (h, dx), "W2": (dy, h)}


def test_scale_invariant_nets_have_their_scalings(plain):
    both, one = (discover_symmetries(checked_problem) for checked_problem in (plain(*normalised(s)) for s in (0, 1)))
    assert both.type == "so(3) + abelian(2)" and one.type == "so(3) + abelian(1)"
    layers = [a for a in both.symmetric if np.allclose(a.matrix, scaling(12, slice(0, 6)).matrix)]
    assert len(both.symmetric) == 2 and len(layers) == 1
    assert np.allclose(one.symmetric[0].matrix, np.eye(12))


def test_a_product_around_another_point_is_found_with_its_constant(plain):
    x, y = X3[:, 0], Y3[:, 0]

    def gradients(theta):
        r = 2 * ((theta[0] + 1) * (theta[1] + 2) * x - y) * x
        return np.stack([r * (theta[1] + 2), r * (theta[0] + 1)], axis=1)

    problem = plain(2, lambda t: ((t[0] + 1) * (t[1] + 2) * x - y) ** 2, gradients, {})
    found = checked(discover_symmetries(problem), problem)
    assert found.dim == 1 and isinstance(found.generators[0], Affine) and found.symmetric
    a = found.generators[0]
    assert np.allclose(a.apply([-1.0, -2.0]), 0.0, atol=1e-12)
    assert np.allclose(a.matrix / a.matrix[0, 0], rescaling(2).matrix)


def test_a_law_of_the_data_has_the_symmetries_of_all_samples():
    found = discover_symmetries(sg.SGD(Product(2), uw_gauss(1.0, 1.0), learning_rate=0.1))
    assert found.dim == 6 and found.n_samples is None


def test_components_that_no_loss_sees_are_named():
    X = X3.copy()
    X[:, 1] = 0.0
    found = discover_symmetries(DeepLinear([3, 2, 2]), X, Y3[:, :2])
    assert found.type == "gl(2)" and found.dead_names == ("W1[:,1]",) and found.dead == (1, 4)
    assert "2 of 10 components are dead: W1[:,1]" in str(found)
    X[:, 1] = X[:, 0]  # not dead, but of no effect: one direction of each row
    same = discover_symmetries(DeepLinear([3, 2, 2]), X, Y3[:, :2])
    assert same.type == "gl(2)" and same.dead == () and len(same.translations) == 2
    expected = np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert np.allclose(same.translations[0].shift, expected, atol=1e-12)


def test_the_dead_pixels_of_the_digits_are_named():
    sklearn = pytest.importorskip("sklearn.datasets")
    digits = sklearn.load_digits()
    X, Y = digits.data / 16, np.eye(10)[digits.target]
    found = discover_symmetries(DeepLinear([64, 2, 10]), X[:400], Y[:400], search="structured")
    dead = np.flatnonzero((X[:400] == 0).all(axis=0))
    assert {0, 32, 39} <= set(dead)
    assert found.dead_names == tuple(f"W1[:,{j}]" for j in dead) and found.type == "gl(2)" and not found.complete


def test_results_are_looked_up_by_name_and_used():
    model = MLP([2, 2, 3], activation="relu", loss="softmax")
    found = discover_symmetries(model, X3[:, :2], CLASSES)
    assert isinstance(found["W1/W2[1]"], Generator) and isinstance(found["b2"], Affine)
    assert sg.Charge(found["b2"])(np.ones(model.dim)) == 6.0
    with pytest.raises(KeyError, match="nothing"):
        found["nothing"]
    assert repr(found) == str(found) and "singular values" in str(found)
    assert translation(found["b2"].shift).is_symmetric
