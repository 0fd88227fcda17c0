"""Every method at every shape where it applies, through `solve`: finite, with the same bits in any block, and near the
path that all methods of a strong order share."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.random import Brownian

SHAPES = [(d, m) for d in (1, 2, 3) for m in (1, 2, 4)]
KINDS = {
    "additive": SHAPES,
    "scalar": [(d, 1) for d in (1, 2, 3)],
    "diagonal": [(d, d) for d in (1, 2, 3)],
    "commutative": SHAPES,
    "general": SHAPES,
}
CASES = [
    pytest.param(name, kind, d, m, id=f"{name}-{kind}-{d}x{m}")
    for name, scheme in sg.methods.items()
    for kind in scheme.strong
    for d, m in KINDS[kind]
]


def drift(t, y, w):
    return -0.5 * y


def additive(t, y, w):
    return w * (1.0 + 0.3 * np.sin(t))


def fixed(t, y, w):
    return w


def scalar(t, y, w):
    return w[:, 0] * np.cos(y + t)


def diagonal(t, y, w):
    return w[0, 0] * np.cos(y + t)


def commutative(t, y, w):
    """Component i by function of itself times w_ij: (b_j·∇)b_k is symmetric in j, k."""
    return w * np.cos(y).reshape(-1, 1)


def general(t, y, w):
    return w * np.cos(y.sum() + t) + 0.1 * np.sin(y).reshape(-1, 1) * w[::-1]


DIFFUSION = {f.__name__: f for f in (additive, scalar, diagonal, commutative, general)}


@pytest.mark.parametrize(("name", "kind", "d", "m"), CASES)
def test_it_runs(name, kind, d, m):
    scheme = sg.methods[name]
    weights = 0.3 * np.cos(1.0 + np.arange(d * m)).reshape(d, m)
    function = fixed if name == "ou-splitting" else DIFFUSION[kind]
    for calculus in scheme.calculus:
        sde = sg.SDE(drift, function, dim=d, noise=kind, calculus=calculus, args=(weights,))
        path = Brownian(m, (0, 1), 5, levels=6, n_paths=9)
        run = dict(method=name, n_paths=9, brownian=path)
        sol = sg.solve(sde, (0, 1), np.linspace(0.5, 0.8, d), dt=1 / 16, **run)
        assert sol.y.shape == (9, 2, d) and sol.success and np.isfinite(sol.y).all()
        assert len(np.unique(sol.y[:, -1], axis=0)) == 9 or scheme.strong[kind] == 0.0
        other = sg.solve(sde, (0, 1), np.linspace(0.5, 0.8, d), dt=1 / 16, block_size=1, chunk_steps=3, **run)
        assert np.array_equal(other.y, sol.y)
        if scheme.strong[kind] > 0.0:  # the same path as a simple method on a finer grid of the same Brownian motion
            simple = "euler-maruyama" if calculus == "ito" or kind == "additive" else "heun"
            fine = sg.solve(sde, (0, 1), np.linspace(0.5, 0.8, d), dt=1 / 64, **{**run, "method": simple})
            assert np.abs(fine.y - sol.y)[:, -1].max() < 0.25
