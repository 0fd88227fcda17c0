"""Problems in plain NumPy, from the formulas of the theory and nothing of the package: an oracle for the tests."""

from types import SimpleNamespace

import numpy as np
import pytest

from sgdsde.algebra import Generator


class PlainProblem:
    """SGD on per-sample losses and gradients given as functions of θ; everything else is dense and direct."""

    def __init__(
        self, dim, losses, gradients, shapes, symmetries, *, learning_rate=0.1, batch_size=2, gamma=0.05, rho=1.0
    ):
        self.losses, self.gradients = losses, gradients
        self.learning_rate, self.batch_size, self.gamma, self.rho = learning_rate, batch_size, gamma, rho
        self.sigma2 = learning_rate / (2 * batch_size)
        self.noise_scale = self.sigma2 * rho
        self.model = SimpleNamespace(
            dim=dim, shapes=shapes, symmetries=lambda: symmetries, charge_track=lambda *a: None,
            init=lambda rng=0: np.random.default_rng(rng).standard_normal(dim),
        )  # fmt: skip
        self.X = self.Y = None

    def per_sample_losses(self, theta):
        return self.losses(theta)

    def per_sample_gradients(self, theta):
        return self.gradients(theta)

    def gradient(self, theta):
        return self.gradients(theta).mean(axis=0)

    def covariance(self, theta):
        g = self.gradients(theta)
        return np.cov(g.T, bias=True).reshape(g.shape[1], -1)

    def gradient_moments(self, theta, transform=None):
        g = self.gradients(theta)
        g = g if transform is None else transform(g)
        return g.mean(axis=0), g.var(axis=0)

    def but(self, **changes):
        new = PlainProblem.__new__(PlainProblem)
        new.__dict__.update(self.__dict__)
        new.__dict__.update(changes)
        new.sigma2 = new.learning_rate / (2 * new.batch_size)
        new.noise_scale = new.sigma2 * new.rho
        return new


def two_layer(dims=(3, 2, 2), n=6, seed=0, **settings):
    """ℓ = ‖U W x - y‖², θ = [W, U]; generators by pairs (i, j): B = E_ij + E_ji."""
    (dx, h, dy), rng = dims, np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, dx)), rng.standard_normal((n, dy))
    shapes = {"W1": (h, dx), "W2": (dy, h)}

    def split(theta):
        return theta[: h * dx].reshape(h, dx), theta[h * dx :].reshape(dy, h)

    def residuals(theta):
        w, u = split(theta)
        return X @ w.T @ u.T - Y

    def gradients(theta):
        w, u = split(theta)
        r = residuals(theta)
        g_u = 2 * np.einsum("no,nh->noh", r, X @ w.T)
        g_w = 2 * np.einsum("nh,nx->nhx", r @ u, X)
        return np.concatenate([g_w.reshape(n, -1), g_u.reshape(n, -1)], axis=1)

    symmetries = {}
    for i in range(h):
        for j in range(i, h):
            b = np.zeros((h, h))
            b[i, j] = b[j, i] = 1.0
            symmetries[f"B{i}{j}"] = Generator.layered([(h, dx), (dy, h)], [(-b, None), (None, b)], f"B{i}{j}")
    problem = PlainProblem(
        h * dx + dy * h, lambda theta: (residuals(theta) ** 2).sum(axis=1), gradients, shapes, symmetries, **settings
    )
    problem.split = split
    return problem


def uw(x=(1.0, 1.0), y=(1.0, -1.0), **settings):
    """ℓ = ½(u w x - y)², θ = [u, w]."""
    x, y = np.asarray(x, float), np.asarray(y, float)

    def gradients(theta):
        u, w = theta
        r = (u * w * x - y) * x
        return np.stack([r * w, r * u], axis=1)

    return PlainProblem(
        2, lambda theta: 0.5 * (theta[0] * theta[1] * x - y) ** 2, gradients, {}, {},
        **settings,
    )  # fmt: skip


@pytest.fixture
def make_two_layer():
    return two_layer


@pytest.fixture
def make_uw():
    return uw
