"""Wrong results in other packages (rows W4, W10, W12, W13, W14), each with the right one here."""

import warnings

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import TRACK
from sgdsde._jit import kernel_uncached
from sgdsde.run.watching import Watcher

CASES = [
    (name, calculus, kind)
    for name, scheme in sg.methods.items()
    for calculus in scheme.calculus
    for kind in scheme.strong
]


def pendulum(t, y):
    return (y[1], -np.sin(y[0]) - 0.1 * y[1] + np.cos(t))


def no_column(t, y):
    return (0.0, 0.0)


def no_columns(t, y):
    return ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


EULER = ("euler-maruyama", "milstein", "milstein-symmetric", "euler-heun", "weak-euler")


@pytest.mark.parametrize(("method", "calculus", "kind"), CASES)
def test_w4_without_noise_every_method_is_its_ode_method(method, calculus, kind):
    """The error at t = 1 against a fine run falls by 2^order when the step is halved."""
    diffusion = no_columns if kind in ("general", "commutative") else no_column
    sde = sg.SDE(pendulum, diffusion, dim=2, noise=kind, calculus=calculus)
    end = lambda n: sg.solve(sde, (0, 1), [1.0, 0.5], method=method, dt=1 / n, rng=0).y[-1]  # noqa: E731
    order = sg.methods[method].ode_order
    exact = ode(8)
    errors = [np.abs(end(n) - exact).max() for n in (256, 512)]
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.03)
    if method in EULER:  # and it is Euler's method itself
        x, h = np.array([1.0, 0.5]), 1 / 256
        for k in range(256):
            x = x + h * np.array(pendulum(k * h, x))
        np.testing.assert_allclose(end(256), x, rtol=1e-12)


def ode(digits):
    """The pendulum at t = 1 by SciPy."""
    from scipy.integrate import solve_ivp

    return solve_ivp(pendulum, (0, 1), [1.0, 0.5], rtol=10.0 ** -(digits + 4), atol=1e-14, method="DOP853").y[:, -1]


def test_w10_what_is_reported_of_a_run():
    """Only the end saved: y0 is still y0, times increase, and no two paths are equal."""
    sde = sg.SDE(lambda t, y: (-y[0],), lambda t, y: (0.3,), dim=1, noise="additive")
    for keep, t_eval in (("final", None), ("all", None), ("all", [1.0]), ("all", 7)):
        sol = sg.solve(sde, (0, 1), [1.0], dt=0.1, n_paths=50, rng=0, keep=keep, t_eval=t_eval)
        assert np.all(sol.y0 == 1.0) and np.all(np.diff(sol.t) > 0) and sol.t[-1] == 1.0
        assert sol.t[0] != 0 or np.all(sol.y[:, 0] == 1.0)
        assert len(np.unique(sol.y[:, -1])) == 50


def test_w12_the_variance_does_not_depend_on_the_step():
    """Ornstein-Uhlenbeck at t = 2: Euler-Maruyama has exactly σ² h Σ (1 - a h)^2k, near σ²(1 - e^-4a)/2a.

    40 000 paths, 5 standard errors of a sample variance (0.7 %).
    """
    a, sigma, n = 1.5, 0.8, 40_000
    sde = sg.SDE(lambda t, y, a, s: (-a * y[0],), lambda t, y, a, s: (s,), dim=1, noise="additive", args=(a, sigma))
    exact = sigma**2 * (1 - np.exp(-4 * a)) / (2 * a)
    for rng, h in enumerate((0.1, 0.05, 0.025, 0.0125)):
        sol = sg.solve(sde, (0, 2), [0.0], dt=h, n_paths=n, rng=rng, keep="stats")
        of_the_method = sigma**2 * h * np.sum((1 - a * h) ** (2 * np.arange(round(2 / h))))
        assert sol.var()[-1, 0] == pytest.approx(of_the_method, rel=5 * np.sqrt(2 / n))
        assert sol.var()[-1, 0] == pytest.approx(exact, rel=5 * np.sqrt(2 / n) + a * h)


@kernel_uncached(TRACK)
def clock(acc, x0, x1, t, h, p, data, work):
    for b in range(acc.shape[1]):
        acc[0, b] += h[b]
        acc[1, b] = t[b]
        acc[2, b] += 1.0


class Clock:
    def __track__(self, equation, scheme):
        return Watcher(clock, np.zeros(0), np.zeros(0), 3)


@pytest.mark.parametrize("dt", [0.1, 0.3, 1.0, 7.0])
def test_w13_there_is_one_step_length(dt):
    """What the method, the equation and the grid see: t_k = k dt, steps that add up to the interval."""
    seen = []

    class Records:
        def __call__(self, t, y):
            seen.append(t)
            return (1.0,)

    sde = sg.SDE(Records(), lambda t, y: (0.0,), dim=1, noise="additive")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it runs in Python, and says so once
        sol = sg.solve(sde, (0, 1), [0.0], dt=dt, rng=0, track=Clock())
    n = int(np.ceil(1 / dt - 1e-9))
    length, last, count = sol.tracked["Clock"][-1]
    assert count == n == sol.n_steps and length == pytest.approx(1.0, rel=1e-14)
    assert last == pytest.approx((n - 1) * dt, rel=1e-14) and sol.y[-1, 0] == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(seen[-n:], np.arange(n) * dt, rtol=1e-14)


def test_w14_the_interval_is_met_exactly():
    """Var W(1) = 1 at dt = 0.3; exact numbers of steps. More in unit/run/test_saving.py and test_grid.py."""
    sde = sg.SDE(lambda t, y: (0.0,), lambda t, y: (1.0,), dim=1, noise="additive")
    sol = sg.solve(sde, (0, 1), [0.0], dt=0.3, n_paths=40_000, rng=1, keep="stats")
    assert sol.n_steps == 4 and sol.var()[-1, 0] == pytest.approx(1.0, rel=5 * np.sqrt(2 / 40_000))
    for t1, dt, n in ((0.9, 0.03, 30), (2.1, 0.3, 7), (1.8, 0.06, 30)):
        assert sg.solve(sde, (0, t1), [0.0], dt=dt, rng=1).n_steps == n
