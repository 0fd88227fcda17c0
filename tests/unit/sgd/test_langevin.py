"""The Langevin equation of a problem: its step, what a charge does along it, and that no law of SGD is put on it."""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError
from sgdsde.models import Product, uw_gauss


def start(problem):
    return 0.5 * np.random.default_rng(1).standard_normal(problem.model.dim)


def test_a_step_is_the_gradient_and_the_noise(make_problem, model):
    problem = make_problem(model, learning_rate=0.05)
    theta, d = start(problem), model.dim
    dW = 0.2 * np.random.default_rng(2).standard_normal((3, 4, d))
    equation = problem.langevin(0.3)
    assert (equation.noise, equation.noise_dim, equation.default_dt) == ("additive", d, 0.05)
    for method in ("euler-maruyama", "milstein-symmetric", "heun"):
        sol = sg.solve(equation, (0, 0.2), theta, n_paths=3, dt=0.05, dW=dW, method=method, t_eval="steps")
        assert sol.success
        if method == "heun":
            continue
        x = np.tile(theta, (3, 1))
        for k in range(4):
            x = x - 0.05 * (problem.gradient(x) + 2 * problem.gamma * x) + 0.3 * dW[:, k]
            assert sol.y[:, k + 1] == pytest.approx(x, rel=1e-12, abs=1e-13)


def test_it_is_the_sde_with_a_constant_factor(make_problem):
    problem = make_problem()
    theta, d = start(problem), problem.model.dim
    F = 0.3 / np.sqrt(2 * problem.noise_scale) * np.eye(d)
    dW = 0.2 * np.random.default_rng(2).standard_normal((2, 5, d))
    run = {"n_paths": 2, "dt": 0.1, "dW": dW}
    one, other = (sg.solve(e, (0, 0.5), theta, **run).y for e in (problem.langevin(0.3), problem.sde(F)))
    assert one == pytest.approx(other, rel=1e-12)


def test_a_population_has_one(make_problem):
    problem = sg.SGD(Product(), uw_gauss(0.7, 0.5), learning_rate=0.02)
    sol = sg.solve(problem.langevin(0.1), (0, 0.4), [1.0, 0.5], n_paths=2, rng=0)
    assert sol.success and np.ptp(sol.y[:, -1], axis=0).min() > 0
    still = sg.solve(problem.langevin(0.0), (0, 0.4), [1.0, 0.5], n_paths=2, rng=0)
    assert np.array_equal(still.y[0], still.y[1])


def test_the_step_of_a_charge_over_all_signs(make_problem):
    """E ΔC = ((1 - 2γh)² - 1)C + h²∇LᵀA∇L + s²h Tr A; at γ = 0 the variance begins with 4s²h‖Aθ‖²."""
    problem = make_problem(Product(), n=5)
    theta, h, s = np.array([1.3, -0.4]), 0.1, 0.3
    uneven = sg.Generator.from_matrix(np.diag([1.0, -0.25]))
    signs = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    decay = theta - h * (problem.gradient(theta) + 2 * problem.gamma * theta)
    states = decay + s * np.sqrt(h) * signs
    view = problem.langevin(s).problem
    for A in (problem.model.symmetries()["W1/W2"], uneven):
        moved = A.quadratic(states).mean() - A.quadratic(decay)
        assert moved == pytest.approx(s * s * h * np.trace(A.matrix), abs=1e-14)
        rate = -4 * problem.gamma * A.quadratic(theta) + s * s * np.trace(A.matrix)
        assert sg.Charge(A).rate(view, theta) == pytest.approx(rate, abs=1e-13)
    A = problem.model.symmetries()["W1/W2"]
    terms = sg.Charge(A).terms(view, theta)
    assert h * terms.total == pytest.approx(A.quadratic(states).mean() - A.quadratic(theta), abs=1e-13)
    square = np.mean(np.square(2 * s * np.sqrt(h) * signs @ A.apply(theta)))
    assert square == pytest.approx(4 * s * s * h * (theta @ theta), rel=1e-12)


def test_laws_of_the_charge(make_problem):
    problem = make_problem(gamma=0.1, learning_rate=0.02)
    A, equation, theta = problem.model.symmetries()["B=I"], problem.langevin(0.2), start(problem)
    with pytest.raises(ArgumentError, match="not the same"):
        sg.solve(equation, (0, 0.1), theta, track=sg.ChargeLaw(A, problem), rng=0)
    law = sg.ChargeLaw(A, equation.problem)
    sol = sg.solve(equation, (0, 1), theta, n_paths=40, track=law, rng=1)
    report = law.report(sol)
    remainder = (report.delta - report.noise - report.gradient - report.decay)[:, -1]
    assert abs(remainder.mean()) <= 5 * remainder.std() / np.sqrt(39)
    assert np.abs(report.noise[:, -1] - 0.04 * np.trace(A.matrix)).max() <= 1e-12
    assert remainder.std() == pytest.approx(2 * 0.2 * np.linalg.norm(A.apply(theta)), rel=0.5)  # the martingale


def test_it_travels_and_is_checked(make_problem):
    problem = make_problem()
    equation, theta = problem.langevin(0.3), start(problem)
    copy = pickle.loads(pickle.dumps(equation))
    assert repr(copy) == repr(equation) == f"{problem!r}.langevin(0.3)"
    assert np.array_equal(sg.solve(copy, (0, 1), theta, rng=0).y, sg.solve(equation, (0, 1), theta, rng=0).y)
    view = equation.problem
    assert view.noise_scale == pytest.approx(0.045) and np.array_equal(view.covariance(theta, "W1"), np.eye(6))
    mean, var = view.gradient_moments(theta, lambda rows: 2.0 * rows)
    assert mean == pytest.approx(2 * problem.gradient(theta)) and (var == 4.0).all()
    for wrong in (-1.0, np.nan, "s"):
        with pytest.raises(ArgumentError, match="s must be"):
            problem.langevin(wrong)
    warm = problem.replace(learning_rate=sg.schedules.step(0.1, {2: 0.05}))
    assert sg.solve(warm.langevin(0.3), (0, 0.3), theta, rng=0).n_steps == 4
