"""Radial activations: their profiles, rotations and what they keep, rescalings of the squared one."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde._jit import kernel_uncached
from sgdsde.algebra import Generator
from sgdsde.models import MLP, RadialNetwork
from sgdsde.models.radial_functions import NEAR, RADIAL, profile

rng = np.random.default_rng(12)
X, Y = rng.standard_normal((20, 3)), rng.standard_normal((20, 2))
LENGTH = {"squared": lambda s: s**2, "tanh": lambda s: np.tanh(s) / s, "sigmoid": lambda s: 1 / (1 + np.exp(-s))}


def problem_of(model, **numbers):
    return sg.SGD(model, X, Y, **{"learning_rate": 0.02, "gamma": 0.03, **numbers})


@kernel_uncached("void(int64, float64[::1], float64[::1], float64[::1], float64[::1])")
def profiles(kind, tau, zeroth, first, second):
    for i in range(tau.shape[0]):
        zeroth[i], first[i], second[i] = profile(kind, tau[i])


def at(radial, tau):
    tau = np.asarray(tau, dtype=float)
    out = np.empty((3, tau.size))
    profiles(RADIAL[radial], tau, *out)
    return out


@pytest.mark.parametrize("radial", RADIAL)
def test_profiles_are_f_and_its_derivatives_in_the_square(radial):
    tau = np.concatenate([np.logspace(-2, 2, 60), [NEAR * (1 - 1e-12), NEAR, NEAR * (1 + 1e-12)]])
    zeroth, first, second = at(radial, tau)
    assert zeroth == pytest.approx(LENGTH[radial](np.sqrt(tau)), rel=1e-14)
    for value, slope in ((0, first), (1, second)):
        h = 1e-3 * tau
        stencil = [at(radial, tau + k * h)[value] for k in (-2, -1, 1, 2)]
        wanted = (stencil[0] - 8 * stencil[1] + 8 * stencil[2] - stencil[3]) / (12 * h)
        assert (np.abs(slope - wanted) <= 1e-10 * np.abs(slope) + 1e-12 * np.abs((zeroth, first)[value]) / tau).all()


def test_both_sides_of_the_series_meet_and_its_start_is_known():
    below, above = at("tanh", [np.nextafter(NEAR, 0), NEAR]).T
    assert below == pytest.approx(above, rel=2e-13)
    assert list(at("tanh", [0.0])[:, 0]) == pytest.approx([1, -1 / 3, 4 / 15], rel=1e-15)


@pytest.mark.parametrize("radial", RADIAL)
def test_at_zero_and_far_away_everything_is_finite(radial):
    model = RadialNetwork([3, 4, 2], radial)
    samples = model.samples(X, Y)
    for theta in (np.zeros(model.dim), 1e-120 * rng.standard_normal(model.dim), 1e5 * rng.standard_normal(model.dim)):
        v = rng.standard_normal(model.dim)
        for values in (model.gradient(theta, samples), model.hessian_vector(theta, v, samples)):
            assert np.isfinite(values).all()
    assert not model.gradient(np.zeros(model.dim), samples).any()


def test_one_unit_with_tanh_is_the_perceptron():
    radial, plain = RadialNetwork([3, 1, 1, 2], biases=True), MLP([3, 1, 1, 2])
    a, b = radial.samples(X, Y), plain.samples(X, Y)
    theta, v = rng.standard_normal((2, plain.dim))
    assert radial.shapes == plain.shapes
    assert radial.losses(theta, a) == pytest.approx(plain.losses(theta, b), rel=1e-12)
    assert radial.gradient(theta, a) == pytest.approx(plain.gradient(theta, b), rel=1e-11)
    assert radial.hessian_vector(theta, v, a) == pytest.approx(plain.hessian_vector(theta, v, b), rel=1e-10)
    assert radial.hessian_trace(theta, a) == pytest.approx(plain.hessian_trace(theta, b), rel=1e-10)


KEPT = {
    "tanh": RadialNetwork([3, 3, 2]),
    "sigmoid, three layers": RadialNetwork([3, 2, 3, 2], "sigmoid", biases=True),
    "squared": RadialNetwork([3, 3, 2, 2], "squared", biases=True),
}


@pytest.mark.parametrize("name", KEPT)
def test_declared_symmetries_hold_for_each_sample(name):
    model, problem = KEPT[name], problem_of(KEPT[name])
    symmetries = model.symmetries()
    assert len(symmetries) == sum(h * (h - 1) // 2 for h in model.dims[1:-1]) + (2 if name == "squared" else 0)
    for key, A in symmetries.items():
        report = sg.check_symmetry(problem, A)
        assert A.name == key and report, str(report)
        assert A.is_antisymmetric == ("rotation" in key)


def test_names_are_of_planes_and_layers():
    assert list(KEPT["tanh"].symmetries()) == ["rotation(0,1)", "rotation(0,2)", "rotation(1,2)"]
    assert list(KEPT["squared"].symmetries())[:3] == ["W1/W2", "W2/W3", "layer1:rotation(0,1)"]
    model = KEPT["tanh"]
    theta = rng.standard_normal(model.dim)
    old, new = (model.unflatten(x) for x in (theta, model.symmetries()["rotation(0,2)"].exp(np.pi / 2, theta)))
    assert new["W1"][1] == pytest.approx(old["W1"][1]) and new["W1"][2] == pytest.approx(old["W1"][0])
    assert new["W1"][0] == pytest.approx(-old["W1"][2]) and new["W2"][:, 2] == pytest.approx(old["W2"][:, 0])
    many = RadialNetwork([3, 900, 2]).symmetries()
    assert len(many) == 900 * 899 // 2 and "404550 symmetries: rotation(0,1)" in repr(many)  # none is made
    assert len(list(KEPT["squared"].symmetries())) == len(KEPT["squared"].symmetries())
    assert many["rotation(3,899)"].name == "rotation(3,899)"
    for name in ("rotation(1,0)", "rotation(0,900)", "layer1:rotation(0,1)", "rotation(0, 1)", "W1/W2"):
        with pytest.raises(KeyError):
            many[name]
    for name in ("rotation(0,1)", "layer2:rotation(0,2)", "layer3:rotation(0,1)", "layer01:rotation(0,1)"):
        with pytest.raises(KeyError):
            KEPT["squared"].symmetries()[name]


def test_what_is_no_symmetry_fails():
    model = KEPT["tanh"]
    B = np.diag([1.0, 0.0, 0.0])
    unit = Generator.layered([(3, 3), (2, 3)], [(-B, None), (None, B)])
    assert not sg.check_symmetry(problem_of(model), unit)
    assert not sg.check_symmetry(problem_of(RadialNetwork([3, 3, 2], "squared")), unit)  # one unit alone
    assert not sg.check_symmetry(problem_of(model), RadialNetwork([3, 3, 2], "squared").symmetries()["W1/W2"])
    assert not sg.check_symmetry(problem_of(MLP([3, 3, 2], biases=False)), model.symmetries()["rotation(0,1)"])
    assert not sg.check_symmetry(problem_of(model), Generator.from_matrix(np.eye(15)))
    one_sided = Generator.layered([(3, 3), (2, 3)], [(np.eye(3, k=1) - np.eye(3, k=-1), None), (None, None)])
    assert not sg.check_symmetry(problem_of(model), one_sided)


def test_rotations_of_any_plane_and_refusals():
    B = rng.standard_normal((3, 3))
    model = KEPT["sigmoid, three layers"]
    assert sg.check_symmetry(problem_of(model), model.generator(B - B.T, layer=2))
    with pytest.raises(ArgumentError, match="B must be antisymmetric"):
        model.generator(B, layer=2)
    with pytest.raises(ShapeError, match=r"B must have shape \(2, 2\) for hidden layer 1"):
        model.generator(B - B.T)
    with pytest.raises(ArgumentError, match="layer must be between 1 and 2"):
        model.generator(B - B.T, layer=3)


def test_angles_do_not_turn_on_balance():
    """UᵀdU - dUᵀU + V dVᵀ - dV Vᵀ = 0 at the start of every step of SGD and of Euler-Maruyama, with decay."""
    model = RadialNetwork([3, 4, 2], "sigmoid")
    problem = problem_of(model, batch_size=2)
    theta = model.init(1)
    runs = [
        problem.run(theta, 30, rng=0, t_eval="steps").y,
        sg.solve(problem.sde(), (0.0, 0.6), theta, rng=0, t_eval="steps").y,
    ]
    for run in runs:
        arrays, steps = model.unflatten(run[:-1]), model.unflatten(np.diff(run, axis=0))
        turned = np.einsum("tki,tkj->tij", arrays["W2"], steps["W2"]) + np.einsum(
            "tik,tjk->tij", arrays["W1"], steps["W1"]
        )
        assert np.abs(turned - np.swapaxes(turned, 1, 2)).max() <= 1e-14 * np.square(run).sum(axis=1).max()
        assert np.abs(turned).max() > 1e-4


@pytest.mark.parametrize("size", [1, 5])
def test_the_charge_of_the_squared_one_follows_the_exact_law(size):
    """C = ‖W_1‖² + ‖b_1‖² - 3‖W_2‖² and C' = (1 - 2ηγ)² C + η² ĝᵀAĝ."""
    model = RadialNetwork([3, 2, 2], "squared", biases=True)
    problem = problem_of(model, batch_size=size, learning_rate=0.005)
    A = model.symmetries()["W1/W2"]
    theta = model.init(0, scale=0.7)
    arrays = model.unflatten(theta)
    assert A.quadratic(theta) == pytest.approx(np.square(arrays["W1"]).sum() - 3 * np.square(arrays["W2"]).sum())
    run = problem.run(theta, 40, rng=3, t_eval="steps", track=sg.ChargeLaw(sg.Charge(A), problem))
    C, decay = A.quadratic(run.y), 1 - 2 * 0.005 * 0.03
    v = run.y[1:] - decay * run.y[:-1]
    assert np.abs(C[1:] - decay**2 * C[:-1] - A.quadratic(v)).max() <= 1e-13 * np.square(run.y).sum(axis=1).max()
    assert np.abs(np.diff(C)).max() > 1e-5


def test_generators_of_other_forms_have_no_kernel():
    model = KEPT["tanh"]
    for A in (model.symmetries()["rotation(0,1)"], Generator.diagonal(np.arange(15.0))):
        assert model.charge_track(A, 0.0, X, Y) is None


@pytest.mark.parametrize("biases", [False, True])
def test_the_sde_and_sgd_have_the_same_bits_in_any_block(biases):
    model = RadialNetwork([3, 4, 3, 2], "sigmoid", biases=biases)
    problem = problem_of(model)
    for method in ("euler-maruyama", "milstein-symmetric"):
        runs = [
            sg.solve(problem.sde(), (0.0, 0.1), model.init(1), method=method, n_paths=5, rng=0, block_size=b).y
            for b in (1, 4)
        ]
        assert np.isfinite(runs[0]).all() and np.array_equal(*runs)
    runs = [problem.run(model.init(1), 20, n_paths=5, rng=0, block_size=b).y for b in (1, 4)]
    assert np.isfinite(runs[0]).all() and np.array_equal(*runs)


@pytest.mark.parametrize("radial", RADIAL)
@pytest.mark.parametrize("width", [2, 40])
def test_a_start_has_outputs_of_order_one(radial, width):
    model = RadialNetwork([10, width, 10], radial)
    x = np.random.default_rng(0).standard_normal((50, 10))
    sizes = [model.loss(model.init(k), model.samples(x, np.zeros((50, 10)))) / 10 for k in range(10)]
    assert 0.1 < np.median(sizes) < 5.0


def test_a_start_and_the_class():
    model = RadialNetwork([4, 50, 3], biases=True)
    arrays = model.unflatten(model.init(3))
    assert not arrays["b1"].any() and arrays["W1"].std() == pytest.approx(0.5, rel=0.2)
    shown = repr(RadialNetwork([3, 4, 2], "squared", biases=True, loss="softmax", scale=0.5))
    assert shown == "RadialNetwork([3, 4, 2], radial='squared', biases=True, loss='softmax', scale=0.5)"
    for arguments, message in (
        ({"dims": [3, 2]}, "dims must hold at least three widths"),
        ({"dims": [3, 0, 2]}, r"dims\[1\] must be at least 1"),
        ({"radial": "relu"}, "radial must be one of 'squared', 'tanh', 'sigmoid'"),
        ({"biases": 1}, "biases must be True or False"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"dims": [3, 2, 1], "loss": "softmax"}, "loss must be 'logistic' or 'squared'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            RadialNetwork(**{"dims": [3, 3, 2], **arguments})
    with pytest.raises(ModelError, match="needs samples X and Y"):
        model.samples(np.ones((2, 4)), None)
