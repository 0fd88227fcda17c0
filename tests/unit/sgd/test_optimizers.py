"""Momentum, SVAG, Adam and shuffled epochs: exact one-step laws over all batches, through the package's own kernels."""

import itertools
import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import DeepLinear
from sgdsde.models.naming import charged
from sgdsde.sgd.optimizers import SVAG, Adam, HeavyBall

EPS = np.finfo(float).eps


def take(problem, state, batches, h=None):
    """States (k, width) after one step from `state` with each row of `batches` (k, r)."""
    equation = problem.recursion()
    scheme, kernels = equation.scheme, equation.kernels()
    extra = np.ravel(scheme.prepare(equation, kernels, 0.0, state, 0.1)) if scheme.prepare else np.zeros(0)
    batches = np.asarray(batches, dtype=float)
    k = len(batches)
    x = np.ascontiguousarray(np.tile(np.asarray(state, float)[:, None], (1, k)))
    fixed, per_path = scheme.work(x.shape[0], 0)
    work = np.full(fixed + per_path * k + 50, np.nan)
    work[fixed + per_path * k :] = 7.25
    pace = 1.0 if problem.optimizer is None else problem.optimizer.pace
    h = problem.learning_rate * pace if h is None else h
    scheme.step(
        kernels.increment, kernels.correction, x, np.zeros(k), np.full(k, h), np.zeros((0, k)),
        np.ascontiguousarray(batches.T), np.zeros(2 * k, np.int64), work, kernels.p,
        np.concatenate([kernels.data, extra]),
    )  # fmt: skip
    assert np.all(work[fixed + per_path * k :] == 7.25)
    return x.T


def pairs_of_batches(problem):
    n, size = problem.n_samples, problem.batch_size
    one = list(
        itertools.product(range(n), repeat=size) if problem.replacement else itertools.combinations(range(n), size)
    )
    return [(*a, *b) for a in one for b in one]


@pytest.mark.parametrize("l", [1, 2, 4, 8])
@pytest.mark.parametrize(("size", "replacement"), [(1, True), (2, True), (2, False), (4, False)])
def test_svag_has_the_mean_of_the_gradient_and_l_times_its_covariance(make_problem, l, size, replacement):
    """Enumeration over all pairs of batches; a full batch without replacement is gradient descent."""
    problem = make_problem(n=4, batch_size=size, replacement=replacement, optimizer=SVAG(l))
    theta = np.random.default_rng(1).standard_normal(problem.model.dim)
    eta, gamma = problem.learning_rate, problem.gamma
    steps = -(take(problem, theta, pairs_of_batches(problem)) - theta) * l / eta - 2 * gamma * theta
    mean, sigma = problem.gradient(theta), problem.covariance(theta)
    scale = np.trace(sigma) + mean @ mean + theta @ theta * (l / eta) ** 2 * EPS
    np.testing.assert_allclose(steps.mean(axis=0), mean, atol=1e-11 * np.sqrt(scale))
    spread = np.cov(steps.T, bias=True)
    np.testing.assert_allclose(spread, l * problem.rho * sigma / size, atol=1e-10 * scale)


def test_svag_of_one_is_sgd_and_the_charge_follows_its_law(make_problem, model):
    problem = make_problem(model, n=4, optimizer=SVAG(3))
    one, plain = problem.replace(optimizer=SVAG(1)), problem.replace(optimizer=None)
    theta = np.random.default_rng(2).standard_normal(model.dim)
    batches = pairs_of_batches(problem)
    first = [batch[:1] for batch in batches]
    np.testing.assert_allclose(take(one, theta, batches), take(plain, theta, first), rtol=0, atol=1e-13)
    eta, gamma, l = problem.learning_rate, problem.gamma, 3
    mean, sigma = problem.gradient(theta), problem.covariance(theta)
    states = take(problem, theta, batches)
    for A in charged(model.symmetries()).values():
        C = A.quadratic(theta)
        g = -((states - theta) * l / eta + 2 * gamma * theta)
        wanted = (1 - 2 * eta * gamma / l) ** 2 * C + (eta / l) ** 2 * A.quadratic(g)
        scale = A.norm * (theta @ theta + eta**2 * (np.trace(sigma) * l + mean @ mean))
        np.testing.assert_allclose(A.quadratic(states), wanted, rtol=0, atol=1e-12 * scale)
        drift = (A.quadratic(states) - C).mean() * l / eta
        law = -4 * gamma * C + 4 * eta / l * gamma**2 * C + eta * A.trace(sigma) + eta / l * A.quadratic(mean)
        assert abs(drift - law) < 1e-11 * scale * l / eta


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_heavy_ball_obeys_the_exact_law_of_its_charge(make_problem, model, beta):
    """B' = βB + 2γC - ηv'ᵀAv', C' = C - 2η(βB + 2γC) + η²v'ᵀAv', for every batch and any v."""
    problem = make_problem(model, optimizer=HeavyBall(beta), batch_size=2)
    rng = np.random.default_rng(3)
    theta, v, d = rng.standard_normal(model.dim), rng.standard_normal(model.dim), model.dim
    eta, gamma = problem.learning_rate, problem.gamma
    after = take(problem, np.concatenate([theta, v]), list(itertools.product(range(5), repeat=2)))
    g = problem.per_sample_gradients(theta)
    for state, batch in zip(after, itertools.product(range(5), repeat=2)):
        moved = beta * v + g[list(batch)].mean(axis=0) + 2 * gamma * theta
        np.testing.assert_allclose(state[d:], moved, rtol=0, atol=1e-12 * (1 + np.abs(moved).max()))
        np.testing.assert_allclose(state[:d], theta - eta * moved, rtol=0, atol=1e-13 * (1 + np.abs(moved).max()))
    for A in charged(model.symmetries()).values():
        apply = A.apply
        B, C = theta @ apply(v), theta @ apply(theta)
        new, v1 = after[:, :d], after[:, d:]
        quadratic = np.einsum("kd,kd->k", v1, apply(v1))
        scale = A.norm * (theta @ theta + (v1**2).sum(axis=1).max())
        B1 = np.einsum("kd,kd->k", new, apply(v1))
        np.testing.assert_allclose(B1, beta * B + 2 * gamma * C - eta * quadratic, rtol=0, atol=1e-12 * scale)
        C1 = C - 2 * eta * (beta * B + 2 * gamma * C) + eta**2 * quadratic
        np.testing.assert_allclose(A.quadratic(new), C1, rtol=0, atol=1e-12 * scale)


def test_heavy_ball_without_memory_is_sgd_in_its_own_time(make_problem):
    plain = make_problem(learning_rate=0.03)
    theta = plain.model.init(rng=0)
    one = plain.run(theta, 30, n_paths=4, rng=5, t_eval="steps")
    two = plain.replace(optimizer=HeavyBall(0.0)).run(theta, 30, n_paths=4, rng=5, t_eval="steps")
    d = theta.size
    np.testing.assert_allclose(two.y[..., :d], one.y, rtol=0, atol=1e-12)
    slow = plain.replace(learning_rate=0.003, optimizer=HeavyBall(0.9))
    assert slow.effective_learning_rate == pytest.approx(0.03) and slow.sigma2 == pytest.approx(plain.sigma2)
    assert slow.run(theta, 30, rng=5).t[-1] == pytest.approx(0.9)
    assert slow.sde().default_dt == pytest.approx(0.03)


def test_adam_is_the_algorithm_of_the_paper(make_problem):
    problem = make_problem(learning_rate=0.01, batch_size=2, optimizer=Adam(0.8, 0.95, 1e-3))
    theta = problem.model.init(rng=0)
    state = problem.optimizer.start(theta)
    m = v = np.zeros(theta.size)
    rng = np.random.default_rng(0)
    for k in range(1, 12):
        batch = rng.integers(0, 5, 2)
        g = problem.per_sample_gradients(theta)[batch].mean(axis=0) + 2 * problem.gamma * theta
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
        theta = theta - 0.01 * (m / (1 - 0.8**k)) / (np.sqrt(v / (1 - 0.95**k)) + 1e-3)
        state = take(problem, state, [batch])[0]
        np.testing.assert_allclose(state[: theta.size], theta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state[-2:], [0.8**11, 0.95**11], rtol=1e-13)


def test_adam_has_no_law_and_says_so(make_problem):
    problem = make_problem(optimizer=Adam())
    law = sg.ChargeLaw(sg.Charge(problem.model.symmetries()["B=I"]), problem)
    with pytest.raises(sg.ArgumentError, match="mean change of a charge is known for .*, not for 'adam'"):
        problem.run(problem.model.init(rng=0), 3, rng=0, track=law)
    with pytest.raises(sg.ModelError, match="optimizer Adam has no SDE here"):
        problem.sde()


def seen(problem, n_steps, rng, path=0):
    """Batches of a run, (n_steps, S), read off the gradients: samples i move their own component i by 1."""
    from sgdsde.sgd import batches

    size, n = problem.batch_size, problem.n_samples
    out = np.empty((n_steps, size), int)
    aux, work = np.empty((size, 1)), np.empty(n + 4 * n + 8)
    p = np.array([0.0, 0.0, float(n)])
    for k in range(n_steps):
        where = np.array([path], np.uint64)
        batches.shuffled(aux, np.empty((0, 1)), np.ones(1), where, k, np.uint64(rng), p, np.zeros(1), work)
        out[k] = aux[:, 0]
    return out


@pytest.mark.parametrize(("n", "size"), [(6, 1), (6, 2), (6, 6), (7, 3), (5, 4)])
def test_an_epoch_sees_every_sample_once(make_problem, n, size):
    problem = make_problem(n=n, batch_size=size, sampling="epochs")
    per_epoch = n // size
    found = seen(problem, 40 * per_epoch, 3).reshape(40, per_epoch * size)
    for epoch in found:
        assert len(set(epoch)) == per_epoch * size and set(epoch) <= set(range(n))
    assert len({tuple(epoch) for epoch in found}) > (1 if n > 1 else 0) * 20
    assert set(found.ravel()) == set(range(n))
    other = seen(problem, 40 * per_epoch, 3, path=1).reshape(40, -1)
    assert not np.array_equal(found, other)


def test_every_order_is_as_likely():
    """4! orders in 24 000 epochs: chi-square with 23 degrees of freedom, mean 23, std 6.8; gate at 5 std (p ~ 1e-5)."""
    problem = sg.SGD(DeepLinear([1, 1]), np.ones((4, 1)), np.ones((4, 1)), learning_rate=0.1, sampling="epochs")
    orders = seen(problem, 4 * 24_000, 11).reshape(-1, 4)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert counts.size == 24
    assert abs(((counts - 1000) ** 2 / 1000).sum() - 23) < 5 * np.sqrt(46)


def test_epochs_in_a_run(make_problem):
    """After each whole epoch of a model whose loss is linear in θ, θ is that of gradient descent: -Σ g_i."""
    X, Y = np.eye(4), np.zeros((4, 1))
    problem = sg.SGD(DeepLinear([4, 1]), X, Y, learning_rate=0.1, batch_size=2, sampling="epochs")
    sol = problem.run(np.ones(4), 12, n_paths=5, rng=0, t_eval="steps")
    shrink = 1 - 2 * 0.1 / 2  # each sample once an epoch, half a batch
    for epoch in range(7):
        np.testing.assert_allclose(sol.y[:, 2 * epoch], shrink**epoch, rtol=1e-13)
    assert np.unique(sol.y[:, 1], axis=0).shape[0] > 1


def modified(problem, theta, eta, n_batches):
    """-∇[L + (η/4)(‖∇L‖² + (N-S)/(N-1) TrΣ/S)] by central differences (S. Smith et al., ICLR 2021, (22))."""

    def loss(x):
        g, s, n, size = problem.gradient(x), problem.covariance(x), problem.n_samples, problem.batch_size
        return problem.loss(x) + eta / 4 * (g @ g + (n - size) / (n - 1) * np.trace(s) / size)

    e = 1e-5 * np.eye(theta.size)
    return -np.array([(loss(theta + u) - loss(theta - u)) / 2e-5 for u in e])


def test_shuffling_follows_its_modified_loss():
    """Mean over all orders of one epoch against the modified flow: the error falls by four per halving of η."""
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((4, 2)), rng.standard_normal((4, 1))
    start = np.array([1.0, -0.5])
    errors = []
    for eta in (0.04, 0.02, 0.01):
        problem = sg.SGD(DeepLinear([2, 1]), X, Y, learning_rate=eta, sampling="epochs")
        theta = start
        for _ in range(round(0.32 / eta / 4)):  # epochs to T = 0.32
            ends = []
            for order in itertools.permutations(range(4)):
                state = theta
                for i in order:
                    state = take(problem, state, [[i]])[0]
                ends.append(state)
            theta = np.mean(ends, axis=0)  # the step is affine in θ, so means go on
        y, n = start, 400
        for _ in range(n):  # midpoint rule
            h = 0.32 / n
            y = y + h * modified(problem, y + 0.5 * h * modified(problem, y, eta, 4), eta, 4)
        errors.append(np.abs(theta - y).max())
    assert 3.3 < errors[0] / errors[1] < 5 and 3.3 < errors[1] / errors[2] < 5


def test_bits_pickles_and_names(make_problem):
    for more in ({"sampling": "epochs", "batch_size": 2}, {"optimizer": SVAG(2)}, {"optimizer": HeavyBall(0.5)}):
        problem = make_problem(**more, learning_rate=0.02)
        theta = problem.model.init(rng=0)
        whole = problem.run(theta, 25, n_paths=9, rng=1)
        for how in ({"block_size": 1, "chunk_steps": 7}, {"threads": 2}):
            assert np.array_equal(problem.run(theta, 25, n_paths=9, rng=1, **how).y, whole.y)
        again = pickle.loads(pickle.dumps(problem))
        assert repr(again) == repr(problem) and np.array_equal(again.run(theta, 25, n_paths=9, rng=1).y, whole.y)
        rest = problem.run(whole.y[:, -1], 5, n_paths=9, rng=2)  # the whole state goes on
        assert rest.success


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"sampling": "shuffle"}, "sampling must be"),
        ({"sampling": "epochs", "replacement": False}, "replacement and sampling exclude each other"),
        ({"sampling": "epochs", "optimizer": SVAG(2)}, "SVAG, which needs two independent batches"),
        ({"optimizer": "adam"}, "optimizer must be HeavyBall, SVAG or Adam"),
    ],
)
def test_settings_that_do_not_go_together(make_problem, settings, match):
    with pytest.raises(sg.ArgumentError, match=match):
        make_problem(**settings)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: HeavyBall(1.0), "beta must be less than 1"),
        (lambda: HeavyBall(-0.1), "beta must be"),
        (lambda: SVAG(0), "l must be"),
        (lambda: Adam(beta2=1.0), "beta2 must be less than 1"),
        (lambda: Adam(epsilon=0.0), "epsilon must be positive"),
    ],
)
def test_numbers_that_are_none(make, match):
    with pytest.raises(sg.ArgumentError, match=match):
        make()


def test_a_start_of_the_wrong_shape_says_what_the_state_is(make_problem):
    problem = make_problem(optimizer=HeavyBall(0.5))
    with pytest.raises(
        sg.ShapeError, match=r"theta0 must have shape \(10,\), got \(7,\) \(the whole state .* 20 numbers"
    ):
        problem.run(np.zeros(7), 3)
