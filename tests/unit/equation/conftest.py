"""Kernels of an equation, called as the engine calls them, and the same sums in NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import types

from sgdsde import SDE
from sgdsde._abi import BLOCK, CORRECTION, INCREMENT, VECTOR
from sgdsde._jit import kernel_uncached
from sgdsde.equation import bound, compile

GUARD = 7.25


def scratch(kernels, B):
    """As much work as is declared, full of NaN, and a guard behind it."""
    size = kernels.work[0] + kernels.work[1] * B
    memory = np.full(size + 8, np.nan)
    memory[size:] = GUARD
    return memory, size


def increment(equation, x, t, h, v, kernels=None):
    """out of the INCREMENT; x must be left alone and nothing beyond the declared work be written."""
    k = kernels or equation.kernels()
    memory, size = scratch(k, x.shape[1])
    out, before = np.full_like(x, np.nan), x.copy()
    k.increment(out, x, t, h, v, k.p, k.data, memory[:size])
    assert (memory[size:] == GUARD).all()
    np.testing.assert_array_equal(x, before)
    return out


def correction(equation, x, t=0.3):
    """out of the CORRECTION."""
    k = equation.kernels(correction=True)
    memory, size = scratch(k, x.shape[1])
    out = np.full_like(x, np.nan)
    k.correction(out, x, np.full(x.shape[1], t), k.p, k.data, memory[:size])
    assert (memory[size:] == GUARD).all()
    return out


def in_python(equation, x, t, h, v):
    """f·h + G·v, one column after another, from the functions themselves."""
    out = np.empty_like(x)
    for b in range(x.shape[1]):
        f, g = equation.evaluate(t[b], x[:, b])
        out[:, b] = f * h[b] + (g * v[:, b] if equation.form == "diagonal" else g @ v[:, b])
    return out


def draw(d, m, B=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, (d, B)), rng.uniform(size=B), rng.uniform(0.01, 1, B), rng.normal(size=(m, B))


def bind(drift, diffusion, y0, noise="general", **options):
    y0 = np.atleast_1d(np.asarray(y0, dtype=float))
    return SDE(drift, diffusion, len(y0), noise, **options).bind(0.0, y0)


@kernel_uncached(
    types.void(
        types.UniTuple(types.FunctionType(INCREMENT), 2),
        types.FunctionType(CORRECTION),
        BLOCK,
        BLOCK,
        VECTOR,
        VECTOR,
        BLOCK,
        VECTOR,
        VECTOR,
        VECTOR,
        types.int64,
    )
)
def engine(increments, correction, out, x, t, h, v, p, data, work, n):
    """Calls kernels through function values, as the engine does."""
    for k in range(n):
        increments[k % 2](out, x, t, h, v, p, data, work)
        x += out
    if n == 0:
        correction(out, x, t, p, data, work)


def run(equation, x, steps, h=0.01, correction=False):
    """Some steps of an engine that knows the kernels as function values only."""
    k = equation.kernels(correction=True)
    B = x.shape[1]
    memory, size = scratch(k, B)
    v, out = np.full((equation.noise_dim, B), 0.1), np.empty_like(x)
    steps = 0 if correction else steps
    engine((k.increment,) * 2, k.correction, out, x, np.zeros(B), np.full(B, h), v, k.p, k.data, memory[:size], steps)
    return out


@pytest.fixture
def lab():
    return SimpleNamespace(
        SDE=SDE, increment=increment, correction=correction, in_python=in_python, draw=draw, bind=bind, run=run
    )


@pytest.fixture
def compilations(monkeypatch):
    """How many equations have been compiled since the start of the test, in compilation order of (d, m)."""
    made = []
    inner = compile._compile

    def counted(calls, held, d, m, form):
        made.append((d, m))
        return inner(calls, held, d, m, form)

    monkeypatch.setattr(compile, "_compile", counted)
    monkeypatch.setattr(compile, "_kept", type(compile._kept)())
    return made


@pytest.fixture
def unwarned(monkeypatch):
    """No function has been warned of yet."""
    monkeypatch.setattr(bound, "_warned", set())
