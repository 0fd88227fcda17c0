"""Models made of a person's loss and gradient: equal to ours on the same problem, checked, compiled or in Python."""

import pickle
import warnings

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError
from sgdsde.models import _foreign_source, from_functions
from sgdsde.models._foreign_passes import _registered

X, Y = np.array([1.0, 2.0, -1.0, 0.5]), np.array([0.5, 1.0, 1.0, -2.0])
THETA = np.array([1.0, 2.0])
SETTINGS = {"learning_rate": 0.05, "gamma": 0.03}


def loss(theta, x, y, scale):
    return scale * (theta[0] * theta[1] * x - y) ** 2


def gradient(theta, x, y, scale):
    r = 2.0 * scale * (theta[0] * theta[1] * x - y) * x
    return np.array([r * theta[1], r * theta[0]])


class Called:
    """A function that numba does not compile."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)


def make(kind="compiled", **options):
    options = {"dim": 2, "args": (0.5,), "symmetries": {"u/w": np.diag([1.0, -1.0])}, **options}
    if kind == "compiled":
        return from_functions(loss, gradient, **options)
    return from_functions(Called(loss), Called(gradient), **options)


@pytest.fixture(scope="module", params=["compiled", "python"])
def pair(request):
    """The same problem, of functions and of our own model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        made = sg.SGD(make(request.param), X, Y, **SETTINGS)
    return made, sg.SGD(sg.models.Product(scale=0.5), X, Y, **SETTINGS)


def test_values_at_a_state_are_those_of_our_own_model(pair):
    made, own = pair
    for name in ("loss", "gradient", "per_sample_losses", "per_sample_gradients", "covariance"):
        assert getattr(made, name)(THETA) == pytest.approx(getattr(own, name)(THETA), rel=1e-14, abs=1e-14), name
    c = np.array([0.5, 0.0, -2.0, 0.0])
    wanted = c @ own.per_sample_gradients(THETA)
    assert made.model.weighted_gradient(THETA, c, made.samples) == pytest.approx(wanted, rel=1e-14)
    A = made.model.symmetries()["u/w"]
    assert sg.Charge(A).rate(made, THETA) == pytest.approx(sg.Charge(A).rate(own, THETA), rel=1e-13)
    assert sg.check_symmetry(made, A)
    assert not sg.check_symmetry(made, np.diag([1.0, 1.0]))


def test_second_derivatives_are_differences_of_gradients(pair):
    made, own = pair
    v, c = np.array([0.3, -1.0]), np.array([0.5, -1.0, 2.0, 0.0])
    wanted = own.model.hessian_vector(THETA, v, own.samples, c)
    assert made.model.hessian_vector(THETA, v, made.samples, c) == pytest.approx(wanted, rel=1e-7)
    assert np.array_equal(made.model.hessian_vector(THETA, 0 * v, made.samples), np.zeros(2))


@pytest.mark.parametrize("method", ["euler-maruyama", "milstein-symmetric"])
def test_paths_of_the_sde_are_those_of_our_own_model(pair, method):
    made, own = pair
    runs = {"t_span": (0, 1), "y0": THETA, "n_paths": 5, "rng": 3, "method": method}
    found = sg.solve(made.sde(), **runs).y
    # The correction is a difference: some 1e-10 relative.
    assert found == pytest.approx(sg.solve(own.sde("per-sample"), **runs).y, rel=1e-9)
    again = sg.solve(made.sde(), **runs, threads=2, block_size=2).y
    assert np.array_equal(found, again)


@pytest.mark.parametrize("optimizer", [None, sg.optimizers.HeavyBall(0.5), sg.optimizers.SVAG(3)])
def test_steps_of_sgd_are_those_of_our_own_model(pair, optimizer):
    made, own = (one.replace(optimizer=optimizer, batch_size=2) for one in pair)
    found = made.run(THETA, 40, n_paths=3, rng=5).y
    assert found == pytest.approx(own.run(THETA, 40, n_paths=3, rng=5).y, rel=1e-13)


def test_all_laws_hold(pair):
    made, _ = pair
    ratios = sg.testing.assert_laws(made, made.model.symmetries()["u/w"], THETA)
    assert max(ratios.values()) <= 1 and "assert_discrete_law" in ratios


def test_the_charge_law_is_followed(pair):
    made, own = pair
    charge = sg.Charge(made.model.symmetries()["u/w"])
    reports = []
    for problem in (made, own):
        law = sg.ChargeLaw(charge, problem)
        reports.append(law.report(problem.run(THETA, 30, n_paths=2, rng=0, track=law), size=False))
    for term in ("delta", "noise", "gradient", "decay"):
        assert getattr(reports[0], term) == pytest.approx(getattr(reports[1], term), rel=1e-10), term


def test_order_two_and_validity(pair):
    made, own = pair
    found, wanted = (sg.solve(p.sde("per-sample", order=2), (0, 0.5), THETA, rng=1).y for p in pair)
    assert found == pytest.approx(wanted, rel=1e-8)
    assert made.validity(THETA).sharpness == pytest.approx(own.validity(THETA).sharpness, rel=1e-6)


def test_states_that_are_not_finite_never_reach_the_functions(pair):
    made, _ = pair
    bad = np.array([np.nan, 1.0])
    assert np.isnan(made.gradient(bad)).all() and np.isnan(made.per_sample_losses(bad)).all()
    with pytest.warns(sg.DivergenceWarning):
        sol = made.replace(learning_rate=50.0).run(THETA, 200, n_paths=2, rng=0)
    assert not sol.success


def test_functions_in_python_are_not_called_with_nan():
    def strict(function):
        def checked(theta, *rest):
            assert np.isfinite(theta).all()
            return function(theta, *rest)

        return Called(checked)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        model = from_functions(strict(loss), strict(gradient), dim=2, args=(0.5,))
        problem = sg.SGD(model, X, Y, learning_rate=50.0)
    bad = np.array([np.nan, 1.0])
    assert np.isnan(problem.per_sample_losses(bad)).all() and np.isnan(problem.per_sample_gradients(bad)).all()
    assert np.isnan(model.hessian_vector(bad, THETA, problem.samples)).all()
    with pytest.warns(sg.DivergenceWarning):
        problem.run(THETA, 200, n_paths=2, rng=0)
    with pytest.warns(sg.DivergenceWarning):
        sg.solve(problem.sde(), (0, 5000), THETA, n_paths=2, rng=0, method="milstein-symmetric")


# --- the check -------------------------------------------------------------------------------------------------------


def refused(gradient, **options):
    with pytest.raises(ModelError) as caught:
        sg.SGD(from_functions(loss, gradient, **{"dim": 2, "args": (0.5,), **options}), X, Y, learning_rate=0.1)
    return str(caught.value)


def test_a_wrong_gradient_is_refused_with_the_component_and_what_was_wanted():
    def wrong(theta, x, y, scale):
        r = 2.0 * scale * (theta[0] * theta[1] * x - y) * x
        return np.array([r * theta[1], 1.001 * r * theta[0]])

    start = np.array([1.0, 2.0])
    message = refused(wrong, dim=None, shapes={"u": (1,), "w": (1,)}, theta0=start)
    right = gradient(start, X[0], Y[0], 0.5)
    assert "1 of 2 components differ" in message and "w[0]" in message and "u[0]" not in message
    assert f"{1.001 * right[1]:.8g}" in message and f"{right[1]:.8g}" in message


def test_a_factor_is_named():
    assert "every component is 2 times what is wanted" in refused(lambda t, x, y, s: 2.0 * gradient(t, x, y, s))


def test_many_parameters_are_tried_along_directions_and_reported_one_by_one():
    def long_loss(theta, x, y):
        return 0.5 * np.sum(theta**2) * x + y

    def wrong(theta, x, y):
        g = theta * x
        g[170] = -g[170]
        return g

    model = from_functions(long_loss, wrong, shapes={"a": (100,), "b": (10, 10)})
    with pytest.raises(ModelError, match=r"1 of 200 components differ(.|\n)*b\[7,0\]"):
        sg.SGD(model, X, Y, learning_rate=0.1)
    good = from_functions(long_loss, lambda theta, x, y: theta * x, shapes={"a": (100,), "b": (10, 10)})
    assert good.check_gradient(X, Y) and good.check_gradient(X, Y, np.full(200, 0.1))


def test_a_kink_is_no_error_and_the_check_can_be_left_out():
    def kink(theta, x, y):
        return abs(theta[0]) + theta[1] ** 2

    def slope(theta, x, y):
        return np.array([np.sign(theta[0]), 2.0 * theta[1]])

    def at_zero(theta, x, y):
        return np.array([1.0, 2.0 * theta[1]])

    for near in (1e-8, 3e-6, 6e-6, 1e-5):
        assert from_functions(kink, slope, dim=2).check_gradient(X, Y, [near, 1.0])
    assert from_functions(kink, at_zero, dim=2, theta0=[1.0, 1.0]).check_gradient(X, Y, [0.0, 1.0])
    model = from_functions(kink, lambda theta, x, y: np.zeros(2), dim=2, check=False)
    report = model.check_gradient(X, Y, [0.5, 1.0])
    assert not report and report.n_wrong == 2
    assert (sg.SGD(model, X, Y, learning_rate=0.1).gradient([1.0, 1.0]) == 0).all()


# --- what the functions may be ---------------------------------------------------------------------------------------


def test_samples_of_any_shape_and_integers_stay_integers():
    images, labels = np.random.default_rng(0).standard_normal((6, 2, 3)), np.array([0, 2, 1, 1, 0, 2])

    def square(theta, x, y, a):
        return (theta[0] * x[0, 2] + theta[1] * x[1, 0] + a[y] * theta[2 + y]) ** 2

    def slope(theta, x, y, a):
        r = 2.0 * (theta[0] * x[0, 2] + theta[1] * x[1, 0] + a[y] * theta[2 + y])
        g = np.zeros(5)
        g[0], g[1], g[2 + y] = r * x[0, 2], r * x[1, 0], r * a[y]
        return g

    a, theta = np.array([1.0, -0.5, 2.0]), np.arange(1.0, 6.0)
    model = from_functions(square, slope, shapes={"W": (2,), "b": (3, 1)}, args=(a,))
    problem = sg.SGD(model, images, labels, **SETTINGS)
    assert model.passes(problem.samples) is None  # compiled
    assert problem.Y.dtype == np.int64 and problem.X.shape == (6, 2, 3)
    wanted = [slope(theta, x, y, a) for x, y in zip(images, labels)]
    assert problem.per_sample_gradients(theta) == pytest.approx(np.array(wanted), rel=1e-14)
    assert problem.loss(theta) == pytest.approx(np.mean([square(theta, x, y, a) for x, y in zip(images, labels)]))
    assert model.unflatten(theta)["b"].shape == (3, 1)


def test_new_args_and_new_data_compile_nothing():
    sg.SGD(make(), X, Y, learning_rate=0.1)
    before = set(_foreign_source._kept)
    other = make().replace(args=(2.0,))
    problem = sg.SGD(other, X[:2], Y[:2], learning_rate=0.1)
    assert set(_foreign_source._kept) == before
    wanted = sg.SGD(sg.models.Product(scale=2.0), X[:2], Y[:2], learning_rate=0.1)
    assert problem.gradient(THETA) == pytest.approx(wanted.gradient(THETA), rel=1e-14)


def test_differences_are_asked_for_by_name():
    problem = sg.SGD(from_functions(loss, "differences", dim=2, args=(0.5,)), X, Y, **SETTINGS)
    own = sg.SGD(sg.models.Product(scale=0.5), X, Y, **SETTINGS)
    assert problem.per_sample_gradients(THETA) == pytest.approx(own.per_sample_gradients(THETA), rel=1e-8, abs=1e-9)
    in_python = problem.model.passes(sg.SGD(make("python", check=False), X, Y, **SETTINGS).samples)
    in_python._gradient = "differences"
    assert in_python.weighted(THETA, np.full(4, 0.25)) == pytest.approx(own.gradient(THETA), rel=1e-8)


def test_functions_of_which_python_and_numba_disagree_run_in_python():
    def power(theta, x, y):
        return theta[0] ** 2 * 10 ** int(-x)

    model = from_functions(power, lambda t, x, y: np.array([2.0 * t[0] * 10.0 ** int(-x)]), dim=1, theta0=[1.0])
    with pytest.warns(RuntimeWarning, match="loss power cannot be compiled"):
        problem = sg.SGD(model, [2.0, 3.0], [0.0, 0.0], learning_rate=0.1)
    assert problem.per_sample_losses([1.0]) == pytest.approx([1e-2, 1e-3])


class MyError(Exception):
    pass


@pytest.mark.parametrize("kind", [lambda f: f, Called], ids=["compiled", "python"])
def test_what_a_function_raises_reaches_the_caller(kind):
    def fails(theta, x, y):
        if theta[0] < 0.9:
            raise MyError("mine")
        return np.array([theta[0]])

    def half(theta, x, y):
        return 0.5 * theta[0] ** 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        problem = sg.SGD(from_functions(half, kind(fails), dim=1, theta0=[1.0]), X, Y, learning_rate=0.1)
    for run in (
        lambda: problem.run([1.0], 50, rng=0),
        lambda: sg.solve(problem.sde(), (0, 5), [1.0], n_paths=4, threads=2, rng=0),
        lambda: problem.gradient([0.0]),
    ):
        with pytest.raises(MyError, match="mine"):
            run()


def test_problems_travel_by_value(pair):
    made, _ = pair
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        back = pickle.loads(pickle.dumps(made))
    assert np.array_equal(back.run(THETA, 20, rng=0).y, made.run(THETA, 20, rng=0).y)
    assert back.model.symmetries()["u/w"].quadratic(THETA) == made.model.symmetries()["u/w"].quadratic(THETA)


def test_other_numbers_of_a_problem_keep_its_samples(pair):
    made, _ = pair
    assert made.replace(gamma=0.5).samples.numbers is made.samples.numbers
    assert sg.SGD(made.model, X, Y, learning_rate=0.1).samples.numbers is not made.samples.numbers


def test_a_checkpoint_knows_the_functions_and_not_where_they_lie(tmp_path):
    def started(problem):
        return problem.run(THETA, 20, rng=0, checkpoint=tmp_path / "run")

    first = sg.SGD(make(), X, Y, **SETTINGS)
    wanted = started(first).y
    _foreign_source._kept.clear()  # as in another process
    second = sg.SGD(make(), X, Y, **SETTINGS)
    assert not np.array_equal(first.samples.numbers, second.samples.numbers)
    assert np.array_equal(started(second).y, wanted)

    def shifted(theta, x, y, scale):
        return loss(theta, x, y, scale) + 1.0

    shifted.__qualname__ = loss.__qualname__
    other = from_functions(shifted, gradient, dim=2, args=(0.5,))
    assert repr(other) == repr(first.model)
    with pytest.raises(ArgumentError, match="belongs to another run"):
        started(sg.SGD(other, X, Y, **SETTINGS))


def test_nothing_stays_behind():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        problem = sg.SGD(make("python"), X, Y, learning_rate=0.1)
    number = int(problem.samples.numbers[1])
    assert number in _registered
    kept = problem.samples.numbers[2:]  # a view owns it too
    del problem
    assert number in _registered
    del kept
    assert number not in _registered
