"""Data with exact moments: ε independent of x and of mean 0 over finitely many samples, so closed forms are exact."""

import numpy as np
import pytest

from sgdsde.theory import LinearTask

GAUSS = np.array([-np.sqrt(3), 0, 0, 0, 0, np.sqrt(3)])  # six equally likely numbers with the first five normal moments


def make_task(seed=0, d_x=3, d_y=2, rank=2, scale=1.0):
    rng = np.random.default_rng(seed)

    def covariance(d):
        M = rng.standard_normal((d, d))
        return M @ M.T / d + 0.2 * np.eye(d)

    V = rng.standard_normal((d_y, rank)) @ rng.standard_normal((rank, d_x))
    return LinearTask(V, covariance(d_x), covariance(d_y), scale)


def axes(S):
    """±√d L e_j with LLᵀ = S: 2d equally likely points of mean 0 and second moment S."""
    L = np.linalg.cholesky(S) * np.sqrt(len(S))
    return np.concatenate([L.T, -L.T])


def make_samples(task):
    """X and Y of 4 d_x d_y samples with the moments of a task."""
    x, e = axes(task.Sigma_x), axes(task.Sigma_eps)
    X, E = np.repeat(x, len(e), axis=0), np.tile(e, (len(x), 1))
    return X, X @ task.V.T + E


@pytest.fixture
def task_of():
    return make_task


@pytest.fixture
def samples_of():
    return make_samples


@pytest.fixture
def gauss_points():
    def points(d):
        return np.stack(np.meshgrid(*[GAUSS] * d), axis=-1).reshape(-1, d)

    return points
