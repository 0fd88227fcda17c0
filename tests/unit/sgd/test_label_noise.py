"""Label noise: one step over all batches and nodes, the SDE's factor, the charge law, and what it is refused for."""

import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import AUXILIARY, BATCH
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import MLP, DeepLinear, LogisticRegression, Product, SoftmaxRegression, from_functions, uw_gauss
from sgdsde.models.naming import charged
from sgdsde.random import stream
from sgdsde.sgd.label_noise import sigma_points
from sgdsde.sgd.optimizers import SVAG, HeavyBall

STD = {1: [0.5], 2: [0.5, 0.8]}


def make(model=None, n=3, seed=0, **numbers):
    model = DeepLinear([3, 2, 2], 0.7) if model is None else model
    rng = np.random.default_rng(seed)
    inputs, outputs = (1, 1) if isinstance(model, Product) else (model.dims[0], model.dims[-1])
    X, Y = rng.standard_normal((n, inputs)), rng.standard_normal((n, outputs))
    return sg.SGD(model, X, Y, **{"learning_rate": 0.1, "gamma": 0.2, "label_noise": STD[outputs], **numbers})


MODELS = {
    "two layers": DeepLinear([3, 2, 2], 0.7),
    "relu": MLP([2, 3, 2], activation="relu", scale=0.5),
    "uw": Product(scale=0.5),
}


@pytest.fixture(params=list(MODELS))
def model(request):
    return MODELS[request.param]


@pytest.fixture
def t(tools):
    return SimpleNamespace(**tools)


def start(problem, seed=1):
    return np.random.default_rng(seed).standard_normal(problem.model.dim)


def plain(problem):
    """The problem without label noise."""
    return problem.replace(label_noise=None)


def jacobians(problem, theta):
    """∂o/∂θ (N, d_y, d) of every output, from gradients of samples whose labels are moved: -∂g/∂y = 2·scale·J."""
    clean, scale = plain(problem), problem.model.scale
    g, found = clean.per_sample_gradients(theta), []
    for unit in np.eye(problem.label_noise.size):
        moved = sg.SGD(problem.model, clean.X, clean.Y + unit.reshape(clean.Y.shape[1:]), learning_rate=1.0)
        found.append((g - moved.per_sample_gradients(theta)) / (2 * scale))
    return np.stack(found, axis=1)


def dense(problem, theta):
    """ρΣ_data + 4·scale²(1/N)Σ_i J_iᵀ diag(std²) J_i: S times the covariance of the gradient of a batch."""
    J = problem.label_noise[:, None] * jacobians(problem, theta)
    labels = 4 * problem.model.scale**2 * np.einsum("nod,noe->de", J, J) / len(J)
    return problem.rho * plain(problem).covariance(theta) + labels


def batches_and_nodes(problem, t):
    """All that a step may be made of, (k, S(1 + d_y)), with weights: two nodes, for a gradient is linear in a label."""
    batches, (grid, weights) = t.all_batches(problem), t.nodes(problem.batch_size * problem.label_noise.size, 2)
    aux = np.array([[*batch, *noise] for batch, noise in itertools.product(batches, grid)])
    return aux, np.tile(weights / len(batches), len(batches))


@pytest.mark.parametrize(("size", "replacement"), [(1, True), (2, True), (2, False)])
def test_mean_and_covariance_of_a_step(model, t, size, replacement):
    problem = make(model, batch_size=size, replacement=replacement)
    theta = start(problem)
    aux, weights = batches_and_nodes(problem, t)
    steps = (0.96 * theta - t.aux_steps(problem, theta, aux)) / 0.1
    mean, spread = t.weighted_moments(steps, weights)
    wanted = dense(problem, theta)
    size_of = np.sqrt(np.trace(wanted))
    assert np.abs(mean - problem.gradient(theta)).max() <= 1e-12 * (size_of + np.abs(theta).max() / 0.1)
    assert problem.gradient(theta) == pytest.approx(plain(problem).gradient(theta), rel=1e-12, abs=1e-12)
    assert np.abs(spread - wanted / size).max() <= 1e-11 * size_of**2
    assert np.abs(problem.rho * problem.covariance(theta) - wanted).max() <= 1e-12 * size_of**2
    G = problem.factor(theta)
    assert np.abs(problem.rho * G @ G.T - wanted).max() <= 1e-12 * size_of**2
    assert np.trace(wanted) > 1.05 * problem.rho * np.trace(plain(problem).covariance(theta))
    for A in charged(problem.model.symmetries()).values():
        moved = weights @ A.quadratic(t.aux_steps(problem, theta, aux)) - A.quadratic(theta)
        scale = A.norm * (theta @ theta + size_of**2)
        assert abs(moved - 0.1 * sg.Charge(A).terms(problem, theta).total) <= 1e-12 * scale


def test_svag_has_l_times_the_covariance(t):
    problem = make(DeepLinear([2, 1, 1]), optimizer=SVAG(3), n=2)
    theta = start(problem)
    grid, weights = t.nodes(2, 2)
    pairs = list(itertools.product(range(2), repeat=2))
    aux = np.array([[i, a, j, b] for (i, j), (a, b) in itertools.product(pairs, grid)])
    h = 0.1 / 3
    steps = ((1 - 0.4 * h) * theta - t.aux_steps(problem, theta, aux)) / h
    mean, spread = t.weighted_moments(steps, np.tile(weights / 4, 4))
    assert mean == pytest.approx(problem.gradient(theta), rel=1e-11, abs=1e-11)
    assert np.abs(spread - 3 * dense(problem, theta)).max() <= 1e-10 * np.trace(dense(problem, theta))


def test_the_sde_over_all_sign_vectors(model, t):
    """2^m signs stand for N(0, h) in every quadratic mean."""
    problem = make(model, batch_size=2, n=2)
    theta = start(problem)
    equation = problem.sde("per-sample")
    assert equation.noise_dim == 2 * (1 + problem.label_noise.size)
    h, m = problem.learning_rate, equation.noise_dim
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=m)))
    states = t.sde_steps(problem, theta, h, np.sqrt(h) * signs, "per-sample")
    wanted = dense(problem, theta)
    size = np.trace(wanted)
    drift = -h * (problem.gradient(theta) + 0.4 * theta)
    assert np.abs(states.mean(axis=0) - theta - drift).max() <= 1e-13 * (np.abs(theta).max() + size)
    assert np.abs(np.cov(states.T, bias=True) - 2 * problem.sigma2 * h * wanted).max() <= 1e-12 * size


def test_one_pass_over_the_samples_is_a_pass_over_all_points(model, t):
    problem = make(model, n=4)
    theta, rng = start(problem), np.random.default_rng(2)
    v = rng.standard_normal((5, problem.sde("per-sample").noise_dim))
    v[3] = 1.0  # all weights of the noise cancel
    v[4, 1:] = 0.0
    for h in (0.3, 0.0):
        found = t.sde_steps(problem, theta, h, v, "per-sample")
        wanted = theta - h * (problem.gradient(theta) + 0.4 * theta)
        wanted = wanted + np.sqrt(2 * problem.noise_scale) * v @ problem.factor(theta, "per-sample").T
        assert np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max()
    assert np.array_equal(t.sde_steps(problem, theta, 0.0, v[3:4], "per-sample")[0], theta)


def test_the_correction_has_the_noise_of_labels(model):
    problem = make(model, n=3, batch_size=2, replacement=False)
    theta = start(problem)
    made, out = problem.sde().kernels(correction=True), np.empty((theta.size, 1))
    work = np.full(made.work[0] + made.work[1], np.nan)
    made.correction(out, theta[:, None].copy(), np.zeros(1), made.p, made.data, work)
    units = 1e-5 * np.eye(theta.size)
    trace = [np.trace(dense(problem, theta + u) - dense(problem, theta - u)) for u in units]
    wanted = 0.5 * problem.sigma2 * np.array(trace) / 2e-5
    assert np.abs(out[:, 0] - wanted).max() <= 1e-6 * np.abs(wanted).max()


def test_runs_follow_the_charge_law():
    problem = make(n=20, learning_rate=0.01, batch_size=2)
    theta = 0.5 * start(problem)
    A = problem.model.symmetries()["B=I"]
    law = sg.ChargeLaw(A, problem)
    assert law.charge.rate(problem, theta) != pytest.approx(law.charge.rate(plain(problem), theta), rel=1e-3)
    for sol in (
        problem.run(theta, 300, n_paths=30, rng=0, track=law),
        sg.solve(problem.sde(), (0, 3), theta, n_paths=30, rng=1, track=law),
    ):
        report = law.report(sol)
        remainder = (report.delta - report.noise - report.gradient - report.decay)[:, -1]
        assert abs(remainder.mean()) <= 5 * remainder.std() / np.sqrt(29)
        assert np.abs(report.cross).max() <= 10 * report.rounding.max()


@pytest.mark.parametrize("sampling", ["with replacement", "without replacement", "epochs"])
def test_batches_are_those_of_the_run_without_noise(model, sampling):
    """And the noise is that of its address: reproduced in NumPy."""
    problem = make(model, n=5, batch_size=2, sampling=sampling, learning_rate=0.02)
    theta, seed, path = 0.5 * start(problem), 3, 1
    sol = problem.run(theta, 5, n_paths=2, rng=seed, t_eval="steps")
    clean, x = plain(problem), theta
    for step in range(5):
        if sampling == "with replacement":
            batch = stream.indices(seed, path, 5, BATCH, 2 * step, 2)
        elif sampling == "without replacement":
            batch = stream.subset(seed, path, 5, 2, BATCH, 2 * step)
        else:
            epoch, k = divmod(step, 2)
            batch = stream.subset(seed, path, 5, 5, BATCH, 5 * epoch)[2 * k : 2 * k + 2]
        dy = problem.label_noise.size
        noise = stream.normals(seed, path, AUXILIARY, 2 * dy * step, 2 * dy).reshape(2, dy) * problem.label_noise
        Y = clean.Y[batch] + noise.reshape(2, *clean.Y.shape[1:])
        g = sg.SGD(model, clean.X[batch], Y, learning_rate=1.0).gradient(x)
        x = (1 - 0.4 * 0.02) * x - 0.02 * g
        assert sol.y[path, step + 1] == pytest.approx(x, rel=1e-11, abs=1e-12)
    for changed in ({"threads": 2, "block_size": 1}, {"chunk_steps": 2}):
        assert np.array_equal(problem.run(theta, 5, n_paths=2, rng=seed, t_eval="steps", **changed).y, sol.y)


def test_momentum_takes_the_noisy_batches():
    problem = make(n=5, learning_rate=0.02)
    theta = 0.5 * start(problem)
    one, other = (problem.replace(optimizer=o).run(theta, 8, rng=1).y[-1] for o in (HeavyBall(0.0), None))
    assert one[: theta.size] == pytest.approx(other, rel=1e-11, abs=1e-12)
    slow = problem.replace(optimizer=HeavyBall(0.5))
    assert slow.run(theta, 8, rng=1).success and slow.sigma2 == pytest.approx(2 * problem.sigma2)


@pytest.mark.parametrize("std", [[0.5], [0.5, 0.8], [0.0, 1.0, 0.3], [0.2, 0.2, 0.2, 0.2]])
def test_the_points_have_mean_zero_and_the_covariance(std):
    points = sigma_points(np.array(std))
    assert points.shape == (1 + np.count_nonzero(std), len(std))
    assert np.abs(points.mean(axis=0)).max() < 1e-15
    assert points.T @ points / len(points) == pytest.approx(np.diag(np.square(std)), abs=1e-15)


def test_the_moments_of_uw_have_it():
    """q(v) gains std²·E x², and the rank-one factor stays."""
    problem, theta = make(Product(), n=6), np.array([1.2, -0.3])
    clean = plain(problem)
    assert problem.sde().noise_dim == 1
    q = [p.samples.numbers[6:9] @ [theta.prod() ** 2, -2 * theta.prod(), 1] for p in (clean, problem)]
    assert q[1] - q[0] == pytest.approx(0.25 * clean.samples.numbers[4], rel=1e-12)
    assert problem.loss(theta) == clean.loss(theta)


def test_problems_travel_and_change():
    problem = make(batch_size=2)
    theta = start(problem)
    assert "3 samples" in repr(problem) and "label_noise=[0.5, 0.8]" in repr(problem) and problem.n_samples == 3
    copy = pickle.loads(pickle.dumps(problem))
    assert repr(copy) == repr(problem) and np.array_equal(copy.covariance(theta), problem.covariance(theta))
    assert np.array_equal(copy.run(theta, 3, rng=0).y, problem.run(theta, 3, rng=0).y)
    assert repr(problem.replace(label_noise=0.5)).count("label_noise=0.5") == 1
    assert problem.replace(label_noise=0.0).label_noise is None and plain(problem).samples is plain(problem).drawn
    fewer = problem.replace(replacement=False)
    assert fewer.rho * fewer.covariance(theta) == pytest.approx(dense(fewer, theta), rel=1e-11, abs=1e-11)
    law = sg.ChargeLaw(problem.model.symmetries()["B=I"], problem)
    with pytest.raises(ArgumentError, match="not the same"):
        problem.replace(label_noise=0.5).run(theta, 3, rng=0, track=law)
    order2 = problem.sde(order=2)
    assert np.isfinite(sg.solve(order2, (0, 0.3), theta, rng=0).y).all()


def loss(theta, x, y):
    return (theta[0] * theta[1] * x[0] + theta[1] * x[1] - y[0]) ** 2


def gradient(theta, x, y):
    r = 2.0 * (theta[0] * theta[1] * x[0] + theta[1] * x[1] - y[0])
    return r * theta[1] * x[0], r * (theta[0] * x[0] + x[1])


def bent(theta, x, y):
    return np.exp(-y[0] * theta[0] * x[0]) + theta[1] ** 2


def in_python(theta, x, y):
    r = 2.0 * (theta[0] * theta[1] * x[0] + theta[1] * x[1] - y[0])
    return [r * theta[1] * x[0], r * (theta[0] * x[0] + x[1]), {}][:2]


def bent_in_python(theta, x, y):
    return [-y[0] * x[0] * np.exp(-y[0] * theta[0] * x[0]), 2.0 * theta[1], {}][:2]


def test_a_model_of_ones_own(t):
    rng = np.random.default_rng(0)
    X, Y, std = rng.standard_normal((3, 2)), rng.standard_normal((3, 1)), 0.5
    problem = sg.SGD(from_functions(loss, gradient, dim=2), X, Y, learning_rate=0.1, batch_size=2, label_noise=std)
    theta = np.array([0.3, 0.4])
    aux, weights = batches_and_nodes(problem, t)
    steps = (theta - t.aux_steps(problem, theta, aux)) / 0.1
    mean, spread = t.weighted_moments(steps, weights)
    J = np.array([[theta[1] * x[0], theta[0] * x[0] + x[1]] for x in X])
    wanted = plain(problem).covariance(theta) + 4 * std**2 * J.T @ J / 3
    assert mean == pytest.approx(problem.gradient(theta), rel=1e-11)
    assert 2 * spread == pytest.approx(wanted, rel=1e-11, abs=1e-12)
    assert problem.covariance(theta) == pytest.approx(wanted, rel=1e-12)
    v = rng.standard_normal((4, 6))
    found = t.sde_steps(problem, theta, 0.2, v, "per-sample")
    by_factor = theta - 0.2 * problem.gradient(theta) + np.sqrt(2 * problem.sigma2) * v @ problem.factor(theta).T
    assert found == pytest.approx(by_factor, rel=1e-12)


def test_a_model_that_runs_in_python_has_the_sde(t):
    """Its passes do not read the arrays: the points are samples like others, and discrete SGD is refused."""
    rng = np.random.default_rng(0)
    X, Y, theta = rng.standard_normal((3, 2)), rng.standard_normal((3, 1)), np.array([0.3, 0.4])
    slow = from_functions(loss, in_python, dim=2)
    with pytest.warns(RuntimeWarning, match="Python"):
        problem = sg.SGD(slow, X, Y, learning_rate=0.1, label_noise=0.5)
    quick = sg.SGD(from_functions(loss, gradient, dim=2), X, Y, learning_rate=0.1, label_noise=0.5)
    v = rng.standard_normal((2, 6))
    found, wanted = (t.sde_steps(p, theta, 0.2, v, "per-sample") for p in (problem, quick))
    assert found == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(ModelError, match="need a model whose kernels read X and Y from arrays"):
        problem.run(theta, 2, rng=0)
    with pytest.raises(ModelError, match="label_noise needs floats"):
        sg.SGD(slow, X, np.array([[1], [2], [3]]), learning_rate=0.1, label_noise=0.1)
    with (
        pytest.warns(RuntimeWarning, match="Python"),
        pytest.raises(ModelError, match="whose gradient is linear in the label"),
    ):
        sg.SGD(from_functions(bent, bent_in_python, dim=2), X, Y, learning_rate=0.1, label_noise=0.1)
    law = sg.datasets.GaussianTeacher([[1.0, 0.5]], 1.0, 0.1, n_estimate=3)
    fresh = sg.SGD(slow, law, learning_rate=0.1)
    assert fresh.n_samples == 3
    with pytest.raises(ModelError, match="need a model whose kernels read X and Y from arrays"):
        fresh.run(theta, 2, rng=0)


def test_one_sample_is_enough():
    problem = sg.SGD(DeepLinear([2, 1]), [[1.0, 2.0]], [1.0], learning_rate=0.1, label_noise=0.5)
    theta = np.array([0.5, -0.2])
    assert problem.covariance(theta) == pytest.approx(np.outer([1.0, 2.0], [1.0, 2.0]), rel=1e-12)  # 4·std²·xxᵀ
    assert problem.run(theta, 5, rng=0).success and sg.solve(problem.sde(), (0, 0.3), theta, rng=0).success


def test_what_is_refused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 2))
    for model, Y in ((SoftmaxRegression(2, 3), [0, 1, 2, 0]), (LogisticRegression(2), [0.0, 1.0, 1.0, 0.0])):
        with pytest.raises(ModelError, match="label_noise needs a squared loss"):
            sg.SGD(model, X, Y, learning_rate=0.1, label_noise=0.1)
    for value, error, message in (
        (-0.1, ArgumentError, "label_noise must be at least 0"),
        ([0.1, 0.2, 0.3], ShapeError, r"label_noise must be a number or have shape \(2,\), got \(3,\)"),
        ([0.0, 0.0, 0.0], ShapeError, r"label_noise must be a number or have shape \(2,\), got \(3,\)"),
        ([], ShapeError, r"label_noise must be a number or have shape \(2,\), got \(0,\)"),
        (np.nan, ArgumentError, "label_noise must be finite"),
        ("much", ArgumentError, "label_noise must hold real numbers"),
    ):
        with pytest.raises(error, match=message):
            make(label_noise=value)
    with pytest.raises(ArgumentError, match="batch_size must be less than N with label_noise"):
        make(batch_size=3, replacement=False)
    with pytest.raises(ArgumentError, match="label_noise must be 0 with Population"):
        sg.SGD(Product(), uw_gauss(), learning_rate=0.1, label_noise=0.1)
