"""SGD on a law of the data: closed forms against the samples they stand for, fresh samples, and their addresses."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import BATCH
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.datasets import GaussianTeacher
from sgdsde.models import MLP, DeepLinear, Population, Product, uw_gauss, uw_label
from sgdsde.models.naming import charged
from sgdsde.random import stream
from sgdsde.sgd.optimizers import Adam, HeavyBall
from sgdsde.symmetry.interpreted import interpreted_track

SIZES = {  # dims, ranks of Σ_x and Σ_ε
    "two layers": ([3, 2, 2], 3, 2),
    "three layers, singular": ([3, 2, 3, 2], 2, 1),
    "four layers, no noise": ([2, 2, 3, 2, 1], 2, 0),
    "one layer": ([2, 2], 1, 2),
}


def make_law(dims, k, r, seed=0):
    rng = np.random.default_rng(seed)
    root_x, root_eps = rng.standard_normal((dims[0], k)), rng.standard_normal((dims[-1], max(r, 1)))
    return GaussianTeacher(rng.standard_normal((dims[-1], dims[0])), root_x @ root_x.T, (r > 0) * root_eps @ root_eps.T)


def make(size="two layers", seed=0, scale=0.7, **numbers):
    dims, k, r = SIZES[size]
    law = make_law(dims, k, r, seed)
    return sg.SGD(DeepLinear(dims, scale), law, **{"learning_rate": 0.1, "gamma": 0.2, **numbers})


@pytest.fixture(params=list(SIZES))
def problem(request):
    return make(request.param)


@pytest.fixture
def t(tools):
    return SimpleNamespace(**tools)


def start(problem, seed=1):
    return np.random.default_rng(seed).standard_normal(problem.model.dim)


def ranks(law):
    return law.root_x.shape[1], law.root_eps.shape[1]


def variables(z, eps):
    """(z_i² - 1)/√2, z_i z_j for i < j, row by row, then ε_a z_i: mean 0, variance 1, no correlations."""
    k = z.size
    first = [(z[i] ** 2 - 1) / np.sqrt(2) if i == j else z[i] * z[j] for i in range(k) for j in range(i, k)]
    return np.array([*first, *np.outer(eps, z).ravel()])


def sample_gradient(problem, theta, z, eps):
    """∇ℓ of the sample that z and ε make, by the model for samples."""
    law = problem.law
    x = law.root_x @ z
    one = sg.SGD(problem.model.plain, [x], [law.V @ x + law.root_eps @ eps], learning_rate=1.0)
    return one.per_sample_gradients(theta)[0]


def test_every_gradient_is_its_mean_and_the_factor_times_its_variables(problem):
    """So GGᵀ is the covariance exactly, for the variables are orthonormal."""
    theta, (k, r) = start(problem), ranks(problem.law)
    G, mean = problem.factor(theta), problem.gradient(theta)
    assert G.shape == (theta.size, k * (k + 1) // 2 + r * k) and problem.sde().noise_dim == G.shape[1]
    rng = np.random.default_rng(2)
    for _ in range(4):
        z, eps = rng.standard_normal(k), rng.standard_normal(r)
        g = sample_gradient(problem, theta, z, eps)
        assert np.abs(mean + G @ variables(z, eps) - g).max() <= 1e-12 * np.abs(g).max()


def test_mean_and_covariance_of_a_step_over_all_nodes(problem, t):
    """A gradient has degree 2 in the normal numbers, so three nodes for each give both exactly."""
    theta, n = start(problem), sum(ranks(problem.law))
    aux, weights = t.nodes(n)
    steps = (0.96 * theta - t.aux_steps(problem, theta, aux)) / 0.1
    mean, spread = t.weighted_moments(steps, weights)
    sigma = problem.covariance(theta)
    size = np.sqrt(np.trace(sigma))
    assert np.abs(mean - problem.gradient(theta)).max() <= 1e-12 * (size + np.abs(theta).max() / 0.1)
    assert np.abs(spread - sigma).max() <= 1e-11 * size**2
    charge = problem.model.symmetries().get("B=I")
    if charge is not None:
        C, eta, gamma = charge.quadratic(theta), problem.learning_rate, problem.gamma
        moved = weights @ charge.quadratic(t.aux_steps(problem, theta, aux)) - C
        terms = sg.Charge(charge).terms(problem, theta)
        assert moved == pytest.approx(eta * terms.total, abs=1e-11 * (abs(C) + eta**2 * size**2))
        wanted = (-4 * eta * gamma + 4 * eta**2 * gamma**2) * C + eta**2 * charge.trace(sigma)
        wanted += eta**2 * charge.quadratic(problem.gradient(theta))
        assert moved == pytest.approx(wanted, abs=1e-11 * (abs(C) + eta**2 * size**2))


@pytest.mark.parametrize(("optimizer", "more"), [(None, 1.0), (sg.optimizers.SVAG(3), 3.0)])
def test_batches_of_two_and_svag(t, optimizer, more):
    law = GaussianTeacher([[0.7]], 0.5, 0.3)
    batch = 2 if optimizer is None else 1
    problem = sg.SGD(DeepLinear([1, 2, 1]), law, learning_rate=0.1, batch_size=batch, optimizer=optimizer)
    theta = start(problem)
    aux, weights = t.nodes(4)
    steps = (theta - t.aux_steps(problem, theta, aux)) / (0.1 / more)
    mean, spread = t.weighted_moments(steps, weights)
    sigma = problem.covariance(theta)
    assert mean == pytest.approx(problem.gradient(theta), rel=1e-11, abs=1e-12)
    assert np.abs(spread - more * sigma / batch).max() <= 1e-11 * np.trace(sigma)


def test_derivatives_against_differences(problem):
    theta, model, samples = start(problem), problem.model, problem.samples
    units = 1e-5 * np.eye(theta.size)

    def slope(f):
        return np.array([(f(theta + u) - f(theta - u)) / 2e-5 for u in units])

    gradient = problem.gradient(theta)
    assert slope(problem.loss) == pytest.approx(gradient, rel=1e-6, abs=1e-7)
    hessian = slope(problem.gradient)
    v = start(problem, 3)
    size = np.abs(hessian).max() * np.abs(v).max()
    assert np.abs(model.hessian_vector(theta, v, samples) - hessian @ v).max() <= 1e-7 * theta.size * size
    exact = [model.hessian_vector(theta, u, samples) @ u for u in np.eye(theta.size)]
    assert model.hessian_trace(theta, samples) == pytest.approx(sum(exact), rel=1e-12)
    trace = slope(lambda x: np.trace(problem.covariance(x)))
    equation = problem.sde()
    made, out = equation.kernels(correction=True), np.empty((theta.size, 1))
    work = np.full(made.work[0] + made.work[1], np.nan)
    made.correction(out, theta[:, None].copy(), np.zeros(1), made.p, made.data, work)
    assert np.abs(out[:, 0] - 0.5 * problem.noise_scale * trace).max() <= 1e-7 * np.abs(trace).max() * problem.sigma2
    assert equation.exact_correction


def test_means_and_blocks(problem):
    theta, sigma, G = start(problem), problem.covariance(start(problem)), problem.factor(start(problem))
    law = problem.law
    D = problem.model._chain(theta) - law.V
    wanted = 0.7 * (np.trace(D @ law.Sigma_x @ D.T) + np.trace(law.Sigma_eps))
    assert problem.loss(theta) == pytest.approx(wanted, rel=1e-12)
    assert problem.loss(np.stack([theta, 2 * theta])).shape == (2,)
    assert np.abs(G @ G.T - sigma).max() <= 1e-13 * np.trace(sigma)
    at = problem.model.places()["W1"]
    assert problem.covariance(theta, "W1") == pytest.approx(sigma[at, at])
    turn = np.linalg.qr(np.random.default_rng(5).standard_normal((theta.size,) * 2))[0]
    mean, var = problem.gradient_moments(theta, lambda rows: rows @ turn)
    assert mean == pytest.approx(problem.gradient(theta) @ turn)
    assert var == pytest.approx(np.diag(turn.T @ sigma @ turn))
    leaks = [problem.factor_leak(theta, A) for A in charged(problem.model.symmetries()).values()]
    assert max(leaks, default=0.0) <= 1e-14
    assert all(sg.check_symmetry(problem, A, theta=theta) for A in problem.model.symmetries().values())


def test_the_gradient_is_that_of_many_samples():
    """Against the mean over samples: five standard errors, from the covariance that is claimed."""
    problem = make()
    theta, n = start(problem), 4000
    X, Y = problem.law.draw(n, rng=1)
    g = sg.SGD(problem.model.plain, X, Y, learning_rate=0.1).gradient(theta)
    sigma = problem.covariance(theta)
    assert (np.abs(g - problem.gradient(theta)) <= 5 * np.sqrt(np.diag(sigma) / n)).all()


def test_the_sde_takes_the_paths_of_its_factor(problem, t):
    theta = 0.4 * start(problem)
    problem = problem.replace(learning_rate=0.05)
    m = problem.sde().noise_dim
    dW = 0.2 * np.random.default_rng(3).standard_normal((3, 6, m))
    run = {"n_paths": 3, "dt": 0.05, "dW": dW}
    free = sg.solve(problem.sde(), (0, 0.3), theta, **run)
    explicit = sg.solve(problem.sde(problem.factor), (0, 0.3), theta, **run)
    assert free.y == pytest.approx(explicit.y, rel=1e-11, abs=1e-12)
    assert np.abs(free.y[:, -1] - theta).max() > 1e-2
    for name in ("gram", "cholesky", "low-rank"):
        F = problem.factor(theta, name)
        assert np.abs(F @ F.T - problem.covariance(theta)).max() <= 1e-8 * np.trace(problem.covariance(theta))


def test_the_charge_law_in_closed_form(t):
    for size, B in (("two layers", np.array([[1.0, 0.4], [0.4, -0.3]])), ("three layers, singular", None)):
        problem = make(size, learning_rate=0.01)
        model = problem.model
        generators = [model.generator(B, 1)] if B is not None else [*charged(model.symmetries()).values()]
        theta, other = start(problem), start(problem, 2)
        for A in generators:
            watcher = model.charge_track(A, problem.gamma, problem.X, problem.Y)
            acc = np.zeros((watcher.rows, 2))
            x0, x1 = np.stack([theta, other], axis=1), np.stack([other, theta], axis=1)
            law, wanted = sg.ChargeLaw(A, problem), np.zeros((watcher.rows, 2))
            slow = interpreted_track(law)
            for one, sums in ((watcher, acc), (slow, wanted)):
                work = np.full(one.work[0] + 2 * one.work[1], np.nan)
                one.kernel(sums, x0, x1, np.zeros(2), np.full(2, 0.01), one.p, one.data, work)
            assert (np.abs(acc - wanted) <= 1e-11 * np.abs(wanted).max(axis=1, keepdims=True)).all()
            assert (wanted[3] != 0.0).all()


def test_runs_follow_the_charge_law():
    problem = make(learning_rate=0.01, batch_size=2)
    theta = 0.5 * start(problem)
    law = sg.ChargeLaw(problem.model.symmetries()["B=I"], problem)
    for sol in (
        problem.run(theta, 400, n_paths=30, rng=0, track=law),
        sg.solve(problem.sde(), (0, 4), theta, n_paths=30, rng=1, track=law),
    ):
        report = law.report(sol)
        remainder = (report.delta - report.noise - report.gradient - report.decay)[:, -1]
        assert abs(remainder.mean()) <= 5 * remainder.std() / np.sqrt(29)
        assert np.abs(report.cross).max() <= 10 * report.rounding.max()


def by_hand(problem, theta, seed, path, n_steps):
    """Plain steps in NumPy on the samples that the addresses give."""
    law, S = problem.law, problem.batch_size
    k, r = ranks(law)
    model = problem.model.plain if hasattr(problem.model, "plain") else problem.model
    for step in range(n_steps):
        z = stream.normals(seed, path, BATCH, step * S * (k + r), S * (k + r)).reshape(S, k + r)
        X = z[:, :k] @ law.root_x.T
        Y = X @ law.V.T + z[:, k:] @ law.root_eps.T
        g = sg.SGD(model, X, Y, learning_rate=1.0).gradient(theta)
        theta = (1 - 2 * problem.learning_rate * problem.gamma) * theta - problem.learning_rate * g
    return theta


@pytest.mark.parametrize("model", [DeepLinear([3, 2, 2]), MLP([3, 4, 2], activation="relu")], ids=["linear", "relu"])
@pytest.mark.parametrize("size", [1, 6])
def test_each_step_draws_samples_of_its_own(model, size):
    law = make_law([3, 2, 2], 2, 2)
    problem = sg.SGD(model, law, learning_rate=0.02, batch_size=size, gamma=0.1)
    theta = model.init(rng=3)
    sol = problem.run(theta, 5, n_paths=3, rng=11)
    for path in (0, 2):
        assert sol.y[path, -1] == pytest.approx(by_hand(problem, theta, 11, path, 5), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("law", ["teacher", "uw"])
def test_bits_depend_on_path_and_step_alone(law):
    problem = make(learning_rate=0.02, batch_size=2)
    if law == "uw":
        problem = sg.SGD(Product(), uw_gauss(), learning_rate=0.02, batch_size=2)
    theta = 0.5 * start(problem)
    whole = problem.run(theta, 40, n_paths=12, rng=4, t_eval=5)
    for changed in ({"threads": 2, "block_size": 4}, {"block_size": 1, "chunk_steps": 7}):
        assert np.array_equal(problem.run(theta, 40, n_paths=12, rng=4, t_eval=5, **changed).y, whole.y)
    few = problem.run(theta, 40, n_paths=12, rng=4, t_eval=5, path_index=[7, 2])
    assert np.array_equal(few.y, whole.y[[7, 2]])
    assert not np.isclose(whole.y[0, -1], whole.y[1, -1]).all()


@pytest.mark.parametrize(
    "law",
    [uw_gauss(0.7, 0.5), uw_label(0.7, 0.5), GaussianTeacher([[0.7]], 1.3, 0.2)],
    ids=["gauss", "label", "teacher"],
)
def test_laws_of_one_input_and_one_output(law, t):
    problem = sg.SGD(Product(width=2), law, learning_rate=0.1, gamma=0.2)
    assert problem.n_samples is None and problem.sde().noise == "scalar"
    theta = start(problem)
    aux, weights = t.nodes(2)
    steps = (0.96 * theta - t.aux_steps(problem, theta, aux)) / 0.1
    mean, spread = t.weighted_moments(steps, weights)
    sigma = problem.covariance(theta)
    assert mean == pytest.approx(problem.gradient(theta), rel=1e-11, abs=1e-12)
    assert np.abs(spread - sigma).max() <= 1e-11 * np.trace(sigma)
    if isinstance(law, GaussianTeacher):
        assert (problem.X.beta1, problem.X.alpha3) == pytest.approx((1.3, 0.49 * 2 * 1.69 + 0.2 * 1.3))


@pytest.mark.parametrize("optimizer", [HeavyBall(0.0), HeavyBall(0.8), Adam()])
def test_optimizers_take_the_fresh_batches(optimizer):
    problem = make(learning_rate=0.02)
    theta = 0.5 * start(problem)
    sol = problem.replace(optimizer=optimizer).run(theta, 12, n_paths=2, rng=5)
    plain = problem.run(theta, 12, n_paths=2, rng=5)
    assert sol.success and np.isfinite(sol.y).all()
    same = np.allclose(sol.y[:, -1, : theta.size], plain.y[:, -1], rtol=1e-11, atol=1e-12)
    assert same == (optimizer == HeavyBall(0.0))


def test_elsewhere_means_are_over_a_fixed_draw():
    law = GaussianTeacher(np.eye(2), [1.0, 2.0], 0.3, n_estimate=500, estimate_seed=7)
    model = MLP([2, 3, 2], activation="tanh")
    problem, theta = sg.SGD(model, law, learning_rate=0.1), model.init(rng=0)
    X, Y = law.draw(500, 7)
    same = sg.SGD(model, X, Y, learning_rate=0.1)
    assert problem.n_samples == 500 and problem.law == law and "GaussianTeacher(d_x=2, d_y=2)" in repr(problem)
    assert np.array_equal(problem.covariance(theta), same.covariance(theta))
    assert np.array_equal(sg.solve(problem.sde(), (0, 1), theta, rng=0).y, sg.solve(same.sde(), (0, 1), theta, rng=0).y)
    wide = sg.SGD(MLP([2, 3, 2], activation="identity", biases=False), law, learning_rate=0.1)
    exact = sg.SGD(DeepLinear([2, 3, 2]), law, learning_rate=0.1)
    theta = start(exact)
    off = np.abs(wide.gradient(theta) - exact.gradient(theta)) / np.sqrt(np.diag(exact.covariance(theta)) / 500)
    assert 0.1 < off.max() < 5
    assert problem.replace(batch_size=1000).run(model.init(rng=0), 2, rng=0).success


def test_problems_travel_and_change():
    problem = make(batch_size=3)
    theta = start(problem)
    copy = pickle.loads(pickle.dumps(problem))
    assert repr(copy) == repr(problem) and copy.law == problem.law
    assert np.array_equal(copy.run(theta, 3, rng=0).y, problem.run(theta, 3, rng=0).y)
    assert np.array_equal(copy.covariance(theta), problem.covariance(theta))
    assert problem.replace(learning_rate=0.01).sigma2 == pytest.approx(0.01 / 6)
    X, Y = problem.law.draw(4, 0)
    assert sg.SGD(problem.model, X, Y, learning_rate=0.1).n_samples == 4
    law = sg.ChargeLaw(problem.model.symmetries()["B=I"], problem)
    with pytest.raises(ArgumentError, match="not the same"):
        make(seed=1, batch_size=3).run(theta, 3, rng=0, track=law)
    scheduled = problem.replace(learning_rate=sg.schedules.step(0.1, {2: 0.05}))
    assert scheduled.run(theta, 4, rng=0).t[-1] == pytest.approx(0.3)
    assert np.array_equal(scheduled.run(theta, 2, rng=0).y[-1], problem.run(theta, 2, rng=0).y[-1])


def test_what_is_refused():
    law, model = make_law([3, 2, 2], 3, 2), DeepLinear([3, 2, 2])
    theta = np.ones(model.dim)
    with pytest.raises(ModelError, match="Y must be None when X is a GaussianTeacher"):
        sg.SGD(model, law, np.ones((2, 2)), learning_rate=0.1)
    with pytest.raises(ShapeError, match=r"V of the GaussianTeacher must have shape \(1, 3\)"):
        sg.SGD(DeepLinear([3, 2, 1]), law, learning_rate=0.1)
    for other in ({"replacement": False}, {"sampling": "epochs"}):
        with pytest.raises(ArgumentError, match="replacement must be True for a GaussianTeacher"):
            sg.SGD(model, law, learning_rate=0.1, **other)
    with pytest.raises(ArgumentError, match="label_noise must be 0 with GaussianTeacher"):
        sg.SGD(model, law, learning_rate=0.1, label_noise=0.1)
    problem = sg.SGD(model, law, learning_rate=0.1)
    for call in (problem.per_sample_gradients, problem.per_sample_losses):
        with pytest.raises(ModelError, match="GaussianTeacher|need samples"):
            call(theta)
    with pytest.raises(ModelError, match="Sigma_x of the GaussianTeacher must not be zero"):
        sg.SGD(model, GaussianTeacher(np.ones((2, 3)), 0.0), learning_rate=0.1)
    with pytest.raises(ArgumentError, match="alpha3 must be that of the sampler, 1, got 2"):
        Population(1.0, 1.0, 0.0, 0.0, 2.0, 2.0, (1.0, 0.0, 1.0, 1.0))
