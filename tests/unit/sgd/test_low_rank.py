"""The factor of low rank: the best of its rank, smooth, without leak, and exact at the rank that Σ has."""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError
from sgdsde.models import DeepLinear
from sgdsde.sgd import LowRank
from sgdsde.sgd.factors import lost_part, low_rank


def start(model, seed=1):
    return np.random.default_rng(seed).standard_normal(model.dim)


@pytest.mark.parametrize("n", [4, 30])
def test_at_full_rank_it_is_a_factor(make_problem, model, n):
    problem, theta = make_problem(model, n=n), start(model)
    F, sigma = problem.factor(theta, "low-rank"), problem.covariance(theta)
    if model.factors[0] == "per-sample":
        assert F.shape == (model.dim, min(model.dim, n - 1))
    assert np.abs(F @ F.T - sigma).max() <= 1e-13 * np.trace(sigma)
    assert problem.factor_loss(theta, "low-rank") <= 1e-12
    for A in model.symmetries().values():
        assert problem.factor_leak(theta, A, "low-rank") <= 1e-14


@pytest.mark.parametrize("n", [6, 30])
@pytest.mark.parametrize("rank", [1, 3])
def test_what_it_lacks_are_the_smallest_eigenvalues(make_problem, n, rank):
    problem = make_problem(n=n)
    theta = start(problem.model)
    F, sigma = problem.factor(theta, LowRank(rank)), problem.covariance(theta)
    values = np.linalg.eigvalsh(sigma)[::-1]
    assert F.shape == (problem.model.dim, rank)
    assert np.sort(np.linalg.eigvalsh(F.T @ F))[::-1] == pytest.approx(values[:rank], rel=1e-11)
    left = np.abs(np.linalg.eigvalsh(sigma - F @ F.T)).sum() / np.trace(sigma)
    assert left == pytest.approx(values[rank:].sum() / values.sum(), rel=1e-9)
    assert problem.factor_loss(theta, LowRank(rank)) == pytest.approx(left, rel=1e-9)
    A = problem.model.symmetries()["B=I"]
    assert problem.factor_leak(theta, A, LowRank(rank)) <= 1e-14


@pytest.mark.parametrize("n", [5, 30])
def test_it_is_smooth(make_problem, n):
    """Eigenvectors change their signs at random; the factor must not: differences fall with the step."""
    problem = make_problem(n=n)
    theta, along = start(problem.model), start(problem.model, 2)
    for factor in ("low-rank", LowRank(2)):
        F = problem.factor(theta, factor)
        steps = [np.abs(problem.factor(theta + e * along, factor) - F).max() for e in (1e-3, 1e-4, 1e-5)]
        assert steps[0] > 5 * steps[1] > 25 * steps[2] > 0.0
        bent = []
        for e in (1e-2, 1e-3):
            ahead, behind = (problem.factor(theta + s * e * along, factor) for s in (1.0, -1.0))
            bent.append(np.abs(ahead + behind - 2 * F))
        assert bent[1].max() < 0.02 * bent[0].max()


@pytest.mark.parametrize("shape", [(6, 4), (4, 9)])
def test_it_depends_on_the_covariance_alone(shape):
    """Not on signs and turns of eigenvectors, nor on the factor it is made of."""
    G = np.random.default_rng(0).standard_normal(shape)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((shape[1],) * 2))[0]
    wider = np.concatenate([G, np.zeros((shape[0], 5))], axis=1)
    for rank in (1, 2, 4):
        F = low_rank(G, rank)
        for other in (G @ turn, G[:, ::-1], -G, wider):
            assert np.abs(low_rank(other, rank) - F).max() <= 1e-12


def test_small_eigenvalues_do_not_leak():
    """Eigenvectors of GGᵀ to small eigenvalues are those of rounding; F stays in the span of G."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 3)) * [1.0, 1e-3, 1e-6], rng.standard_normal((30, 2))
    problem = sg.SGD(DeepLinear([3, 2, 2]), X, Y, learning_rate=0.1)
    theta = start(problem.model)
    A = problem.model.symmetries()["B=I"]
    values, vectors = np.linalg.eigh(problem.covariance(theta))
    kept = values > 1e-14 * values[-1]
    assert problem.factor_leak(theta, A, vectors[:, kept] * np.sqrt(values[kept])) > 1e-13
    assert problem.factor_leak(theta, A, "low-rank") <= 1e-15


def test_methods_with_a_correction_take_it(make_problem):
    """Milstein's method needs a factor that can be differentiated; its correction comes from differences of columns."""
    problem = make_problem(n=5, learning_rate=0.02)
    theta = 0.3 * start(problem.model)
    equation = problem.sde("low-rank")
    assert equation.bind(0.0, theta).noise_dim == 4
    sol = sg.solve(equation, (0, 0.1), theta, n_paths=2, rng=0, dt=0.02, method="milstein-symmetric")
    assert sol.success and np.isfinite(sol.y).all()
    assert repr(equation).endswith("sde(factor='low-rank')")
    assert "low-rank(2)" in repr(problem.sde(LowRank(2)))
    copy = pickle.loads(pickle.dumps(equation))
    again = sg.solve(copy, (0, 0.1), theta, n_paths=2, rng=0, dt=0.02, method="milstein-symmetric")
    assert np.array_equal(again.y, sol.y)


def test_one_step_over_all_signs_has_the_covariance(make_problem, tools):
    problem = make_problem(n=5)
    theta, h = start(problem.model), 0.1
    signs = np.array([[a, b, c, e] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1) for e in (-1, 1)], dtype=float)
    states = tools["sde_steps"](problem, theta, h, np.sqrt(h) * signs, "low-rank")
    wanted = 2 * problem.noise_scale * h * problem.covariance(theta)
    assert np.abs(np.cov(states.T, bias=True) - wanted).max() <= 1e-12 * np.trace(wanted)


def test_degenerate_covariances():
    assert not low_rank(np.zeros((4, 3)), 2).any() and lost_part(np.zeros((4, 3)), np.zeros((4, 1))) == 0.0
    assert lost_part(np.zeros((4, 3)), np.ones((4, 1))) == np.inf
    b = np.array([[1.0], [2.0]])
    for G in (b, b @ np.ones((1, 5)) / np.sqrt(5)):
        F = low_rank(G, 2)
        assert np.abs(F @ F.T - b @ b.T).max() < 1e-14
    same = np.eye(3)
    F = low_rank(same, 3)
    assert np.abs(F @ F.T - same).max() < 1e-14 and lost_part(same, F[:, :1]) == pytest.approx(2 / 3)
    one = sg.SGD(DeepLinear([2, 1]), [[1.0, 2.0]], [1.0], learning_rate=0.1)
    assert one.factor([1.0, 1.0], "low-rank").shape == (2, 1) and not one.factor([1.0, 1.0], "low-rank").any()


def test_ranks_are_checked(make_problem):
    problem = make_problem()
    for wrong, message in ((0, "rank must be at least 1"), (2.0, "rank must be an integer")):
        with pytest.raises(ArgumentError, match=message):
            LowRank(wrong)
    with pytest.raises(ArgumentError, match="rank must be at most d = 10, got 11"):
        problem.sde(LowRank(11))


@pytest.mark.parametrize("factor", ["gram", "cholesky", "low-rank"])
def test_a_path_that_leaves_the_numbers_stops_and_is_counted(factor):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((8, 2)), rng.standard_normal(8)
    problem = sg.SGD(DeepLinear([2, 2, 1]), X, Y, learning_rate=5.0, batch_size=2)
    theta = problem.model.init(0)
    for wrong in (np.nan, 1e200):
        assert np.isnan(problem.factor(theta * wrong, factor)).any()
    with pytest.warns(sg.DivergenceWarning):
        found = sg.solve(problem.sde(factor), (0, 50.0), 20 * theta, dt=5.0, rng=0)
    assert np.isnan(found.y[-1]).all()
