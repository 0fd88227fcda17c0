"""The law of C_J: means over all batches, the law of `Charge`, reports of runs, circulation where there is none."""

from itertools import product

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, rescaling, rotation
from sgdsde.models import MLP, DeepLinear, Product, uw_gauss
from sgdsde.symmetry import Angles, NoetherCharge, check_tangency, circulation

RNG = np.random.default_rng(11)


def one_hot(activation="tanh", **settings):
    model = MLP([2, 2, 2], activation, biases=False)
    settings = {"learning_rate": 0.01, "batch_size": 2, "gamma": 0.1, **settings}
    return sg.SGD(model, np.eye(2)[[0, 1, 1]], RNG.standard_normal((3, 2)), **settings)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_the_mean_of_a_step_is_that_over_all_batches_up_to_its_square(activation, replacement):
    problem, errors = one_hot(activation, replacement=replacement), []
    charge, theta = NoetherCharge.elementwise(problem), problem.model.init(3)
    assert charge.check(problem, theta)
    g = problem.per_sample_gradients(theta)
    batches = [b for b in product(range(3), repeat=2) if replacement or b[0] < b[1]]
    for eta in (1e-2, 1e-3):
        finer, a = problem.replace(learning_rate=eta), 1 - 2 * eta * problem.gamma
        measured = np.mean([charge(a * theta - eta * g[list(b)].mean(axis=0)) - charge(theta) for b in batches]) / eta
        errors.append(abs(measured - charge.discrete_rate(finer, theta)))
        assert errors[-1] < eta**2 * 30
    assert errors[1] < errors[0] / 60
    assert abs(measured - charge.rate(finer, theta)) > 3 * errors[1]  # the O(η) terms are seen


def test_an_affine_one_has_half_the_law_of_its_charge():
    problem = sg.SGD(Product(), [[1.0], [0.5], [-2.0]], [[0.3], [1.0], [0.7]], learning_rate=0.1, gamma=0.2)
    theta = RNG.standard_normal((2, 3, 2))
    for J in (rescaling(2), Affine(rescaling(2), [0.5, 1.0])):
        one, other = NoetherCharge(J), sg.Charge(J)
        np.testing.assert_allclose(one.rate(problem, theta), 0.5 * other.rate(problem, theta), rtol=1e-12)
        np.testing.assert_allclose(one.residual(problem, theta), other.residual(problem, theta), rtol=1e-12)
        if J.norm and not isinstance(J, Affine):
            for mine, theirs in zip(one.terms(problem, theta), other.terms(problem, theta), strict=True):
                np.testing.assert_allclose(mine, 0.5 * theirs, rtol=1e-11, atol=1e-14)
    assert isinstance(one.rate(problem, theta[0, 0]), float)


def test_a_law_of_the_data_has_a_rate_too():
    problem = sg.SGD(Product(), uw_gauss(), learning_rate=0.1, gamma=0.2)
    theta = np.array([0.8, -1.1])
    assert NoetherCharge(rescaling(2)).rate(problem, theta) == pytest.approx(
        0.5 * sg.Charge(rescaling(2)).rate(problem, theta), rel=1e-12
    )


def test_a_report_of_every_step_leaves_a_small_remainder_and_an_observer_follows():
    problem = one_hot()
    charge, theta0 = NoetherCharge.elementwise(problem), problem.model.init(1)
    run = problem.run(theta0, 20, 25, rng=1, t_eval="steps", observe=charge)
    report = charge.report(run)
    assert report.by_steps and report.charge.shape == (25, 21) == report.predicted.shape
    np.testing.assert_allclose(run.observed[charge.name][..., 0], report.charge, rtol=1e-13)
    ends = report.remainder[:, -1]
    assert abs(ends.mean()) < 5 * ends.std() / np.sqrt(25) + 30 * 1e-5
    assert np.abs(ends.mean()) < 0.02 * np.abs(report.delta[:, -1].mean())
    np.testing.assert_allclose(report.residual, -report.rate)
    assert "ΔC predicted" in repr(report)


def test_a_report_of_the_sde_integrates_the_rate():
    problem = one_hot(learning_rate=1e-3)
    charge, theta0 = NoetherCharge.elementwise(problem), problem.model.init(1)
    run = sg.solve(problem.sde(), (0, 0.2), theta0, n_paths=2, rng=0, t_eval=21)
    report = charge.report(run)
    assert not report.by_steps
    np.testing.assert_allclose(report.predicted, report.continuous)
    assert np.abs(report.remainder[:, -1]).max() < 0.05 * np.abs(report.delta[:, -1]).min()


def test_the_observer_of_an_affine_one_is_compiled():
    problem = sg.SGD(DeepLinear([2, 2, 1]), np.eye(2), [1.0, 2.0], learning_rate=0.1)
    charge = NoetherCharge(problem.model.symmetries()["B=I"])
    run = problem.run(problem.model.init(0), 5, rng=0, t_eval="steps", observe=charge)
    np.testing.assert_allclose(run.observed[charge.name][:, 0], charge(run.y), rtol=1e-13)


def with_bias(x):
    """J = (U, -σ(Vx + b)/σ'(Vx + b), 0) for tanh, one input and output: a symmetry of each sample, and no gradient."""
    v, b, u, _ = x
    return np.array([-0.5 * np.sinh(2 * (v + b)), 0.0, u, 0.0])


def test_circulation_where_there_is_no_charge():
    problem = sg.SGD(MLP([1, 1, 1], "tanh"), [[1.0], [1.0], [1.0]], [0.5, -1.0, 0.2], learning_rate=0.01, gamma=0.05)
    assert check_tangency(problem, with_bias, reach=0.2)
    with pytest.raises(sg.ModelError, match=r"∂_0J_1 = 0 and ∂_1J_0 = "):
        NoetherCharge(with_bias, 4)
    theta0 = np.array([0.9, -0.3, 0.8, 0.1])
    run = problem.run(theta0, 12, 25, rng=2, t_eval="steps")
    found = circulation(run, with_bias)
    start = np.asarray(run.y)[:, :-1]
    J = np.stack([[with_bias(x) for x in path] for path in start])
    np.testing.assert_allclose(found.ito, -2 * 0.01 * 0.05 * np.sum(start * J, axis=-1), atol=1e-15)
    left = found.remainder.sum(axis=1)
    assert abs(left.mean()) < 5 * left.std() / 5 + 12 * 3e-6
    assert abs(left.mean()) < 0.2 * abs(found.stratonovich.sum(axis=1).mean())
    by_ends = circulation(run, with_bias, rule="trapezoid")
    np.testing.assert_allclose(by_ends.stratonovich, found.stratonovich, atol=2e-5)
    assert "predicted" in repr(found) and found.total.shape == (25, 13)


def test_the_two_rules_by_hand():
    for rule, wanted in (("midpoint", 2.0**3 * 2), ("trapezoid", (1.0 + 27.0) / 2 * 2)):
        assert circulation([[1.0], [3.0]], lambda x: x**3, rule=rule).stratonovich == wanted
    assert circulation([[1.0], [3.0]], lambda x: x**3).ito == 2.0


def test_circulation_of_a_gradient_is_its_charge_and_of_a_rotation_zero():
    problem = one_hot()
    run = problem.run(problem.model.init(0), 10, 3, rng=0, t_eval="steps")
    A = DeepLinear([2, 2, 2]).symmetries()["B=I"]
    charge = NoetherCharge(A)
    np.testing.assert_allclose(circulation(run, charge).total, charge(run.y) - charge(run.y[:, :1]), atol=1e-14)
    tanh = NoetherCharge.elementwise(problem)
    np.testing.assert_allclose(circulation(run, tanh).total, tanh(run.y) - tanh(run.y[:, :1]), atol=1e-5)
    turn = rotation(problem.model.dim, 0, 5)
    np.testing.assert_allclose(circulation(run.y, turn).ito, Angles(turn).identity_along(run.y), atol=1e-16)


def test_tangency_names_the_sample_that_breaks_it():
    problem = sg.SGD(Product(), [[1.0], [0.0], [2.0]], [[1.0], [5.0], [1.0]], learning_rate=0.1)
    assert check_tangency(problem, rescaling(2), reach=0.5) and check_tangency(
        problem, lambda x: np.array([x[0], -x[1]])
    )
    assert check_tangency(problem, sg.Charge(rescaling(2))) and check_tangency(problem, NoetherCharge(rescaling(2)))
    report = check_tangency(problem, lambda x: np.array([x[1], x[0]]), [1.0, 2.0], n_states=0, reach=0.1)
    g = problem.per_sample_gradients([1.0, 2.0])
    assert not report and report.value == pytest.approx(g[report.sample] @ [2.0, 1.0]) and report.finite > 1
    assert report.sample != 1 and f"sample {report.sample}" in str(report)
    mean_only = sg.SGD(Product(), [[1.0], [1.0]], [[3.0], [1.0]], learning_rate=0.1)  # ∇L = 0 at uw = 2, g_i are not
    assert np.abs(mean_only.gradient([1.0, 2.0])).max() < 1e-14
    assert not check_tangency(mean_only, lambda x: x, [1.0, 2.0], n_states=0)


def test_refusals():
    problem, charge = one_hot(), NoetherCharge(rescaling(2))
    with pytest.raises(ArgumentError, match="acts on 2 components"):
        charge.rate(problem, [1.0, 2.0])
    with pytest.raises(ArgumentError, match="solution must be a Solution"):
        charge.report(np.zeros((3, 2)))
    run = problem.run(problem.model.init(0), 2, rng=0)
    with pytest.raises(ShapeError, match="solution must hold 2 components"):
        charge.report(run)
    elementwise = NoetherCharge.elementwise(problem)
    second = sg.solve(problem.sde(order=2), (0, 0.02), problem.model.init(0), rng=0)
    with pytest.raises(ArgumentError, match="order 1"):
        elementwise.report(second)
    scheduled = problem.replace(learning_rate=sg.schedules.cosine(0.1, 10, 0.01)).run(problem.model.init(0), 2, rng=0)
    with pytest.raises(ArgumentError, match="constant learning rate"):
        elementwise.report(scheduled)
    with pytest.raises(ArgumentError, match="problem must be given"):
        circulation([[1.0, 2.0], [2.0, 1.0]], charge).remainder  # noqa: B018
    with pytest.raises(ShapeError, match="trajectory must have shape"):
        circulation([[1.0, 2.0]], charge)
    with pytest.raises(ArgumentError, match="rule must be one of"):
        circulation([[1.0, 2.0], [2.0, 1.0]], charge, rule="ito")
    with pytest.raises(ArgumentError, match="J must act on the 8 parameters"):
        check_tangency(problem, rescaling(2))
