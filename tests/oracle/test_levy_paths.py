"""Runs that see the Lévy area: exact on the pair whose area is the solution, and path by path with sdeint.

On noise that is linear in the state, with a constant drift, Milstein's difference quotients are derivatives, and so are
the supports of Rößler's SRI2 and SRS2: three formulas of three authors, one number. sdeint (GPL, an oracle of the tests
alone) is fed the dW and I of our `Brownian`.
"""

import numpy as np
import pytest

from sgdsde.equation import SDE
from sgdsde.random import Brownian, iterated_integrals
from sgdsde.run.solving import solve

BOTH = ("ito", "stratonovich")
PATHS = 6
START = [0.3, -0.2, 0.5]


def still(t, y, *args):
    return 0.0, 0.0, 0.0


def pair(t, y):
    return (1.0, 0.0), (0.0, 1.0), (0.0, y[0])


def pair_derivative(t, y):
    return ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), ((0.0, 0.0, 0.0),) * 2, ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))


@pytest.mark.parametrize("derivative", [None, pair_derivative])
@pytest.mark.parametrize("calculus", BOTH)
def test_coarse_steps_follow_the_fine_path(calculus, derivative):
    """N1: dX = (dW¹, dW², X¹ dW²) on 4 to 256 steps of one `Brownian` equals the sum over its 2^12 cells."""
    path = Brownian(2, (0, 1), rng=11, levels=12, n_paths=PATHS)
    fine, area = path.grid(4096), path.iterated(4096, calculus=calculus)
    before = START[0] + np.cumsum(fine, axis=1) - fine
    third = START[2] + (before[..., 0] * fine[..., 1] + area[..., 0, 1]).sum(axis=1)
    sde = SDE(still, pair, 3, "general", calculus, derivative=derivative)
    euler = []
    for n_steps in (4, 16, 64, 256):
        run = {"dt": 1 / n_steps, "n_paths": PATHS, "brownian": path}
        y = solve(sde, (0, 1), START, method="milstein", **run).y[:, -1]
        np.testing.assert_allclose(y[:, 2], third, rtol=0, atol=1e-12)
        symmetric = solve(sde, (0, 1), START, method="milstein-symmetric", **run).y[:, -1]
        euler.append(np.sqrt(np.mean((symmetric[:, 2] - third) ** 2)))
    assert euler[0] > 0.05 and euler[-1] < euler[0] / 3  # without areas: √h


def constant(t, y, B, a):
    out = np.empty(len(a))
    for i in range(len(a)):
        out[i] = a[i]
    return out


def linear(t, y, B, a):
    d, m, _ = B.shape
    G = np.empty((d, m))
    for i in range(d):
        for j in range(m):
            G[i, j] = 0.3 + 0.1 * i
            for k in range(d):
                G[i, j] += B[i, j, k] * y[k]
    return G


def cube(t, y, B, a):
    return B


@pytest.mark.parametrize("derivative", [None, cube])
@pytest.mark.parametrize("calculus, name", [("ito", "itoSRI2"), ("stratonovich", "stratSRS2")])
@pytest.mark.parametrize("d, m", [(1, 2), (2, 3), (3, 2), (4, 4)])
def test_sdeint_gives_the_same_path(d, m, calculus, name, derivative):
    sdeint = pytest.importorskip("sdeint", reason="sdeint is an oracle of the tests, not a dependency")
    rng = np.random.default_rng([d, m])
    B, a, y0 = 0.6 * rng.normal(size=(d, m, d)), rng.normal(size=d), rng.normal(size=d)
    path = Brownian(m, (0, 1), rng=4, levels=8)
    dW, I = path.grid(32), path.iterated(32, calculus=calculus)
    sde = SDE(constant, linear, d, "general", calculus, args=(B, a), derivative=derivative)
    ours = solve(sde, (0, 1), y0, method="milstein", dt=1 / 32, brownian=path, t_eval="steps").y

    def theirs(integrals):
        return getattr(sdeint, name)(
            lambda y, t: constant(t, np.atleast_1d(y), B, a),
            lambda y, t: linear(t, np.atleast_1d(y), B, a),
            y0,
            np.linspace(0, 1, 33),
            dW=dW,
            **{"I" if calculus == "ito" else "J": integrals},
        ).reshape(33, d)

    np.testing.assert_allclose(ours, theirs(I), rtol=0, atol=1e-11 * np.abs(ours).max())
    assert np.abs(ours - theirs(I.swapaxes(-1, -2))).max() > 1e-3


def test_a_run_of_its_own_has_the_integrals_of_its_seed():
    """N11: dense G with d = 2, m = 3; the integrals of a step can be had, and one step of them is the run."""
    rng = np.random.default_rng(0)
    B, a = rng.normal(size=(2, 3, 2)), np.zeros(2)
    sde = SDE(constant, linear, 2, "general", args=(B, a))
    sol = solve(sde, (0, 0.01), [1.0, 2.0], method="milstein", dt=0.01, n_paths=5, rng=9, save_noise=True)
    I = iterated_integrals(sol.dW, 0.01, rng=sol.seed)[:, 0]
    G = linear(0.0, np.array([1.0, 2.0]), B, a)
    wanted = [1.0, 2.0] + sol.dW[:, 0] @ G.T + np.einsum("ikl,lj,pjk->pi", B, G, I)
    np.testing.assert_allclose(sol.y[:, -1], wanted, rtol=0, atol=1e-13)
    for method in (None, "heun"):
        calculus = "ito" if method is None else "stratonovich"
        assert solve(sde.replace(calculus=calculus), (0, 1), [1.0, 2.0], method=method, dt=0.1, rng=1).success
