"""Orders of SGD against its SDE from exact moments, and then, on a network, from runs."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import comb

import sgdsde as sg
from sgdsde import ArgumentError, ModelError
from sgdsde.comparison._means import square
from sgdsde.sgd.steps import svag_weights

A = np.array([0.4, 1.9])
B = np.array([0.5, -0.8])
FEW = [0.2, 0.1, 0.05]
RATES = 0.01 / 2.0 ** np.arange(5)
POWERS = {"θ": 1, "θ²": 2, "θ³": 3, "θ⁴": 4}
OF = {name: (lambda y, k=k: y[:, 0] ** k) for name, k in POWERS.items()}
MANY = np.array([12, 4])
"""How often each of the two samples is there: not as often, so that gradients have a third cumulant."""
START, TIME = 1.2, 1.0


def linear(eta, **more):
    """ℓ_i = ½A_i(θ - B_i)²: gradients that are linear in θ, so that moments up to any order close."""
    model = sg.models.LinearRegression(1, biases=False, scale=0.5)
    X, Y = np.repeat(np.sqrt(A), MANY)[:, None], np.repeat(np.sqrt(A) * B, MANY)
    return sg.SGD(model, X, Y, learning_rate=eta, **more)


def powers_of(start):
    return start ** np.arange(5)


def exact_sgd(problem):
    """E θ_n^k, k = 0 … 4, by enumeration of all batches: the matrix of one step."""
    S, gamma, h = problem.batch_size, problem.gamma, problem.learning_rate
    weights = 1.0, 0.0
    if problem.optimizer is not None:
        l = problem.optimizer.l
        weights, h = svag_weights(l), h / l
    slope, level = A, A * B
    counts = np.arange(S + 1)
    chance = comb(S, counts) * 0.25**counts * 0.75 ** (S - counts)
    if not problem.replacement:
        chance = comb(MANY[1], counts) * comb(MANY[0], S - counts) / comb(MANY.sum(), S)
    share = np.stack([1 - counts / S, counts / S], axis=1)
    step = np.zeros((5, 5))
    for p, u in zip(chance, share):
        for q, v in zip(chance, share):
            c = weights[0] * u + weights[1] * v
            a, b = 1 - h * (c @ slope + 2 * gamma), h * (c @ level)
            for k in range(5):
                for j in range(k + 1):
                    step[k, j] += p * q * comb(k, j) * a**j * b ** (k - j)
    n = round(TIME / h)
    return dict(zip(POWERS, (np.linalg.matrix_power(step, n) @ powers_of(START))[1:]))


def exact_sde(order):
    """E X^k from the generator: d E X^k = k E X^{k-1}f + ½k(k-1) E X^{k-2} b²."""

    def means(problem):
        x = np.array([0.0, 1.0, 2.0])
        gradient = np.array([problem.gradient([one])[0] + 2 * problem.gamma * one for one in x])
        drift = np.polynomial.Polynomial.fit(x, -gradient, 1).convert()
        if order == 2:  # f - (η/2) f f'
            drift = drift - 0.5 * problem.learning_rate * drift * drift.deriv()
        square = 2 * problem.noise_scale * np.array([problem.covariance([one])[0, 0] for one in x])
        noise = np.polynomial.Polynomial.fit(x, square, 2).convert()
        rate = np.zeros((5, 5))
        for k in range(1, 5):
            for j, c in enumerate(drift.coef):
                rate[k, k - 1 + j] += k * c
            for j, c in enumerate(noise.coef):
                if k >= 2:
                    rate[k, k - 2 + j] += 0.5 * k * (k - 1) * c
        return dict(zip(POWERS, (expm(TIME * rate) @ powers_of(START))[1:]))

    return means


def exact(problem, order=1, rates=RATES, **more):
    return sg.weak_error(
        problem, [START], TIME, rates, functions=OF, order=order,
        exact_sgd=exact_sgd, exact_sde=exact_sde(order), **more,
    )  # fmt: skip


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("more", [{}, {"batch_size": 3, "gamma": 0.1}, {"replacement": False, "batch_size": 5}])
def test_orders_one_and_two_without_monte_carlo(order, more):
    result = exact(linear(0.1, **more), order)
    for name in POWERS:  # one may have a leading term that is small, and look like more
        last = result[name].errors[-2:]
        assert np.log2(last[0] / last[1]) > order - 0.05, result.explain()
    assert result.verdict == "consistent" and result.n_paths == 0
    wrong = exact(linear(0.1, **more), order, expected=3 - order)
    assert wrong.verdict == "inconsistent"


def test_the_error_of_order_one_is_that_of_the_closed_form():
    """ℓ_i = ½a_iθ²: E θ_n² = (1 - 2ηa + η²(a² + v))ⁿ against e^{(-2a + ηv)t}, a = 1, v = 1/2, t = 2."""
    a = np.array([1 - 0.5**0.5, 1 + 0.5**0.5])
    model = sg.models.LinearRegression(1, biases=False, scale=0.5)
    problem = sg.SGD(model, np.sqrt(np.abs(a))[:, None], [0.0, 0.0], learning_rate=0.1)
    wanted = {1: [6.7e-3, 3.5e-3, 1.8e-3, 9.1e-4], 2: [6.9e-4, 1.4e-4, 3.3e-5, 7.9e-6]}
    for order, errors in wanted.items():
        found = sg.weak_error(
            problem, [1.0], 2.0, [0.2, 0.1, 0.05, 0.025], order=order,
            exact_sgd=lambda p: np.mean((1 - p.learning_rate * a) ** 2) ** round(2 / p.learning_rate),
            exact_sde=lambda p, o=order: np.exp(2 * (-2 - (o - 1) * p.learning_rate + 0.5 * p.learning_rate)),
        )  # fmt: skip
        assert found.deciding.errors == pytest.approx(errors, rel=0.06)


def test_at_fixed_temperature_a_part_of_T_squared_stays_and_svag_has_none():
    """The third cumulant: seen by θ³, not by θ and θ², whose order is one; SVAG is of order one for all."""
    T, sizes = 1 / 640, 2.0 ** np.arange(5)[::-1]
    batches = exact(linear(T, batch_size=1), rates=T * sizes, scale="batch_size")
    assert batches["θ²"].verdict == "consistent"
    assert batches.batch_sizes.tolist() == [16, 8, 4, 2, 1]
    # extrapolated to η = 0 something is left, and it falls like T²
    left = []
    for t in (T, T / 2):
        found = exact(linear(t, batch_size=1), rates=t * sizes, scale="batch_size")
        d = {name: found.difference[name] for name in ("θ²", "θ³")}
        fits = {name: np.polyfit(found.learning_rates, one, 4)[-1] for name, one in d.items()}
        assert abs(fits["θ²"]) < 1e-4 * abs(fits["θ³"])
        left.append(fits["θ³"])
    assert left[0] / left[1] == pytest.approx(4.0, rel=0.1)
    svag = exact(linear(0.1), rates=0.1 / 2.0 ** np.arange(2, 7), scale="svag")
    assert svag.verdict == "consistent" and all(svag[name].verdict == "consistent" for name in POWERS)


def test_runs_agree_with_exact_means():
    """Both sides, with control variates and without, on each scale."""
    problem, of = linear(0.2, batch_size=2), {"θ": OF["θ"], "θ³": OF["θ³"]}
    for scale, rates in (
        ("learning_rate", [0.25, 0.2, 0.125]),
        ("batch_size", [0.5, 0.2, 0.1]),
        ("svag", [0.2, 0.1, 0.05]),
    ):
        for control in (True, False) if scale == "svag" else (True,):
            found = sg.weak_error(
                problem,
                [START],
                TIME,
                rates,
                functions=of,
                scale=scale,
                n_paths=1000,
                rng=1,
                refine=2,
                control_variate=control,
            )
            levels = _levels(problem, rates, scale)
            for name in of:
                wanted = np.array([[exact_sgd(a)[name], exact_sde(1)(b)[name]] for a, b in levels]).T
                assert (abs(found.sgd[name] - wanted[0]) < 5 * found.sgd_stderr[name]).all()
                assert (abs(found.sde[name] - wanted[1]) < 5 * found.sde_stderr[name] + 1e-3).all()
                assert (found.variance_reduction[name] > 1.3) == control
                both = np.hypot(found.sgd_stderr[name], found.sde_stderr[name])
                assert found.difference_stderr[name] == pytest.approx(both, rel=0.2)  # independent


def _levels(problem, rates, scale):
    from sgdsde.comparison._weak_error_levels import make_levels

    return [(level.sgd, level.of_sde) for level in make_levels(problem, TIME, rates, scale)]


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 1))
    model = sg.models.MLP([1, 2, 1], "tanh", scale=0.5)
    problem = sg.SGD(model, X, np.sin(2 * X), learning_rate=0.2, batch_size=8, gamma=0.01)
    return problem, 2.5 * model.init(rng=2)


@pytest.mark.parametrize("order", [1, 2])
def test_an_order_with_its_interval_on_a_network(network, order):
    problem, theta0 = network
    of = {"loss": problem.loss, "|θ|²": square}
    found = sg.weak_error(problem, theta0, 0.6, FEW, functions=of, order=order, n_paths=1000, rng=0, refine=2)
    one = found["|θ|²"]
    assert one.verdict == "consistent" and np.ptp(one.interval) < 0.6, found.explain()
    assert found.variance_reduction["|θ|²"] > 5
    # the error of the loss at order 2 is too small to be seen with so few paths, and no order is made of it
    assert found["loss"].verdict == ("consistent" if order == 1 else "inconclusive")
    assert found.verdict == found["loss"].verdict and (order == 1 or "standard errors" in found.reason)
    assert "η" in found.explain() and f"SDE of order {order}" in found.explain()


def test_a_wrong_order_is_inconsistent(network):
    problem, theta0 = network
    found = sg.weak_error(problem, theta0, 0.6, FEW, n_paths=500, rng=0, refine=1, expected=2)
    assert found.verdict == "inconsistent"


def test_levels_at_fixed_temperature_share_their_samples():
    found = sg.weak_error(linear(0.1), [START], TIME, [0.2, 0.1, 0.5], scale="batch_size", n_paths=500, rng=0)
    assert found.learning_rates.tolist() == [0.5, 0.2, 0.1] and found.batch_sizes.tolist() == [5, 2, 1]
    assert np.ptp(found.sde["|y|²"]) == 0.0  # one equation


@pytest.mark.parametrize("changes, error, words", [
    ({"problem": 3.0}, ArgumentError, "problem must be an SGD problem"),
    ({"problem": linear(sg.schedules.step(0.1, {3: 0.2}))}, ModelError, "problem must have a constant learning rate"),
    ({"problem": linear(0.1, optimizer=sg.optimizers.Adam())}, ModelError, "Adam has no SDE"),
    ({"problem": linear(0.1, optimizer=sg.optimizers.SVAG(2)), "scale": "svag"}, ModelError, "without an optimizer"),
    ({"problem": linear(0.1, replacement=False), "scale": "batch_size"}, ModelError, "with replacement"),
    ({"learning_rates": [0.1, 0.05]}, ArgumentError, "learning_rates must be at least 3"),
    ({"learning_rates": [0.1, 0.05, 0.05]}, ArgumentError, "learning_rates must be at least 3 different"),
    ({"learning_rates": "fast"}, ArgumentError, "learning_rates must be a sequence"),
    ({"learning_rates": [0.1, 0.05, 0.03]}, ArgumentError, "time = 1 must be a whole number of steps"),
    ({"learning_rates": [0.1, 0.2, 2.0], "scale": "batch_size"}, ArgumentError, "batches above N = 16, got 20"),
    ({"learning_rates": [0.1, 0.2, 0.25], "scale": "batch_size"}, ArgumentError, "must be multiples of η/S"),
    ({"learning_rates": [0.1, 0.05, 0.04], "scale": "svag"}, ArgumentError, "learning_rates must be η/l"),
    ({"scale": "both"}, ArgumentError, "scale must be one of"),
    ({"order": 2, "scale": "svag"}, ArgumentError, "order must be 1 with scale='svag'"),
    ({"order": 3}, ArgumentError, "order must be 1 or 2"),
    ({"theta0": [1.0, 2.0]}, sg.ShapeError, "theta0 must have shape"),
    ({"n_paths": 5}, ArgumentError, "n_paths must be at least 100"),
    ({"exact_sgd": 3.0}, ArgumentError, "exact_sgd must be a function of a problem"),
    ({"exact_sgd": lambda p: {"no": 1.0}, "exact_sde": lambda p: 1.0}, ArgumentError, "exact_sgd must return the mean"),
])  # fmt: skip
def test_arguments_are_named(changes, error, words):
    arguments = {"problem": linear(0.1), "theta0": [START], "time": TIME, "learning_rates": [0.2, 0.1, 0.05]} | changes
    with pytest.raises(error, match=words):
        sg.weak_error(**arguments)


@pytest.mark.parametrize("error, verdict", [
    (lambda h: h * (1 + 0.2 * h), "consistent"),
    (lambda h: h * (1 + 2.0 * h**0.75), "inconclusive"),  # on its way to order 1, and slow
    (lambda h: h + 0.05, "inconsistent"),  # a floor: the order falls away from 1
    (lambda h: h**1.5, "inconsistent"),
    (lambda h: h * (h - 0.08), "inconclusive"),  # changes its sign
])  # fmt: skip
def test_verdicts_on_known_errors(error, verdict):
    found = sg.weak_error(
        linear(0.1), [START], TIME, FEW, exact_sgd=lambda p: 1.0 + error(p.learning_rate), exact_sde=lambda p: 1.0
    )
    assert found.verdict == verdict, found.explain()
    assert verdict != "inconclusive" or "towards 1" in found.reason or "sign" in found.reason


def test_equal_means_are_exact():
    found = sg.weak_error(linear(0.1), [START], TIME, FEW, exact_sgd=lambda p: 1.0, exact_sde=lambda p: 1.0)
    assert found.verdict == "exact"
