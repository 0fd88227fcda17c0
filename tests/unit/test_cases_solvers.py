"""Situations in which solvers of stochastic equations went wrong, each in words of its own, with the right outcome."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.random import iterated_integrals


def still(t, y):
    return 0.0, 0.0


def crossed(t, y):
    return (y[1], 0.0), (0.0, y[0])


def crossed_vector(t, y):
    return y[1], y[0]


@pytest.mark.parametrize(
    "method", ["heun", "euler-heun", "milstein", "milstein-symmetric", "srs2", "implicit-midpoint"]
)
def test_a_diagonal_matrix_that_is_not_diagonal_noise(method):
    """Stratonovich, G = diag(x_2, x_1): E x stays (1, 1). A diagonal Milstein step lets it grow by e^{1/2} at t = 1."""
    sde = sg.SDE(still, crossed, dim=2, calculus="stratonovich")
    y = sg.solve(sde, (0, 1), [1.0, 1.0], method=method, dt=1 / 16, n_paths=20_000, rng=1, keep="final").y[:, -1]
    assert np.all(np.abs(y.mean(axis=0) - 1.0) < 5 * y.std(axis=0) / np.sqrt(20_000))
    found = sg.noise_structure(sde, [1.0, 0.5])
    assert not found.diagonal and not found.commutative
    called = sg.SDE(still, crossed_vector, dim=2, noise="diagonal", calculus="stratonovich")
    with pytest.raises(sg.ArgumentError, match="noise was declared 'diagonal', .* measured to be 'general'"):
        sg.solve(called, (0, 1), [1.0, 1.0], method="srs2", dt=1 / 16)


def dense(t, y):
    return (np.cos(y[1]), 0.3, y[0]), (0.2 * y[0], np.sin(y[1]), 0.1)


def test_general_noise_runs_by_default_and_its_integrals_can_be_had():
    """d = 2, m = 3: a default method takes it, and a person gets the double integrals of a step."""
    sde = sg.SDE(still, dense, dim=2)
    for method in (None, "auto", "milstein", "platen"):
        sol = sg.solve(sde, (0, 1), [0.5, 0.2], method=method, dt=0.125, n_paths=3, rng=0, save_noise=True)
        assert sol.success and sol.dW.shape == (3, 8, 3)
    I = iterated_integrals(sol.dW, 0.125, rng=sol.seed)
    symmetric = sol.dW[..., :, None] * sol.dW[..., None, :] - 0.125 * np.eye(3)
    np.testing.assert_allclose(I + I.swapaxes(-1, -2), symmetric, rtol=0, atol=1e-15)


def no_drift(t, y):
    return 0.0, 0.0, 0.0


def pair(t, y):
    return (1.0, 0.0), (0.0, 1.0), (0.0, y[0])


def shorter(t, y):
    return 1.0 / (1.0 + 3.0 * y[0] * y[0])


def test_steps_that_follow_the_state_do_not_bend_the_area():
    """dX = (dW_1, dW_2, X_1 dW_2), whose step lengths depend on X_1: E X_3² = E Σ X_1² δ, by the steps themselves.

    Rejecting steps would correlate the area with what is kept. A fourth component sums X_1² δ along each path.
    """

    def with_clock(t, y):
        return 0.0, 0.0, 0.0, y[0] * y[0]

    def four(t, y):
        return (1.0, 0.0), (0.0, 1.0), (0.0, y[0]), (0.0, 0.0)

    n_paths = 40_000
    for size in (None, shorter):
        sde = sg.SDE(with_clock, four, dim=4)
        y = sg.solve(sde, (0, 1), np.zeros(4), dt=0.25, n_paths=n_paths, rng=3, step_size=size, keep="final").y[:, -1]
        difference = y[:, 2] ** 2 - y[:, 3]
        assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(n_paths)
        assert abs(y[:, 2].mean()) < 5 * y[:, 2].std() / np.sqrt(n_paths)
    assert 0.40 < y[:, 3].mean() < 0.5  # ∫E W² dt = 0.5 from the left ends; whole steps of 1/4 give 0.375
    with pytest.raises(sg.ArgumentError, match="step_size cannot be used with method 'milstein'"):
        sg.solve(sg.SDE(no_drift, pair, dim=3), (0, 1), np.zeros(3), method="milstein", dt=0.25, step_size=shorter)


def test_an_exact_method_is_called_exact_and_few_paths_call_nothing():
    """No order can be read off rounding, nor off noise: neither gives a number."""
    exact = sg.strong_order(
        sg.SDE(no_drift, pair, dim=3), np.zeros(3), (0, 1), "milstein", n_paths=20, n_steps=(4, 8, 16), rng=0
    )
    assert exact.verdict == "exact" and np.isnan(exact.order)

    def drift(t, y):
        return (-y[0],)

    def noise(t, y):
        return (0.5 * y[0],)

    sde = sg.SDE(drift, noise, dim=1, noise="scalar")
    few = sg.weak_order(sde, [1.0], (0, 1), "platen", n_paths=500, rng=0)
    assert few.verdict == "inconclusive" and few.reason


def test_langevin_by_two_methods_has_one_variance():
    """dq = p dt, dp = (-q - p) dt + dW: E q² at t = 3 by the moment equations, and by methods of both calculi."""

    def drift(t, y):
        return y[1], -y[0] - y[1]

    def noise(t, y):
        return 0.0, 1.0

    from scipy.integrate import solve_ivp

    moments = lambda t, m: [2 * m[1], m[2] - m[0] - m[1], -2 * m[1] - 2 * m[2] + 1]  # noqa: E731
    exact = solve_ivp(moments, (0, 3), [0.0, 0.0, 0.0], rtol=1e-10, atol=1e-12).y[0, -1]
    sde = sg.SDE(drift, noise, dim=2, noise="additive")
    for method in ("euler-maruyama", "heun", "sra1", "ou-splitting"):
        q = sg.solve(sde, (0, 3), [0.0, 0.0], method=method, dt=1 / 64, n_paths=20_000, rng=2, keep="final").y[:, -1, 0]
        bias = 0.02 if method == "euler-maruyama" else 1e-3
        assert abs((q**2).mean() - exact) < 5 * (q**2).std() / np.sqrt(20_000) + bias * exact


def test_square_root_noise_to_a_late_time():
    """Chemical Langevin equation of X <-> Y, √x and √y, cut at zero: 1000 paths, all finite at t = 100."""

    def drift(t, y):
        return -0.3 * y[0] + 0.2 * y[1], 0.3 * y[0] - 0.2 * y[1]

    def noise(t, y):
        a, b = np.sqrt(0.3 * y[0]), np.sqrt(0.2 * y[1])
        return (-a, b), (a, -b)

    def positive(t, y):
        return max(y[0], 0.0), max(y[1], 0.0)

    sde = sg.SDE(drift, noise, dim=2)
    sol = sg.solve(sde, (0, 100), [3.0, 2.0], dt=0.05, n_paths=1000, rng=0, project=positive)
    assert sol.success and sol.y.min() >= 0.0 and np.abs(sol.y[:, -1].mean(axis=0)).max() < 20
