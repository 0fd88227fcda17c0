"""Equations that the tests of the runner share, the same step in NumPy, and helpers to compare and to run."""

from types import SimpleNamespace

import numpy as np
import pytest

import sgdsde as sg


def no_drift(t, y):
    return np.zeros(y.size)


def wiener_one(t, y):
    return (1.0,)


def wiener_two(t, y):
    return (1.0, 1.0)


def drift_one(t, y, a):
    return (-a * y[0],)


def noise_one(t, y, a):
    return (0.5 * y[0],)


def drift_two(t, y, a, b):
    return (a * np.sin(y[1] + t), b * np.cos(y[0]) - 0.3 * y[1])


def noise_two(t, y, a, b):
    return (
        (0.5 + 0.1 * np.sin(y[0]), 0.2 * np.cos(y[1] - t), 0.1),
        (0.1 * y[0], 0.3, 0.2 * np.sin(y[0] * y[1] + t)),
    )


def cubic(t, y):
    return (y[0] * y[0] * y[0],)


def one_third(t, y):
    return (1.0 / 3.0,)


def by_hand(sde, t0, y0, dW, h):
    """Euler-Maruyama in NumPy with the increments dW (n_steps, m): states (n_steps + 1, d). `h`: one or n_steps."""
    y = np.array(y0, dtype=float)
    h = np.broadcast_to(h, len(dW))
    out = [y.copy()]
    for k, w in enumerate(dW):
        t = t0 + k * h[0]
        g = np.asarray(sde.diffusion(t, y, *sde.args), dtype=float)
        y = y + np.asarray(sde.drift(t, y, *sde.args), dtype=float) * h[k] + (g * w if g.ndim == 1 else g @ w)
        out.append(y.copy())
    return np.array(out)


def same(a, b):
    """Equal to the bit, NaN included."""
    return np.array_equal(np.asarray(a).view(np.int64), np.asarray(b).view(np.int64))


@pytest.fixture(scope="session")
def eq():
    """wiener (d = m = 1), pair (two Wiener processes), gbm, mixed (d = 2, m = 3, depends on t), cubic (blows up)."""
    return SimpleNamespace(
        wiener=sg.SDE(no_drift, wiener_one, dim=1, noise="additive"),
        pair=sg.SDE(no_drift, wiener_two, dim=2, noise="additive"),
        gbm=sg.SDE(drift_one, noise_one, dim=1, noise="diagonal", args=(1.0,)),
        mixed=sg.SDE(drift_two, noise_two, dim=2, args=(0.7, -0.4)),
        cubic=sg.SDE(cubic, one_third, dim=1, noise="additive"),
        by_hand=by_hand,
        same=same,
    )
