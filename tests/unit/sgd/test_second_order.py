"""The modified equation of order 2: its drift against differences; orders of both equations without sampling."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import DeepLinear, Product, uw_gauss
from sgdsde.sgd.optimizers import SVAG


def drift(equation, theta, h=1.0):
    made = equation.bind(0.0, theta).kernels()
    x, out = theta[:, None].copy(), np.empty((theta.size, 1))
    work = np.full(made.work[0] + made.work[1], np.nan)
    v = np.zeros((equation.noise_dim, 1))
    made.increment(out, x, np.zeros(1), np.full(1, h), v, made.p, made.data, work)
    return out[:, 0]


@pytest.mark.parametrize("factor", [None, "gram"])
def test_the_drift_is_the_gradient_of_the_modified_loss(make_problem, model, factor):
    """-∇(L_γ + (η/4)‖∇L_γ‖²), the gradient of the second term by central differences of ‖∇L_γ‖²."""
    problem = make_problem(model, learning_rate=0.3)
    theta = np.random.default_rng(4).standard_normal(model.dim)

    def square(x):
        g = problem.gradient(x) + 2 * problem.gamma * x
        return g @ g

    e = 1e-5 * np.eye(theta.size)
    slope = np.array([(square(theta + u) - square(theta - u)) / 2e-5 for u in e])
    wanted = -(problem.gradient(theta) + 2 * problem.gamma * theta) - 0.3 / 4 * slope
    found = drift(problem.sde(factor, order=2), theta)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * np.abs(slope).max())
    np.testing.assert_allclose(drift(problem.sde(factor, order=2), theta, 0.25), found / 4, rtol=1e-12)
    assert np.abs(found - drift(problem.sde(factor), theta)).max() > 1e-3 * np.abs(found).max()


def test_noise_and_correction_are_those_of_order_one(make_problem, model):
    problem = make_problem(model)
    theta = np.random.default_rng(4).standard_normal(model.dim)
    results = []
    for order in (1, 2):
        equation = problem.sde(order=order).bind(0.0, theta)
        made = equation.kernels(correction=True)
        x = np.tile(theta[:, None], (1, 3))
        v = np.ascontiguousarray(np.random.default_rng(0).standard_normal((equation.noise_dim, 3)))
        out, c = np.empty_like(x), np.empty_like(x)
        work = np.full(made.work[0] + 3 * made.work[1], np.nan)
        made.increment(out, x, np.zeros(3), np.zeros(3), v, made.p, made.data, work)
        made.correction(c, x, np.zeros(3), made.p, made.data, work)
        results.append((out, c))
    assert np.array_equal(results[0][0], results[1][0]) and np.array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize(("size", "replacement"), [(1, True), (2, True), (2, False)])
def test_weak_orders_one_and_two_without_sampling(size, replacement):
    """ℓ_i = ½a_iθ². E θ_n² of SGD is a power, by enumeration of batches; E X_t² of each SDE is exp(λt), λX² = 2Xf + g².

    Q. Li, C. Tai, W. E 2019, section 5: errors at t = 2 fall by 2 and by 4 as η is halved.
    """
    import itertools

    x = np.array([0.3, 0.8, 1.1, 0.6])
    errors = {1: [], 2: []}
    for eta in (0.1, 0.05, 0.025, 0.0125):
        problem = sg.SGD(
            DeepLinear([1, 1]), x, 0 * x, learning_rate=eta, batch_size=size, replacement=replacement, gamma=0.05
        )
        draw = itertools.product(range(4), repeat=2) if replacement else itertools.combinations(range(4), 2)
        batches = [(i,) for i in range(4)] if size == 1 else list(draw)
        factors = [(1 - eta * (2 * (x[list(batch)] ** 2).mean() + 0.1)) ** 2 for batch in batches]
        exact = np.mean(factors) ** round(2 / eta)
        for order in (1, 2):
            equation = problem.sde(order=order)
            one = np.ones(1)
            rate = 2 * drift(equation, one)[0] + 2 * problem.noise_scale * problem.covariance(one)[0, 0]
            errors[order].append(abs(np.exp(2 * rate) - exact))
    for order in (1, 2):
        slopes = np.log2(np.array(errors[order][:-1]) / errors[order][1:])
        assert np.all(np.abs(slopes - order) < 0.3) and abs(slopes[-1] - order) < 0.1, slopes
    assert errors[2][-1] < errors[1][-1] / 20


def test_it_runs(make_problem):
    problem = make_problem(learning_rate=0.02)
    theta = problem.model.init(rng=0)
    one, two = (sg.solve(problem.sde(order=k), (0, 1), theta, n_paths=3, rng=0).y for k in (1, 2))
    assert 1e-5 < np.abs(one - two)[:, -1].max() < 0.1
    for how in ({"block_size": 1}, {"chunk_steps": 3}):
        assert np.array_equal(sg.solve(problem.sde(order=2), (0, 1), theta, n_paths=3, rng=0, **how).y, two)
    assert repr(problem.sde(order=2)).endswith("order=2)")
    law = sg.SGD(Product(), uw_gauss(), learning_rate=0.1)
    assert np.isfinite(drift(law.sde(order=2), np.array([1.2, 0.7]))).all()


def test_what_has_no_order_two(make_problem):
    with pytest.raises(sg.ArgumentError, match="order must be 1 or 2, got 3"):
        make_problem().sde(order=3)
    for settings in ({"optimizer": SVAG(2)}, {"learning_rate": sg.schedules.cosine(0.1, 9, 0.01)}):
        with pytest.raises(sg.ModelError, match="order must be 1 with a schedule or an optimizer"):
            make_problem(**settings).sde(order=2)


def test_laws_of_order_one_are_refused(make_problem):
    """The drift of order 2 moves a charge by what its law of order 1 does not have."""
    problem = make_problem()
    theta = problem.model.init(rng=0)
    A = problem.model.symmetries()["B=I"]
    for how in (
        {"project": sg.OrbitProjection(A, problem)},
        {"track": sg.ChargeLaw(sg.Charge(A), problem)},
        {"track": sg.FluctuationDissipation(problem)},
    ):
        assert sg.solve(problem.sde(), (0, 0.2), theta, dt=0.1, rng=0, **how).success
        with pytest.raises(sg.ArgumentError, match="SDE of order 1, and this is of order 2"):
            sg.solve(problem.sde(order=2), (0, 0.2), theta, dt=0.1, rng=0, **how)
    other = problem.replace(gamma=0.3)
    with pytest.raises(sg.ArgumentError, match="the relations are of .*, but the run is of"):
        other.run(theta, 3, rng=0, track=sg.FluctuationDissipation(problem))
    with pytest.raises(sg.ArgumentError, match="theta must be finite"):
        problem.validity(np.full(theta.size, np.nan))
    for wrong in (2.0, True):
        with pytest.raises(sg.ArgumentError, match="order must be 1 or 2"):
            problem.sde(order=wrong)
