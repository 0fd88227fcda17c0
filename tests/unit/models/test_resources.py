"""What kernels take: no allocation per step, no more scratch than declared, no array of d·N or d·d numbers."""

import numpy as np
import pytest
from numba import types
from numba.core.runtime import _nrt_python, rtsys

from sgdsde._abi import BLOCK, CORRECTION, INCREMENT, INTS, STEP, TRACK, VECTOR
from sgdsde._jit import kernel_uncached
from sgdsde.algebra import Generator, scaling
from sgdsde.models import MLP, DeepLinear
from sgdsde.models.charge_rows import CHARGE_ROWS

GUARD = 64
F = types.FunctionType


@kernel_uncached(
    types.void(
        F(INCREMENT), F(CORRECTION), F(STEP), F(TRACK), BLOCK, BLOCK, VECTOR, VECTOR, BLOCK, BLOCK, BLOCK,
        INTS, VECTOR, VECTOR, VECTOR, VECTOR, types.int64, types.int64,
    )
)  # fmt: skip
def repeat(increment, correction, step, track, out, x, t, h, v, aux, acc, status, work, p, data, charge_p, which, n):
    for _ in range(n):
        if which == 0:
            increment(out, x, t, h, v, p, data, work)
        elif which == 1:
            correction(out, x, t, p, data, work)
        elif which == 2:
            step(increment, correction, x, t, h, v[:0], aux, status, work, p, data)
        else:
            track(acc, x, out, t, h, charge_p, data, work)


def generator(model):
    """One that acts on all layers from both sides, by whole matrices."""
    if not isinstance(model, (DeepLinear, MLP)):
        return scaling(model.dim)
    grids = [(*shape, 1)[:2] for shape in model.shapes.values()]
    return Generator.layered(grids, [tuple(np.ones((k, k)) for k in grid) for grid in grids])


def call(case, which, n, work, columns=2, batch=3):
    made = case.model.compiled("per-sample")
    watcher = case.model.charge_track(generator(case.model), 0.1, case.samples.X, case.samples.Y)
    x = np.tile(case.theta[:, None], (1, columns))
    aux = np.arange(batch * columns, dtype=float).reshape(batch, columns) % case.n
    repeat(
        made.increment, made.correction, made.step, watcher.kernel, np.zeros_like(x), x, np.zeros(columns),
        np.full(columns, 1e-6), np.ones((case.n, columns)), aux, np.zeros((CHARGE_ROWS, columns)),
        np.zeros(columns, np.int64), work, case.p(), case.samples.data, watcher.p, which, n,
    )  # fmt: skip


KERNELS = {"increment": 0, "correction": 1, "step": 2, "charge law": 3}


@pytest.mark.parametrize("batch", [3, 7])
@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_allocated_per_call(case, name, batch):
    _nrt_python.memsys_enable_stats()
    counts = []
    for n in (1, 50):
        before = rtsys.get_allocation_stats()
        call(case, KERNELS[name], n, case.scratch(2, batch), batch=batch)
        counts.append(rtsys.get_allocation_stats().alloc - before.alloc)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("batch", [1, 4, 7, None])
@pytest.mark.parametrize("name", KERNELS)
def test_no_kernel_writes_beyond_its_scratch(case, name, batch):
    batch = case.n if batch is None else batch
    size = sum(w * k for w, k in zip(case.model.work(max(case.n, batch)), (1, 2)))
    memory = np.full(size + 2 * GUARD, 3.25)
    call(case, KERNELS[name], 1, memory[GUARD : GUARD + size], batch=batch)
    assert (memory[:GUARD] == 3.25).all() and (memory[GUARD + size :] == 3.25).all()


def test_the_other_kernels_keep_to_it_too(case):
    made, theta, n = case.model.compiled(), case.theta, case.n
    size = sum(case.model.work(n))
    one, each, q, data = np.zeros(theta.size), np.zeros(n), case.samples.numbers, case.samples.data
    calls = {
        made.weighted: (one, theta, np.ones(n), q, data),
        made.sample: (one, theta, 0, q, data),
        made.losses: (each, theta, q, data),
        made.hessian: (one, theta, theta, np.ones(n), q, data),
        made.traces: (each, theta, q, data),
        made.norms: (each, theta, q, data),
    }
    for kernel, arguments in calls.items():
        memory = np.full(size + 2 * GUARD, 3.25)
        if kernel is not None:
            kernel(*arguments, memory[GUARD : GUARD + size])
        assert (memory[:GUARD] == 3.25).all() and (memory[GUARD + size :] == 3.25).all()


def test_scratch_of_a_matrix_factorisation_is_far_below_all_single_gradients():
    model, n = DeepLinear([30, 30, 30]), 1000
    assert sum(model.work(n)) < model.dim * n / 5 and sum(model.work(n)) < model.dim**2 / 5
    many = sum(model.work(100_000)) - sum(model.work(10_000))
    assert many == 90_000  # beyond a chunk it grows by the weights alone
