"""Discrete SGD through the engine against a plain loop that reads the same indices; problems as values."""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.models import DeepLinear, Product, uw_gauss
from sgdsde.random.stream import indices, subset


def loop(problem, theta, seed, path, n_steps):
    """SGD as written in the books, one state a step."""
    states = [theta]
    n, size, eta = problem.n_samples, problem.batch_size, problem.learning_rate
    for k in range(n_steps):
        if problem.replacement:
            batch = indices(seed, path, n, first=k * size, count=size)
        else:
            batch = subset(seed, path, n, size, first=k * size)
        g = problem.per_sample_gradients(states[-1])[batch].mean(axis=0)
        states.append((1 - 2 * eta * problem.gamma) * states[-1] - eta * g)
    return np.array(states)


@pytest.mark.parametrize(("size", "replacement"), [(1, True), (3, True), (6, True), (2, False), (5, False), (6, False)])
def test_a_run_is_the_plain_loop_with_the_batches_of_its_seed(make_problem, model, size, replacement):
    problem = make_problem(model, n=6, batch_size=size, replacement=replacement, learning_rate=0.02)
    theta = 0.5 * np.random.default_rng(0).standard_normal(model.dim)
    sol = problem.run(theta, 30, n_paths=5, rng=11, t_eval="steps")
    assert sol.t == pytest.approx(0.02 * np.arange(31)) and sol.success and sol.y.shape == (5, 31, model.dim)
    for path in range(5):
        assert sol.y[path] == pytest.approx(loop(problem, theta, 11, path, 30), rel=1e-11, abs=1e-12)
    if size < 6 or replacement:
        assert np.abs(sol.y[0, -1] - sol.y[1, -1]).max() > 1e-6
    else:
        assert np.array_equal(sol.y[0], sol.y[4])


def test_blocks_and_single_paths_give_the_same_bits(make_problem, model):
    problem = make_problem(model, batch_size=2)
    theta = 0.5 * np.random.default_rng(0).standard_normal((7, model.dim))
    whole = problem.run(theta, 20, n_paths=7, rng=3, block_size=4).y
    assert np.array_equal(problem.run(theta, 20, n_paths=7, rng=3, block_size=1, chunk_steps=3).y, whole)
    assert np.array_equal(problem.run(theta, 20, n_paths=7, rng=3, path_index=5).y[0], whole[5])


def test_times_are_steps_times_the_learning_rate(make_problem):
    problem = make_problem(learning_rate=0.25)
    theta = 0.1 * np.ones(10)
    assert problem.run(theta, 8, rng=0).t == pytest.approx([0, 2])
    assert problem.run(theta, 8, rng=0, t_eval=5).t == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert problem.run(theta, 8, rng=0, t_eval=[0.26, 1.0]).t == pytest.approx([0.25, 1.0])
    sol = problem.run(theta, 8, rng=0)
    assert sol.y.shape == (2, 10) and sol.problem is problem and sol.dt == 0.25 and sol.method == "sgd"
    assert sg.solve(problem.sde(), (0, 2), theta, rng=0).dt == 0.25


def test_a_run_can_be_observed_and_tracked(make_problem):
    problem = make_problem()
    theta = 0.3 * np.random.default_rng(0).standard_normal(10)
    law = sg.ChargeLaw(sg.Charge(problem.model.symmetries()["B=I"]), problem)
    sol = problem.run(theta, 50, n_paths=2, rng=0, track=law, observe={"first": lambda t, y: y[0]})
    assert sol.observed["first"][:, -1, 0] == pytest.approx(sol.y[:, -1, 0])
    (rows,) = sol.tracked.values()
    assert rows.shape == (2, 2, 10) and np.abs(rows[:, -1, 5]).max() < 1e-13


def test_problems_and_their_dynamics_are_pickled(make_problem, model):
    problem = make_problem(model, batch_size=2, replacement=False)
    theta = 0.5 * np.random.default_rng(0).standard_normal(model.dim)
    again = pickle.loads(pickle.dumps(problem))
    assert repr(again) == repr(problem) and np.array_equal(again.samples.data, problem.samples.data)
    assert np.array_equal(again.run(theta, 20, rng=3).y, problem.run(theta, 20, rng=3).y)
    scheme = pickle.loads(pickle.dumps(problem.recursion().scheme))
    assert scheme.name == "sgd" and scheme.aux.rows(5, 0) == 2
    for factor in (None, "gram"):
        sde = problem.sde(factor)
        sg.solve(sde, (0, 1), theta, rng=3)
        copied = pickle.loads(pickle.dumps(sde))
        assert np.array_equal(sg.solve(copied, (0, 1), theta, rng=3).y, sg.solve(sde, (0, 1), theta, rng=3).y)


def test_numbers_of_a_problem(make_problem):
    problem = make_problem(batch_size=2, learning_rate=0.12)
    assert problem.sigma2 == pytest.approx(0.03) and problem.rho == 1.0 and problem.noise_scale == problem.sigma2
    without = make_problem(batch_size=2, learning_rate=0.12, replacement=False)
    assert without.rho == pytest.approx(3 / 4) and without.noise_scale == pytest.approx(0.0225)
    assert make_problem(n=1, replacement=False).rho == 0.0
    assert problem.n_samples == 5 and problem.X.shape == (5, 3) and np.shares_memory(problem.X, problem.Y.base)
    law = sg.SGD(Product(), uw_gauss(), learning_rate=0.1, batch_size=100)
    assert law.n_samples is None and law.X == uw_gauss() and law.Y is None and law.sigma2 == pytest.approx(5e-4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"learning_rate": 0.0}, ArgumentError, "learning_rate must be positive, got 0"),
        ({"learning_rate": float("nan")}, ArgumentError, "learning_rate must be a finite real number"),
        ({"gamma": -0.1}, ArgumentError, "gamma must be at least 0"),
        ({"gamma": float("inf")}, ArgumentError, "gamma must be a finite real number"),
        ({"batch_size": 0}, ArgumentError, "batch_size must be between 1 and 5, got 0"),
        ({"batch_size": 6}, ArgumentError, "batch_size must be between 1 and 5, got 6"),
        ({"batch_size": 2.0}, ArgumentError, "batch_size must be an integer"),
        ({"replacement": 1}, ArgumentError, "replacement must be True or False"),
    ],
)
def test_wrong_numbers_are_refused(make_problem, change, error, message):
    with pytest.raises(error, match=message):
        make_problem(**change)


def test_wrong_arguments_are_refused(make_problem):
    problem = make_problem()
    with pytest.raises(ArgumentError, match="model must be a model"):
        sg.SGD("DeepLinear", [[1.0]], [1.0], learning_rate=0.1)
    with pytest.raises(ShapeError, match="X must have shape"):
        sg.SGD(DeepLinear([2, 1]), [1.0], [1.0], learning_rate=0.1)
    with pytest.raises(ArgumentError, match="replacement must be True for a Population"):
        sg.SGD(Product(), uw_gauss(), learning_rate=0.1, replacement=False)
    with pytest.raises(ArgumentError, match="n_steps must be"):
        problem.run(np.zeros(10), 0)
    with pytest.raises(ArgumentError, match="theta0 must be finite"):
        problem.run(np.full(10, np.nan), 5)
    for wrong in (np.zeros(9), np.zeros((2, 9)), np.zeros((3, 10))):
        with pytest.raises(ShapeError, match="theta0 must have shape"):
            problem.run(wrong, 5, n_paths=2)
    with pytest.raises(ShapeError, match=r"y0 must have shape \(10,\), got \(9,\)"):
        sg.solve(problem.sde(), (0, 1), np.zeros(9))
    for wrong in (problem, problem.recursion()):
        with pytest.raises(ArgumentError, match=r"sde must be an SDE or the .sde\(\) of an SGD problem"):
            sg.solve(wrong, (0, 1), np.zeros(10))
    with pytest.raises(ArgumentError, match="args must be None"):
        sg.solve(problem.sde(), (0, 1), np.zeros(10), args=(1.0,))
