"""Fed the same dW, `solve` and sdeint agree to 1e-12: the whole way from Python functions to saved states.

sdeint (GPL, an oracle of the tests alone) was written by others: it takes f(y, t), G(y, t) -> (d, m), equal steps, and
dW of shape (n_steps, m) for one path. Ours takes drift(t, y), all paths at once, and the layouts of the noise kinds.
"""

import math

import numpy as np
import pytest

from sgdsde.equation import SDE
from sgdsde.run.solving import solve

sdeint = pytest.importorskip("sdeint", reason="sdeint is an oracle of the tests, not a dependency")

METHODS = {"euler-maruyama": ("ito", "itoEuler"), "heun": ("stratonovich", "stratHeun")}
N_STEPS, T0, T1 = 40, 0.3, 1.7
PATHS = 3
TOLERANCE = 1e-12


def drift(t, y, a, b):
    """Nonlinear, with time and the next component in it."""
    out = np.empty(y.size)
    for i in range(y.size):
        out[i] = a[i] * math.sin(y[i] + 0.7 * t) - 0.4 * y[(i + 1) % y.size] * math.cos(3.0 * t)
    return out


def matrix(t, y, a, b):
    """G_ij = b_ij cos(y_{i+j} + 2t + j): every column moves every component, and none commutes with another."""
    d, m = b.shape
    out = np.empty((d, m))
    for i in range(d):
        for j in range(m):
            out[i, j] = b[i, j] * math.cos(y[(i + j) % d] + 2.0 * t + j)
    return out


def matrix_of_time(t, y, a, b):
    d, m = b.shape
    out = np.empty((d, m))
    for i in range(d):
        for j in range(m):
            out[i, j] = b[i, j] * math.cos(2.0 * t + j)
    return out


def vector(t, y, a, b):
    """One entry a component: the only column, or the diagonal."""
    out = np.empty(y.size)
    for i in range(y.size):
        out[i] = b[i, 0] * math.cos(y[i] + 2.0 * t + i)
    return out


def diagonal(t, y, a, b):
    return np.diag(vector(t, y, a, b))


def column(t, y, a, b):
    return vector(t, y, a, b)[:, None]


def numbers(d, m, seed):
    """Coefficients, starts and increments; every seed has its own."""
    rng = np.random.default_rng([d, m, seed])
    args = rng.uniform(0.5, 1.5, d), rng.uniform(0.4, 0.9, (d, m)) * rng.choice([-1.0, 1.0], (d, m))
    h = (T1 - T0) / N_STEPS
    return args, rng.normal(size=(PATHS, d)), math.sqrt(h) * rng.normal(size=(PATHS, N_STEPS, m))


def ours(method, noise, diffusion, args, y0, dW):
    sde = SDE(drift, diffusion, dim=y0.shape[1], noise=noise, calculus=METHODS[method][0], args=args)
    sol = solve(
        sde, (T0, T1), y0, method=method, dt=(T1 - T0) / N_STEPS, n_paths=PATHS, dW=dW, t_eval="steps", threads=1
    )
    return sol.y


def theirs(method, diffusion, args, y0, dW):
    times = np.linspace(T0, T1, N_STEPS + 1)
    integrate = getattr(sdeint, METHODS[method][1])
    paths = [
        integrate(
            lambda y, t: drift(t, np.atleast_1d(y), *args),
            lambda y, t: diffusion(t, np.atleast_1d(y), *args),
            start,
            times,
            dW=noise,
        )
        for start, noise in zip(y0, dW)
    ]
    return np.reshape(paths, (PATHS, N_STEPS + 1, -1))


def agree(method, noise, layout, oracle_layout, d, m, seed):
    args, y0, dW = numbers(d, m, seed)
    mine, other = ours(method, noise, layout, args, y0, dW), theirs(method, oracle_layout, args, y0, dW)
    assert mine.shape == other.shape == (PATHS, N_STEPS + 1, d)
    np.testing.assert_allclose(mine, other, rtol=0, atol=TOLERANCE)
    return mine


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_general_noise(method, d, m):
    for seed in range(3):
        agree(method, "general", matrix, matrix, d, m, seed)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "noise, layout, oracle_layout, d, m",
    [
        ("scalar", vector, column, 3, 1),
        ("diagonal", vector, diagonal, 3, 3),
        ("additive", matrix_of_time, matrix_of_time, 2, 3),
        ("additive", matrix_of_time, matrix_of_time, 3, 2),
    ],
)
def test_the_layouts_of_the_other_kinds(method, noise, layout, oracle_layout, d, m):
    for seed in range(2):
        agree(method, noise, layout, oracle_layout, d, m, seed)


def test_the_two_oracles_tell_the_calculi_apart():
    """On these equations the two methods differ by far more than the tolerance, so agreement says something."""
    args, y0, dW = numbers(2, 3, 0)
    ito, stratonovich = (theirs(method, matrix, args, y0, dW) for method in METHODS)
    assert np.abs(ito - stratonovich).max() > 0.01
    assert np.abs(ito[:, -1] - y0).min() > 0.01


def test_a_path_alone_agrees_too():
    """n_paths=None with dW (n_steps, m)."""
    args, y0, dW = numbers(3, 2, 7)
    sde = SDE(drift, matrix, dim=3, args=args)
    sol = solve(sde, (T0, T1), y0[0], dt=(T1 - T0) / N_STEPS, dW=dW[0], t_eval="steps")
    np.testing.assert_allclose(sol.y, theirs("euler-maruyama", matrix, args, y0, dW)[0], rtol=0, atol=TOLERANCE)
