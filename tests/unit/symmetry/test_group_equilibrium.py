"""The equilibrium of a family of charges: closed forms of linear networks, one generator, and where there is none."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.symmetry import group_equilibrium, orbit_potential


def exact_data(sigma_x, sigma_e, V):
    """Few samples whose second moments are Σ_x and Σ_ε exactly, y = Vx + ε, with ε independent of x up to order 4."""
    x = np.concatenate([np.eye(len(sigma_x)), -np.eye(len(sigma_x))]) * np.sqrt(len(sigma_x))
    e = np.concatenate([np.eye(len(sigma_e)), -np.eye(len(sigma_e))]) * np.sqrt(len(sigma_e))
    x, e = x @ np.linalg.cholesky(sigma_x).T, e @ np.linalg.cholesky(sigma_e).T
    X, E = np.repeat(x, len(e), axis=0), np.tile(e, (len(x), 1))
    return X, X @ V.T + E


SIGMA_X = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
SIGMA_E = np.array([[0.4, 0.1], [0.1, 1.5]])
V = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])
DATA = exact_data(SIGMA_X, SIGMA_E, V)


@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_two_linear_layers(gamma):
    """W(γ + 2σ²aΣ_x)Wᵀ = Uᵀ(γ + 2σ²bΣ_ε)U on UW = V, a = Tr Σ_ε, b = Tr Σ_x; the product and all losses stay."""
    model = sg.models.DeepLinear([3, 2, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.02, gamma=gamma)
    U = np.array([[2.0, 0.3], [-0.4, 0.7]])
    theta = model.flatten(W1=np.linalg.solve(U, V), W2=U)
    found = group_equilibrium(problem, theta, model)
    W, U = model.unflatten(found.theta).values()
    x = gamma * np.eye(3) + 2 * problem.sigma2 * np.trace(SIGMA_E) * SIGMA_X
    e = gamma * np.eye(2) + 2 * problem.sigma2 * np.trace(SIGMA_X) * SIGMA_E
    np.testing.assert_allclose(W @ x @ W.T, U.T @ e @ U, rtol=0, atol=1e-13)
    np.testing.assert_allclose(U @ W, V, atol=1e-13)
    np.testing.assert_allclose(problem.per_sample_losses(found.theta), problem.per_sample_losses(theta), rtol=1e-11)
    assert found.status == "finite" and found.undetermined == 0 and found.residual < 1e-13
    np.testing.assert_allclose(found.act(theta), found.theta, rtol=1e-12)
    for name, a in [("I", model.generator(np.eye(2))), ("B", model.generator([[0.3, 1.0], [1.0, -2.0]]))]:
        charge = sg.Charge(a)
        assert abs(charge.rate(problem, found.theta)) < 1e-12, name


def test_rates_are_those_of_the_slow_flow():
    """Isotropic Σ_x = s_x I, Σ_ε = s_ε I, d = 2: on UW = V every charge relaxes at 4γ + 4·2σ²·d·s_x·s_ε."""
    model = sg.models.DeepLinear([2, 2, 2])
    X, Y = exact_data(0.7 * np.eye(2), 1.3 * np.eye(2), np.array([[1.0, 0.2], [-0.3, 0.8]]))
    problem = sg.SGD(model, X, Y, learning_rate=0.02, gamma=0.0)
    theta = model.flatten(W1=np.array([[1.0, 0.2], [-0.3, 0.8]]), W2=np.eye(2))
    found = group_equilibrium(problem, theta, model)
    np.testing.assert_allclose(found.relaxation_rates, 4 * 2 * problem.sigma2 * 2 * 0.7 * 1.3, rtol=1e-10)


def test_deep_linear_network():
    """κ = (τ²/ab)^{1/D}: intermediate layers are √κ times isometries, noise is shared equally (γ = 0)."""
    model = sg.models.DeepLinear([3, 2, 2, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.02)
    rng = np.random.default_rng(3)
    W1, W2 = rng.normal(size=(2, 3)), rng.normal(size=(2, 2))
    W1[:] = np.linalg.pinv(rng.normal(size=(2, 2)) @ W2) @ V
    theta = model.flatten(W1=W1, W2=W2, W3=V @ np.linalg.pinv(W2 @ W1))
    product = lambda t: (lambda w: w["W3"] @ w["W2"] @ w["W1"])(model.unflatten(t))  # noqa: E731
    np.testing.assert_allclose(product(theta), V, atol=1e-12)
    found = group_equilibrium(problem, theta, model)
    roots = [np.linalg.cholesky(s) for s in (SIGMA_X, SIGMA_E)]
    tau = np.linalg.norm(roots[1].T @ V @ roots[0], "nuc")
    a, b = np.trace(SIGMA_E), np.trace(SIGMA_X)
    kappa = (tau**2 / (a * b)) ** (1 / 3)
    w = model.unflatten(found.theta)
    np.testing.assert_allclose(np.linalg.svd(w["W2"])[1], np.sqrt(kappa), rtol=1e-9)
    np.testing.assert_allclose(product(found.theta), V, atol=1e-11)
    share = 4 * (a * b) ** (1 / 3) * tau ** (4 / 3)
    for name in w:
        np.testing.assert_allclose(np.trace(problem.covariance(found.theta, block=name)), share, rtol=1e-9)
    np.testing.assert_allclose(found.potential, problem.noise_scale * 3 * share, rtol=1e-12)


def test_one_generator_is_the_one_dimensional_case():
    model = sg.models.DeepLinear([3, 2, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.1, batch_size=2, gamma=0.05, replacement=False)
    theta = model.init(rng=4)
    a = model.generator([[1.0, 0.4], [0.4, -0.3]])
    found, one = group_equilibrium(problem, theta, a), sg.noise_equilibrium(problem, theta, a)
    np.testing.assert_allclose(found.theta, one.theta, rtol=1e-10)
    np.testing.assert_allclose(found.relaxation_rates, one.relaxation_rate, rtol=1e-9)
    assert found.charges_at_start == {found.charges.popitem()[0]: pytest.approx(one.charge_at_start)}


def test_the_potential_falls_as_the_charges_rise():
    """dF(e^{λA}θ)/dλ = -dC/dt, by differences."""
    model = sg.models.DeepLinear([3, 2, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.1, gamma=0.05)
    theta, a, h = model.init(rng=5), model.generator([[1.0, 0.4], [0.4, -0.3]]), 1e-5
    ends = orbit_potential(problem, np.stack([a.exp(-h, theta), a.exp(h, theta)]))
    assert (ends[1] - ends[0]) / (2 * h) == pytest.approx(-sg.Charge(a).rate(problem, theta), rel=1e-8)


def test_a_family_given_twice_is_the_same_family():
    model = sg.models.DeepLinear([3, 2, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.1, gamma=0.05)
    theta = model.init(rng=5)
    one, two = model.generator(np.eye(2)), model.generator(np.diag([1.0, 0.0]))
    first = group_equilibrium(problem, theta, [one, two])
    again = group_equilibrium(problem, theta, {"one": one, "two": two, "again": 2.0 * one, "both": one + two})
    np.testing.assert_allclose(again.theta, first.theta, rtol=1e-10)
    assert again.undetermined == first.undetermined == 0


def test_a_unit_that_nothing_feeds_and_nothing_reads_is_undetermined():
    model = sg.models.DeepLinear([3, 3, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.02)
    W, U = np.zeros((3, 3)), np.zeros((2, 3))
    W[:2], U[:, :2] = V, np.eye(2)
    found = group_equilibrium(problem, model.flatten(W1=W, W2=U), model)
    assert (found.status, found.undetermined) == ("finite", 1)
    assert found.residual < 1e-12


def test_no_equilibrium():
    """u alone moves w by noise: C falls for ever. Without noise and decay F is flat."""
    model = sg.models.DeepLinear([1, 1, 1])
    problem = sg.SGD(model, [[1.0], [1.0]], [[1.0], [-1.0]], learning_rate=0.1)
    found = group_equilibrium(problem, [0.0, 1.0], model)
    assert found.status == "infinite" and found.potential < 1e-12 * found.potential_at_start
    flat = group_equilibrium(problem.replace(batch_size=2, replacement=False), [0.7, 1.0], model)
    assert flat.status == "degenerate" and flat.undetermined == 1 and flat.iterations == 0


def test_errors():
    model = sg.models.DeepLinear([3, 2, 2])
    problem = sg.SGD(model, *DATA, learning_rate=0.02)
    with pytest.raises(sg.ArgumentError, match="theta must be of a size at which"):
        group_equilibrium(problem, 1e100 * model.init(0), model)
    with pytest.raises(sg.ArgumentError, match="must be symmetries of every sample's loss"):
        group_equilibrium(problem, model.init(0), sg.scaling(model.dim))
    with pytest.raises(sg.ArgumentError, match="must be symmetric"):
        group_equilibrium(problem, model.init(0), model.generator([[0.0, 1.0], [-1.0, 0.0]]))
    with pytest.raises(sg.ShapeError, match="theta"):
        group_equilibrium(problem, [1.0, 2.0], model)
    tanh = sg.models.MLP([3, 2, 2], "tanh", biases=False)
    with pytest.raises(sg.ArgumentError, match="at least one that is linear and symmetric"):
        group_equilibrium(sg.SGD(tanh, *DATA, learning_rate=0.02), tanh.init(0), tanh)
    assert group_equilibrium(problem, model.init(0), model, most=1).status == "cut off"
