"""Every law goes red when what it is about is wrong by a little: problems of which one method errs."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.symmetry import charges
from sgdsde.testing import BrokenLaw

LITTLE = 1 + 1e-6


def larger(true, *args, **kwargs):
    return true(*args, **kwargs) * LITTLE


def constant_added(true, *args, **kwargs):
    return true(*args, **kwargs) + 1e-6


def doubled(true, *args, **kwargs):
    return [2 * moment for moment in true(*args, **kwargs)]


def quieter(equation):
    equation.problem.__class__ = type("Quiet", (sg.SGD,), {"noise_scale": 0.0249})
    return equation


def drifting(true, theta, *args):
    """Still tangent to every orbit, but no longer a gradient."""
    return true(theta, *args) * (1 + 1e-4 * np.sum(theta))


LAWS = {
    "assert_tangent": [{"per_sample_gradients": constant_added}],
    "assert_factor_tangent": [{"factor": constant_added}],
    "assert_curvature": [{"per_sample_gradients": drifting}],
    "assert_losses_kept": [{"per_sample_losses": drifting}],
    "assert_orbit_covariance": [{"covariance": constant_added}],
    "assert_discrete_law": [{"per_sample_gradients": larger}, {"gamma": 0.2 + 1e-9}],
    "assert_discrete_mean": [
        {"covariance": larger}, {"gradient": larger}, {"gradient_moments": doubled}, {"gamma": 0.2 + 1e-9},
        {"noise_scale": 0.0251},
    ],
    "assert_euler_maruyama_law": [{"gradient": larger}, {"factor": larger}, {"gamma": 0.2 + 1e-9}],
    "assert_euler_maruyama_mean": [{"gradient": larger}, {"covariance": larger}],
    "assert_euler_maruyama_variance": [{"gradient": larger}, {"covariance": larger}],
    "assert_equal_means": [{"replacement": False}, {"sde": lambda t, *a: quieter(t(*a))}],
}  # fmt: skip


@pytest.mark.parametrize("law, wrong", [(law, wrong) for law, many in LAWS.items() for wrong in many])
def test_laws_of_a_problem_a_generator_and_a_state(case, tools, law, wrong):
    problem, A, theta = case
    check = getattr(sg.testing, law)
    assert check(problem, A, theta) <= 1
    broken = tools["but"](problem, **wrong)
    with pytest.raises(BrokenLaw) as caught:
        check(broken, A, theta)
    assert np.array_equal(caught.value.witness["theta"], theta)


@pytest.mark.parametrize(
    "law", ["assert_tangent", "assert_losses_kept", "assert_orbit_covariance", "assert_discrete_law"]
)
def test_a_direction_that_is_no_symmetry(case, law):
    problem, A, theta = case
    with pytest.raises(BrokenLaw):
        getattr(sg.testing, law)(problem, A + 1e-6 * sg.scaling(A.dim), theta)


def test_an_average_symmetry_is_not_enough(case):
    problem, A, theta = case
    g = problem.per_sample_gradients(theta)
    away = A.apply(theta) / np.linalg.norm(A.apply(theta))
    problem.per_sample_gradients = lambda x: g + 1e-3 * np.outer([1.0, -1.0, 1.0, -1.0], away)
    with pytest.raises(BrokenLaw, match="g_iᵀAθ = 0"):
        sg.testing.assert_tangent(problem, A, theta)


def test_projections(case):
    problem, A, theta = case
    paths = sg.testing.sde_steps(problem, theta, 0.1 * np.ones((1, 1, 4)))
    assert sg.testing.assert_start_projection(problem, A, paths) <= 1
    with pytest.raises(BrokenLaw):
        sg.testing.assert_start_projection(problem, A, paths, dt=0.1001)
    with pytest.raises(BrokenLaw):
        sg.testing.assert_start_projection(problem, A, paths + [[[0.0], [1e-9]]])


def test_midpoint_projection(case, monkeypatch):
    from sgdsde.symmetry import directions

    states = np.random.default_rng(0).standard_normal((3, 8))
    assert sg.testing.assert_midpoint_projection(case[1], states) <= 1
    true = directions.Span.project
    monkeypatch.setattr(directions.Span, "project", lambda self, base, delta: true(self, base + 1e-7, delta))
    with pytest.raises(BrokenLaw, match="ΔC"):
        sg.testing.assert_midpoint_projection(case[1], states)


@pytest.mark.parametrize("wrong", [
    {"factor": larger}, {"covariance": larger}, {"gradient": larger},
    {"covariance": lambda t, x, block=None: t(x, block=block) + 1e-9 * np.ones_like(t(x, block=block))},
    {"covariance": lambda t, x, block=None: t(x, block=block) * (LITTLE if block else 1)},
])  # fmt: skip
def test_covariance(case, tools, wrong):
    problem, _, theta = case
    assert sg.testing.assert_covariance(problem, theta) <= 1
    with pytest.raises(BrokenLaw):
        sg.testing.assert_covariance(tools["but"](problem, **wrong), theta)


@pytest.mark.parametrize("wrong", [
    {"factor": constant_added}, {"factor": lambda t, *a: 1.001 * t(*a)}, {"per_sample_losses": drifting},
])  # fmt: skip
def test_noise(case, tools, wrong):
    problem, _, theta = case
    assert sg.testing.assert_noise(problem, theta) <= 1
    with pytest.raises(BrokenLaw):
        sg.testing.assert_noise(tools["but"](problem, **wrong), theta)


def test_rotated_factor(case, tools):
    problem, _, theta = case
    O = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    dW = 0.05 * np.random.default_rng(2).standard_normal((2, 3, 4))
    assert sg.testing.assert_rotated_factor(problem, theta, O, dW, 0.01) <= 1
    with pytest.raises(BrokenLaw, match="one path"):
        sg.testing.assert_rotated_factor(tools["but"](problem, factor=larger), theta, O, dW, 0.01)
    with pytest.raises(BrokenLaw, match="= Σ"):
        sg.testing.assert_rotated_factor(tools["but"](problem, covariance=larger), theta, O, dW, 0.01)


def test_uw(uw, tools):
    problem, theta = uw
    assert sg.testing.assert_uw_law(problem, theta) <= 1
    for wrong in ({"gamma": 0.2 + 1e-9}, {"replacement": False}):
        with pytest.raises(BrokenLaw):
            sg.testing.assert_uw_law(tools["but"](problem, **wrong), theta)


def test_layer_balance(case, tools, monkeypatch):
    problem, _, theta = case
    B = np.array([[1.0, 0.5], [0.5, -2.0]])
    assert sg.testing.assert_layer_balance(problem, theta, B) <= 1
    with pytest.raises(BrokenLaw, match="Q'"):
        sg.testing.assert_layer_balance(tools["but"](problem, per_sample_gradients=larger), theta, B)
    with pytest.raises(BrokenLaw, match="rate"):
        sg.testing.assert_layer_balance(tools["but"](problem, gradient_moments=doubled), theta, B)
    monkeypatch.setattr(charges.Charge, "__call__", lambda self, x: self.generator.quadratic(x) * LITTLE)
    with pytest.raises(BrokenLaw, match="C_B"):
        sg.testing.assert_layer_balance(problem, theta, B)


def _negated(true, *args, **kwargs):
    mean, var = true(*args, **kwargs)
    return mean, -var


@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_equilibria(tools, gamma):
    problem = tools["make"](gamma=gamma)
    A, theta = problem.model.symmetries()["B=I"], np.random.default_rng(4).standard_normal(8)
    testing = sg.testing
    assert max(
        testing.assert_monotone_rate(problem, A, theta), testing.assert_equilibrium(problem, A, theta),
        testing.assert_equilibrium_on_orbit(problem, A, theta, 0.3), testing.assert_closed_form(problem, A, theta),
    ) <= 1  # fmt: skip
    with pytest.raises(BrokenLaw, match="falls"):
        testing.assert_monotone_rate(tools["but"](problem, gradient_moments=_negated), A, theta)
    with pytest.raises(BrokenLaw):
        testing.assert_closed_form(tools["but"](problem, covariance=lambda t, x: t(x) + 1e-6 * np.eye(8)), A, theta)
    with pytest.raises(BrokenLaw):  # not a symmetry: the covariance does not turn with it
        testing.assert_equilibrium_on_orbit(problem, A + 0.1 * sg.scaling(8), theta, 0.3)


def test_an_equilibrium_that_is_none(case, monkeypatch):
    from sgdsde.testing import equilibria

    problem, A, theta = case
    true = sg.noise_equilibrium(problem, theta, A)
    wrongs = [
        {"lam": -true.lam}, {"charge": 2 * case[1].quadratic(theta) - true.charge}, {"theta": theta},
        {"charge": true.charge * LITTLE}, {"lam": np.nan},
    ]  # fmt: skip
    for change in wrongs:
        made = type(true)(**{**vars(true), **change})
        monkeypatch.setattr(equilibria, "noise_equilibrium", lambda *a, made=made: made)
        with pytest.raises(BrokenLaw):
            sg.testing.assert_equilibrium(problem, A, theta)
