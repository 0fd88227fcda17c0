"""All columns of G at once: one evaluation of a user's diffusion, and the same numbers by increments."""

from functools import partial

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import SDE, to_ito
from sgdsde.equation.columns import with_columns

GUARD = 7.25


def zero(t, y, *args):
    return np.zeros(len(y))


def array(t, y, w):
    out = np.empty(w.shape)
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            out[i, j] = w[i, j] * np.sin(y[i] + j * t)
    return out


def tuples(t, y, w):
    return (w[0, 0] * np.sin(y[0]), w[0, 1] * np.sin(y[0] + t), 1), (y[0] * y[1], 2.0, w[1, 2] * np.sin(y[1] + 2 * t))


def columns(equation, x, t):
    """G (d m, B) as the kernel writes it, in the scratch that is declared."""
    k = with_columns(equation, equation.kernels())
    d, m, B = len(x), equation.noise_dim, x.shape[1]
    size = k.work[0] + (k.work[1] - d * m) * B
    memory, out = np.full(size + 8, np.nan), np.full((d * m, B), np.nan)
    memory[size:] = GUARD
    k.correction(out, x, t, k.p, k.data, memory[:size])
    assert (memory[size:] == GUARD).all()
    return out.reshape(d, m, B)


@pytest.mark.parametrize(
    "d, m, diffusion", [(1, 3, array), (3, 2, array), (5, 6, array), (300, 2, array), (2, 3, tuples)]
)
def test_every_entry(lab, d, m, diffusion):
    w = np.cos(np.arange(d * m)).reshape(d, m) + 1.5
    x, t, _, _ = lab.draw(d, m)
    G = columns(lab.bind(zero, diffusion, np.ones(d), args=(w,)), x, t)
    for b in range(5):
        np.testing.assert_allclose(G[:, :, b], diffusion(t[b], x[:, b], w), rtol=1e-14)


def test_what_a_derivative_and_partials_hold_is_skipped(lab):
    def scaled(s, t, y, w):
        return (s * w[0, 0] * y[0], 1.0), (0.0, y[1])

    w = np.full((1, 1), 3.0)
    cube = lambda t, y, w: np.array([[[2.0 * w[0, 0], 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])  # noqa: E731
    x, t, _, _ = lab.draw(2, 2)
    for derivative in (None, cube, partial(lambda q, t, y, w: q * cube(t, y, w), 1.0)):
        options = {"args": (w,), "derivative": derivative}
        G = columns(lab.bind(partial(lambda q, t, y, w: q * y, 2.0), partial(scaled, 2.0), np.ones(2), **options), x, t)
        np.testing.assert_allclose(G, [[6.0 * x[0], np.ones(5)], [np.zeros(5), x[1]]], rtol=1e-14)


@pytest.mark.parametrize("noise", ["diagonal", "scalar"])
def test_other_layouts_go_by_increments(lab, noise):
    x, t, _, _ = lab.draw(3, 3)
    G = columns(lab.bind(zero, lambda t, y: (y[0], np.sin(y[1]), t), np.ones(3), noise), x, t)
    entries = np.stack([x[0], np.sin(x[1]), t])
    wanted = np.einsum("ib,ij->ijb", entries, np.eye(3)) if noise == "diagonal" else entries[:, None]
    np.testing.assert_allclose(G, wanted, rtol=1e-14)


def test_in_python_too(lab, unwarned):
    table = {"w": np.cos(np.arange(6)).reshape(2, 3) + 1.5}
    bound = lab.bind(zero, lambda t, y: tuples(t, y, table["w"]), np.ones(2))
    x, t, _, _ = lab.draw(2, 3)
    with pytest.warns(RuntimeWarning, match="runs in Python"):
        G = columns(bound, x, t)
    for b in range(5):
        np.testing.assert_allclose(G[:, :, b], tuples(t[b], x[:, b], table["w"]), rtol=1e-14)
    diagonal = lab.bind(zero, lambda t, y: (table["w"][0, 0] * y[0], y[1]), np.ones(2), "diagonal")
    with pytest.warns(RuntimeWarning, match="runs in Python"):
        G = columns(diagonal, x, t)
    np.testing.assert_array_equal(G[0, 1], np.zeros(5))
    np.testing.assert_allclose(G[1, 1], x[1], rtol=1e-14)


def test_a_converted_equation_has_the_same_columns(lab):
    w = np.cos(np.arange(6)).reshape(2, 3) + 1.5
    sde = SDE(zero, tuples, 2, "general", "stratonovich", args=(w,))
    x, t, _, _ = lab.draw(2, 3)
    one, two = (columns(s.bind(0.0, np.ones(2)), x, t) for s in (sde, to_ito(sde)))
    np.testing.assert_array_equal(one, two)


def test_milstein_calls_a_python_diffusion_once_for_all_columns(unwarned):
    """m + 1 evaluations a step; the drift is called along in Python, as one function gives both."""
    calls = [0]

    def diffusion(t, y):
        calls[0] += 1
        return [[np.sin(y[0]), 0.5, y[1]], [y[0], np.cos(y[1]), 1.0]]

    sde = SDE(zero, diffusion, 2, "general")
    with pytest.warns(RuntimeWarning, match="runs in Python"):
        counts = [_count(sde, n_steps, calls) for n_steps in (4, 8)]
    assert counts[1] - counts[0] == 4 * (1 + 3 + 1)


def _count(sde, n_steps, calls):
    before = calls[0]
    sg.solve(sde, (0, 1), [0.5, 0.7], method="milstein", dt=1 / n_steps, rng=1, threads=1)
    return calls[0] - before
