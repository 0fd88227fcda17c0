"""Diagonal linear networks: what they are in special cases, their rescalings, laws, and step sizes."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.algebra import Generator, Scattered
from sgdsde.models import DiagonalLinear, LinearRegression, Product, uw_gauss

rng = np.random.default_rng(5)
X, Y = rng.standard_normal((20, 4)), rng.standard_normal(20)


def problem_of(model, **numbers):
    return sg.SGD(model, X[:, : model.n_inputs], Y, **{"learning_rate": 0.05, "gamma": 0.03, **numbers})


def test_depth_one_is_linear_regression():
    model, plain = DiagonalLinear(4, depth=1, scale=0.5), LinearRegression(4, biases=False, scale=0.5)
    theta = rng.standard_normal(4)
    a, b = model.samples(X, Y), plain.samples(X, Y)
    assert np.array_equal(model.coefficients(theta), theta)
    assert model.losses(theta, a) == pytest.approx(plain.losses(theta, b), rel=1e-12)
    assert model.gradient(theta, a) == pytest.approx(plain.gradient(theta, b), rel=1e-12)
    assert model.hessian_trace(theta, a) == pytest.approx(plain.hessian_trace(theta, b), rel=1e-12)
    assert not model.symmetries()


def test_depth_two_is_linear_regression_through_products():
    model = DiagonalLinear(4)
    u, w = rng.standard_normal((2, 4))
    g = -2 * X.T @ (Y - X @ (u * w)) / 20
    found = model.unflatten(model.gradient(np.concatenate([u, w]), model.samples(X, Y)))
    assert found["W1"] == pytest.approx(w * g, rel=1e-12) and found["W2"] == pytest.approx(u * g, rel=1e-12)


def test_one_input_is_a_product_bit_for_bit():
    model, product = DiagonalLinear(1, depth=3, width=2, scale=0.5), Product(2, 3, 0.5)
    theta = rng.standard_normal(6)
    assert model.shapes == product.shapes and model.factors == product.factors
    assert np.array_equal(model.init(4), product.init(4))
    law = uw_gauss(0.7, 0.4)
    for data in ((X[:, 0], Y), (law, None)):
        a, b = (sg.SGD(m, *data, learning_rate=0.01, gamma=0.1) for m in (model, product))
        assert a.loss(theta) == b.loss(theta) and np.array_equal(a.gradient(theta), b.gradient(theta))
        assert np.array_equal(a.covariance(theta), b.covariance(theta)) and a.factor(theta).shape == (6, 1)
        runs = [sg.solve(p.sde(), (0, 0.2), theta, rng=1, step_size="auto").y for p in (a, b)]
        assert np.array_equal(*runs)
    names = {k: A.matrix.tolist() for k, A in model.symmetries().items()}
    assert names == {k: A.matrix.tolist() for k, A in product.symmetries().items()}
    with pytest.raises(ModelError, match="laws of the data are of one input"):
        DiagonalLinear(2).samples(law, None)


def test_a_factor_of_zero_divides_nothing():
    model = DiagonalLinear(4, depth=3)
    theta = np.zeros(12)
    theta[:4], theta[4:8] = 1.0, 2.0
    g = model.unflatten(model.gradient(theta, model.samples(X, Y)))
    assert not g["W1"].any() and not g["W2"].any()
    assert g["W3"] == pytest.approx(-4 * X.T @ Y / 20, rel=1e-12)


def test_names_are_of_neighbours_and_units():
    assert list(DiagonalLinear(2, depth=3).symmetries()) == [
        "W1/W2", "W1/W2[0]", "W1/W2[1]", "W2/W3", "W2/W3[0]", "W2/W3[1]",
    ]  # fmt: skip
    model = DiagonalLinear(2, depth=2, width=2)
    assert list(model.symmetries())[:5] == ["W1/W2", "W1/W2[0,0]", "W1/W2[0,1]", "W1/W2[1,0]", "W1/W2[1,1]"]
    assert list(model.symmetries())[5:9] == [
        f"input0:{kind}(0,1)" for kind in ("mixing", "crossing", "twist", "rotation")
    ]
    assert list(model.symmetries()["W1/W2[1,0]"].eigenvalues) == [0, 0, 1, 0, 0, 0, -1, 0]
    assert model.rescaling(2, 1, (0, 1)).name == "W2/W1[0,1]"
    assert list(model.rescaling(2, 1, (0, 1)).eigenvalues) == [0, -1, 0, 0, 0, 1, 0, 0]
    assert len(DiagonalLinear(1000, depth=4).symmetries()) == 3003  # none is made


def test_rescalings_are_symmetries_and_others_are_not():
    model = DiagonalLinear(3, depth=3, width=2)
    problem = problem_of(model)
    for A in [*model.symmetries().values(), model.rescaling(1, 3), model.rescaling(3, 2, (2, 1))]:
        report = sg.check_symmetry(problem, A)
        assert report, str(report)
    up, down = (np.eye(18)[k] for k in (0, 7))  # factors of two products
    assert not sg.check_symmetry(problem, Generator.diagonal(up - down))
    assert not sg.check_symmetry(problem, Generator.diagonal(np.abs(model.rescaling(1, 2).eigenvalues)))


def test_each_rescaling_charge_shrinks_by_one_number_a_step():
    """Depth 2: u_j² - w_j² becomes ((1-2ηγ)² - ĉ_j²) times what it was, ĉ_j = η·mean of a_ij over the batch."""
    model = DiagonalLinear(4)
    problem = problem_of(model, batch_size=3)
    theta = model.init(0) + 0.3
    run = problem.run(theta, 30, rng=2, t_eval="steps").y
    u, w = np.moveaxis(run.reshape(31, 2, 4), 1, 0)
    decay = 1 - 2 * 0.05 * 0.03
    c = (decay * u[:-1] - u[1:]) / w[:-1]  # the step's ĉ, from its first half
    C = u**2 - w**2
    assert np.abs(C[1:] - C[:-1] * (decay**2 - c**2)).max() <= 1e-13 * np.square(run).max()
    assert np.abs(c).max() > 1e-2


@pytest.mark.parametrize("size", [1, 5])
def test_sgd_follows_the_exact_law_of_its_charges(size):
    model = DiagonalLinear(3, depth=3, width=2)
    problem = problem_of(model, batch_size=size, learning_rate=0.01)
    A = model.symmetries()["W1/W2[2,0]"]
    run = problem.run(model.init(3), 40, rng=3, t_eval="steps", track=sg.ChargeLaw(sg.Charge(A), problem))
    C, decay = A.quadratic(run.y), 1 - 2 * 0.01 * 0.03
    v = run.y[1:] - decay * run.y[:-1]
    assert np.abs(C[1:] - decay**2 * C[:-1] - A.quadratic(v)).max() <= 1e-13 * np.square(run.y).sum(axis=1).max()
    assert np.abs(np.diff(C)).max() > 1e-5


def test_traces_of_many_generators_are_those_of_the_covariance(monkeypatch):
    model = DiagonalLinear(3, width=2)
    problem = problem_of(model)
    generators = [A for name, A in model.symmetries().items() if "(" not in name]
    mixing = model.symmetries()["input1:mixing(0,1)"]
    with monkeypatch.context() as without:
        without.setattr(Scattered, "matrix", None)  # d² numbers for four components
        assert model.charge_traces([mixing], problem.X, problem.Y) is None
    watcher = model.charge_traces(generators, problem.X, problem.Y)
    x = rng.standard_normal((model.dim, 2))
    acc, h = np.zeros((len(generators), 2)), np.array([0.5, 2.0])
    watcher.kernel(acc, x, x, np.zeros(2), h, watcher.p, watcher.data, np.full(sum(watcher.work), np.nan))
    for b in range(2):
        sigma = problem.covariance(x[:, b])
        wanted = [h[b] * A.trace(sigma) for A in generators]
        assert np.abs(acc[:, b] - wanted).max() <= 1e-12 * h[b] * np.trace(sigma)
    assert model.charge_traces([Generator.from_matrix(np.ones((12, 12)))], problem.X, problem.Y) is None


def test_the_sde_runs_in_both_calculuses_with_the_same_bits_in_any_block():
    model = DiagonalLinear(3, depth=3)
    problem = problem_of(model, learning_rate=0.01)
    for method in ("euler-maruyama", "milstein-symmetric"):
        runs = [
            sg.solve(problem.sde(), (0.0, 0.1), model.init(1), method=method, n_paths=5, rng=0, block_size=b)
            for b in (1, 4)
        ]
        assert runs[0].success and np.array_equal(runs[0].y, runs[1].y)


# --- steps that follow the state ------------------------------------------------------------------------------------


def rate(problem, theta):
    """R of a state: δ = 1/(1 + R·η/ε)."""
    watcher = problem.sde().step_size()
    out, work = np.empty((1, 1)), np.full(sum(watcher.work), np.nan)
    watcher.kernel(out, np.array(theta[:, None]), np.zeros(1), watcher.p, watcher.data, work)
    return (1 / out[0, 0] - 1) * 0.1 / problem.effective_learning_rate


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_the_rate_bounds_the_lipschitz_constants(depth, width):
    model = DiagonalLinear(3, depth, width, scale=0.7)
    problem = problem_of(model)
    for theta in rng.standard_normal((10, model.dim)):
        H = np.array([model.hessian_vector(theta, e, problem.samples) for e in np.eye(model.dim)])
        slopes = [
            (problem.factor(theta + 1e-5 * e) - problem.factor(theta - 1e-5 * e)) / 2e-5 for e in np.eye(model.dim)
        ]
        flat = np.array(slopes).reshape(model.dim, -1)
        drift = np.linalg.norm(H, 2) + 2 * problem.gamma
        noise = 2 * problem.noise_scale * np.linalg.norm(flat, 2) ** 2
        found = rate(problem, theta)
        assert drift + noise <= 2 * found  # twice: two terms of the noise's Jacobian are added as squares
        assert found <= 30 * (drift + noise)


def test_an_input_that_is_always_zero_changes_no_step():
    product, model = Product(1, 3), DiagonalLinear(2, depth=3)
    x = X.copy()
    x[:, 1] = 0.0
    one = sg.SGD(product, x[:, 0], Y, learning_rate=0.1, gamma=0.1)
    two = sg.SGD(model, x[:, :2], Y, learning_rate=0.1, gamma=0.1)
    for u in rng.standard_normal((5, 3)):
        theta = np.column_stack([u, [1e-3, 1e-3, 1e-3]]).ravel()
        assert rate(two, theta) == pytest.approx(rate(one, u), rel=1e-10)


def test_steps_that_follow_the_state_keep_what_plain_euler_maruyama_loses():
    model = DiagonalLinear(2)
    problem = sg.SGD(model, 3 * X[:, :2], 3 * X[:, 0] + Y, learning_rate=0.05)
    theta = np.array([2.0, 2.0, 2.0, 2.0])
    with pytest.warns(sg.DivergenceWarning):
        assert sg.solve(problem.sde(), (0, 2), theta, n_paths=20, rng=0).n_diverged > 0
    assert sg.solve(problem.sde(), (0, 2), theta, n_paths=20, rng=0, step_size="auto").success


# --- the class ------------------------------------------------------------------------------------------------------


def test_a_start_has_an_output_of_order_one():
    for depth, width in ((2, 1), (3, 1), (2, 5)):
        model = DiagonalLinear(400, depth, width)
        v = [model.coefficients(model.init(k)) for k in range(40)]
        assert np.square(v).sum(axis=1).mean() == pytest.approx(1.0, rel=0.5)
    assert model.coefficients(np.ones((2, 3, 4000))).shape == (2, 3, 400)


def test_names_and_refusals():
    assert repr(DiagonalLinear(3, 4, 2, 0.5)) == "DiagonalLinear(3, depth=4, width=2, scale=0.5)"
    assert DiagonalLinear(3, width=2).shapes == {"W1": (3, 2), "W2": (3, 2)}
    for arguments in ({"n_inputs": 0}, {"depth": 0}, {"width": 1.5}, {"scale": -1.0}):
        with pytest.raises(ArgumentError, match=next(iter(arguments))):
            DiagonalLinear(**{"n_inputs": 2, **arguments})
    with pytest.raises(ShapeError, match=r"X must have shape \(n_samples, 3\)"):
        DiagonalLinear(3).samples(X, Y)
    with pytest.raises(ModelError, match="needs samples X and Y"):
        DiagonalLinear(4).samples(X, None)
    with pytest.raises(ArgumentError, match="up must be between 1 and 2"):
        DiagonalLinear(2).rescaling(3, 1)
    with pytest.raises(ArgumentError, match="two factors"):
        DiagonalLinear(2).rescaling(1, 1)
    with pytest.raises(ShapeError, match="unit must have 2 numbers"):
        DiagonalLinear(2, width=2).rescaling(1, 2, 0)
