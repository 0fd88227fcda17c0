"""Fed the same dW and I, SRI2 and SRS2 agree with sdeint's itoSRI2 and stratSRS2, written by others, to 1e-11."""

import math

import numpy as np
import pytest

from sgdsde._abi import CORRECTION
from sgdsde._jit import kernel_uncached
from sgdsde.equation import SDE
from sgdsde.schemes import methods

sdeint = pytest.importorskip("sdeint", reason="sdeint is an oracle of the tests, not a dependency")

METHODS = [("sri2", "ito", "itoSRI2"), ("srs2", "stratonovich", "stratSRS2")]
N_STEPS, T0, T1 = 40, 0.3, 1.7
TOLERANCE = 1e-11


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


@kernel_uncached(CORRECTION)
def none(out, x, t, p, data, work):
    pass


def numbers(d, m, seed, calculus):
    """Coefficients, a start, increments, and integrals with areas that are as large as areas are."""
    rng = np.random.default_rng([d, m, seed])
    args = rng.uniform(0.5, 1.5, d), rng.uniform(0.4, 0.9, (d, m)) * rng.choice([-1.0, 1.0], (d, m))
    h = (T1 - T0) / N_STEPS
    dW, A = math.sqrt(h) * rng.normal(size=(N_STEPS, m)), 0.5 * h * rng.normal(size=(N_STEPS, m, m))
    I = 0.5 * (dW[:, :, None] * dW[:, None, :] + A - A.transpose(0, 2, 1)) - 0.5 * h * np.eye(m) * (calculus == "ito")
    return args, rng.normal(size=d), dW, I


def ours(name, calculus, args, y0, dW, I):
    (d, m), times = args[1].shape, np.linspace(T0, T1, N_STEPS + 1)
    scheme = methods[name]
    kernels = SDE(drift, matrix, dim=d, calculus=calculus, args=args).bind(T0, y0).kernels()
    step = scheme.kernel("general", calculus)
    work = np.empty(scheme.work(d, m)[1] + sum(kernels.work))
    x, path = y0[:, None].copy(), [y0]
    for k in range(N_STEPS):
        h = times[k + 1 : k + 2] - times[k : k + 1]
        noise, aux = dW[k][:, None].copy(), I[k].reshape(m * m, 1).copy()
        status = np.zeros(2, np.int64)
        t, p, data = times[k : k + 1], kernels.p, kernels.data
        step(kernels.increment, none, x, t, h, noise, aux, status, work, p, data)
        path.append(x[:, 0].copy())
    return np.array(path)


def theirs(oracle, args, y0, dW, I):
    path = getattr(sdeint, oracle)(
        lambda y, t: drift(t, np.atleast_1d(y), *args),
        lambda y, t: matrix(t, np.atleast_1d(y), *args),
        y0,
        np.linspace(T0, T1, N_STEPS + 1),
        dW=dW,
        **{"I" if oracle == "itoSRI2" else "J": I},
    )
    return path.reshape(N_STEPS + 1, -1)


@pytest.mark.parametrize("name, calculus, oracle", METHODS)
@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_paths_agree(name, calculus, oracle, d, m):
    for seed in range(2):
        args, y0, dW, I = numbers(d, m, seed, calculus)
        mine, other = ours(name, calculus, args, y0, dW, I), theirs(oracle, args, y0, dW, I)
        assert mine.shape == other.shape == (N_STEPS + 1, d)
        np.testing.assert_allclose(mine, other, rtol=0, atol=TOLERANCE)
        assert np.abs(other[-1] - y0).min() > 1e-3


def test_the_areas_are_seen():
    """On this equation a transposed I moves the end by far more than the tolerance."""
    args, y0, dW, I = numbers(2, 3, 0, "ito")
    one, two = theirs("itoSRI2", args, y0, dW, I), theirs("itoSRI2", args, y0, dW, I.transpose(0, 2, 1))
    assert np.abs(one[-1] - two[-1]).max() > 1e-2
