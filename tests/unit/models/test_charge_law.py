"""The TRACK kernels of the charge law against dense formulas."""

import numpy as np
import pytest

from sgdsde.algebra import Generator
from sgdsde.models import DeepLinear, DiagonalLinear, Product, RadialNetwork, ScaleInvariant, uw_gauss
from sgdsde.models import charge_rows as rows
from sgdsde.models.naming import charged

GAMMA = 0.3


def track(case, watcher, x0, x1, h, acc):
    b = x0.shape[1]
    work = np.full(watcher.work[0] + watcher.work[1] * b, np.nan)
    watcher.kernel(acc, x0, x1, np.zeros(b), h, watcher.p, watcher.data, work)
    return acc


def dense_rows(A, theta, moved, h, mean, sigma):
    decay = 1 - 2 * GAMMA * h
    v = moved - decay * theta
    cross = 2 * decay * theta @ A @ v
    out = np.zeros(rows.CHARGE_ROWS)
    out[rows.SUM_H_CHARGE] = h * theta @ A @ theta
    out[rows.SUM_H2_CHARGE] = h**2 * theta @ A @ theta
    out[rows.SUM_H2_GRADIENT] = h**2 * mean @ A @ mean
    out[rows.SUM_H_TRACE] = h * np.trace(sigma @ A)
    out[rows.SUM_H2_TRACE] = h**2 * np.trace(sigma @ A)
    out[rows.SUM_CROSS] = cross
    out[rows.SUM_ABS_CROSS] = abs(cross)
    out[rows.SUM_QUADRATIC] = v @ A @ v
    out[rows.CHARGE] = moved @ A @ moved
    out[rows.SUM_SCALE] = np.linalg.norm(A, 2) * np.linalg.norm(theta) * (np.linalg.norm(theta) + np.linalg.norm(v))
    return out


def generators(case):
    """The model's own symmetries, and others of every structure the kernel takes: nothing here needs a symmetry."""
    model, rng = case.model, case.rng
    yield from charged(model.symmetries()).values()
    if isinstance(model, (Product, DiagonalLinear)):
        yield Generator.diagonal(rng.standard_normal(model.dim))
        return
    if isinstance(model, (RadialNetwork, ScaleInvariant)):
        yield Generator.diagonal(np.concatenate([rng.normal() * np.ones(s) for s in model.shapes.values()], axis=None))
        return
    for kind in range(3):
        factors = []
        grids = [(*shape, 1)[:2] for shape in model.shapes.values()]
        for n, m in grids:
            L, R = rng.standard_normal((n, n)), rng.standard_normal((m, m))
            pair = [(L + L.T, None), (None, R + R.T), (2.0 * np.eye(n), R + R.T)][(kind + len(factors)) % 3]
            factors.append(pair)
        yield Generator.layered(grids, factors)


def test_rows_are_those_of_the_dense_formulas(case):
    for A in generators(case):
        watcher = case.model.charge_track(A, GAMMA, case.samples.X, case.samples.Y)
        assert watcher.rows == rows.CHARGE_ROWS and watcher.data is case.samples.data
        acc, wanted = np.zeros((rows.CHARGE_ROWS, 3)), np.zeros((rows.CHARGE_ROWS, 3))
        size = np.zeros(3)
        for _ in range(2):  # two steps: the rows add up, but for the charge at the end
            x0, x1 = case.rng.standard_normal((2, case.model.dim, 3))
            h = case.rng.uniform(0.1, 1.0, 3)
            track(case, watcher, x0, x1, h, acc)
            for b in range(3):
                g, mean, G = case.dense(x0[:, b])
                one = dense_rows(A.matrix, x0[:, b], x1[:, b], h[b], mean, G @ G.T)
                wanted[:, b] += one
                wanted[rows.CHARGE, b] = one[rows.CHARGE]
                size[b] += A.norm * (np.square(g).sum(axis=1).mean() + np.square(x0).sum() + np.square(x1).sum())
        assert (np.abs(acc - wanted) <= 1e-12 * size).all()


def test_a_step_of_the_model_has_no_cross_term_along_its_symmetries(case):
    x0 = case.theta[:, None]
    g = case.dense()[0]
    v = 0.1 * case.rng.standard_normal(case.n) @ g
    x1 = (1 - 2 * GAMMA * 0.1) * x0 + v[:, None]
    for A in charged(case.model.symmetries()).values():
        watcher = case.model.charge_track(A, GAMMA, case.X, case.Y)
        acc = track(case, watcher, x0, x1, np.full(1, 0.1), np.zeros((rows.CHARGE_ROWS, 1)))[:, 0]
        scale = acc[rows.SUM_SCALE] + A.norm * (x0[:, 0] @ x0[:, 0])
        assert acc[rows.SUM_ABS_CROSS] <= 64 * case.model.dim * np.finfo(float).eps * scale


def test_a_population_has_the_charge_law_of_its_moments():
    law, uw = uw_gauss(0.8, 0.5), Product()
    samples = uw.samples(law, None)
    A = uw.symmetries()["W1/W2"]
    watcher = uw.charge_track(A, GAMMA, law, None)
    x0, x1, h = np.array([[1.2], [0.7]]), np.array([[1.1], [0.9]]), np.full(1, 0.1)
    acc = np.zeros((rows.CHARGE_ROWS, 1))
    watcher.kernel(acc, x0, x1, np.zeros(1), h, watcher.p, watcher.data, np.zeros(sum(watcher.work)))
    theta = x0[:, 0]
    wanted = dense_rows(A.matrix, theta, x1[:, 0], 0.1, uw.gradient(theta, samples), uw.covariance(theta, samples))
    assert acc[:, 0] == pytest.approx(wanted, rel=1e-13)


def test_generators_without_that_structure_have_no_kernel():
    deep, product = DeepLinear([2, 2, 2]), Product(width=2)
    X, Y = np.ones((3, 2)), np.ones((3, 2))
    dense = np.ones((8, 8))
    assert deep.charge_track(Generator.from_matrix(dense), 0.0, X, Y) is None
    assert product.charge_track(Generator.from_matrix(dense[:4, :4]), 0.0, X[:, 0], Y[:, 0]) is None
