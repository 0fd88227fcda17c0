"""Shapes and kinds of noise: situations that broke other packages (rows H1 to H10), as `solve` meets them."""

import numpy as np
import pytest

import sgdsde as sg

GENERAL = [name for name, scheme in sg.methods.items() if "general" in scheme.strong]


def zero(t, y):
    return np.zeros(y.size)


def covariance(sde, d, n=20_000):
    """Sample covariance of one step of length 1/4 and the standard error of each entry, from 0."""
    x = sg.solve(sde, (0, 0.25), np.zeros(d), dt=0.25, n_paths=n, rng=4, keep="final").y[:, 0]
    return x.T @ x / n


def close(sample, exact, n=20_000):
    """Within 5 standard errors, entry by entry."""
    error = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + exact**2) / n)
    return bool(np.all(np.abs(sample - exact) <= 5 * error))


def test_h1_a_vector_is_diagonal_noise_or_an_error_and_never_broadcast():
    vector = lambda t, y: (1.0, 0.5)  # noqa: E731
    assert close(covariance(sg.SDE(zero, vector, dim=2, noise="diagonal"), 2), np.diag([0.25, 0.0625]))
    with pytest.raises(sg.ShapeError, match=r"returned a tuple of shape \(2,\), but noise='general' wants .*\(2, m\)"):
        sg.solve(sg.SDE(zero, vector, dim=2), (0, 1), [0.0, 0.0], dt=0.5)


@pytest.mark.parametrize("noise", ["additive", "general"])
@pytest.mark.parametrize("method", ["sra1", "shark", "ou-splitting", "sriw1"])
def test_h2_methods_for_additive_noise_take_constant_columns(method, noise):
    constant = np.array([[1.0, 0.2], [0.3, 1.0]])
    runs = [
        sg.solve(
            sg.SDE(lambda t, y: -y, lambda t, y: constant, dim=2, noise=noise, calculus=calculus), (0, 1), [1.0, 2.0],
            method=method, dt=0.1, n_paths=3, rng=0,
        )
        for calculus in (("ito", "stratonovich") if method != "sriw1" else ("ito",))
    ]  # fmt: skip
    assert all(run.success and np.array_equal(run.y, runs[0].y) for run in runs)
    bent = sg.SDE(lambda t, y: -y, lambda t, y: constant + 0.01 * np.sin(y), dim=2, noise="general")
    with pytest.raises(sg.ArgumentError, match="additive.* noise, this equation has general noise"):
        sg.solve(bent, (0, 1), [1.0, 2.0], method=method, dt=0.1, rng=0)


@pytest.mark.parametrize("noise", ["additive", "general"])
def test_h2_constant_noise_is_additive_by_its_value(noise):
    constant = np.array([[1.0, 0.2], [0.3, 1.0]])
    sde = sg.SDE(lambda t, y: -y, lambda t, y: constant, dim=2, noise=noise)
    run = dict(dt=0.1, n_paths=3, rng=0)
    milstein = sg.solve(sde, (0, 1), [1.0, 2.0], method="milstein", **run)
    np.testing.assert_allclose(milstein.y, sg.solve(sde, (0, 1), [1.0, 2.0], **run).y, rtol=1e-12)


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize(("d", "m"), [(1, 1), (1, 4), (2, 1), (2, 2), (3, 1), (3, 2), (2, 4)])
def test_h4_every_shape_in_every_method_for_general_noise(method, d, m):
    calculus = sg.methods[method].calculus[0]
    weights = np.cos(np.arange(d * m)).reshape(d, m)
    sde = sg.SDE(
        lambda t, y, w: -y, lambda t, y, w: w * (1.0 + 0.1 * np.sin(y.sum())), dim=d, calculus=calculus, args=(weights,)
    )
    sol = sg.solve(sde, (0, 1), np.ones(d), method=method, dt=1 / 16, n_paths=5, rng=0, save_noise=True)
    assert sol.y.shape == (5, 2, d) and sol.dW.shape == (5, 16, m) and sol.success
    if sg.methods[method].strong["general"] == 0.0:  # a weak method's noise is another one
        return
    # All others follow the same path: within the size of a step of the Euler-Maruyama step by hand (Ito).
    for y, dW in zip(sol.y[:, -1], sol.dW):
        x = np.ones(d)
        for w in dW:
            g = weights * (1.0 + 0.1 * np.sin(x.sum()))
            x = x - x / 16 + g @ w
        np.testing.assert_allclose(y, x, atol=0.12)


def test_h5_a_matrix_as_the_state_is_refused():
    sde = sg.SDE(zero, lambda t, y: np.ones(4), dim=4, noise="diagonal")
    with pytest.raises(sg.ShapeError, match=r"\(2, 2\).*flatten a matrix \(C order\)"):
        sg.solve(sde, (0, 1), np.eye(2), dt=0.5)


def test_h7_scalar_diagonal_and_general_noise_have_different_covariances():
    vector = lambda t, y: (1.0, 0.5)  # noqa: E731
    matrix = lambda t, y: ((1.0, 0.5, 0.0), (0.5, 0.0, 2.0))  # noqa: E731
    a, b = np.array([1.0, 0.5]), np.array([[1.0, 0.5, 0.0], [0.5, 0.0, 2.0]])
    assert close(covariance(sg.SDE(zero, vector, dim=2, noise="scalar"), 2), np.outer(a, a) / 4)
    assert close(covariance(sg.SDE(zero, vector, dim=2, noise="diagonal"), 2), np.diag(a**2) / 4)
    assert close(covariance(sg.SDE(zero, matrix, dim=2), 2), b @ b.T / 4)


def test_h8_functions_see_one_state_so_that_matrix_products_work():
    A = np.array([[0.0, 1.0], [-1.0, -0.5]])
    sde = sg.SDE(lambda t, y, A: A @ y, lambda t, y, A: (0.0, 0.0), dim=2, noise="scalar", args=(A,))
    y0 = np.arange(6.0).reshape(3, 2)
    sol = sg.solve(sde, (0, 1), y0, dt=0.5, n_paths=3, rng=0)
    step = np.eye(2) + 0.5 * A
    np.testing.assert_allclose(sol.y[:, -1], y0 @ (step @ step).T, rtol=1e-14)


def test_h9_the_intensity_of_the_noise_is_in_the_diffusion_alone():
    # Var W(t) = t: with D = 3 the coefficient is sqrt(2 D).
    sde = sg.SDE(lambda t, y, D: (0.0,), lambda t, y, D: (np.sqrt(2 * D),), dim=1, noise="additive", args=(3.0,))
    assert close(covariance(sde, 1), np.array([[2 * 3.0 * 0.25]]))
    dW = sg.solve(sde, (0, 0.25), [0.0], dt=0.25, n_paths=20_000, rng=4, save_noise=True).dW
    assert abs(dW.var() / 0.25 - 1) < 5 * np.sqrt(2 / 20_000)


def test_h10_noise_that_depends_on_time_alone_is_additive():
    sde = sg.SDE(lambda t, y: (-y[0],), lambda t, y: (np.cos(t),), dim=1, noise="additive")
    for method in ("euler-maruyama", "milstein"):
        assert sg.solve(sde, (0, 1), [1.0], method=method, dt=0.1, rng=0).success
    state = sg.SDE(lambda t, y: (-y[0],), lambda t, y: (np.cos(y[0]),), dim=1, noise="additive")
    with pytest.raises(sg.ModelError, match="noise='additive' but diffusion .* changes with y"):
        sg.solve(state, (0, 1), [1.0], dt=0.1)
