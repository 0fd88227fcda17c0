"""The areas of a run: a scheme that asks for iterated integrals gets those of `iterated_integrals`, in any block."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde.random import iterated_integrals, levy_terms
from sgdsde.random.levy_kernels import fill_ito, integrals_work
from sgdsde.random.levy_methods import METHODS
from sgdsde.schemes import Aux


@kernel(STEP)
def _pair(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """dX = (dW_1, dW_2, X_1 dW_2): one step, exact but for the area."""
    for b in range(x.shape[1]):
        x[2, b] += x[0, b] * dW[1, b] + aux[1, b]
        x[0, b] += dW[0, b]
        x[1, b] += dW[1, b]


PAIR = sg.Scheme(
    "pair",
    _pair,
    calculus=("ito",),
    strong={"general": 1.0},
    weak={"general": 1.0},
    aux=Aux(fill_ito, rows=lambda d, m: m * m, work=lambda d, m: integrals_work(m)),
)


def drift(t, y):
    return 0.0, 0.0, 0.0


def diffusion(t, y):
    return ((1.0, 0.0), (0.0, 1.0), (0.0, y[0]))


@pytest.fixture(scope="module")
def sde():
    return sg.SDE(drift, diffusion, dim=3, noise="general")


def test_a_run_can_be_recomputed_by_hand(sde):
    h, paths = 1 / 16, 70
    sol = sg.solve(sde, (0, 1), [0.0] * 3, method=PAIR, dt=h, n_paths=paths, rng=4, save_noise=True)
    I = iterated_integrals(sol.dW, h, rng=sol.seed)
    before = np.cumsum(sol.dW, axis=1) - sol.dW
    third = (before[..., 0] * sol.dW[..., 1] + I[..., 0, 1]).sum(axis=1)
    np.testing.assert_allclose(sol.y[:, -1, 2], third, rtol=0, atol=1e-14)
    transposed = (before[..., 0] * sol.dW[..., 1] + I[..., 1, 0]).sum(axis=1)
    assert np.abs(sol.y[:, -1, 2] - transposed).max() > 0.01
    for size, alone in ((8, None), (1, [3, 41])):
        other = sg.solve(
            sde, (0, 1), [0.0] * 3, method=PAIR, dt=h, n_paths=paths, rng=4, block_size=size, path_index=alone
        )
        assert np.array_equal(other.y[:, -1], sol.y[:, -1] if alone is None else sol.y[alone, -1])


def second_moment(h):
    """E I_(1,2)² of one step: h²/2, less what a method without G leaves out of the area's variance h²/4."""
    name, terms = levy_terms(h, 2)
    if METHODS[name].pairs:
        return h**2 / 2
    assert name == "fourier"
    return h**2 / 4 * (1 + 6 / np.pi**2 * (1 / np.arange(1, terms + 1) ** 2).sum())


def test_the_second_moment_sees_the_area_on_and_between_steps(sde):
    # X_3 is exact at any step but for the area, also where a time is reached by a branch from the grid.
    # 5 standard errors, false alarm 6e-7 each.
    h, t = 0.5, [0.0, 0.3, 0.31, 0.5, 0.9, 1.0]
    sol = sg.solve(sde, (0, 1), [0.0] * 3, method=PAIR, dt=h, n_paths=20_000, rng=5, t_eval=t)
    grid = sg.solve(sde, (0, 1), [0.0] * 3, method=PAIR, dt=h, n_paths=20_000, rng=5)
    assert np.array_equal(grid.y[:, -1], sol.y[:, -1])
    for k, time in enumerate(t[1:], 1):
        squares = sol.y[:, k, 2] ** 2
        last = time - h if time > h else time
        expected = second_moment(last) + (second_moment(h) + h * last if time > h else 0.0)
        assert abs(squares.mean() - expected) < 5 * squares.std() / np.sqrt(squares.size)
