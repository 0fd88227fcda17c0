"""Implicit midpoint: its equation holds to rounding, clipped numbers are counted, quadratic invariants are kept."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes._linear_solve import factorise, solve_factored
from sgdsde.schemes.implicit_midpoint import SCHEME

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]


def one_step(noise, increment, x, h, dW=None, p=(0.0,), stopped=()):
    """One Stratonovich step from t = 0, where columns may fail: (x, status)."""
    x, h = np.array(x, float), np.ascontiguousarray(h, float)
    d, n = x.shape
    dW = np.zeros((0, n)) if dW is None else np.ascontiguousarray(dW, float)
    status, work = np.zeros(2 * n, np.int64), np.full((SCHEME.work(d, len(dW))[1] + 4) * n, np.nan)
    status[list(stopped)] = 1
    step, p = SCHEME.kernel(noise, "stratonovich"), np.asarray(p, float)
    step(increment, never, x, np.zeros(n), h, dW, np.empty((0, n)), status, work, p, np.zeros(1))
    return x, status


@kernel_uncached(CORRECTION)
def never(out, x, t, p, data, work):
    out[:] = np.nan


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("size", SIZES)
def test_the_step_solves_its_equation(lab, size, calculus):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    dW *= 0.5
    got = lab.take(SCHEME.kernel("general", calculus), lab.mixed, x, t, h, dW, lab.p, SCHEME.work(d, m)[1])
    for k in range(n):
        middle, time = 0.5 * (x[:, k] + got[:, k]), t[k] + 0.5 * h[k]
        drift = lab.drift(time, middle, lab.p)
        if calculus == "ito":
            drift = drift - lab.correction(time, middle, lab.p, m)
        wanted = x[:, k] + drift * h[k] + lab.columns(time, middle, lab.p, m) @ dW[:, k]
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=2e-13)


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_bits_do_not_depend_on_the_block(lab, calculus):
    x, t, h, dW = lab.draw(3, 2, 8)
    x[:, 2] *= 30.0  # columns that need more and fewer iterations
    dW[:, 5] *= 3.0
    step, size = SCHEME.kernel("general", calculus), SCHEME.work(3, 2)[1]
    whole = lab.take(step, lab.mixed, x, t, h, dW, lab.p, size)
    for k in range(8):
        part = [np.ascontiguousarray(a[..., k : k + 1]) for a in (x, t, h, dW)]
        assert np.array_equal(lab.take(step, lab.mixed, *part, lab.p, size)[:, 0], whole[:, k])


@pytest.mark.parametrize("h", [0.001, 0.3, 1.0, 4.0])
def test_normal_numbers_are_clipped_inside_the_step_and_counted(lab, h):
    bound = np.sqrt(8 * max(-np.log(h), 3.0)) * np.sqrt(h)
    dW = bound * np.array([[0.99, 1.2, -1.5], [0.5, -0.3, 3.0]])
    x, hs, p, keep = np.full((2, 3), 0.3), np.full(3, h), [0.1, 0.02, 1.3, 0.4], dW.copy()
    got, status = one_step("general", lab.mixed, x, hs, dW, p)
    assert np.array_equal(dW, keep)
    assert list(status) == [0, 0, 0, 0, 1, 2]
    again, status = one_step("general", lab.mixed, x, hs, np.clip(dW, -bound, bound), p)
    assert np.array_equal(got, again) and not status.any()
    free, status = one_step("additive", lab.mixed, x, hs, dW, p)
    assert not status.any() and np.array_equal(free[:, 0], got[:, 0]) and (free[:, 1:] != got[:, 1:]).all()


@kernel_uncached(INCREMENT)
def squares(out, x, t, h, v, p, data, work):
    """x' = p0 (1 + x²): without a solution for large h."""
    for b in range(x.shape[1]):
        out[0, b] = p[0] * (1.0 + x[0, b] * x[0, b]) * h[b]


@kernel_uncached(INCREMENT)
def stiff(out, x, t, h, v, p, data, work):
    """x' = A x, A from p in C order."""
    d = x.shape[0]
    for b in range(x.shape[1]):
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += p[i * d + j] * x[j, b]
            out[i, b] = total * h[b]


@kernel_uncached(INCREMENT)
def rough(out, x, t, h, v, p, data, work):
    """x' = −x, with an error as of differences; and how often it is called."""
    p[0] += 1.0
    for b in range(x.shape[1]):
        out[0, b] = -x[0, b] * (1.0 + 3e-9 * np.sin(1e13 * x[0, b])) * h[b]


def test_a_step_without_a_solution_fails_alone_and_leaves_its_state():
    """x' = 1 + x² from x: u = h(1 + (x + u/2)²) has a root where (1 − hx)² >= h²(1 + x²), i.e. h² + 2hx <= 1."""
    h = np.array([0.1, 2.0, 0.3, 0.9, 0.97])
    x = np.array([[0.5, 0.4, np.nan, 0.1, 0.02]])
    got, status = one_step("general", squares, x, h, p=[1.0])
    assert list(status) == [0, 2, 2, 0, 0] + [0] * 5
    assert got[0, 1] == 0.4
    for k in (0, 3, 4):
        roots = np.roots([0.25 * h[k], h[k] * x[0, k] - 1.0, h[k] * (1 + x[0, k] ** 2)])
        assert abs(got[0, k] - x[0, k] - roots.real.min()) < 1e-6 * abs(roots.real.min())


@kernel_uncached(INCREMENT)
def counting(out, x, t, h, v, p, data, work):
    """The same, and how often it is called."""
    p[0] += 1.0
    for b in range(x.shape[1]):
        out[0, b] = (1.0 + x[0, b] * x[0, b]) * h[b]


def test_a_path_that_was_stopped_does_not_keep_the_others_waiting():
    x, h, calls = np.full((1, 3), 0.4), np.array([0.01, 2.0, 0.02]), []
    for stopped in ((), (1,)):
        p = np.zeros(1)
        got, status = one_step("general", counting, x, h, p=p, stopped=stopped)
        assert list(status[:3]) == [0, 1 if stopped else 2, 0] and got[0, 1] == 0.4
        calls.append(p[0])
    assert calls[1] < 12 < 30 < calls[0]


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("z", [0.1, 50.0, 1e6])
def test_stiff_steps_are_solved(d, z):
    """Linear equations: (I − hA/2)⁻¹(I + hA/2)x, |hA| up to 10⁶."""
    rng = np.random.default_rng(d)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    A = -(Q * np.geomspace(z, 1.0, d)) @ Q.T if d > 1 else np.array([[-z]])
    x = rng.normal(size=(d, 4))
    got, status = one_step("general", stiff, x, np.ones(4), p=A.ravel())
    assert not status.any()
    wanted = np.linalg.solve(np.eye(d) - 0.5 * A, (np.eye(d) + 0.5 * A) @ x)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_linear_systems_with_exchanges_of_rows(d):
    """A random matrix with zeros on its diagonal, and a singular one."""
    rng = np.random.default_rng(d)
    A, x = rng.normal(size=(d, d)), rng.normal(size=d)
    if d > 1:
        np.fill_diagonal(A, 0.0)
    factors, pivot, found = A.ravel().copy(), np.empty(d), A @ x
    assert factorise(factors, pivot)
    solve_factored(factors, pivot, found)
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-14 * np.linalg.cond(A))
    A[:, 0] = 0.0
    assert not factorise(A.ravel().copy(), pivot)
    assert not factorise(np.full(d * d, np.nan), pivot)


def test_rounding_in_the_functions_is_not_taken_for_failure():
    x, calls = np.linspace(0.3, 3.0, 64)[None, :], np.zeros(1)
    got, status = one_step("general", rough, x, np.full(64, 0.1), p=calls)
    assert not status.any() and calls[0] < 15
    np.testing.assert_allclose(got, x * 0.95 / 1.05, rtol=2e-9)


def test_without_noise_it_is_the_midpoint_rule_of_order_two():
    def drift(t, y):
        return (np.sin(t) * y[1], -y[0] * y[0] + np.cos(t))

    def diffusion(t, y):
        return ((0.0 * y[0],), (0.0,))

    sde = sg.SDE(drift, diffusion, dim=2, noise="general", calculus="stratonovich")
    ends = [sg.solve(sde, (0, 1), [1.0, 0.3], method=SCHEME, dt=1 / n, rng=0).y[-1] for n in (8, 16, 32, 1024)]
    errors = [np.abs(end - ends[3]).max() for end in ends[:3]]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.05 and abs(np.log2(errors[1] / errors[2]) - 2) < 0.05


def test_rotation_noise_keeps_the_sphere_for_a_thousand_steps():
    """Two rotations of R³ that do not commute, and one as drift: |Y|² stays, however large the steps are."""

    def drift(t, y):
        return (-0.8 * y[1], 0.8 * y[0], 0.0)

    def diffusion(t, y):
        return ((0.0, -0.9 * y[2]), (-0.7 * y[2], 0.0), (0.7 * y[1], 0.9 * y[0]))

    sde = sg.SDE(drift, diffusion, dim=3, noise="general", calculus="stratonovich")
    found = sg.solve(sde, (0, 100), [0.6, 0.0, 0.8], method=SCHEME, dt=0.1, n_paths=8, rng=3, t_eval="steps")
    assert found.success and len(found.t) == 1001
    assert np.abs((found.y**2).sum(axis=-1) - 1.0).max() < 1e-12
    assert np.abs(found.y[:, 500] - found.y[:, 0]).max() > 0.3
    other = sg.solve(sde, (0, 10), [0.6, 0.0, 0.8], method="heun", dt=0.1, n_paths=8, rng=3)
    assert np.abs((other.y[:, -1] ** 2).sum(axis=-1) - 1.0).max() > 1e-3


def test_additive_noise_asks_for_no_correction():
    assert SCHEME.needs_for("additive", "ito") == SCHEME.needs_for("diagonal", "stratonovich") == ()
    assert SCHEME.needs_for("scalar", "ito") == SCHEME.needs_for("general", "ito") == ("correction",)
