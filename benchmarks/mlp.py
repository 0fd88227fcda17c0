"""A 64-64-10 tanh network on the 1797 digits, d = 4810: gradient, SDE step and batch-1 SGD, against its own matrix
products and against JAX where it is installed.

    taskset -c 0 python benchmarks/mlp.py [--loss softmax] [--memory]

float64, one thread, medians of interleaved runs in CPU time, so that other work on the machine does not count. The
bars: a weighted gradient over all samples at most 1.3 times its matrix products and 1.3 times JAX; a step of the SDE,
with its noise and all checks, at most 1.15 times a weighted gradient; batch-1 SGD at least 1.5 times as fast as a
`lax.scan`.
`--memory` runs the SDE of a network of 10⁶ parameters instead and prints the memory of the process: at most 1 GB.
"""

import argparse
import os
import resource
import statistics
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np
from numba import types
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import sgdsde as sg
from sgdsde._abi import BLOCK, VECTOR
from sgdsde._jit import kernel_uncached
from sgdsde._views import matrix
from sgdsde.models.matrices import PLAIN, TURNED, multiply

DIMS, GRADIENTS, STEPS, REPEATS, ETA = [64, 64, 10], 40, 20_000, 9, 1e-3
ROWS = 128  # samples that the model's pass takes at once at these widths


@kernel_uncached(types.void(BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, VECTOR, VECTOR, VECTOR, types.int64))
def products(X, W, U, dW, dU, acts, outputs, spare, n):
    """The matrix products of one weighted gradient and nothing else, n times."""
    for _ in range(n):
        for first in range(0, X.shape[0], ROWS):
            rows = min(ROWS, X.shape[0] - first)
            x, a = matrix(X, first * 64, rows, 64), matrix(acts, 0, 64, rows)
            o, e = matrix(outputs, 0, 10, rows), matrix(spare, 0, 64, rows)
            multiply(a, W, PLAIN, x, TURNED, 0.0)
            multiply(o, U, PLAIN, a, PLAIN, 0.0)
            multiply(dU, o, PLAIN, a, TURNED, 1.0)
            multiply(e, U, TURNED, o, PLAIN, 0.0)
            multiply(dW, a, PLAIN, x, PLAIN, 1.0)


def jax_runs(model, theta, X, Y, c):
    """The gradient and the recursion in JAX, or nothing without it."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    inputs, labels, weights = jnp.array(X), jnp.array(Y), jnp.array(c)
    start = tuple(jnp.array(a) for a in model.unflatten(theta).values())

    def loss(p, x, y):
        if x.ndim == 1:  # matrix times vector: faster in JAX than the transposed form
            o = p[2] @ jnp.tanh(p[0] @ x + p[1]) + p[3]
        else:
            o = jnp.tanh(x @ p[0].T + p[1]) @ p[2].T + p[3]
        if model.loss_function.name == "softmax":
            return jax.nn.logsumexp(o, axis=-1) - jnp.take_along_axis(o, y[..., None], axis=-1)[..., 0]
        return jnp.sum((o - y) ** 2, axis=-1)

    gradient = jax.jit(jax.grad(lambda p, w: jnp.dot(w, loss(p, inputs, labels))))
    single = jax.grad(loss)

    def step(p, key):
        i = jax.random.randint(key, (), 0, len(X))
        return tuple(a - ETA * b for a, b in zip(p, single(p, inputs[i], labels[i]))), None

    scan = jax.jit(lambda p, key: jax.lax.scan(step, p, jax.random.split(key, STEPS))[0])
    found = np.concatenate([np.asarray(g).ravel() for g in gradient(start, weights)])
    wanted = model.weighted_gradient(theta, c, model.samples(X, Y))
    assert np.abs(found - wanted).max() < 1e-11 * np.abs(wanted).max(), "JAX computes another gradient"

    def gradients():
        for _ in range(GRADIENTS):
            jax.block_until_ready(gradient(start, weights))

    return {"JAX gradient": gradients, "JAX lax.scan": lambda: jax.block_until_ready(scan(start, jax.random.key(1)))}


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def bar(name, value, limit, least=False):
    met = value >= limit if least else value <= limit
    print(f"{name:34} {value:6.3f}      bar {limit:g}: {'met' if met else 'MISSED'}")


def speed(loss):
    digits = load_digits()
    X, Y = digits.data / 16, digits.target if loss == "softmax" else np.eye(10)[digits.target]
    model = sg.models.MLP(DIMS, "tanh", loss=loss)
    problem = sg.SGD(model, X, Y, learning_rate=ETA)
    theta, c = model.init(0), np.random.default_rng(0).standard_normal(len(X))
    made, q, data = model.compiled(), problem.samples.numbers, problem.samples.data
    out, work = np.empty(model.dim), np.empty(sum(model.work(len(X))))
    arrays = model.unflatten(theta)
    W, U = np.ascontiguousarray(arrays["W1"]), np.ascontiguousarray(arrays["W2"])
    inputs, spare = problem.X.copy(), [np.zeros(64 * ROWS) for _ in range(3)]
    sde, span = problem.sde(), (0.0, GRADIENTS * ETA)

    def gradients():
        for _ in range(GRADIENTS):
            made.weighted(out, theta, c, q, data, work)

    runs = {
        "weighted gradient": gradients,
        "its matrix products": lambda: products(inputs, W, U, W * 0, U * 0, *spare, GRADIENTS),
        "SDE step": lambda: sg.solve(sde, span, theta, rng=0, threads=1, keep="final"),
        "batch-1 SGD step": lambda: problem.run(theta, STEPS, rng=0, threads=1, keep="final"),
        **jax_runs(model, theta, X, Y, c),
    }
    each = {"batch-1 SGD step": STEPS, "JAX lax.scan": STEPS}
    found = {name: [] for name in runs}
    with threadpool_limits(1):
        for run in runs.values():
            run()
        for _ in range(REPEATS):
            for name, run in runs.items():
                found[name].append(seconds(run) / each.get(name, GRADIENTS))
    median = {name: statistics.median(values) for name, values in found.items()}
    for name, value in median.items():
        print(f"{name:34} {value * 1e6:8.2f} µs")
    gradient = median["weighted gradient"]
    bar("gradient / its products", gradient / median["its matrix products"], 1.3)
    bar("SDE step / gradient", median["SDE step"] / gradient, 1.15)
    if "JAX gradient" not in median:
        print("JAX is not installed: its bars are not measured")
        return
    bar("gradient / JAX", gradient / median["JAX gradient"], 1.3)
    bar("JAX lax.scan / batch-1 SGD", median["JAX lax.scan"] / median["batch-1 SGD step"], 1.5, least=True)


def memory():
    digits = load_digits()
    model = sg.models.MLP([64, 950, 950, 40, 10], "tanh", loss="softmax")
    problem = sg.SGD(model, digits.data / 16, digits.target, learning_rate=1e-3, batch_size=10)
    start = time.perf_counter()
    sg.solve(problem.sde(), (0.0, 0.02), model.init(0), rng=0, threads=1, keep="final")
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"d = {model.dim}, N = {problem.n_samples}: 20 steps of the SDE in {taken:.1f} s with compilation")
    bar("GB of memory", peak, 1.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loss", default="squared", choices=["squared", "softmax"])
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    memory() if options.memory else speed(options.loss)
