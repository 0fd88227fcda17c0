"""Factors of the covariance: all have FFᵀ = Σ, and the paths they give agree where they should."""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import DeepLinear, Population, Product, uw_gauss, uw_label
from sgdsde.sgd.factors import cholesky, gram

THETA = np.random.default_rng(7).standard_normal(10)


def test_every_factor_is_one_of_the_covariance(make_problem, model):
    problem = make_problem(model)
    theta = np.random.default_rng(1).standard_normal(model.dim)
    sigma = problem.covariance(theta)
    size = np.trace(sigma)
    for factor, tolerance in ((None, 1e-13), ("per-sample", 1e-13), ("gram", 1e-12), ("cholesky", 1e-8)):
        F = problem.factor(theta, factor)
        assert np.abs(F @ F.T - sigma).max() <= tolerance * size
    assert np.abs(problem.factor(theta, "gram") - problem.factor(theta, "gram").T).max() <= 1e-13 * np.sqrt(size)
    assert np.linalg.eigvalsh(problem.factor(theta, "gram"))[0] >= -1e-12 * np.sqrt(size)


def test_the_covariance_is_one(make_problem, model):
    """Property 23."""
    problem = make_problem(model, n=4)
    theta = np.random.default_rng(1).standard_normal(model.dim)
    sigma, g, mean = problem.covariance(theta), problem.per_sample_gradients(theta), problem.gradient(theta)
    values = np.linalg.eigvalsh(sigma)
    assert values[0] >= -model.dim * np.finfo(float).eps * values[-1]
    assert np.sum(values > 1e-12 * values[-1]) <= 3
    assert np.trace(sigma) == pytest.approx(np.square(g).sum(axis=1).mean() - mean @ mean, rel=1e-11)
    found_mean, found_var = problem.gradient_moments(theta)
    assert found_mean == pytest.approx(mean) and found_var == pytest.approx(np.diag(sigma), rel=1e-11)


def test_a_leak_along_a_symmetry_is_measured(make_problem, model):
    problem = make_problem(model)
    theta = np.random.default_rng(2).standard_normal(model.dim)
    for A in model.symmetries().values():
        for factor in (None, "per-sample", "gram"):
            assert problem.factor_leak(theta, A, factor) <= 1e-14
        assert 1e-9 < problem.factor_leak(theta, A, "cholesky") < 1e-5
        direction = A.apply(theta)
        assert problem.factor_leak(theta, A, direction) == pytest.approx(1.0)
        assert problem.factor_leak(theta, A.matrix, direction) == pytest.approx(1.0)
        assert problem.factor_leak(0 * theta, A) == 0.0
        assert problem.factor_leak(theta, A, np.eye(model.dim)) == pytest.approx(model.dim**-0.5)
    with pytest.raises(ArgumentError, match="A must be a Generator or a matrix"):
        problem.factor_leak(theta, np.eye(model.dim + 1))


def paths(problem, theta, factor, dW, method="euler-maruyama"):
    return sg.solve(problem.sde(factor), (0, 0.5), theta, n_paths=len(dW), rng=0, dt=0.05, dW=dW, method=method).y[
        :, -1
    ]


def noise(m, n_paths=3, n_steps=10, seed=3):
    return np.sqrt(0.05) * np.random.default_rng(seed).standard_normal((n_paths, n_steps, m))


@pytest.mark.parametrize("method", ["euler-maruyama", "milstein-symmetric"])
def test_matrix_free_and_explicit_factor_agree_path_by_path(make_problem, model, method):
    problem = make_problem(model, n=5, learning_rate=0.05, batch_size=4)
    theta = 0.5 * np.random.default_rng(3).standard_normal(model.dim)
    for name in model.factors:
        dW = noise(problem.sde(name).noise_dim)
        free = paths(problem, theta, name, dW, method)
        explicit = paths(problem, theta, lambda x, name=name: problem.factor(x, name), dW, method)
        rel = 1e-12 if method == "euler-maruyama" else 1e-8  # differences of columns in place of the exact correction
        assert free == pytest.approx(explicit, rel=rel, abs=rel)
        assert np.abs(free - theta).max() > 1e-2


def test_a_turned_factor_with_turned_noise_gives_the_same_path(make_problem, model):
    """Property 26: G -> GO with ξ -> Oᵀξ."""
    problem = make_problem(model, learning_rate=0.05)
    theta = 0.5 * np.random.default_rng(3).standard_normal(model.dim)
    turn, _ = np.linalg.qr(np.random.default_rng(4).standard_normal((5, 5)))
    dW = noise(5)
    plain = paths(problem, theta, "per-sample", dW)
    turned = paths(problem, theta, lambda x: problem.factor(x, "per-sample") @ turn, dW @ turn)
    assert turned == pytest.approx(plain, rel=1e-11, abs=1e-11)
    assert paths(problem, theta, "per-sample", dW @ turn) != pytest.approx(plain, rel=1e-3)


def test_constant_and_function_that_is_constant_agree(make_problem, model):
    problem = make_problem(model, learning_rate=0.05)
    theta = 0.5 * np.random.default_rng(3).standard_normal(model.dim)
    F = np.random.default_rng(4).standard_normal((model.dim, 2))
    assert problem.sde(F).noise == "additive" and problem.sde(F[:, 0]).noise_dim == 1
    for method in ("euler-maruyama", "milstein-symmetric"):
        constant = paths(problem, theta, F, noise(2), method)
        assert constant == pytest.approx(paths(problem, theta, lambda x: F, noise(2), method), rel=1e-12, abs=1e-12)


def test_without_noise_the_sde_is_euler_for_the_gradient_flow(make_problem):
    problem = make_problem(batch_size=5, replacement=False)
    assert problem.noise_scale == 0.0
    theta = THETA.copy()
    for _ in range(10):
        theta = theta - 0.05 * (problem.gradient(theta) + 2 * problem.gamma * theta)
    assert paths(problem, THETA, None, noise(5))[0] == pytest.approx(theta, rel=1e-12)


def test_the_rank_one_factor_of_a_population():
    for law, q in ((uw_gauss(0.7, 0.5), lambda v: 2 * (v - 0.7) ** 2 + 0.25), (uw_label(0.7, 0.5), lambda v: 0.25)):
        problem = sg.SGD(Product(scale=0.5), law, learning_rate=0.02, batch_size=4)
        equation = problem.sde()
        assert (equation.noise_dim, equation.noise, equation.default_dt) == (1, "scalar", 0.02)
        u, w = 1.2, -0.3
        found = problem.factor([u, w])[:, 0]
        assert found == pytest.approx(np.sqrt(q(u * w)) * np.array([w, u]), rel=1e-12)
        assert problem.gradient([u, w]) == pytest.approx((u * w - 0.7) * np.array([w, u]), rel=1e-12)
        with pytest.raises(ModelError, match="need samples"):
            problem.sde("per-sample")
        bare = sg.SGD(Product(), Population(*list(vars(law).values())[:6]), learning_rate=0.02)
        with pytest.raises(ModelError, match=r"discrete SGD draws samples.*run problem.sde\(\)"):
            bare.run([u, w], 10)


def test_the_gram_root_of_nothing_and_of_rank_one():
    assert not gram(np.zeros((4, 3))).any() and not cholesky(np.zeros((3, 3))).any()
    b = np.array([[1.0], [2.0]])
    assert gram(b) == pytest.approx(b @ b.T / np.sqrt(5.0), rel=1e-14)
    with pytest.raises(ModelError, match="no Cholesky factor"):
        cholesky(np.diag([1.0, -1.0, 3.0]))


def test_wrong_factors_are_refused(make_problem):
    problem = make_problem()
    with pytest.raises(ArgumentError, match="factor must be one of 'per-sample', 'gram', 'cholesky', 'low-rank'"):
        problem.sde("sqrt")
    with pytest.raises(ShapeError, match=r"factor must have shape \(10, m\)"):
        problem.sde(np.ones((9, 2)))
    with pytest.raises(ArgumentError, match="factor must be finite"):
        problem.sde(np.full((10, 2), np.nan))
    for function, error, message in (
        (lambda x: np.ones((9, 2)), ShapeError, r"factor must return shape \(10, m\), got \(9, 2\)"),
        (lambda x: np.ones(10), ShapeError, r"got \(10,\)"),
        (lambda x: 1j * np.ones((10, 1)), ModelError, "real numbers"),
        (lambda x: np.full((10, 1), np.nan), ModelError, "finite at the start"),
    ):
        with pytest.raises(error, match=message):
            sg.solve(problem.sde(function), (0, 1), THETA)


def test_what_a_function_raises_on_the_way_is_raised(make_problem):
    problem = make_problem()
    calls = []

    def failing(theta):
        calls.append(1)
        if len(calls) > 3:
            raise ZeroDivisionError("on the way")
        return np.ones((10, 2))

    with pytest.raises(ZeroDivisionError, match="on the way"):
        sg.solve(problem.sde(failing), (0, 1), THETA)
    assert len(calls) == 4

    def growing(theta):
        calls.append(1)
        return np.ones((10, len(calls)))

    with pytest.raises(ShapeError, match="as at the start"):
        sg.solve(problem.sde(growing), (0, 1), THETA)


def test_a_network_of_one_layer_has_every_factor():
    rng = np.random.default_rng(0)
    problem = sg.SGD(DeepLinear([2, 1]), rng.standard_normal((6, 2)), rng.standard_normal(6), learning_rate=0.1)
    assert problem.factor([1.0, 2.0]).shape == (2, 6)
    assert problem.covariance([1.0, 2.0]) == pytest.approx(
        problem.factor([1.0, 2.0], "gram") @ problem.factor([1.0, 2.0], "gram")
    )


def test_a_lambda_for_a_factor_is_pickled_with_its_equation(make_problem):
    problem = make_problem()
    theta = np.ones(problem.model.dim)
    width = 3
    equation = problem.sde(lambda x: np.outer(x, np.arange(1.0, width)))
    again = pickle.loads(pickle.dumps(equation))
    one, other = (sg.solve(each, (0, 0.3), theta, rng=0).y for each in (equation, again))
    assert np.array_equal(one, other) and not np.array_equal(one[0], one[-1])
