"""Charges of whole layers: values, rates, exact steps, reports; functions of them; matrix learning rates; counts."""

from itertools import product

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator, rescaling
from sgdsde.models import MLP, DeepLinear, DiagonalLinear, Product, RadialNetwork, ScaleInvariant
from sgdsde.symmetry import (
    Charge,
    ChargeFunction,
    MatrixCharge,
    NoetherCharge,
    PreconditionedCharge,
    UnitCharges,
    charge_rank,
    count_charges,
)

RNG = np.random.default_rng(21)


def problem_of(model, n=4, **settings):
    X, Y = RNG.standard_normal((n, model.dims[0])), RNG.standard_normal((n, model.dims[-1]))
    return sg.SGD(model, X, Y, **{"learning_rate": 0.05, "batch_size": 2, "gamma": 0.1, **settings})


CASES = {
    "deep linear, inner pair": (MatrixCharge, DeepLinear([2, 3, 2, 2]), 2),
    "linear with biases": (MatrixCharge, MLP([2, 2, 2], "identity"), 1),
    "relu with biases": (UnitCharges, MLP([2, 3, 1], "relu"), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_each_entry_is_a_charge_and_every_batch_obeys_the_exact_law(case):
    kind, model, layer = CASES[case]
    problem, theta = problem_of(model), model.init(1)
    charges = kind(model, layer)
    h, a = problem.learning_rate, 1 - 2 * problem.learning_rate * problem.gamma
    value, rate, drift = charges(theta), charges.rate(problem, theta), charges.discrete_rate(problem, theta)
    if kind is MatrixCharge:
        B = RNG.standard_normal((charges.width, charges.width))
        B = B + B.T
        one, pick = charges.charge(B), lambda q: np.sum(B * q)
    else:
        one, pick = charges.charge(2), lambda q: q[2]
    assert one(theta) == pytest.approx(pick(value), rel=1e-12)
    assert one.rate(problem, theta) == pytest.approx(pick(rate), rel=1e-11)
    assert one.discrete_rate(problem, theta) == pytest.approx(pick(drift), rel=1e-11)
    assert sg.check_symmetry(problem, one)
    g = problem.per_sample_gradients(theta)
    steps = np.array([g[list(b)].mean(axis=0) for b in product(range(4), repeat=2)])
    after = charges(a * theta - h * steps)
    np.testing.assert_allclose(charges.step(theta, -h * steps, a), after, atol=1e-14)
    np.testing.assert_allclose((after.mean(axis=0) - value) / h, drift, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(charges.residual(problem, theta), -rate / 2)
    assert charges.rate(problem, np.stack([theta, theta])).shape == (2, *value.shape)


def test_the_drift_of_two_linear_layers_in_closed_form():
    problem = problem_of(DeepLinear([3, 2, 2]), replacement=False)
    theta = problem.model.init(0)
    W, U = problem.model.unflatten(theta).values()
    r, X, n = problem.X @ (U @ W).T - problem.Y, problem.X, 4
    M = r.T @ X / n
    inner, outer = (X.T * (r**2).sum(1)) @ X / n - M.T @ M, (r.T * (X**2).sum(1)) @ r / n - M @ M.T
    wanted = -4 * 0.1 * (U.T @ U - W @ W.T) + 8 * problem.noise_scale * (W @ inner @ W.T - U.T @ outer @ U)
    np.testing.assert_allclose(MatrixCharge(problem.model).rate(problem, theta), wanted, rtol=1e-11)


def test_units_of_any_degree():
    alpha = 2  # squared ReLU, of one sample's loss (u·max(Wx, 0)² - y)²
    x, y = np.array([0.7, -0.4]), 0.3

    def gradient(theta):
        W, u = theta[:4].reshape(2, 2), theta[4:]
        z = np.maximum(W @ x, 0)
        r = 2 * (u @ z**2 - y)
        return np.concatenate([(r * u * 2 * z)[:, None] * x, (r * z**2)[:, None]], axis=None)

    model = MLP([2, 2, 1], "relu", biases=False)
    del model.activation  # a model of one's own, of units that the package knows nothing of
    charges, theta = UnitCharges(model, alpha=alpha), np.array([0.5, -1.0, 2.0, 0.2, 0.8, -0.6])
    for k in range(2):
        assert abs(charges.charge(k).generator.apply(theta) @ gradient(theta)) < 1e-14
        assert charges.charge(k)(theta) == pytest.approx(charges(theta)[k])
    wrong = UnitCharges(model, alpha=1.0).charge(0).generator
    assert abs(wrong.apply(theta) @ gradient(theta)) > 1e-2
    v = -0.1 * gradient(theta)
    np.testing.assert_allclose(charges.step(theta, v, 0.9), charges(0.9 * theta + v), atol=1e-14)


def test_a_report_of_a_run():
    problem = problem_of(DeepLinear([2, 2, 2]), batch_size=1)
    Q, theta0 = MatrixCharge(problem.model), problem.model.init(0)
    run = problem.run(theta0, 20, 60, rng=0, t_eval="steps", observe=Q)
    report = Q.report(run)
    assert np.abs(report.cross).max() < 1e-13 and report.charge.shape == (60, 21, 2, 2)
    np.testing.assert_allclose(run.observed[Q.name].reshape(report.charge.shape), report.charge, atol=1e-13)
    left = report.remainder[:, -1].reshape(60, -1)
    assert (np.abs(left.mean(axis=0)) <= 5 * left.std(axis=0, ddof=1) / np.sqrt(60)).all()
    np.testing.assert_allclose(report.rate[0, 3], Q.rate(problem, run.y[0, 3]), rtol=1e-12)
    assert "largest cross term" in repr(report)
    sde = Q.report(sg.solve(problem.sde(), (0, 0.1), theta0, dt=1e-3, rng=0, t_eval=11))
    assert sde.cross is None and np.abs(sde.remainder[:, -1]).max() < 0.1 * np.abs(sde.delta[:, -1]).max()


def test_f_of_charges_has_no_second_order_term():
    problem = problem_of(DeepLinear([2, 2, 2]), gamma=0.0)
    Q, theta = MatrixCharge(problem.model), problem.model.init(3)
    by_differences = ChargeFunction(Q, lambda q: np.exp(q[0]) * q[3] - q[1] ** 2)
    f = ChargeFunction(Q, by_differences.f, lambda q: [np.exp(q[0]) * q[3], -2 * q[1], 0.0, np.exp(q[0])])
    assert f.rate(problem, theta) == pytest.approx(by_differences.rate(problem, theta), rel=1e-8)
    q, moved = Q(theta).ravel(), 1e-6 * Q.rate(problem, theta).ravel()
    assert f.rate(problem, theta) == pytest.approx((f.f(q + moved) - f.f(q - moved)) / 2e-6, rel=1e-6)
    g, errors = problem.per_sample_gradients(theta), []
    for eta in (1e-2, 5e-3):
        finer = problem.replace(learning_rate=eta)
        after = [f(theta - eta * g[list(b)].mean(axis=0)) for b in product(range(4), repeat=2)]
        errors.append(abs(np.mean(after) - f(theta) - eta * f.discrete_rate(finer, theta)))
    assert 12 < errors[0] / errors[1] < 20  # O(η⁴)
    pair = ChargeFunction([Charge(rescaling(8)), NoetherCharge(rescaling(8))], lambda c: c[0] - 2 * c[1])
    assert pair(theta) == pytest.approx(0.0, abs=1e-14) and "C[rescaling]" in repr(pair)


def test_a_matrix_learning_rate_keeps_a_charge_where_it_commutes():
    problem, h = problem_of(DeepLinear([2, 2, 2])), 2
    theta, eta, gamma = problem.model.init(0), problem.learning_rate, problem.gamma
    A = problem.model.generator(np.diag([1.0, 2.0]))
    E = np.exp(RNG.standard_normal(8))
    charge = PreconditionedCharge(A, E)
    g, a = problem.per_sample_gradients(theta), 1 - 2 * eta * gamma
    steps = np.array([g[list(b)].mean(axis=0) for b in product(range(4), repeat=2)])
    after = charge(a * theta - eta * E * steps)
    np.testing.assert_allclose(charge.step(theta, steps, eta, gamma), after, atol=1e-13)
    assert (after.mean() - charge(theta)) / eta == pytest.approx(charge.terms(problem, theta).total, rel=1e-11)
    noise = 2 * problem.noise_scale * np.trace(problem.covariance(theta) @ A.matrix @ np.diag(E))
    assert charge.rate(problem, theta) == pytest.approx(-4 * gamma * charge(theta) + noise, rel=1e-11)
    mixing = problem.model.generator([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ArgumentError, match=r"it has .* at \(\d, \d\)"):
        PreconditionedCharge(mixing, E)
    S = np.linalg.qr(RNG.standard_normal((2, 2)))[0] * [1.0, 2.0]
    S = S @ S.T  # of the units: commutes with B = 1, and mixes nothing else
    whole = np.zeros((8, 8))
    whole[:4, :4], whole[4:, 4:] = np.kron(S, np.eye(h)), np.kron(np.eye(2), S)
    dense = PreconditionedCharge(problem.model.symmetries()["B=I"], whole)
    np.testing.assert_allclose(dense.step(theta, steps, eta, gamma), dense(a * theta - eta * steps @ whole), atol=1e-13)
    with pytest.raises(ArgumentError, match="must make ME symmetric"):
        PreconditionedCharge(A, whole)
    assert PreconditionedCharge(A, np.ones(8))(theta) == pytest.approx(Charge(A)(theta))


def test_a_generator_that_is_not_symmetric_may_have_a_charge_under_a_matrix_learning_rate():
    # M = [[0, 4], [1, 0]], E = diag(4, 1): ME is symmetric. Per-sample gradients orthogonal to Mθ = (4w, u).
    M, E = Generator.from_matrix([[0.0, 4.0], [1.0, 0.0]]), np.array([4.0, 1.0])
    charge, theta, g = PreconditionedCharge(M, E), np.array([0.7, -0.4]), None
    g = 1.3 * np.array([-M.apply(theta)[1], M.apply(theta)[0]])
    assert charge(theta - 0.1 * E * g) == pytest.approx(charge.step(theta, g, 0.1), rel=1e-13)


@pytest.mark.parametrize("dims", [(1, 3, 1), (3, 2, 2), (1, 2, 3), (2, 4, 3), (2, 6, 1)])
def test_counts_against_ranks(dims):
    n, h, m = dims
    model = DeepLinear(dims)
    theta = RNG.standard_normal(model.dim)
    W, U = model.unflatten(theta).values()
    counted = count_charges(*dims)
    assert charge_rank(model, theta) == counted.charges
    every = [np.eye(h * h)[k].reshape(h, h) for k in range(h * h)]
    assert np.linalg.matrix_rank([model.generator(B).apply(theta) for B in every]) == counted.orbit
    slopes = np.hstack([np.kron(U, np.eye(n)), np.kron(np.eye(m), W.T)])
    assert model.dim - np.linalg.matrix_rank(slopes) == counted.fibre
    assert counted.uncharged == counted.orbit - counted.charges >= 0


def test_ranks_of_other_families():
    model = MLP([2, 3, 1], "relu")
    assert charge_rank(model.symmetries(), model.init(0)) == 3  # the whole layer's is the sum of the units'
    assert (
        charge_rank([rescaling(2), 2 * rescaling(2)], [1.0, 2.0]) == 1 and charge_rank([rescaling(2)], [0.0, 0.0]) == 0
    )
    assert charge_rank([], [1.0]) == 0


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: MatrixCharge(MLP([2, 2, 1], "relu")), ArgumentError, "linear units.*UnitCharges"),
        (lambda: MatrixCharge(ScaleInvariant([2, 2, 1])), ArgumentError, "linear units"),
        (lambda: MatrixCharge(DeepLinear([2, 2, 1]), 2), ArgumentError, "must have a hidden layer 2"),
        (lambda: MatrixCharge(Product()), ArgumentError, "must have a hidden layer 1"),
        (lambda: MatrixCharge(DiagonalLinear(2, 2, 2)), ArgumentError, "must have a hidden layer 1"),
        (lambda: UnitCharges(MLP([2, 2, 1], "tanh")), ArgumentError, "homogeneous units"),
        (lambda: UnitCharges(RadialNetwork([2, 2, 1], "squared")), ArgumentError, "each by itself"),
        (lambda: UnitCharges(MLP([2, 2, 1], "relu"), alpha=2.0), ArgumentError, "alpha must be 1"),
        (lambda: MatrixCharge(DeepLinear([1, 1, 1]))([1.0]), ShapeError, "theta must have shape"),
        (lambda: ChargeFunction(3.0, np.sum), ArgumentError, "charges must be"),
        (lambda: PreconditionedCharge(rescaling(2), [1.0, 0.0]), ArgumentError, "E must be positive"),
        (lambda: PreconditionedCharge(rescaling(2), [1.0]), ShapeError, "E must have shape"),
        (lambda: PreconditionedCharge(rescaling(2), [[1.0, 0.1], [0.2, 1.0]]), ArgumentError, "E must be symmetric"),
        (lambda: count_charges(0, 1, 1), ArgumentError, "n_in"),
        (lambda: charge_rank(3, [1.0]), ArgumentError, "generators must be"),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()
