"""The SDE's kernels against dense formulas: increment, correction, and the discrete batch step."""

import numpy as np
import pytest

from sgdsde.models import DeepLinear

GAMMA, S = 0.3, 0.7


@pytest.fixture(params=[1, 3])
def columns(request):
    return request.param


def increment(case, x, h, v, name="per-sample"):
    out = np.full_like(x, np.nan)
    b = x.shape[1]
    kernel = case.model.compiled(name).increment
    kernel(out, x, np.zeros(b), h, v, case.p(GAMMA, S), case.samples.data, case.scratch(b))
    return out


def test_the_increment_is_drift_and_factor(case, columns):
    x = case.rng.standard_normal((case.model.dim, columns))
    h = case.rng.uniform(0.1, 1.0, columns)
    for name in case.model.factors:
        m = case.model.noise(name, case.samples)[0]
        v = case.rng.standard_normal((m, columns))
        out = increment(case, x, h, v, name)
        for b in range(columns):
            g, mean, _ = case.dense(x[:, b])
            G = case.model.factor(x[:, b], case.samples, name)
            wanted = -h[b] * (mean + 2 * GAMMA * x[:, b]) + S * G @ v[:, b]
            assert np.abs(out[:, b] - wanted).max() <= 1e-12 * (np.abs(g).max() * (1 + np.abs(v).max()) + 1)


def test_zero_step_is_noise_alone_and_zero_noise_or_no_rows_is_drift_alone(case):
    x, one = case.theta[:, None], np.ones(1)
    v = case.rng.standard_normal((case.n, 1))
    both, noise = increment(case, x, one, v), increment(case, x, 0 * one, v)
    drift, absent = increment(case, x, one, 0 * v), increment(case, x, one, v[:0])
    scale = np.abs(case.dense()[0]).max() * (1 + np.abs(v).max())
    assert np.abs(both - noise - drift).max() <= 1e-13 * scale
    assert np.abs(absent - drift).max() <= 1e-13 * scale


def test_a_constant_added_to_the_noise_changes_nothing(case):
    v = case.rng.standard_normal((case.n, 1))
    plain = increment(case, case.theta[:, None], np.ones(1), v)
    shifted = increment(case, case.theta[:, None], np.ones(1), v + 5.0)
    assert np.abs(plain - shifted).max() <= 64 * case.n * np.finfo(float).eps * 6 * np.abs(case.dense()[0]).max()


def test_noise_is_the_gradient_of_the_weighted_loss(case):
    """Gξ = ∇[(1/√N)Σ_i (ξ_i - ξ̄)ℓ_i]."""
    v = case.rng.standard_normal(case.n)
    c = (v - v.mean()) / np.sqrt(case.n)
    noise = increment(case, case.theta[:, None], np.zeros(1), v[:, None])[:, 0] / S
    wanted = case.difference(lambda theta: c @ case.loss_of(theta))
    assert np.abs(noise - wanted).max() <= 1e-6 * np.abs(case.dense()[0]).max()


def correction(case, x):
    out = np.full_like(x, np.nan)
    b = x.shape[1]
    kernel = case.model.compiled().correction
    kernel(out, x, np.zeros(b), case.p(GAMMA, S), case.samples.data, case.scratch(b))
    return out


def trace(case, theta):
    g = case.model.per_sample_gradients(theta, case.samples)
    return np.square(g - g.mean(axis=0)).sum() / case.n


def test_the_correction_is_the_gradient_of_the_trace_of_the_covariance(case, columns):
    x = case.rng.standard_normal((case.model.dim, columns))
    found = correction(case, x)
    for b in range(columns):
        wanted = S**2 / 4 * case.difference(lambda theta: trace(case, theta), x[:, b], 1e-4)
        floor = np.square(case.dense(x[:, b])[0]).max()
        assert np.abs(found[:, b] - wanted).max() <= 1e-6 * np.abs(wanted).max() + 1e-9 * floor


def test_the_correction_is_the_sum_over_the_columns_of_the_factor(make_case):
    case = make_case(DeepLinear([2, 3, 2]), 5)
    step = 1e-5

    def G(theta):
        return case.dense(theta)[2]

    columns = G(case.theta).T
    slopes = [(G(case.theta + step * b)[:, j] - G(case.theta - step * b)[:, j]) for j, b in enumerate(columns)]
    wanted = S**2 / 2 * np.sum(slopes, axis=0) / (2 * step)
    found = correction(case, case.theta[:, None])[:, 0]
    assert np.abs(found - wanted).max() <= 1e-7 * np.abs(wanted).max()


def test_along_a_symmetry_the_correction_is_minus_the_trace(case):
    """θᵀA·½∇TrΣ = -Tr[ΣA]."""
    sigma = case.model.covariance(case.theta, case.samples)
    for A in case.model.symmetries().values():
        found = A.apply(case.theta) @ correction(case, case.theta[:, None])[:, 0]
        scale = np.square(case.dense()[0]).max() * case.model.dim
        assert abs(found + S**2 / 2 * A.trace(sigma)) <= 1e-11 * scale


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_the_batch_step_is_the_mean_of_single_gradients(case, columns, size):
    model = case.model
    x = case.rng.standard_normal((model.dim, columns))
    h = case.rng.uniform(0.1, 1.0, columns)
    batch = case.rng.integers(0, case.n, (size, columns))
    new = step(case, x, h, batch)
    for b in range(columns):
        g = case.dense(x[:, b])[0]
        wanted = (1 - 2 * h[b] * GAMMA) * x[:, b] - h[b] * g[batch[:, b]].mean(axis=0)
        assert np.abs(new[:, b] - wanted).max() <= 1e-13 * (np.abs(g).max() + np.abs(x).max())


def step(case, x, h, batch):
    made, b = case.model.compiled(), x.shape[1]
    work = case.scratch(b, batch.shape[0])
    new = x.copy()
    made.step(
        made.increment, made.correction, new, np.zeros(b), h, np.zeros((0, b)), batch.astype(float),
        np.zeros(b, np.int64), work, case.p(GAMMA, S), case.samples.data,
    )  # fmt: skip
    return new


def test_a_batch_larger_than_a_chunk_is_taken_in_pieces(make_case):
    case = make_case(DeepLinear([3, 2, 3]), 1100)
    batch = case.rng.integers(0, case.n, (1090, 1))
    g = case.dense()[0]
    wanted = (1 - 2 * 0.1 * GAMMA) * case.theta - 0.1 * g[batch[:, 0]].mean(axis=0)
    assert step(case, case.theta[:, None], np.full(1, 0.1), batch)[:, 0] == pytest.approx(wanted, rel=1e-11)
