"""NoetherCharge: values by line integrals and in closed form, the curl test, elementwise charges, what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.algebra import Affine, Generator, rescaling, rotation
from sgdsde.models import MLP, DeepLinear, RadialNetwork
from sgdsde.symmetry import NoetherCharge
from sgdsde.symmetry.noether_activations import POTENTIALS
from sgdsde.symmetry.noether_fields import FunctionField
from sgdsde.symmetry.noether_line import line_integral

RNG = np.random.default_rng(5)
SIGMA = {
    "identity": (lambda v: v, lambda v: 1.0 + 0 * v),
    "tanh": (np.tanh, lambda v: 1 - np.tanh(v) ** 2),
    "sigmoid": (lambda v: 1 / (1 + np.exp(-v)), lambda v: np.exp(-v) / (1 + np.exp(-v)) ** 2),
    "relu": (lambda v: np.maximum(v, 0), lambda v: np.where(v > 0, 1.0, 0.0)),
    "leaky_relu": (lambda v: np.where(v < 0, 0.01 * v, v), lambda v: np.where(v < 0, 0.01, 1.0)),
}


def quartic(x):
    return np.array([x[0] * x[1] ** 2 + np.cos(x[2]), x[0] ** 2 * x[1], -x[0] * np.sin(x[2])])


def test_a_function_gets_its_line_integral():
    charge, x = NoetherCharge(quartic, 3), RNG.standard_normal((2, 4, 3))
    exact = 0.5 * x[..., 0] ** 2 * x[..., 1] ** 2 + x[..., 0] * np.cos(x[..., 2])
    np.testing.assert_allclose(charge(x), exact, atol=1e-11)
    np.testing.assert_allclose(charge(x[0, 0], via=[[3.0, -2.0, 5.0], [0.0, 4.0, 1.0]]), exact[0, 0], atol=1e-9)
    shifted = NoetherCharge(quartic, 3, origin=x[0, 1])
    np.testing.assert_allclose(shifted(x[0, 0]), exact[0, 0] - exact[0, 1], atol=1e-11)
    assert isinstance(charge(x[0, 0]), float) and shifted(x[0, 1]) == 0.0
    np.testing.assert_array_equal(charge.gradient(x[0])[2], quartic(x[0, 2]))


def test_a_potential_is_used_and_checked():
    charge = NoetherCharge(lambda x: x**3, 2, potential=lambda x: np.sum(x**4) / 4 + 7)
    assert charge([1.0, 2.0]) == 17 / 4 + 7
    with pytest.raises(ModelError, match="potential must have J for its gradient"):
        NoetherCharge(lambda x: x**3, 2, potential=lambda x: np.sum(x**4) / 2)


@pytest.mark.parametrize("jacobian", [None, lambda x: np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, -1.0, 0.0]])])
def test_no_gradient_names_the_worst_pair(jacobian):
    def twisted(x):
        return np.array([x[1], 2 * x[2], -x[1]])

    with pytest.raises(ModelError, match=r"∂_1J_2 = -1 and ∂_2J_1 = 2 .*circulation"):
        NoetherCharge(twisted, 3, jacobian=jacobian)
    with pytest.raises(ModelError, match=r"∂_0J_1 = 1 and ∂_1J_0 = -1"):
        NoetherCharge(rotation(3, 0, 1))


def test_a_wrong_jacobian_is_named():
    with pytest.raises(ModelError, match=r"entry \(1, 0\) is 1, differences of J give 3"):
        NoetherCharge(
            lambda x: np.array([3 * x[1], 3 * x[0]]), 2, jacobian=lambda x: np.array([[0.0, 3.0], [1.0, 0.0]])
        )


def test_a_hole_makes_values_depend_on_the_way():
    def polar(x):
        return np.array([-x[1], x[0]]) / (x @ x)

    charge = NoetherCharge(polar, 2, origin=[1.0, 0.0])
    assert charge([0.0, 1.0]) == pytest.approx(np.pi / 2, abs=1e-10)
    assert charge([0.0, 1.0], via=[[0.0, -1.0], [-1.0, 0.0]]) == pytest.approx(-3 * np.pi / 2, abs=1e-10)


def test_the_quadrature_takes_kinks_jumps_and_singular_ends_and_refuses_poles():
    line = np.array([[0.0], [1.0]])
    assert line_integral(lambda x: np.abs(x - 1 / 3), line, 1e-10) == pytest.approx(5 / 18, abs=1e-11)
    assert line_integral(lambda x: np.where(x > 1 / 3, 1.0, 0.0), line, 1e-10) == pytest.approx(2 / 3, abs=1e-10)
    assert line_integral(lambda x: np.log(x), line, 1e-10) == pytest.approx(-1.0, abs=1e-9)
    wave = line_integral(lambda x: np.cos(40 * x), line, 1e-12)
    assert wave == pytest.approx(np.sin(40) / 40, abs=1e-13)
    with pytest.raises(ModelError, match="does not settle"):
        line_integral(lambda x: 1 / np.abs(x - 0.3), line, 1e-10)
    with pytest.raises(ModelError, match="does not settle"):  # though the two sides of the pole cancel
        NoetherCharge(lambda x: 1 / x, 1, origin=[1.0], states=[[2.0]])([-1.0])
    with pytest.raises(ModelError, match="not finite on the line"):
        line_integral(lambda x: np.full_like(x, np.nan), line, 1e-10)


def test_an_affine_one_is_half_of_the_charge():
    x = RNG.standard_normal((3, 2))
    for J in (rescaling(2), Affine(rescaling(2), [1.0, -3.0]), (np.diag([1.0, 2.0]), [0.5, 0.0]), np.eye(2)):
        charge = NoetherCharge(J)
        generator = charge.field.generator
        np.testing.assert_allclose(charge(x), 0.5 * sg.Charge(generator)(x), rtol=1e-14)
        by_line = NoetherCharge(lambda t: generator.apply(t), 2)
        np.testing.assert_allclose(charge(x), by_line(x), atol=1e-13)


@pytest.mark.parametrize("name", POTENTIALS)
def test_p_has_the_slope_of_sigma_over_its_own(name):
    sigma, slope = SIGMA[name]
    p, v = POTENTIALS[name], np.array([-1.7, -0.3, 0.4, 1.9])
    where = slope(v) > 0
    np.testing.assert_allclose(p.slope(v)[where], (sigma(v) / np.where(where, slope(v), 1))[where], rtol=1e-12)
    np.testing.assert_allclose(p.slope(v)[~where], 0.0)
    for a, b in pairwise(v):
        area = quad(lambda s: float(p.slope(np.float64(s))), a, b, points=[0.0])[0]
        bent = quad(lambda s: float(p.bend(np.float64(s))), a, b, points=[0.0])[0]
        assert p.value(b) - p.value(a) == pytest.approx(area, rel=1e-9)
        assert p.slope(b) - p.slope(a) == pytest.approx(bent, rel=1e-9)
    assert p.zero == (sigma(0.0) == 0.0)
    np.testing.assert_allclose(sigma(p.shrunk(v, 0.3)), np.where(where, np.exp(-0.3), 1) * sigma(v), rtol=1e-13)


@pytest.mark.parametrize("name", POTENTIALS)
def test_elementwise_charges_add_up_over_units_and_equal_the_line_integral(name):
    model = MLP([3, 2, 2], name, biases=False)
    theta, origin = model.init(1), np.zeros(model.dim)
    whole = NoetherCharge.elementwise(model)
    units = [NoetherCharge.elementwise(model, unit=k) for k in range(2)]
    assert sum(c(theta) for c in units) == pytest.approx(whole(theta), rel=1e-14)
    line = NoetherCharge(whole.field.apply, model.dim, jacobian=whole.jacobian)  # the Jacobian is checked too
    assert line(theta) == pytest.approx(whole(theta) - whole(origin), rel=1e-10)
    rows = RNG.standard_normal((4, model.dim))
    by_matrix = np.einsum("ni,ij,nj->n", rows, whole.jacobian(theta), rows)
    np.testing.assert_allclose(whole.field.form(theta, rows), by_matrix, rtol=1e-12)
    by_differences = FunctionField(whole.field.apply, model.dim).form(theta, rows)
    np.testing.assert_allclose(by_differences, by_matrix, rtol=1e-7, atol=1e-8)
    W, U = model.unflatten(theta).values()
    W1, U1 = model.unflatten(whole.flow(0.4, theta)).values()
    sigma = SIGMA[name][0]
    np.testing.assert_allclose(U1 @ sigma(W1), U @ sigma(W), rtol=1e-12)


def test_inputs_may_be_any_orthogonal_ones_and_come_again():
    model = MLP([3, 2, 2], "tanh", biases=False)
    basis = np.linalg.qr(RNG.standard_normal((3, 3)))[0] * np.array([[0.5], [1.0], [2.0]])
    X = basis[[0, 1, 2, 1, 0]]
    problem = sg.SGD(model, X, RNG.standard_normal((5, 2)), learning_rate=0.1)
    charge, theta = NoetherCharge.elementwise(problem), model.init(2)
    assert charge.check(problem, reach=0.3)
    W, U = model.unflatten(theta).values()
    P = 0.5 * np.sinh(W @ basis.T) ** 2 / np.sum(basis**2, axis=1)
    assert charge(theta) == pytest.approx(0.5 * np.sum(U**2) - P.sum(), rel=1e-12)
    NoetherCharge(charge.field.apply, model.dim)  # a gradient, for orthogonal inputs
    assert not NoetherCharge.elementwise(model).check(problem)
    X[0] += 0.1
    with pytest.raises(ArgumentError, match="X must have orthogonal rows"):
        NoetherCharge.elementwise(sg.SGD(model, X, np.ones((5, 2)), learning_rate=0.1))


def test_an_input_of_zeros_is_no_matter_unless_sigma_is_not_zero_there():
    X = [[0.0, 0.0], [1.0, 0.0]]
    problems = {
        name: sg.SGD(MLP([2, 2, 1], name, biases=False), X, [1.0, 2.0], learning_rate=0.1)
        for name in ("tanh", "sigmoid")
    }
    assert NoetherCharge.elementwise(problems["tanh"]).check(problems["tanh"])
    with pytest.raises(ArgumentError, match="no row of zeros"):
        NoetherCharge.elementwise(problems["sigmoid"])


def test_the_flow_of_tanh_ends_where_its_range_does():
    model = MLP([1, 1, 1], "tanh", biases=False)
    charge = NoetherCharge.elementwise(model)
    with pytest.raises(ArgumentError, match="lam must be larger"):
        charge.flow(-1.0, [1.5, 1.0])
    blows_up = NoetherCharge(lambda x: x**2, 1)
    assert blows_up.flow(0.5, [1.0])[0] == pytest.approx(2.0, rel=1e-9)
    with pytest.raises(ArgumentError, match="lam must be smaller"):
        blows_up.flow(2.0, [1.0])


def test_one_normalisation_for_all_activations():
    # compute_Q of the code of arXiv 2210.17216 has 2C for identity, relu and tanh, and C for sigmoid; ∇C = J for each.
    theta = np.array([0.7, -0.4, 1.1])
    for name in ("identity", "relu", "tanh", "sigmoid"):
        charge = NoetherCharge.elementwise(MLP([2, 1, 1], name, biases=False))
        slope = (charge(theta + [0, 0, 1e-6]) - charge(theta - [0, 0, 1e-6])) / 2e-6
        assert slope == pytest.approx(theta[2], rel=1e-8) and charge.gradient(theta)[2] == theta[2]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: NoetherCharge(quartic), ArgumentError, "dim must be given"),
        (lambda: NoetherCharge(3.0), ArgumentError, "J must be"),
        (lambda: NoetherCharge(rescaling(2), 3), ArgumentError, "dim must be 2"),
        (lambda: NoetherCharge(rescaling(2), jacobian=lambda x: x), ArgumentError, "jacobian is for"),
        (lambda: NoetherCharge(lambda x: x[:1], 2), ShapeError, "what J returns"),
        (lambda: NoetherCharge(lambda x: np.log(x), 2), ModelError, "not finite"),
        (lambda: NoetherCharge(lambda x: x, 2)([1.0]), ShapeError, "theta must have shape"),
        (lambda: NoetherCharge.elementwise(MLP([2, 2, 1], "tanh")), ArgumentError, "no bias b1"),
        (lambda: NoetherCharge.elementwise(MLP([2, 2, 1], "gelu", biases=False)), ArgumentError, "gelu"),
        (lambda: NoetherCharge.elementwise(MLP([2, 1], biases=False)), ArgumentError, "must have a hidden layer 1"),
        (lambda: NoetherCharge.elementwise(RadialNetwork([2, 2, 1])), ArgumentError, "activation must be one of"),
        (lambda: NoetherCharge.elementwise(DeepLinear([2, 2, 1]), unit=2), ArgumentError, "unit must be"),
        (lambda: NoetherCharge(Generator.from_matrix([[0.0, 1.0], [0.0, 0.0]])), ModelError, "not a gradient"),
    ],
)
def test_refusals(make, error, match):
    with pytest.raises(error, match=match):
        make()
