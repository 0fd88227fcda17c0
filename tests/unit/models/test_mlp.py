"""Multilayer perceptrons: second derivatives, norms, one step of SGD and of its SDE, and what the class accepts."""

import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import MLP, DeepLinear, Product
from sgdsde.models import model as protocol

EPS = np.finfo(float).eps


def hessians(case):
    """∇²ℓ_i by the kernel, (N, d, d): row k of each from the direction e_k."""
    eye_d, eye_n = np.eye(case.model.dim), np.eye(case.n)
    rows = [[case.model.hessian_vector(case.theta, v, case.samples, c) for v in eye_d] for c in eye_n]
    return np.array(rows)


def test_hessian_times_vector_is_the_derivative_of_the_weighted_gradient(network):
    model, theta, samples = network.model, network.theta, network.samples
    v, c = network.rng.standard_normal(model.dim), network.rng.standard_normal(network.n)
    h = 1e-5 / np.linalg.norm(v)
    up, down = (model.weighted_gradient(theta + s * h * v, c, samples) for s in (1, -1))
    found = model.hessian_vector(theta, v, samples, c)
    assert np.abs(found - (up - down) / (2 * h)).max() <= 1e-7 * np.abs(found).max()
    up, down = (model.gradient(theta + s * h * v, samples) for s in (1, -1))
    found = model.hessian_vector(theta, v, samples)
    assert np.abs(found - (up - down) / (2 * h)).max() <= 1e-7 * np.abs(found).max() + 1e-9


def test_hessians_are_symmetric_and_linear(network):
    model, theta, samples = network.model, network.theta, network.samples
    u, v = network.rng.standard_normal((2, model.dim))
    Hu, Hv = (model.hessian_vector(theta, w, samples) for w in (u, v))
    size = np.linalg.norm(Hu) * np.linalg.norm(v)
    assert abs(v @ Hu - u @ Hv) <= 1e-12 * size
    assert np.abs(model.hessian_vector(theta, u - 2 * v, samples) - Hu + 2 * Hv).max() <= 1e-12 * np.abs(Hu).max() * 5


@pytest.mark.parametrize("activation", ["tanh", "relu", "leaky_relu", "sigmoid", "gelu", "identity"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
@pytest.mark.parametrize("dims", [[2, 3, 4, 3], [3, 4, 2], [2, 2]])
def test_the_trace_is_that_of_the_hessians(make_case, activation, loss, dims):
    case = make_case(MLP(dims, activation, loss=loss, scale=0.7, slope=0.2), 5)
    found = case.model.compiled().traces
    traces = np.empty(case.n)
    found(traces, case.theta, case.samples.numbers, case.samples.data, case.scratch())
    wanted = np.trace(hessians(case), axis1=1, axis2=2)
    assert np.abs(traces - wanted).max() <= 1e-12 * np.abs(wanted).max()
    assert case.model.hessian_trace(case.theta, case.samples) == pytest.approx(wanted.mean(), rel=1e-12)


def test_norms_are_those_of_the_single_gradients(network):
    g, mean, G = network.dense()
    found = network.model.gradient_norms(network.theta, network.samples)
    assert found == pytest.approx(np.square(g).sum(axis=1), rel=1e-12)
    assert found.mean() - mean @ mean == pytest.approx(np.square(G).sum(), abs=1e-11 * np.square(g).sum(axis=1).max())


@pytest.mark.parametrize("model", [DeepLinear([3, 2, 2]), Product(width=2, depth=3)])
def test_models_without_kernels_have_second_derivatives_by_differences(make_case, model, monkeypatch):
    made = model.compiled()._replace(hessian=None, traces=None, norms=None)
    exact = make_case(model, 8)
    trace, norms = (f(exact.theta, exact.samples) for f in (model.hessian_trace, model.gradient_norms))
    monkeypatch.setattr(type(model), "compiled", lambda self, factor=None: made)
    case = make_case(model, 8)
    found = [model.hessian_vector(case.theta, v, case.samples) for v in np.eye(model.dim)]
    wanted = case.difference(lambda theta: model.gradient(theta, case.samples))
    assert np.abs(found - wanted).max() <= 1e-7 * np.abs(wanted).max()
    assert model.hessian_trace(case.theta, case.samples) == pytest.approx(np.trace(wanted), rel=1e-6)
    assert model.hessian_trace(case.theta, case.samples) == pytest.approx(trace, rel=1e-6)
    assert np.array_equal(model.hessian_vector(case.theta, np.zeros(model.dim), case.samples), np.zeros(model.dim))
    assert model.gradient_norms(case.theta, case.samples) == pytest.approx(norms, rel=1e-12)


def test_streams_of_long_gradients_hold_few_at_a_time(make_case, monkeypatch):
    case = make_case(MLP([3, 2]), 20)
    whole = case.model.gradient_moments(case.theta, case.samples)
    monkeypatch.setattr(protocol, "NUMBERS_AT_ONCE", 3 * case.model.dim)
    seen = []
    few = case.model.gradient_moments(case.theta, case.samples, lambda rows: seen.append(len(rows)) or rows)
    assert max(seen) == 3
    assert few[1] == pytest.approx(whole[1], rel=1e-12)


def test_without_activation_and_biases_it_is_the_deep_linear_network():
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((50, 4)), rng.standard_normal((50, 2))
    flat, deep = MLP([4, 3, 5, 2], "identity", biases=False, scale=0.5), DeepLinear([4, 3, 5, 2], scale=0.5)
    assert flat.shapes == deep.shapes
    theta, v = rng.standard_normal((2, flat.dim))
    a, b = flat.samples(X, Y), deep.samples(X, Y)
    assert flat.losses(theta, a) == pytest.approx(deep.losses(theta, b), rel=1e-12)
    assert flat.gradient(theta, a) == pytest.approx(deep.gradient(theta, b), rel=1e-11)
    assert flat.hessian_vector(theta, v, a) == pytest.approx(deep.hessian_vector(theta, v, b), rel=1e-11, abs=1e-11)
    for B in (np.eye(3), rng.standard_normal((3, 3))):
        assert np.array_equal(flat.generator(B).matrix, deep.generator(B).matrix)
    assert list(flat.symmetries()) == list(deep.symmetries())


@pytest.mark.parametrize("width", [200, 1300])
def test_wide_layers_take_more_samples_at_a_time(make_case, width):
    case = make_case(MLP([2, width, 2]), 1500 if width > 1000 else 400)
    c = case.rng.standard_normal(case.n)
    size = sum(case.model.work(case.n))
    memory = np.full(size + 128, 3.25)
    out, work = np.empty(case.model.dim), memory[64:-64]
    case.model.compiled().weighted(out, case.theta, c, case.samples.numbers, case.samples.data, work)
    assert (memory[:64] == 3.25).all() and (memory[-64:] == 3.25).all()
    wanted = c @ case.dense()[0]
    assert np.abs(out - wanted).max() <= 1e-11 * np.abs(wanted).max()


def test_scratch_does_not_grow_with_the_samples_but_by_their_weights():
    for model in (MLP([64, 64, 10]), MLP([5, 300, 2], "gelu")):
        assert sum(model.work(100_000)) - sum(model.work(10_000)) == 90_000
    million = MLP([64, 950, 950, 40, 10], loss="softmax")
    assert million.dim > 1e6
    assert 8 * sum(million.work(1797)) < 3e8  # bytes


def test_a_path_has_the_bits_it_has_alone(network):
    x = np.ascontiguousarray(network.rng.standard_normal((3, network.model.dim)).T)
    v, h = network.rng.standard_normal((network.n, 3)), np.array([0.1, 0.2, 0.3])
    kernel, p = network.model.compiled().increment, network.p()
    together = np.empty_like(x)
    kernel(together, x, np.zeros(3), h, v, p, network.samples.data, network.scratch(3))
    for b in range(3):
        one = np.empty((network.model.dim, 1))
        parts = (np.ascontiguousarray(a[:, b : b + 1]) for a in (x, v))
        x1, v1 = parts
        kernel(one, x1, np.zeros(1), h[b : b + 1], v1, p, network.samples.data, network.scratch())
        assert np.array_equal(one[:, 0], together[:, b])


# --- one step of SGD and of the SDE ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 6])
def test_the_mean_of_all_batches_is_the_step_of_euler_and_maruyama_without_noise(network, size):
    """EM with h = η has the mean of one step of SGD: every sample once is a fair share of batches."""
    model, eta, gamma = network.model, 0.05, 0.3
    problem = sg.SGD(model, network.X, network.Y, learning_rate=eta, batch_size=size, gamma=gamma)
    n = network.n
    batches = np.stack([(np.arange(n) + shift) % n for shift in range(size)]).astype(float)  # each sample `size` times
    x = np.tile(network.theta[:, None], (1, n))
    scheme, kernels = problem.recursion().scheme, problem.recursion().kernels()
    scheme.step(
        kernels.increment, kernels.correction, x, np.zeros(n), np.full(n, eta), np.zeros((0, n)), batches,
        np.zeros(2 * n, np.int64), np.empty(sum(scheme.work(model.dim, 0)) * 2), kernels.p, kernels.data,
    )  # fmt: skip
    out, continuous = np.empty((model.dim, 1)), problem.sde().kernels()
    continuous.increment(
        out, network.theta[:, None], np.zeros(1), np.full(1, eta), np.zeros((n, 1)), continuous.p, continuous.data,
        network.scratch(),
    )  # fmt: skip
    size_of_g = np.abs(network.dense()[0]).max() + np.abs(network.theta).max()
    assert np.abs(x.mean(axis=1) - network.theta - out[:, 0]).max() <= 1e-13 * size_of_g


def test_a_run_takes_the_steps_of_its_batches():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.integers(0, 4, 30)
    model = MLP([3, 5, 4], "relu", loss="softmax")
    problem = sg.SGD(model, X, y, learning_rate=0.1, batch_size=30, replacement=False)
    theta = model.init(0)
    run = problem.run(theta, 50, rng=0)
    for _ in range(50):
        theta = theta - 0.1 * problem.gradient(theta)
    assert np.abs(run.y[-1] - theta).max() <= 1e-12


def test_the_sde_runs_in_both_calculuses():
    rng = np.random.default_rng(0)
    model = MLP([3, 4, 2], "sigmoid")
    problem = sg.SGD(model, rng.standard_normal((20, 3)), rng.standard_normal((20, 2)), learning_rate=0.01)
    for method in ("euler-maruyama", "milstein-symmetric"):
        sol = sg.solve(problem.sde(), (0.0, 0.1), model.init(1), method=method, n_paths=2, rng=0)
        assert sol.success and np.isfinite(sol.y).all()


# --- the class ------------------------------------------------------------------------------------------------------


def test_a_start_has_no_biases_and_weights_by_their_inputs():
    model = MLP([4, 2000, 3])
    arrays = model.unflatten(model.init(3, scale=2.0))
    assert not arrays["b1"].any() and not arrays["b2"].any()
    assert arrays["W1"].std() == pytest.approx(1.0, rel=0.05)
    assert arrays["W2"].std() == pytest.approx(2 / np.sqrt(2000), rel=0.05)
    assert np.array_equal(model.init(3), model.init(3))


def test_labels_are_kept_as_the_kernels_read_them_and_taken_again_without_a_copy():
    X = np.ones((3, 2))
    for model, Y in ((MLP([2, 1], loss="logistic"), [0, 1, 1]), (MLP([2, 3], loss="softmax"), [0, 2, 1])):
        samples = model.samples(X, Y)
        assert model.samples(samples.X, samples.Y).data is samples.data
    assert list(MLP([2, 1], loss="logistic").samples(X, [0, 1, 1]).Y) == [-1, 1, 1]
    problem = sg.SGD(MLP([2, 3], loss="softmax"), X, [0, 2, 1], learning_rate=0.1)
    again = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(again.gradient(np.ones(9)), problem.gradient(np.ones(9)))


def test_names_of_arrays_and_of_the_model():
    model = MLP([3, 4, 2], "leaky_relu", biases=False, scale=0.5, slope=0.1)
    assert repr(model) == "MLP([3, 4, 2], activation='leaky_relu', slope=0.1, biases=False, scale=0.5, loss='squared')"
    assert list(model.shapes) == ["W1", "W2"] and MLP([3, 4, 2]).dim == 26 and model.depth == 2
    assert list(MLP([3, 4, 2]).shapes) == ["W1", "b1", "W2", "b2"]
    assert MLP([2, 3], loss=sg.losses.softmax).loss_function is sg.losses.softmax


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": [3]}, "dims must hold at least two"),
        ({"dims": [3, 0]}, r"dims\[1\]"),
        ({"activation": "swish"}, "activation must be one of 'identity', 'tanh'"),
        ({"biases": 1}, "biases must be True or False"),
        ({"loss": "hinge"}, "loss must be one of 'squared'"),
        ({"dims": [3, 1], "loss": "softmax"}, "loss must be 'logistic' or 'squared' for one output"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"slope": -0.1}, "slope must be positive"),
        ({"slope": 1.5}, r"slope must be in \(0, 1\]"),
    ],
)
def test_wrong_networks_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        MLP(**{"dims": [3, 2], **arguments})


def test_wrong_data_and_states_are_refused():
    model = MLP([3, 2])
    with pytest.raises(ModelError, match="needs samples X and Y"):
        model.samples(np.ones((2, 3)), None)
    with pytest.raises(ShapeError, match=r"X must have shape \(n_samples, 3\)"):
        model.samples(np.ones((2, 4)), np.ones((2, 2)))
    with pytest.raises(ShapeError, match=r"Y must have shape \(n_samples, 2\)"):
        model.samples(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ShapeError, match="same number of samples"):
        model.samples(np.ones((2, 3)), np.ones((3, 2)))
    samples = model.samples(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ShapeError, match="v must have shape"):
        model.hessian_vector(np.zeros(8), np.zeros(7), samples)
    with pytest.raises(ShapeError, match="c must have shape"):
        model.hessian_vector(np.zeros(8), np.zeros(8), samples, np.ones(3))
