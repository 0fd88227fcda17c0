"""Small networks with data, and their losses written a second time in plain NumPy."""

import numpy as np
import pytest

from sgdsde.models import DeepLinear, Product


class Case:
    """A model, data and a state; `loss_of` is ℓ_i by the formula, for differences."""

    def __init__(self, model, n, seed=0):
        rng = np.random.default_rng(seed)
        n_in, n_out = (model.dims[0], model.dims[-1]) if isinstance(model, DeepLinear) else (1, 1)
        self.model, self.n = model, n
        self.X, self.Y = rng.standard_normal((n, n_in)), rng.standard_normal((n, n_out))
        self.theta = rng.standard_normal(model.dim)
        self.samples = model.samples(self.X, self.Y)
        self.rng = rng

    def loss_of(self, theta):
        if isinstance(self.model, DeepLinear):
            f = self.X
            for W in self.model.unflatten(theta).values():
                f = f @ W.T
        else:
            u = theta.reshape(self.model.depth, self.model.width)
            f = np.prod(u, axis=0).sum() * self.X
        return self.model.scale * np.square(f - self.Y).sum(axis=1)

    def difference(self, f, theta=None, step=1e-5):
        """Central differences of f (...) along each component, (..., d)."""
        theta = self.theta if theta is None else theta
        shift = step * np.eye(theta.size)
        return np.stack([(f(theta + e) - f(theta - e)) / (2 * step) for e in shift], axis=-1)

    def dense(self, theta=None):
        """Gradients (N, d), their mean and the per-sample factor (d, N), by the SAMPLE kernel."""
        g = self.model.per_sample_gradients(self.theta if theta is None else theta, self.samples)
        return g, g.mean(axis=0), (g - g.mean(axis=0)).T / np.sqrt(self.n)

    def p(self, gamma=0.3, s=0.7):
        return np.concatenate([[gamma, s], self.samples.numbers])

    def scratch(self, columns=1, batch=0):
        fixed, per_path = self.model.work(max(self.n, batch))
        return np.full(fixed + per_path * columns, np.nan)


MODELS = {
    "depth 1": (DeepLinear([3, 2]), 5),
    "depth 2": (DeepLinear([3, 2, 4], scale=0.5), 6),
    "depth 2, one output": (DeepLinear([4, 3, 1]), 40),
    "depth 2, many samples": (DeepLinear([3, 3, 3]), 2500),
    "depth 3": (DeepLinear([2, 3, 4, 2]), 7),
    "depth 3, one sample": (DeepLinear([2, 3, 4, 2]), 1),
    "depth 4": (DeepLinear([3, 2, 2, 2, 3]), 60),
    "bottleneck": (DeepLinear([6, 1, 5]), 1500),
    "uw": (Product(), 9),
    "two chains of three": (Product(width=2, depth=3, scale=0.5), 8),
    "one factor": (Product(width=3, depth=1), 4),
}


@pytest.fixture
def make_case():
    return Case


@pytest.fixture(params=list(MODELS), scope="module")
def case(request):
    model, n = MODELS[request.param]
    return Case(model, n)
