"""Second derivatives and norms of every model's kernels against differences and single gradients."""

import numpy as np

from sgdsde.models import MLP, DeepLinear
from sgdsde.models.deep_linear_passes import is_collapsed


def test_hessian_times_vector_is_the_derivative_of_the_weighted_gradient(case):
    model, samples = case.model, case.samples
    v, c = case.rng.standard_normal(model.dim), case.rng.standard_normal(case.n)
    assert model.compiled().hessian is not None
    for at in (case.theta, 0.2 * case.theta):
        h = 1e-5 * np.linalg.norm(at) / np.linalg.norm(v)
        up, down = (model.weighted_gradient(at + s * h * v, c, samples) for s in (1, -1))
        found = model.hessian_vector(at, v, samples, c)
        size = np.abs(found).max() + np.abs(c) @ np.abs(case.dense(at)[0]).max(axis=1) / np.linalg.norm(at)
        assert np.abs(found - (up - down) / (2 * h)).max() <= 1e-7 * size


def test_traces_are_those_of_the_hessians_and_hessians_are_symmetric(case):
    if isinstance(case.model, MLP):
        return  # in test_mlp, sample by sample for every activation and loss
    model, theta, samples = case.model, case.theta, case.samples
    H = np.array([model.hessian_vector(theta, e, samples) for e in np.eye(model.dim)])
    assert np.abs(H - H.T).max() <= 1e-12 * np.abs(H).max()
    assert abs(model.hessian_trace(theta, samples) - np.trace(H)) <= 1e-12 * np.abs(H).max() * model.dim


def test_each_trace_is_that_of_its_own_sample(case):
    if isinstance(case.model, MLP) or case.n > 100:
        return
    model, theta = case.model, case.theta
    traces = np.empty(case.n)
    model.compiled().traces(traces, theta, case.samples.numbers, case.samples.data, case.scratch())
    for i in (0, case.n // 2, case.n - 1):
        c = np.eye(case.n)[i]
        H = np.array([model.hessian_vector(theta, e, case.samples, c) for e in np.eye(model.dim)])
        assert abs(traces[i] - np.trace(H)) <= 1e-12 * np.abs(H).max() * model.dim


def test_norms_are_those_of_the_single_gradients(case):
    g = case.dense()[0]
    wanted = np.square(g).sum(axis=1)
    assert np.abs(case.model.gradient_norms(case.theta, case.samples) - wanted).max() <= 1e-12 * wanted.max()


def test_along_a_symmetry_the_hessian_turns_the_gradient(case):
    """∇²L·Aθ = -Aᵀ∇L, from ∇ℓ_iᵀAθ = 0."""
    mean = case.dense()[1]
    for A in list(case.model.symmetries().values())[:12]:
        found = case.model.hessian_vector(case.theta, A.apply(case.theta), case.samples)
        turned = A.matrix.T @ mean
        size = np.abs(case.dense()[0]).max() * max(A.norm, 1.0)
        assert np.abs(found + turned).max() <= 1e-12 * size * case.model.dim


def test_python_and_kernels_agree_on_which_passes_are_collapsed(make_case):
    for dims, n in (([3, 3, 3], 2500), ([64, 10, 10], 1797), ([6, 1, 5], 1500), ([3, 2], 5), ([3, 2, 2, 2, 3], 60)):
        case = make_case(DeepLinear(dims), n)
        assert case.model._is_collapsed(n) == is_collapsed(case.samples.numbers, n)
