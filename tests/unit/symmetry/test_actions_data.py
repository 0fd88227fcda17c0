"""R_z, and the action that depends on an input: kept there, in several layers, and no symmetry of other samples."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import MLP, DeepLinear, RadialNetwork
from sgdsde.symmetry import DataAction, NoetherCharge, check_tangency, cocycle, radial_rotation, spherical_angles

RNG = np.random.default_rng(17)


def arccos_angles(z):
    """The angles as in the code that came with arXiv 2210.17216: every one by an arccos."""
    return np.array([np.arccos(z[k] / np.linalg.norm(z[k:])) for k in range(len(z) - 1)])


def rebuilt(r, alpha):
    cos, sin = np.append(np.cos(alpha), 1.0), np.cumprod(np.append(1.0, np.sin(alpha)))
    return r * cos * sin


def test_the_last_angle_needs_atan2():
    z = np.array([0.3, 0.5, -0.8])
    np.testing.assert_allclose(rebuilt(np.linalg.norm(z), spherical_angles(z)), z, rtol=1e-14)
    np.testing.assert_allclose(rebuilt(np.linalg.norm(z), arccos_angles(z)), [0.3, 0.5, 0.8], rtol=1e-14)
    np.testing.assert_allclose(spherical_angles(z)[0], arccos_angles(z)[0], rtol=1e-14)


def test_the_first_column_is_z_and_not_its_direction():
    z = np.array([1.0, -2.0, 2.0])
    R = radial_rotation(z)
    np.testing.assert_allclose(R[:, 0], z, rtol=1e-15)
    np.testing.assert_allclose(R / 3.0 @ (R / 3.0).T, np.eye(3), atol=1e-15)
    assert np.linalg.norm(R[:, 0] - z / 3.0) > 1  # what the paper says
    np.testing.assert_array_equal(radial_rotation([-2.0]), [[-2.0]])  # its code has [[2.0]]
    many = RNG.standard_normal((2, 3, 4))
    np.testing.assert_array_equal(radial_rotation(many)[1, 2], radial_rotation(many[1, 2]))


def test_lengths_at_the_ends_of_the_numbers():
    for scale in (1e-300, 1e200):
        R = radial_rotation(scale * np.array([3.0, 0.0, -4.0]))
        np.testing.assert_allclose(R / scale, radial_rotation([3.0, 0.0, -4.0]), rtol=1e-14)
    z = np.array([1.0, 1e-200, -1e-200])
    np.testing.assert_allclose(radial_rotation(z) @ radial_rotation(z).T, np.eye(3), atol=1e-15)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "gelu", "identity", "leaky_relu"])
@pytest.mark.parametrize("biases", [True, False])
def test_several_layers_at_once_keep_the_output_at_x(activation, biases):
    model = MLP([2, 3, 2, 2], activation, biases=biases)
    x, theta = np.array([0.8, -0.5]), RNG.standard_normal(MLP([2, 3, 2, 2], biases=biases).dim)
    action = DataAction(model, x)
    problem = sg.SGD(model, [x], [[0.0, 0.0]], learning_rate=0.1)
    assert problem.loss(theta) == pytest.approx(np.sum(action.output(theta) ** 2), rel=1e-12)  # its own forward pass
    g1, g2 = ({1: RNG.standard_normal((3, 3)), 2: RNG.standard_normal((2, 2))} for _ in range(2))
    moved = action.act(g1, theta)
    np.testing.assert_allclose(action.output(moved), action.output(theta), atol=1e-9)
    both = {k: g2[k] @ g1[k] for k in g1}
    np.testing.assert_allclose(action.act(g2, moved), action.act(both, theta), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(action.act({1: np.eye(3)}, theta), theta, atol=1e-14)
    assert np.abs(action.output(moved, [0.1, 0.9]) - action.output(theta, [0.1, 0.9])).max() > 1e-6
    bound, far = action.lipschitz_bound(g1, theta), 3 * RNG.standard_normal((20, 2, 2))
    slopes = [np.linalg.norm(action.output(moved, a) - action.output(moved, b)) / np.linalg.norm(a - b) for a, b in far]
    assert max(slopes) <= bound * (1 + 1e-9)


def test_a_linear_network_of_one_layer_by_hand():
    U, V, g, x = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 2)), RNG.standard_normal((3, 3)), np.ones(2)
    model = DeepLinear([2, 3, 2])
    moved = model.unflatten(DataAction(model, x).act(g, model.flatten(W1=V, W2=U)))
    np.testing.assert_allclose(moved["W1"], g @ V, rtol=1e-14)
    np.testing.assert_allclose(moved["W2"] @ cocycle(g, V @ x), U, rtol=1e-10, atol=1e-12)


def test_it_generates_no_charge():
    model = MLP([2, 2, 1], "tanh", biases=False)
    X, Y = np.array([[0.8, -0.5], [0.3, 0.9]]), np.array([0.4, -1.0])
    theta, M = model.init(5), np.array([[0.3, 1.0], [-0.2, 0.5]])
    action = DataAction(model, X[0])

    def J(t):
        return action.infinitesimal(M, t)

    alone = sg.SGD(model, X[:1], Y[:1], learning_rate=0.1)
    assert check_tangency(alone, J, theta, n_states=0, rtol=1e-7)
    report = check_tangency(sg.SGD(model, X, Y, learning_rate=0.1), J, theta, n_states=0, rtol=1e-7)
    assert not report and report.sample == 1
    with pytest.raises(ModelError, match="is not a gradient"):
        NoetherCharge(J, model.dim, states=[theta])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: radial_rotation([0.0, 0.0]), ArgumentError, "z must not be zero"),
        (lambda: radial_rotation([[1.0, 0.0], [0.0, 0.0]]), ArgumentError, "z must not be zero"),
        (lambda: radial_rotation([np.nan, 1.0]), ArgumentError, "finite"),
        (lambda: radial_rotation(1.0), ShapeError, "z must have shape"),
        (lambda: cocycle(np.eye(2), [0.0, 0.0]), ArgumentError, "z must not be zero"),
        (lambda: cocycle(np.eye(3), [1.0, 0.0]), ShapeError, "g must have shape"),
        (lambda: DataAction(MLP([1, 1, 1], "relu"), [1.0]).act([[-1.0]], [1.0, 0.0, 1.0, 0.0]), ArgumentError, "σ.gz."),
        (lambda: DataAction(MLP([1, 1, 1], "relu"), [-1.0]).act([[1.0]], [1.0, 0.0, 1.0, 0.0]), ArgumentError, "σ.z."),
        (lambda: DataAction(DeepLinear([1, 1, 1]), [1.0]).act([[0.0]], [1.0, 1.0]), ArgumentError, "invertible"),
        (lambda: DataAction(DeepLinear([1, 1, 1]), [1.0]).act({2: [[1.0]]}, [1.0, 1.0]), ArgumentError, "layer"),
        (lambda: DataAction(DeepLinear([1, 1]), [1.0]), ArgumentError, "must have a hidden layer"),
        (lambda: DataAction(RadialNetwork([1, 1, 1]), [1.0]), ArgumentError, "activation must be a function"),
        (
            lambda: DataAction(DeepLinear([1, 1, 1]), [1.0], np.sin).lipschitz_bound([[1.0]], [1, 1]),
            ArgumentError,
            "li",
        ),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()
