"""SGD with batches of one sample on a 30 × 30 matrix factorisation, against a plain numba loop and a JAX `lax.scan`.

    python benchmarks/sgd_batch1.py

Time of one step, everything in it: the draw of the index, the gradient, the update, the engine. float64, one thread,
medians of interleaved runs. The bar: at least twice as fast as JAX, where it is installed.
"""

import statistics
import time

import numba
import numpy as np

import sgdsde as sg

WIDTH, SAMPLES, STEPS, REPEATS, ETA = 30, 1000, 20_000, 9, 1e-3


@numba.njit(error_model="numpy", fastmath={"contract"})
def plain_loop(U, W, X, Y, index, eta):
    """The same recursion as one would write it down; the indices are drawn before and not counted."""
    n = U.shape[0]
    h, r, b = np.empty(n), np.empty(n), np.empty(n)
    for k in range(index.size):
        x, y = X[index[k]], Y[index[k]]
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += W[i, j] * x[j]
            h[i] = s
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += U[i, j] * h[j]
            r[i] = 2 * eta * (s - y[i])
        b[:] = 0.0
        for i in range(n):
            for j in range(n):
                b[j] += U[i, j] * r[i]
        for i in range(n):
            for j in range(n):
                U[i, j] -= r[i] * h[j]
                W[i, j] -= b[i] * x[j]


def jax_scan(X, Y, U, W):
    """A function that runs the recursion by `lax.scan`, or None without JAX."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    inputs, targets = jnp.array(X), jnp.array(Y)

    def loss(p, x, y):
        r = p[0] @ (p[1] @ x) - y
        return jnp.dot(r, r)

    gradient = jax.grad(loss)

    def step(p, key):
        i = jax.random.randint(key, (), 0, SAMPLES)
        g = gradient(p, inputs[i], targets[i])
        return (p[0] - ETA * g[0], p[1] - ETA * g[1]), None

    scan = jax.jit(lambda p, key: jax.lax.scan(step, p, jax.random.split(key, STEPS))[0])
    start = (jnp.array(U), jnp.array(W))
    return lambda: jax.block_until_ready(scan(start, jax.random.key(1)))


def main():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SAMPLES, WIDTH))
    Y = X @ (rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).T + rng.standard_normal((SAMPLES, WIDTH))
    U, W = 0.2 * rng.standard_normal((2, WIDTH, WIDTH))
    problem = sg.SGD(sg.models.DeepLinear([WIDTH] * 3), X, Y, learning_rate=ETA)
    theta = problem.model.flatten(W1=W, W2=U)
    index = rng.integers(0, SAMPLES, STEPS)

    runs = {
        "sgdsde": lambda: problem.run(theta, STEPS, rng=0, threads=1, keep="final"),
        "plain numba loop": lambda: plain_loop(U.copy(), W.copy(), X, Y, index, ETA),
        "JAX lax.scan": jax_scan(X, Y, U, W),
    }
    if runs["JAX lax.scan"] is None:
        del runs["JAX lax.scan"]
    found = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(REPEATS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            found[name].append((time.perf_counter() - start) / STEPS)
    median = {name: statistics.median(values) for name, values in found.items()}
    for name, value in median.items():
        print(f"{name:20} {value * 1e9:8.0f} ns a step")
    print(f"plain loop / sgdsde  {median['plain numba loop'] / median['sgdsde']:8.2f}")
    if "JAX lax.scan" in median:
        ratio = median["JAX lax.scan"] / median["sgdsde"]
        print(f"JAX / sgdsde         {ratio:8.2f}      bar 2: {'met' if ratio >= 2 else 'MISSED'}")
    else:
        print("JAX is not installed: the bar of twice its speed is not measured")


if __name__ == "__main__":
    main()
