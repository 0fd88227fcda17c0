"""Linear actions on a hidden layer and their charges Q_M; what gradient descent does to Q."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models import MLP, DeepLinear, RadialNetwork
from sgdsde.symmetry import Charge, Equivariance, LayerAction, MatrixCharge, check_tangency, descent_budget

RNG = np.random.default_rng(4)


def problem_of(model, n=4, **settings):
    X, Y = RNG.standard_normal((n, model.dims[0])), RNG.standard_normal((n, model.dims[-1]))
    return sg.SGD(model, X, Y, **{"learning_rate": 0.05, **settings})


def turned(h):
    return np.linalg.qr(RNG.standard_normal((h, h)))[0]


CASES = {
    "linear, inner layer": (DeepLinear([2, 3, 2, 2]), 2, lambda h: RNG.standard_normal((h, h)), lambda M: M),
    "linear, biases": (MLP([2, 2, 2], "identity"), 1, lambda h: RNG.standard_normal((h, h)), lambda M: M),
    "relu, biases": (
        MLP([2, 3, 1], "relu"), 1, lambda h: np.diag(np.exp(RNG.standard_normal(h))), lambda M: np.diag(np.diag(M)),
    ),
    "radial": (RadialNetwork([2, 3, 1], biases=True), 1, turned, lambda M: M - M.T),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_losses_are_kept_and_the_action_is_one(case):
    model, layer, draw, of_algebra = CASES[case]
    problem, theta = problem_of(model), model.init(0)
    action = LayerAction(model, layer)
    h = action.width
    g1, g2, M = draw(h), draw(h), of_algebra(RNG.standard_normal((h, h)))
    losses = problem.per_sample_losses(theta)
    for moved in (action.act(g1, theta), *action.orbit(M, [-0.5, 0.7], theta)):
        np.testing.assert_allclose(problem.per_sample_losses(moved), losses, rtol=1e-9)
        assert np.abs(moved - theta).max() > 1e-2
    np.testing.assert_allclose(action.act(g1, action.act(g2, theta)), action.act(g1 @ g2, theta), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(action.act(np.eye(h), theta), theta)
    J = action.infinitesimal(M, theta)
    ahead, behind = action.orbit(M, [1e-5, -1e-5], theta)
    np.testing.assert_allclose((ahead - behind) / 2e-5, J, atol=1e-8)
    assert check_tangency(problem, action.generator(M), theta)
    np.testing.assert_allclose(action.act(g1, np.stack([theta, 2 * theta]))[0], action.act(g1, theta), rtol=1e-14)


def test_q_m_is_the_charge_of_its_generator_and_minus_tr_mq():
    action = LayerAction(DeepLinear([3, 2, 2]))
    M, theta = RNG.standard_normal((2, 2)), RNG.standard_normal((4, 10))
    S = M + M.T
    np.testing.assert_allclose(action.charge(S, theta), Charge(action.generator(S))(theta), rtol=1e-12)
    Q = MatrixCharge(action.model)(theta)
    np.testing.assert_allclose(action.charge(M, theta), -np.einsum("ij,nij->n", M, Q), rtol=1e-12)
    np.testing.assert_allclose(action.charge(M - M.T, theta), 0.0, atol=1e-13)
    relu = LayerAction(MLP([2, 2, 1], "relu", biases=False), alpha=1.0)
    D = np.diag([1.0, -0.5])
    assert relu.charge(D, theta[0, :6]) == pytest.approx(Charge(relu.generator(D))(theta[0, :6]))


def test_q_m_after_g_for_homogeneous_units_of_any_degree():
    model = MLP([2, 2, 1], "relu", biases=False)
    del model.activation
    action = LayerAction(model, group="homogeneous", alpha=2.0)
    theta, g, M = RNG.standard_normal(6), np.diag([0.5, 3.0]), np.diag([1.0, -2.0])
    moved = action.act(g, theta)
    W, U = model.unflatten(theta).values()
    W1, U1 = model.unflatten(moved).values()
    np.testing.assert_allclose(U1 @ np.maximum(W1, 0) ** 2, U @ np.maximum(W, 0) ** 2, rtol=1e-13)
    assert action.charge_after(g, M, theta) == pytest.approx(action.charge(M, moved), rel=1e-12)


def test_an_equivariance_of_ones_own():
    # Two units as a complex number, σ(z) = z²: g = c·rotation has π(g) = g².
    def sigma(z):
        return np.array([z[0] ** 2 - z[1] ** 2, 2 * z[0] * z[1]])

    square = Equivariance(lambda g: g @ g, lambda M: 2 * M, sigma)
    model = MLP([3, 2, 1], "relu", biases=False)
    del model.activation  # a model of one's own
    action, theta = LayerAction(model, group=square), RNG.standard_normal(8)
    x, y = RNG.standard_normal(3), 0.4
    W, U = model.unflatten(theta).values()

    def output(t):
        return model.unflatten(t)["W2"] @ sigma(model.unflatten(t)["W1"] @ x)

    g = np.array([[0.6, -1.1], [1.1, 0.6]])
    np.testing.assert_allclose(output(action.act(g, theta)), output(theta), rtol=1e-12)
    turn, stretch = np.array([[0.0, -1.0], [1.0, 0.0]]), np.eye(2)
    for M in (turn, stretch):
        np.testing.assert_allclose(output(action.orbit(M, [0.3], theta)[0]), output(theta), rtol=1e-12)
    assert action.charge(stretch, theta) == pytest.approx(np.sum(W**2) - 2 * np.sum(U**2), rel=1e-13)
    moved = action.charge(stretch, action.act(g, theta))
    assert action.charge_after(g, stretch, theta) == pytest.approx(moved, rel=1e-12)
    z = W @ x
    slope = np.array([[2 * z[0], -2 * z[1]], [2 * z[1], 2 * z[0]]])
    r = 2 * (U @ sigma(z) - y)
    gradient = np.concatenate([np.outer(slope.T @ U.T @ r, x).ravel(), np.outer(r, sigma(z)).ravel()])
    for M in (turn, stretch):
        assert abs(gradient @ action.infinitesimal(M, theta)) < 1e-12
    after = theta - 0.01 * gradient
    step = 0.01**2 * action.charge(stretch, gradient)
    assert action.charge(stretch, after) == pytest.approx(action.charge(stretch, theta) + step, rel=1e-13)
    with pytest.raises(ArgumentError, match="g must have σ"):
        action.act(np.diag([2.0, 1.0]), theta)


def test_descent_moves_q_by_its_square_and_stays_in_the_budget():
    X = RNG.standard_normal((5, 3))
    problem = sg.SGD(DeepLinear([3, 2, 2]), X, X @ RNG.standard_normal((3, 2)), learning_rate=0.01)
    theta, budgets = 0.5 * RNG.standard_normal(10), []
    for eta in (0.01, 0.005):
        budget = descent_budget(problem.replace(learning_rate=eta), theta, round(2 / eta))
        assert budget.descends and budget.step_error < 1e-15 * 1e3
        assert budget.change <= budget.path <= budget.squares.sum() * (1 + 1e-9) <= budget.bound * (1 + 1e-9)
        budgets.append(budget)
    assert budgets[0].change / budgets[1].change == pytest.approx(2.0, rel=0.15)  # O(η) over a run
    first = [np.abs(b.charge[1] - b.charge[0]).max() for b in budgets]
    assert first[0] / first[1] == pytest.approx(4.0, rel=1e-6)  # O(η²) a step
    fast = descent_budget(problem.replace(learning_rate=0.3), theta, 3)
    assert not fast.descends and "not guaranteed" in repr(fast)
    problem = problem.replace(batch_size=5, replacement=False)
    run = problem.run(theta, 7, rng=0, t_eval="steps")  # all samples in each batch is gradient descent
    np.testing.assert_allclose(descent_budget(problem, theta, 7).charge, MatrixCharge(problem.model)(run.y), atol=1e-13)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: LayerAction(MLP([2, 2, 1], "tanh")), ArgumentError, "group must be given for activation 'tanh'"),
        (lambda: LayerAction(MLP([2, 2, 1], "tanh"), group="linear"), ArgumentError, "'tanh' units commute"),
        (lambda: LayerAction(MLP([2, 2, 1], "relu"), group="radial"), ArgumentError, "'relu' units commute"),
        (lambda: LayerAction(MLP([2, 2, 1], "relu")).act(np.ones((2, 2)), np.ones(9)), ArgumentError, "diagonal"),
        (lambda: LayerAction(MLP([2, 2, 1], "relu")).act(-np.eye(2), np.ones(9)), ArgumentError, "positive"),
        (lambda: LayerAction(MLP([2, 2, 1], "relu")).generator(np.ones((2, 2))), ArgumentError, "M must be diagonal"),
        (lambda: LayerAction(RadialNetwork([2, 2, 1])).act(2 * np.eye(2), np.ones(6)), ArgumentError, "orthogonal"),
        (lambda: LayerAction(RadialNetwork([2, 2, 1])).generator(np.eye(2)), ArgumentError, "antisymmetric"),
        (lambda: LayerAction(DeepLinear([2, 2, 1])).act(np.ones((2, 2)), np.ones(6)), ArgumentError, "invertible"),
        (lambda: LayerAction(DeepLinear([2, 2, 1])).act(np.eye(2), np.ones(5)), ShapeError, "theta must have shape"),
        (lambda: LayerAction(DeepLinear([2, 1])), ArgumentError, "must have a hidden layer 1"),
        (
            lambda: descent_budget(problem_of(DeepLinear([2, 2, 1]), gamma=0.1), np.ones(6), 2),
            ArgumentError,
            "gamma = 0",
        ),
        (lambda: descent_budget(problem_of(MLP([2, 2, 1])), np.ones(9), 2), ArgumentError, "linear units"),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()
