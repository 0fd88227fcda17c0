"""Laws of corrections, midpoints, samplers, units, norms and quiet paths go red when what they are about is wrong."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.equation.differences import no_correction
from sgdsde.models import MLP, DeepLinear, Product, ScaleInvariant, uw_gauss, uw_label
from sgdsde.sgd.optimizers import SVAG, HeavyBall
from sgdsde.testing import BrokenLaw

testing = sg.testing
LITTLE = 1 + 1e-6


def larger(true, *args, **kwargs):
    return true(*args, **kwargs) * LITTLE


def uncorrected(true, *args, **kwargs):
    """The SDE with a CORRECTION kernel that says nothing."""
    equation = true(*args, **kwargs)
    kernels = equation.kernels
    equation.kernels = lambda correction=False: kernels(correction=correction)._replace(correction=no_correction)
    return equation


def breaks(law, *args, match=None):
    with pytest.raises(BrokenLaw, match=match):
        law(*args)


@pytest.mark.parametrize("wrong", [
    {"sde": uncorrected}, {"gamma": 0.2 + 1e-6},
    {"gradient_moments": lambda t, *a, **k: (t(*a, **k)[0], LITTLE * t(*a, **k)[1])},
])  # fmt: skip
def test_midpoint_rate(case, tools, wrong):
    problem, A, theta = case
    assert testing.assert_midpoint_rate(problem, A, theta) <= 1
    breaks(testing.assert_midpoint_rate, tools["but"](problem, **wrong), A, theta, match="ΔC")
    breaks(testing.assert_midpoint_rate, problem, A + 1e-6 * sg.scaling(8), theta)


def test_midpoint_steps_without_a_solution_are_no_law(case):
    problem, A, theta = case
    with pytest.raises(sg.ArgumentError, match="dt must be small enough for an implicit step, got 50"):
        testing.assert_midpoint_rate(problem, A, theta, 9.0 * np.ones((1, 4)), 50.0)
    with pytest.raises(sg.ModelError, match="factor must have a correction in closed form"):
        testing.assert_midpoint_rate(problem, A, theta, None, 0.01, "gram")


def test_sign_pair(tools):
    for model in (Product(), DeepLinear([1, 2, 1])):
        problem = tools["make"](model)
        A, theta = next(iter(model.symmetries().values())), np.linspace(0.5, 1.5, model.dim)
        assert testing.assert_sign_pair(problem, A, theta) <= 1
        breaks(testing.assert_sign_pair, tools["but"](problem, gradient=larger), A, theta, match="∇LᵀAG")
        breaks(testing.assert_sign_pair, tools["but"](problem, gamma=0.2 + 1e-9), A, theta, match="no scatter")
    with pytest.raises(sg.ArgumentError, match="factor must have one column for this law, got 4"):
        testing.assert_sign_pair(problem, A, theta, None, "per-sample")


def test_corrections(case, tools):
    problem, A, theta = case
    wrong = tools["but"](problem, sde=uncorrected)
    assert max(testing.assert_correction(problem, theta), testing.assert_orbit_correction(*case)) <= 1
    breaks(testing.assert_correction, wrong, theta, match="c = σ²ρΣ")
    breaks(testing.assert_orbit_correction, wrong, A, theta)
    breaks(testing.assert_orbit_correction, tools["but"](problem, covariance=larger), A, theta)
    bent = tools["but"](problem, factor=lambda t, x, *a: t(x, *a) * (1 + 1e-3 * np.sum(x)))
    breaks(testing.assert_correction, bent, theta)


@pytest.mark.parametrize("settings", [
    {}, {"replacement": False}, {"sampling": "epochs"}, {"optimizer": SVAG(3)},
    {"optimizer": SVAG(4), "replacement": False},
])  # fmt: skip
def test_sampling(tools, settings):
    problem = tools["make"](**settings)
    theta = np.random.default_rng(4).standard_normal(8)
    assert testing.assert_sampling(problem, theta) <= 1
    breaks(testing.assert_sampling, tools["but"](problem, gradient=larger), theta, match="E θ'")
    scale = problem.noise_scale * LITTLE
    breaks(testing.assert_sampling, tools["but"](problem, noise_scale=scale), theta, match="Cov θ'")
    breaks(testing.assert_sampling, tools["but"](problem, covariance=larger), theta, match="Cov θ'")


def test_one_without_the_other(tools):
    """Batches drawn one way and ρ of the other; weights of SVAG(2) and the time of SVAG(3)."""
    problem, theta = tools["make"](), np.random.default_rng(4).standard_normal(8)
    breaks(testing.assert_sampling, tools["but"](problem, rho=2 / 3), theta, match="Cov θ'")
    svag = problem.replace(optimizer=SVAG(3))
    breaks(
        testing.assert_sampling,
        tools["but"](svag, recursion=lambda t: problem.replace(optimizer=SVAG(2)).recursion()),
        theta,
    )


def test_what_is_not_enumerated(tools, case):
    ball = tools["make"](optimizer=HeavyBall(0.9))
    for law in (testing.assert_sampling, lambda p, x: testing.batch_steps(p, x, [[0, 1]])):
        with pytest.raises(sg.ArgumentError, match="problem must be plain SGD"):
            law(ball, case[2])
    with pytest.raises(sg.ArgumentError, match="problem has 6561 pairs of batches and at most 4096"):
        testing.assert_sampling(tools["make"](n=9, optimizer=SVAG(2)), case[2])


def test_signs(tools):
    problem = tools["make"](Product(width=2), gamma=0.0)
    run = problem.run([1.5, 0.5, -0.5, 0.2], 30, n_paths=3, rng=0, t_eval="steps", threads=1)
    assert testing.assert_uw_sign(problem, run) <= 1
    states = run.y.copy()
    states[0, 3] = states[0, 3][[2, 3, 0, 1]]  # the roles of u and w
    breaks(testing.assert_uw_sign, problem, states, match="sign")
    breaks(testing.assert_uw_sign, problem, run.y[:, ::-1], match="grow")
    assert testing.assert_uw_sign(problem.replace(learning_rate=50.0), states) == 0.0  # nothing is asked
    with pytest.raises(sg.ArgumentError, match="of depth 2"):
        testing.assert_uw_sign(tools["make"](Product(depth=3)), np.ones((2, 3)))


@pytest.mark.parametrize("activation, biases", [("relu", True), ("leaky_relu", False), ("tanh", True)])
def test_units(tools, activation, biases):
    model = MLP([2, 3, 2], activation=activation, biases=biases)
    rng = np.random.default_rng(3)
    problem = sg.SGD(
        model, rng.standard_normal((4, 2)), rng.standard_normal((4, 2)), learning_rate=0.1, batch_size=2, gamma=0.2
    )
    theta = rng.standard_normal(model.dim)
    if activation == "tanh":
        with pytest.raises(sg.ArgumentError, match="relu or leaky relu"):
            testing.assert_unit_balance(problem, theta)
        model.activation = "relu"  # the steps are still those of tanh
        breaks(testing.assert_unit_balance, tools["but"](problem), theta, match="q' =")
        return
    assert testing.assert_unit_balance(problem, theta) <= 1
    breaks(testing.assert_unit_balance, tools["but"](problem, per_sample_gradients=larger), theta, match="q' =")
    breaks(testing.assert_unit_balance, tools["but"](problem, gamma=0.2 + 1e-9), theta, match="q' =")


@pytest.mark.parametrize("norm", ["total", "layers"])
def test_norms(tools, norm):
    model = ScaleInvariant([2, 2, 1], norm)
    rng = np.random.default_rng(3)
    problem = sg.SGD(model, rng.standard_normal((4, 2)), rng.standard_normal((4, 1)), learning_rate=0.1, batch_size=2)
    theta = rng.standard_normal(6)
    assert testing.assert_norm_law(problem, theta) <= 1
    breaks(testing.assert_norm_law, tools["but"](problem, per_sample_gradients=larger), theta)
    decayed = tools["but"](problem, recursion=lambda t: problem.replace(gamma=1.0).recursion())
    breaks(testing.assert_norm_law, decayed, theta)
    if norm == "total":
        breaks(testing.assert_norm_law, problem, theta, "W1")  # one layer alone is not scale-invariant
    else:
        assert testing.assert_norm_law(problem, theta, "W1") <= 1
    with pytest.raises(sg.ArgumentError, match="block"):
        testing.assert_norm_law(problem, theta, "W3")


def test_quiet_paths(tools):
    model = DeepLinear([2, 2, 1])
    problem = sg.SGD(model, np.ones((3, 2)), np.ones((3, 1)), learning_rate=0.05, gamma=0.2)
    A, theta = model.symmetries()["B=I"], np.random.default_rng(4).standard_normal(6)
    assert testing.assert_quiet_path(problem, A, theta) <= 1
    loud = tools["make"](model)
    with pytest.raises(sg.ArgumentError, match="gradients that agree"):
        testing.assert_quiet_path(loud, A, theta)
    wrong = tools["but"](problem, sde=lambda t, *a: loud.replace(learning_rate=0.05, batch_size=1).sde(*a))
    breaks(testing.assert_quiet_path, wrong, A, theta, np.ones((1, 3, 4)) / 9, match="gradient descent")
    breaks(testing.assert_quiet_path, tools["but"](problem, gamma=0.2 + 1e-9), A, theta, match="gradient descent")
    breaks(testing.assert_quiet_path, problem, A + 1e-5 * sg.scaling(6), theta, match="C_n")
    assert testing.assert_quiet_path(
        sg.SGD(Product(), uw_label(1.0, 0.0), learning_rate=0.05), sg.rescaling(2), [1.0, 0.3]
    ) <= 1  # fmt: skip


def test_the_flow_alone(tools, monkeypatch):
    """A flow whose charge drifts by 1e-6 while the steps are right."""
    from sgdsde.testing import quiet

    problem = sg.SGD(DeepLinear([1, 1, 1]), np.ones((2, 1)), np.ones((2, 1)), learning_rate=0.05)
    true = quiet.solve_ivp
    monkeypatch.setattr(quiet, "solve_ivp", lambda f, *a, **k: true(lambda t, y: f(t, y) + 1e-5 * y, *a, **k))
    breaks(testing.assert_quiet_path, problem, sg.rescaling(2), [1.0, 0.3], match="flow")


def test_laws_of_the_data_have_no_batches():
    problem = sg.SGD(Product(), uw_gauss(), learning_rate=0.1)
    for law in (testing.assert_sampling, testing.assert_uw_sign, testing.assert_unit_balance, testing.assert_norm_law):
        with pytest.raises(sg.ModelError, match="law of the data"):
            law(problem, np.ones(2))
