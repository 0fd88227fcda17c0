"""One step of SGD's SDE on a 30 × 30 matrix factorisation, N = 1000, against its matrix products alone and against √Σ.

    python benchmarks/matrix_factorization.py

d = 1800. The step is what `solve` takes, with noise, decay and all checks; the products are the calls that its weighted
gradient makes, and nothing else, one BLAS thread both. Medians of interleaved runs, in CPU time, so that other work on
the machine does not count. The bars: at most 1.3 times the products, and at least 1000 times faster than an
eigendecomposition of Σ.
"""

import statistics
import time

import numpy as np
from numba import types
from threadpoolctl import threadpool_limits

import sgdsde as sg
from sgdsde._abi import BLOCK
from sgdsde._jit import kernel_uncached

WIDTH, SAMPLES, STEPS, REPEATS = 30, 1000, 1000, 7

_MATRICES = (BLOCK,) * 8


@kernel_uncached(types.void(*_MATRICES, types.int64))
def products(X, W, U, P, R, M, dU, dW, n):
    """Pᵀ = WᵀUᵀ, R = X Pᵀ, Mᵀ = XᵀR, and back through the two layers: the calls of one weighted gradient, n times."""
    for _ in range(n):
        np.dot(W, U.T, P)
        np.dot(X, P, R)
        np.dot(X.T, R, M)
        np.dot(M.T, W, dU)
        np.dot(M, U, dW)


@kernel_uncached(types.void(*_MATRICES, types.int64))
def layered(X, W, U, H, R, dH, dU, dW, n):
    """The same gradient layer by layer, as an automatic derivative makes it: five products over all samples."""
    for _ in range(n):
        np.dot(X, W.T, H)
        np.dot(H, U.T, R)
        np.dot(R.T, H, dU)
        np.dot(R, U, dH)
        np.dot(dH.T, X, dW)


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SAMPLES, WIDTH))
    target = rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)
    Y = X @ target.T + rng.standard_normal((SAMPLES, WIDTH))
    problem = sg.SGD(sg.models.DeepLinear([WIDTH] * 3), X, Y, learning_rate=1e-4, batch_size=10, gamma=1e-3)
    theta = problem.model.init(0, scale=0.3)
    small, tall = np.ascontiguousarray(target), np.zeros((SAMPLES, WIDTH))
    spare = [np.zeros((WIDTH, WIDTH)) for _ in range(4)]
    sde = problem.sde()
    span = (0.0, STEPS * problem.learning_rate)

    runs = {
        "SDE step": lambda: sg.solve(sde, span, theta, rng=0, threads=1, keep="final"),
        "its products alone": lambda: products(X, small, small, spare[0], tall, spare[1], spare[2], spare[3], STEPS),
        "products layer by layer": lambda: layered(X, small, small, tall, tall.copy(), tall.copy(), *spare[:2], STEPS),
    }
    found = {name: [] for name in runs}
    with threadpool_limits(1):
        for run in runs.values():
            run()
        for _ in range(REPEATS):
            for name, run in runs.items():
                found[name].append(seconds(run) / STEPS)
        sigma = problem.covariance(theta)
        eigen = seconds(lambda: np.linalg.eigh(sigma))
    median = {name: statistics.median(values) for name, values in found.items()}
    for name, value in median.items():
        print(f"{name:24} {value * 1e6:9.1f} µs")
    print(f"{'eigendecomposition of Σ':24} {eigen * 1e6:9.0f} µs   (once, before a step is taken)")
    step = median["SDE step"]
    over, under = step / median["its products alone"], eigen / step
    print(f"step / products          {over:9.2f}      bar 1.3: {'met' if over <= 1.3 else 'MISSED'}")
    print(f"step / layer by layer    {step / median['products layer by layer']:9.2f}")
    print(f"eigendecomposition / step{under:9.0f}      bar 1000: {'met' if under >= 1000 else 'MISSED'}")


if __name__ == "__main__":
    main()
