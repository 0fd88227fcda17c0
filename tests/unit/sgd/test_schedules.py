"""Learning rates that change: what a schedule says, discrete SGD and its SDE following it, and the charge's law."""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import schedules
from sgdsde.models import DeepLinear

MADE = [
    (schedules.constant(0.1), lambda k: 0.1 + 0.0 * k),
    (schedules.step(0.001, {5000: 0.008}), lambda k: np.where(k < 5000, 0.001, 0.008)),
    (schedules.step(0.3, {9: 0.2, 4: 0.1}), lambda k: np.select([k < 4, k < 9], [0.3, 0.1], 0.2)),
    (schedules.linear_warmup(0.1, 20), lambda k: 0.1 * np.minimum(1 / 20 + (1 - 1 / 20) * k / 20, 1.0)),
    (schedules.linear_warmup(0.1, 20, 0.04), lambda k: np.minimum(0.04 + 0.06 * k / 20, 0.1)),
    (schedules.cosine(0.1, 30, 0.02), lambda k: 0.02 + 0.04 * (1 + np.cos(np.pi * np.minimum(k, 30) / 30))),
    (schedules.from_function(lambda k: 0.1 / (1 + k), 12), lambda k: 0.1 / (1 + np.minimum(k, 11))),
]


@pytest.mark.parametrize(("schedule", "rule"), MADE, ids=[repr(s) for s, _ in MADE])
def test_rates_and_times(schedule, rule):
    k = np.arange(6000)
    np.testing.assert_allclose(schedule(k), rule(k), rtol=1e-14)
    np.testing.assert_allclose(schedule.time(k), np.cumsum(rule(k)) - rule(k), rtol=1e-12, atol=1e-15)
    assert schedule(7) == schedule(np.array([7]))[0] and schedule == pickle.loads(pickle.dumps(schedule))
    assert hash(schedule) == hash(pickle.loads(pickle.dumps(schedule))) and schedule != schedules.constant(0.123)


@pytest.mark.parametrize(("schedule", "rule"), MADE, ids=[repr(s) for s, _ in MADE])
def test_lengths_of_steps_between_two_times(schedule, rule):
    edges = schedule.time(np.arange(41))
    np.testing.assert_allclose(schedule.lengths(0.0, edges[-1]), rule(np.arange(40)), rtol=1e-9)
    a, b = edges[3] + 0.3 * schedule(3), edges[17] + 0.5 * schedule(17)
    cut = schedule.lengths(a, b)
    np.testing.assert_allclose(cut, [0.7 * schedule(3), *rule(np.arange(4, 17)), 0.5 * schedule(17)], rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: schedules.constant(0.0), "learning_rate must be positive"),
        (lambda: schedules.step(0.1, {0: 0.2}), "changes must be"),
        (lambda: schedules.step(0.1, {5: -0.2}), "changes must be positive"),
        (lambda: schedules.step(0.1, [5, 0.2]), "changes must map step numbers to learning rates"),
        (lambda: schedules.linear_warmup(0.1, 0), "n_steps must be"),
        (lambda: schedules.cosine(0.1, 10, 0.0), "end must be positive"),
        (lambda: schedules.from_function(0.1, 10), "function must be a function of step numbers"),
        (lambda: schedules.from_function(lambda k: k - 5.0, 10), "every learning rate must be positive"),
        (lambda: schedules.from_function(lambda k: 0.1, 10), "function must return one learning rate for each of 10"),
        (lambda: schedules.Schedule("x", np.array([0, 0]), np.array([0.1, 0.2])), "steps must begin with 0"),
        (lambda: schedules.constant(0.1)(-1), "k must be the number of a step"),
        (lambda: schedules.constant(0.1)(1.5), "k must be the number of a step"),
        (lambda: schedules.constant(0.1).time(-1), "k must be the number of a step"),
        (lambda: schedules.constant(0.1).time("two"), "k must be the number of a step"),
        (lambda: schedules.step(0.1, {2: 0.2}).lengths(-1.0, 1.0), "t_span must not begin before 0"),
        (lambda: schedules.from_function(lambda k: 0.1 if k < 5 else 0.2, 10), "must take all step numbers at once"),
        (lambda: sg.SGD(DeepLinear([1, 1]), [[1.0]], [[1.0]], learning_rate=lambda k: 0.1), "a number or a schedule"),
    ],
)
def test_what_is_no_schedule(make, match):
    with pytest.raises(sg.ArgumentError, match=match):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: schedules.linear_warmup(0.1, 10**11),
        lambda: schedules.cosine(0.1, 10**11, 0.01),
        lambda: schedules.from_function(np.sqrt, 10**11),
        lambda: schedules.step(1e-9, {5: 1e-10}).lengths(0.0, 100.0),
    ],
)
def test_tables_that_do_not_fit(make):
    with pytest.raises(sg.TooLargeError, match="e\\+1[12] .* more than half of the"):
        make()


SCHEDULE = schedules.step(0.05, {7: 0.02, 12: 0.08})


@pytest.fixture
def problem(make_problem):
    return make_problem(learning_rate=SCHEDULE, batch_size=2, n=6)


def test_discrete_sgd_takes_its_steps(problem, make_problem):
    """Every step is the step of the problem with that step's rate, from the same batch."""
    theta = problem.model.init(rng=0)
    sol = problem.run(theta, 20, n_paths=3, rng=4, t_eval="steps")
    np.testing.assert_allclose(sol.t, SCHEDULE.time(np.arange(21)), rtol=1e-14)
    for k in (0, 6, 7, 11, 12, 19):
        one = problem.at_step(k)
        assert one.schedule is None and one.learning_rate == SCHEDULE(k) and one.sigma2 == SCHEDULE(k) / 4
        g = problem.per_sample_gradients(sol.y[1, k])
        change = (sol.y[1, k] * (1 - 2 * 0.2 * one.learning_rate) - sol.y[1, k + 1]) / one.learning_rate
        pairs = 0.5 * (g[:, None] + g[None, :]).reshape(-1, g.shape[1])
        assert np.abs(pairs - change).max(axis=1).min() < 1e-11 * (1 + np.abs(g).max())
    constant = make_problem(learning_rate=schedules.constant(0.05), batch_size=2, n=6)
    assert constant.schedule is None and constant.learning_rate == 0.05


def test_the_sde_takes_the_same_steps_with_the_noise_of_each(problem):
    """dθ = -∇L_γ dt + √(η(t)/S) G dW on the grid t = Σ η_k, by hand."""
    theta = problem.model.init(rng=0)
    t1 = float(SCHEDULE.time(20))
    sol = sg.solve(problem.sde(), (0, t1), theta, n_paths=2, rng=4, t_eval="steps", save_noise=True)
    np.testing.assert_allclose(sol.t, SCHEDULE.time(np.arange(21)), rtol=1e-12)
    y = theta
    for k in range(20):
        eta, G = float(SCHEDULE(k)), problem.factor(y)
        y = y - eta * (problem.gradient(y) + 0.4 * y) + np.sqrt(eta / 2) * G @ sol.dW[1, k]
        np.testing.assert_allclose(sol.y[1, k + 1], y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("factor", [None, "gram"])
def test_the_correction_follows_too(problem, factor):
    theta = problem.model.init(rng=0)
    for t, k in ((0.0, 0), (0.34, 6), (0.35, 7), (0.44, 11), (0.45, 12), (9.0, 99)):
        equations = problem.at_step(k).sde(factor), problem.sde(factor)
        found = []
        for equation in equations:
            made = equation.bind(0.0, theta).kernels(correction=True)
            x, out, b = theta[:, None].copy(), np.empty((theta.size, 1)), np.full(1, t)
            made.correction(out, x, b, made.p, made.data, np.full(made.work[0] + made.work[1], np.nan))
            found.append(out)
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12 * np.abs(found[0]).max())


def test_the_charge_law_of_a_schedule(make_problem):
    """Mean over paths of ΔC minus its exact one-step means: within 5 standard errors, and not with one σ² for all."""
    problem = make_problem(learning_rate=schedules.step(0.01, {20: 0.04}), n=6)
    A = problem.model.symmetries()["B=I"]
    theta = problem.model.init(rng=0)
    law = sg.ChargeLaw(sg.Charge(A), problem)
    runs = [
        problem.run(theta, 60, n_paths=2000, rng=1, track=law),
        sg.solve(problem.sde(), (0, 20 * 0.01 + 40 * 0.04), theta, n_paths=2000, rng=1, track=law),
    ]
    for sol in runs:
        report = law.report(sol)
        left = (report.delta - report.noise - report.gradient - report.decay)[:, -1]
        assert abs(left.mean()) < 5 * left.std() / np.sqrt(2000)
        wrong = left + (report.noise - report.noise * 0.01 / 0.04)[:, -1]
        assert abs(wrong.mean()) > 5 * wrong.std() / np.sqrt(2000)
    with pytest.raises(sg.ArgumentError, match="dt must be that of step"):
        law.report(sg.solve(problem.sde(), (0, 1.0), theta, dt=0.01, rng=1, track=law))
    with pytest.raises(sg.ArgumentError, match="track_every must be 1"):
        law.report(problem.run(theta, 60, rng=1, track=law, track_every=3))


def test_it_prints_pickles_and_is_replaced(problem):
    again = pickle.loads(pickle.dumps(problem))
    assert repr(again) == repr(problem) and "learning_rate=step(0.05, {7: 0.02, 12: 0.08})" in repr(problem)
    other = problem.replace(learning_rate=0.1, gamma=0.0)
    assert (other.learning_rate, other.gamma, other.schedule, other.X is problem.X) == (0.1, 0.0, None, True)
    with pytest.raises(sg.ArgumentError, match=r"replace takes learning_rate, .*, got weight_decay"):
        problem.replace(weight_decay=1.0)
