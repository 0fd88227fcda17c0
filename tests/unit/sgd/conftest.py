"""Small problems, and their dense quantities in NumPy."""

import itertools

import numpy as np
import pytest

from sgdsde import SGD
from sgdsde.models import DeepLinear, Product


def make(model=None, n=5, seed=0, **numbers):
    model = DeepLinear([3, 2, 2]) if model is None else model
    rng = np.random.default_rng(seed)
    n_in, n_out = (model.dims[0], model.dims[-1]) if isinstance(model, DeepLinear) else (1, 1)
    X, Y = rng.standard_normal((n, n_in)), rng.standard_normal((n, n_out))
    return SGD(model, X, Y, **{"learning_rate": 0.1, "gamma": 0.2, **numbers})


@pytest.fixture
def make_problem():
    return make


@pytest.fixture(params=["two layers", "three layers", "uw", "three chains"])
def model(request):
    return {
        "two layers": DeepLinear([3, 2, 2]),
        "three layers": DeepLinear([2, 2, 3, 1], scale=0.5),
        "uw": Product(),
        "three chains": Product(width=3, depth=3),
    }[request.param]


def batch_steps(problem, theta, batches):
    """The states after one step from θ with each of the batches (k, S), by the problem's own STEP kernel, (k, d)."""
    scheme, kernels = problem.recursion().scheme, problem.recursion().kernels()
    batches = np.asarray(batches, dtype=np.float64)
    k, size = batches.shape
    assert size == problem.batch_size
    x = np.ascontiguousarray(np.tile(theta[:, None], (1, k)))
    fixed, per_path = scheme.work(theta.size, 0)
    scheme.step(
        kernels.increment, kernels.correction, x, np.zeros(k), np.full(k, problem.learning_rate), np.zeros((0, k)),
        np.ascontiguousarray(batches.T), np.zeros(k, np.int64), np.empty(fixed + per_path * k), kernels.p, kernels.data,
    )  # fmt: skip
    return x.T


def aux_steps(problem, theta, aux):
    """The states after one step from θ, one for each row of numbers that the step is made of (k, rows), (k, d)."""
    recursion = problem.recursion()
    scheme, kernels = recursion.scheme, recursion.kernels()
    k, h = len(aux), problem.learning_rate * (1.0 if problem.optimizer is None else problem.optimizer.pace)
    start = theta if problem.optimizer is None else problem.optimizer.start(theta)
    x = np.ascontiguousarray(np.tile(start[:, None], (1, k)))
    data = np.concatenate([kernels.data, scheme.prepare(recursion, kernels, 0.0, start, h)])
    fixed, per_path = scheme.work(theta.size, 0)
    scheme.step(
        kernels.increment, kernels.correction, x, np.zeros(k), np.full(k, h), np.zeros((0, k)),
        np.ascontiguousarray(np.asarray(aux, dtype=float).T), np.zeros(2 * k, np.int64),
        np.full(fixed + per_path * k, np.nan), kernels.p, data,
    )  # fmt: skip
    return x.T[:, : theta.size]


def nodes(n, points=3):
    """Gauss and Hermite's nodes (points**n, n) and weights for n normal numbers: exact up to degree 2·points - 1."""
    z, w = np.polynomial.hermite_e.hermegauss(points)
    grid = np.array(list(itertools.product(z, repeat=n)))
    return grid, np.array([np.prod(one) for one in itertools.product(w / w.sum(), repeat=n)])


def weighted_moments(rows, weights):
    """Mean (d,) and covariance (d, d)."""
    mean = weights @ rows
    return mean, (rows - mean).T @ ((rows - mean) * weights[:, None])


def all_batches(problem):
    """Every batch the problem can draw, each with the same probability."""
    n, size = problem.n_samples, problem.batch_size
    if problem.replacement:
        return list(itertools.product(range(n), repeat=size))
    return list(itertools.combinations(range(n), size))


def sde_steps(problem, theta, h, v, factor=None):
    """Euler-Maruyama from θ with each row of v (k, m), by the SDE's own INCREMENT kernel, (k, d)."""
    equation = problem.sde(factor).bind(0.0, theta)
    kernels = equation.kernels()
    k = len(v)
    x, out = np.ascontiguousarray(np.tile(theta[:, None], (1, k))), np.empty((theta.size, k))
    work = np.empty(kernels.work[0] + kernels.work[1] * k)
    v = np.ascontiguousarray(np.asarray(v).T)
    kernels.increment(out, x, np.zeros(k), np.full(k, h), v, kernels.p, kernels.data, work)
    return (x + out).T


@pytest.fixture
def tools():
    return {
        "batch_steps": batch_steps,
        "all_batches": all_batches,
        "sde_steps": sde_steps,
        "aux_steps": aux_steps,
        "nodes": nodes,
        "weighted_moments": weighted_moments,
    }
