"""Models of JAX functions: names, what is refused and why, precision, other processes."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import from_jax

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((7, 2))


def network(params, x):
    return params["v"] @ jnp.tanh(params["layer"][0] @ x + params["layer"][1])


def squared(outputs, y):
    return jnp.sum((outputs - y) ** 2)


def start():
    rng = np.random.default_rng(1)
    layer = (rng.standard_normal((4, 3)), rng.standard_normal(4))
    return {"v": rng.standard_normal((2, 4)), "layer": layer}


def problem_of(function=network, params=None, loss=squared, **options):
    return sg.SGD(
        from_jax(function, start() if params is None else params, loss=loss, **options), X, Y, learning_rate=0.02
    )


def test_parameters_by_their_paths():
    model = from_jax(network, start(), loss=squared)
    assert model.shapes == {"layer.0": (4, 3), "layer.1": (4,), "v": (2, 4)}
    back = model.params_at(model.theta0)
    assert np.array_equal(back["layer"][0], start()["layer"][0]) and np.array_equal(back["v"], start()["v"])
    theta = model.init(2)
    assert np.array_equal(model.unflatten(theta)["layer.1"], start()["layer"][1])
    assert model.fan_in("v") == 2
    assert list(from_jax(lambda p, x, y: p * x[0], 2.0).shapes.items()) == [("theta", ())]


def test_a_function_may_give_outputs_or_the_loss_itself():
    first = problem_of()
    second = problem_of(lambda p, x, y: squared(network(p, x), y), loss=None)
    third = problem_of(jax.jit(network))
    theta = first.model.theta0
    for other in (second, third):
        assert other.gradient(theta) == pytest.approx(first.gradient(theta), rel=1e-14)


def test_everything_is_in_double_precision_and_the_setting_outside_stays():
    assert not jax.config.jax_enable_x64
    params = jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float32), start())
    problem = problem_of(params=params)
    theta, h, v = problem.model.theta0, 1e-6, np.ones(problem.model.dim)
    slope = (problem.loss(theta + h * v) - problem.loss(theta - h * v)) / (2 * h)
    assert v @ problem.gradient(theta) == pytest.approx(slope, rel=1e-8)
    assert not jax.config.jax_enable_x64 and jnp.ones(1).dtype == jnp.float32


def test_class_numbers_stay_integers():
    def loss(o, y):
        return jax.nn.logsumexp(o) - o[y]

    labels = np.array([0, 1, 1, 0, 1, 0, 0])
    problem = sg.SGD(from_jax(network, start(), loss=loss), X, labels, learning_rate=0.1)
    assert problem.Y.dtype == np.int64
    rows = problem.per_sample_gradients(problem.model.theta0)
    assert rows.mean(axis=0) == pytest.approx(problem.gradient(problem.model.theta0), rel=1e-12)


@pytest.mark.parametrize(
    "function, params, loss, error, message",
    [
        (lambda p, x, y: p["w"] * x, {"w": np.ones(3)}, None, ShapeError, r"must be one number, got \(3,\); loss="),
        (lambda p, x: p["w"] * x, {"w": np.ones(3)}, lambda o, y: o, ShapeError, r"must be one number, got \(3,\)$"),
        (lambda p, x, y: jnp.sum(p["w"]).astype("float32"), {"w": np.ones(3)}, None, ModelError, "double precision"),
        (lambda p, x, y: RNG.random() * p["w"][0], {"w": np.ones(3)}, None, ModelError, "it is random"),
        (lambda p, x, y: p["w"][0] / 0.0, {"w": np.ones(3)}, None, ModelError, "not finite"),
        (network, {"w": np.arange(3)}, squared, ModelError, r"params\['w'\] must hold real floats, got dtype int64"),
        (network, {"w": np.ones(3) * 1j}, squared, ModelError, "real floats, got dtype complex128"),
        (network, {}, squared, ModelError, "at least one array"),
        (network, {"a.b": np.ones(1), "a": {"b": np.ones(1)}}, squared, ModelError, "different names"),
        (3, {"w": np.ones(3)}, squared, ArgumentError, "function must be a function"),
        (network, {"w": np.ones(3)}, 3, ArgumentError, "loss must be a function"),
    ],
)
def test_refused_with_the_reason(function, params, loss, error, message):
    with pytest.raises(error, match=message):
        problem_of(function, params, loss)


class MyError(Exception):
    pass


def test_what_a_function_raises_reaches_the_caller():
    armed = []

    def failing(params, x):
        if armed:
            raise MyError("mine")
        return network(params, x)

    problem = problem_of(failing)
    armed.append(True)  # JAX calls it again for other sizes
    with pytest.raises(MyError, match="mine"):
        problem.run(problem.model.theta0, 5, rng=0)


def test_other_processes_and_checkpoints(tmp_path):
    def network(params, x):  # local: they travel by value
        return params["v"] @ jnp.tanh(params["layer"][0] @ x + params["layer"][1])

    def squared(outputs, y):
        return jnp.sum((outputs - y) ** 2)

    problem = problem_of(network, loss=squared)
    theta = problem.model.theta0
    wanted = problem.run(theta, 10, n_paths=4, rng=0, checkpoint=tmp_path / "run").y
    back = pickle.loads(pickle.dumps(problem_of(jax.jit(network), loss=squared)))
    assert back.run(theta, 10, n_paths=4, rng=0).y == pytest.approx(wanted, rel=1e-12)
    again = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(again.run(theta, 10, n_paths=4, rng=0, checkpoint=tmp_path / "run").y, wanted)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert np.array_equal(problem.run(theta, 10, n_paths=4, rng=0, executor=pool).y, wanted)
