"""Angles in the planes of an antisymmetric generator, and the angular momentum of layers."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, Generator, rescaling, rotation
from sgdsde.models import DeepLinear, RadialNetwork
from sgdsde.symmetry import Angles, angular_momentum, layer_angular_momentum

RNG = np.random.default_rng(8)


def test_planes_rebuild_the_generator():
    raw = RNG.standard_normal((5, 5))
    for A in (Generator.from_matrix(raw - raw.T), rotation(4, 3, 1), 2.5 * rotation(3, 0, 2)):
        planes = Angles(A).planes
        made = sum(w * (np.outer(q, p) - np.outer(p, q)) for w, p, q in planes)
        np.testing.assert_allclose(made, A.matrix, atol=1e-13)
        assert all(w > 0 for w, _, _ in planes)
    assert [round(w, 9) for w, _, _ in Angles(rotation(4, 0, 1) + 3 * rotation(4, 2, 3)).planes] == [3.0, 1.0]


def test_the_flow_turns_each_plane_at_its_rate():
    A = rotation(5, 0, 3) + 2 * rotation(5, 2, 1)
    angles, theta = Angles(A), RNG.standard_normal(5)
    lams = np.linspace(0, 9, 12)
    states = A.exp(lams, theta)
    phi = angles.along(states)
    np.testing.assert_allclose(phi - phi[0], np.outer(lams, [2.0, 1.0]), atol=1e-12)
    np.testing.assert_allclose(np.exp(1j * phi), np.exp(1j * angles(states)), atol=1e-12)
    np.testing.assert_allclose(angles.radii(states), np.tile(angles.radii(theta), (12, 1)), rtol=1e-12)


def test_the_identity_in_three_forms():
    raw = RNG.standard_normal((6, 6))
    A = Generator.from_matrix(raw - raw.T)
    angles, theta, delta = Angles(A), RNG.standard_normal((3, 6)), 0.1 * RNG.standard_normal((3, 6))
    value = np.einsum("ni,ni->n", A.apply(theta), delta)
    np.testing.assert_allclose(angles.identity(theta, delta), value, atol=1e-13)
    omega = [p.omega for p in angles.planes]
    turned = angles(theta + delta) - angles(theta)
    sines = angles.radii(theta) * angles.radii(theta + delta) * np.sin(turned)
    np.testing.assert_allclose(sines @ omega, value, atol=1e-13)
    path = np.stack([theta, theta + delta], axis=1)
    np.testing.assert_allclose(angles.identity_along(path)[:, 0], value, atol=1e-13)


def test_around_another_point():
    centre = np.array([1.0, -2.0, 0.0])
    A = rotation(3, 0, 1)
    moved = Angles(Affine(A, -A.apply(centre)))
    np.testing.assert_allclose(moved.centre, centre, atol=1e-15)
    theta = RNG.standard_normal(3)
    np.testing.assert_allclose(moved(theta), Angles(A)(theta - centre), atol=1e-14)
    with pytest.raises(ArgumentError, match="moves along its axis"):
        Angles(Affine(A, [0.0, 1.0, 1.0]))


def test_the_logarithm_in_its_place_sees_less():
    # log|u| - log|w| is that of |cot φ|: blind to quadrants, and without a value on the axes.
    angle, logs = Angles(rotation(2, 0, 1)), lambda x: np.log(np.abs(x[0])) - np.log(np.abs(x[1]))
    one, other, axis = np.array([3.0, 4.0]), np.array([-3.0, 4.0]), np.array([0.0, 1.0])
    assert logs(one) == logs(other) == logs(-one)
    assert len({round(float(angle(x)[0]), 6) for x in (one, other, -one)}) == 3
    np.testing.assert_allclose(logs(one), -np.log(np.abs(np.tan(angle(one)[0]))))
    assert angle(axis)[0] == pytest.approx(np.pi / 2) and np.isnan(angle([0.0, 0.0])[0])


def test_angles_are_observed():
    problem = sg.SGD(RadialNetwork([1, 2, 1]), [[1.0], [2.0]], [[1.0], [0.0]], learning_rate=0.05)
    angles = Angles(problem.model.symmetries()["rotation(0,1)"])
    run = problem.run(problem.model.init(0), 5, rng=0, t_eval="steps", observe=angles)
    np.testing.assert_allclose(run.observed[angles.name], angles(run.y), atol=1e-14)
    assert len(angles.planes) == 2 and np.abs(angles.identity_along(run)).max() < 1e-14


def test_angular_momentum_of_layers_by_hand_and_along_runs():
    U, V, dU, dV = (RNG.standard_normal(s) for s in ((2, 3), (3, 4), (2, 3), (3, 4)))
    found = angular_momentum(U, V, dU, dV)
    np.testing.assert_allclose(found, U.T @ dU - dU.T @ U + V @ dV.T - dV @ V.T, atol=1e-14)
    np.testing.assert_allclose(angular_momentum(U + dU / 2, V + dV / 2, dU, dV), found, atol=1e-13)
    k, l = 0, 2
    turned = sum(a[k] * b[l] - a[l] * b[k] for a, b in [*zip(U, dU), *zip(V.T, dV.T)])
    assert found[k, l] == pytest.approx(turned)
    X, Y = RNG.standard_normal((5, 2)), RNG.standard_normal((5, 2))
    models = (RadialNetwork([2, 3, 2], "sigmoid", biases=True), DeepLinear([2, 3, 3, 2]))
    for model, layer in zip(models, (1, 2)):
        problem = sg.SGD(model, X, Y, learning_rate=0.02, batch_size=2, gamma=0.1)
        run = problem.run(problem.model.init(0), 20, 2, rng=0, t_eval="steps")
        moments = layer_angular_momentum(problem.model, run, layer)
        assert moments.shape == (2, 20, 3, 3) and np.abs(moments).max() < 1e-13
        wide = problem.run(problem.model.init(0), 20, 2, rng=0, t_eval=2)  # not of single steps: not zero
        assert np.abs(layer_angular_momentum(problem.model, wide, layer)).max() > 1e-8


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: Angles(rescaling(2)), ArgumentError, "antisymmetric and not zero.*it has a charge"),
        (lambda: Angles(np.zeros((2, 2))), ArgumentError, "antisymmetric and not zero"),
        (lambda: Angles([[0.0, 1.0], [0.0, 0.0]]), ArgumentError, "must be antisymmetric"),
        (lambda: Angles(rotation(2, 0, 1))([1.0]), ShapeError, "theta must have shape"),
        (lambda: Angles(rotation(2, 0, 1)).along([1.0, 2.0]), ShapeError, "trajectory must have shape"),
        (lambda: Angles(rotation(2, 0, 1)).identity([1.0, 2.0], [1.0]), ShapeError, "delta must have shape"),
        (lambda: angular_momentum(np.ones((1, 2)), np.ones((3, 1)), np.ones((1, 2)), np.ones((3, 1))), ShapeError, "U"),
        (
            lambda: layer_angular_momentum(DeepLinear([1, 1]), np.ones((2, 1))),
            ArgumentError,
            "must have a hidden layer 1",
        ),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()
