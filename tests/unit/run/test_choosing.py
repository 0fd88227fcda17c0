"""method="auto": the noise is measured, the traits are asked, and what cannot be had is refused."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import DeepLinear


def drift(t, y):
    return -y[0], -y[1]


def constant(t, y):
    return (1.0, 0.3), (0.0, 0.5)


def own(t, y):
    return (0.5 * y[0], 0.0), (0.0, np.cos(y[1]))


def crossed(t, y):
    return (1.0, 0.0), (0.0, y[0])


def one(t, y):
    return 0.5 * y[1], 0.2


CASES = [
    (constant, "general", "ito", None, "additive", 1.5),
    (constant, "general", "stratonovich", None, "additive", 1.5),
    (own, "general", "ito", None, "diagonal", 1.5),
    (one, "scalar", "ito", None, "scalar", 1.5),
    (crossed, "general", "ito", None, "general", 1.0),
    (crossed, "general", "stratonovich", "strong", "general", 1.0),
    (crossed, "general", "ito", "weak", "general", 2.0),
    (crossed, "general", "stratonovich", "charge", "general", None),
]


@pytest.mark.parametrize(("noise", "kind", "calculus", "goal", "measured", "order"), CASES)
def test_it_takes_what_the_traits_say_and_runs_it(noise, kind, calculus, goal, measured, order):
    sde = sg.SDE(drift, noise, dim=2, noise=kind, calculus=calculus)
    choice = sg.choose_method(sde, [0.5, 0.7], goal=goal or "strong")
    scheme = sg.methods[choice.method]
    if order is not None:
        assert (scheme.weak if goal == "weak" else scheme.strong)[measured] == order
    sol = sg.solve(sde, (0, 1), [0.5, 0.7], method="auto", goal=goal, dt=0.125, n_paths=3, rng=1)
    assert sol.method == choice.method and sol.success and choice.reason
    named = sg.solve(sde, (0, 1), [0.5, 0.7], method=choice.method, dt=0.125, n_paths=3, rng=1)
    if measured == kind:
        assert np.array_equal(named.y, sol.y)


def test_a_charge_of_sgd_gets_the_midpoint():
    X = np.random.default_rng(0).normal(size=(5, 3))
    problem = sg.SGD(DeepLinear([3, 2, 2]), X, X[:, :2], learning_rate=0.01)
    theta = problem.model.init(rng=0)
    assert sg.choose_method(problem.sde(), theta, goal="charge").method == "implicit-midpoint"
    assert sg.choose_method(problem.sde("gram"), theta, goal="charge").method == "milstein-symmetric"
    sol = sg.solve(problem.sde(), (0, 0.1), theta, method="auto", goal="charge", rng=0)
    assert sol.method == "implicit-midpoint" and sol.success


def test_what_cannot_be_had_is_refused():
    X = np.random.default_rng(0).normal(size=(300, 3))
    problem = sg.SGD(DeepLinear([3, 2, 2]), X, X[:, :2], learning_rate=0.01)
    theta = problem.model.init(rng=0)
    with pytest.raises(sg.ArgumentError, match="300 noises that do not commute need 90000 iterated integrals"):
        sg.solve(problem.sde(), (0, 0.1), theta, method="auto", rng=0)
    many = sg.SGD(DeepLinear([3, 2, 2]), np.tile(X, (2, 1)), np.tile(X[:, :2], (2, 1)), learning_rate=0.01)
    with pytest.raises(sg.ArgumentError, match="'milstein' needs 360000 random numbers beyond dW at each step"):
        sg.solve(many.sde(), (0, 0.1), theta, method="milstein", rng=0)
    sde = sg.SDE(drift, crossed, dim=2)
    with pytest.raises(sg.ArgumentError, match="goal must be one of"):
        sg.solve(sde, (0, 1), [0.5, 0.7], method="auto", goal="fast", dt=0.1)
    with pytest.raises(sg.ArgumentError, match='goal must be None unless method="auto"'):
        sg.solve(sde, (0, 1), [0.5, 0.7], method="milstein", goal="weak", dt=0.1)
    with pytest.raises(sg.ArgumentError, match="sde must be an SDE"):
        sg.choose_method(drift, [0.5, 0.7])
