"""Small networks with data, and their losses written a second time in plain NumPy."""

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from sgdsde.models import (
    MLP,
    DeepLinear,
    DiagonalLinear,
    LinearRegression,
    LogisticRegression,
    Product,
    RadialNetwork,
    ScaleInvariant,
    SoftmaxRegression,
)

PHI = {
    "identity": lambda z: z,
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.2 * z),
    "gelu": lambda z: z * np.exp(log_ndtr(z)),
}


RADIAL = {"squared": np.square, "tanh": lambda s: np.tanh(s) / s, "sigmoid": lambda s: 1 / (1 + np.exp(-s))}


def perceptron(model, theta, X):
    """The outputs of a layered network, (N, K)."""
    arrays = model.unflatten(theta)
    a = X
    for l in range(1, model.depth + 1):
        a = a @ arrays[f"W{l}"].T + arrays.get(f"b{l}", 0.0)
        if l < model.depth and isinstance(model, MLP):
            a = PHI[model.activation](a)
        if l < model.depth and isinstance(model, RadialNetwork):
            a = a * RADIAL[model.radial](np.linalg.norm(a, axis=1, keepdims=True))
    if isinstance(model, ScaleInvariant):
        lengths = [np.linalg.norm(W) for W in arrays.values()]
        a = a / (np.prod(lengths) if model.norm == "layers" else np.linalg.norm(theta) ** model.depth)
    return a


def widths(model):
    """How many inputs and outputs."""
    if isinstance(model, (Product, DiagonalLinear)):
        return getattr(model, "n_inputs", 1), 1
    return model.dims[0], model.dims[-1]


def loss_of_outputs(loss, o, Y):
    """A loss by its formula, (N,)."""
    if loss == "squared":
        return np.square(o - Y).sum(axis=1)
    if loss == "logistic":
        return np.logaddexp(0.0, -(2.0 * Y - 1.0) * o).sum(axis=1)
    chosen = np.take_along_axis(o, Y[:, None], 1)[:, 0] if Y.ndim == 1 else (Y * o).sum(axis=1)
    return logsumexp(o, axis=1) - chosen


def targets(loss, rng, n, k):
    if loss == "squared":
        return rng.standard_normal((n, k))
    if loss == "logistic":
        return rng.integers(0, 2, (n, k))
    return rng.integers(0, k, n) if n % 2 else rng.dirichlet(np.ones(k), n)


class Case:
    """A model, data and a state; `loss_of` is ℓ_i by the formula, for differences."""

    def __init__(self, model, n, seed=0):
        rng = np.random.default_rng(seed)
        n_in, n_out = widths(model)
        self.model, self.n = model, n
        loss = model.loss_function.name if hasattr(model, "loss_function") else "squared"
        self.loss = loss
        self.X, self.Y = rng.standard_normal((n, n_in)), targets(loss, rng, n, n_out)
        self.theta = rng.standard_normal(model.dim)
        self.samples = model.samples(self.X, self.Y)
        self.rng = rng

    def loss_of(self, theta):
        if isinstance(self.model, (Product, DiagonalLinear)):
            u = theta.reshape(self.model.depth, self.X.shape[1], self.model.width)
            outputs = self.X @ np.prod(u, axis=0).sum(axis=1, keepdims=True)
        else:
            outputs = perceptron(self.model, theta, self.X)
        return self.model.scale * loss_of_outputs(self.loss, outputs, self.Y)

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
    "tanh": (MLP([3, 4, 2]), 9),
    "tanh, three layers, softmax": (MLP([2, 3, 4, 3], loss="softmax", scale=0.5), 11),
    "tanh, many samples": (MLP([3, 9, 2], biases=False), 1300),
    "relu": (MLP([3, 5, 4, 2], "relu"), 150),
    "leaky relu, labels": (MLP([3, 4, 1], "leaky_relu", slope=0.2, loss="logistic"), 20),
    "sigmoid, rows of probabilities": (MLP([2, 3, 3, 2], "sigmoid", loss="softmax"), 8),
    "gelu": (MLP([3, 4, 3, 2], "gelu", loss="logistic"), 140),
    "identity with biases": (MLP([3, 2, 4, 2], "identity"), 6),
    "least squares": (LinearRegression(3, 2, scale=0.5), 7),
    "logistic regression": (LogisticRegression(4), 30),
    "softmax regression": (SoftmaxRegression(3, 4), 31),
    "diagonal": (DiagonalLinear(4), 12),
    "diagonal, depth 3, two products": (DiagonalLinear(3, depth=3, width=2, scale=0.5), 7),
    "diagonal, one input": (DiagonalLinear(1, depth=3, width=2), 6),
    "radial squared": (RadialNetwork([3, 2, 2], "squared", scale=0.5), 8),
    "radial tanh": (RadialNetwork([3, 4, 3, 2], biases=True), 140),
    "radial sigmoid, softmax": (RadialNetwork([2, 3, 4, 2, 3], "sigmoid", biases=True, loss="softmax"), 9),
    "unit vector": (ScaleInvariant([5, 1]), 8),
    "over the total norm": (ScaleInvariant([3, 2, 2], scale=0.5), 7),
    "over the layers' norms": (ScaleInvariant([2, 3, 4, 2], norm="layers"), 60),
    "over the layers' norms, many samples": (ScaleInvariant([3, 3, 3], norm="layers"), 2100),
}
NETWORKS = [name for name, (model, _) in MODELS.items() if isinstance(model, MLP)]


@pytest.fixture
def make_case():
    return Case


@pytest.fixture(params=list(MODELS), scope="module")
def case(request):
    model, n = MODELS[request.param]
    return Case(model, n)


@pytest.fixture(params=NETWORKS, scope="module")
def network(request):
    """A case of an MLP."""
    model, n = MODELS[request.param]
    return Case(model, n)
