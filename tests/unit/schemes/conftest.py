"""A nonlinear, time-dependent equation in two tongues, compiled and NumPy, and one step of a kernel on it."""

from types import SimpleNamespace

import numpy as np
import pytest

from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel_uncached

# p = [drift, noise, dependence of the noise on the state, and on time]. Every sum below stands once more in NumPy.
GUARD = 7.25


@kernel_uncached(INCREMENT)
def mixed(out, x, t, h, v, p, data, work):
    """G_ij = p1 cos(p2 x_{i+j mod d} + 0.2 j + p3 t) / (1 + j): every column moves every component."""
    d, n = x.shape
    for b in range(n):
        work[b] = np.nan  # scratch of its own, one double a path
        for i in range(d):
            total = p[0] * (np.sin(x[i, b] + 0.5 * t[b]) - 0.3 * x[(i + 1) % d, b]) * h[b]
            for j in range(v.shape[0]):
                total += p[1] * np.cos(p[2] * x[(i + j) % d, b] + 0.2 * j + p[3] * t[b]) / (1 + j) * v[j, b]
            out[i, b] = total


@kernel_uncached(CORRECTION)
def mixed_correction(out, x, t, p, data, work):
    d, n = x.shape
    for b in range(n):
        work[b] = np.nan
        for i in range(d):
            total = 0.0
            for j in range(int(data[0])):
                at = (i + j) % d
                b_at = p[1] * np.cos(p[2] * x[(at + j) % d, b] + 0.2 * j + p[3] * t[b]) / (1 + j)
                slope = -p[1] * p[2] * np.sin(p[2] * x[at, b] + 0.2 * j + p[3] * t[b]) / (1 + j)
                total += 0.5 * b_at * slope
            out[i, b] = total


@kernel_uncached(INCREMENT)
def apart(out, x, t, h, v, p, data, work):
    """Diagonal noise as Kloeden and Platen mean it: b_i a function of x_i alone."""
    d, n = x.shape
    for b in range(n):
        work[b] = np.nan
        for i in range(d):
            drift = p[0] * (np.sin(x[i, b] + 0.5 * t[b]) - 0.3 * x[(i + 1) % d, b])
            out[i, b] = drift * h[b] + p[1] * np.cos(p[2] * x[i, b] + 0.2 * i + p[3] * t[b]) * v[i, b]


def drift(t, x, p):
    return p[0] * (np.sin(x + 0.5 * t) - 0.3 * np.roll(x, -1))


def columns(t, x, p, m, diagonal=False):
    """The noise coefficient as a matrix (d, m)."""
    i, j = np.arange(x.size)[:, None], np.arange(m)[None, :]
    if diagonal:
        return np.diag(p[1] * np.cos(p[2] * x + 0.2 * np.arange(x.size) + p[3] * t))
    return p[1] * np.cos(p[2] * x[(i + j) % x.size] + 0.2 * j + p[3] * t) / (1 + j)


def correction(t, x, p, m):
    """½ Σ_j (b_j·∇) b_j from the Jacobians, written out."""
    d, total = x.size, np.zeros(x.size)
    matrix = columns(t, x, p, m)
    for j in range(m):
        jacobian = np.zeros((d, d))
        for i in range(d):
            at = (i + j) % d
            jacobian[i, at] = -p[1] * p[2] * np.sin(p[2] * x[at] + 0.2 * j + p[3] * t) / (1 + j)
        total += 0.5 * jacobian @ matrix[:, j]
    return total


def take(step, increment, x, t, h, dW, p, scratch, made=mixed_correction, aux=None, extra=()):
    """One step, with rows of `aux` (r, n) and `extra` numbers behind the data.

    The scratch is as large as declared, full of NaN, with a guard behind it that must be left alone.
    """
    n, m = x.shape[1], dW.shape[0]
    x, t, h, dW = x.copy(), t.copy(), h.copy(), np.ascontiguousarray(dW)
    before = t.copy(), h.copy(), dW.copy()
    size = (scratch + 1) * n  # + 1 a path for the increment
    work = np.full(size + 1000, np.nan)
    work[size:] = GUARD
    status = np.zeros(2 * n, np.int64)
    aux = np.empty((0, n)) if aux is None else np.ascontiguousarray(aux)
    data = np.array([float(m), *extra])
    step(increment, made, x, t, h, dW, aux, status, work, np.asarray(p, float), data)
    assert np.all(work[size:] == GUARD), "the step wrote behind the scratch it declares"
    assert all(np.array_equal(now, then) for now, then in zip((t, h, dW), before)), "the step changed t, h or dW"
    assert not status.any()
    return x


def draw(d, m, n, seed=0):
    """A block: states, times, unequal steps, noise of the size that belongs to them."""
    rng = np.random.default_rng([seed, d, m, n])
    h = rng.uniform(0.01, 0.2, n)
    return rng.normal(size=(d, n)), rng.uniform(0, 3, n), h, rng.normal(size=(m, n)) * np.sqrt(h)


@pytest.fixture(scope="session")
def lab():
    return SimpleNamespace(
        mixed=mixed,
        apart=apart,
        mixed_correction=mixed_correction,
        drift=drift,
        columns=columns,
        correction=correction,
        take=take,
        draw=draw,
        p=np.array([1.0, 0.7, 1.3, 0.4]),
    )
