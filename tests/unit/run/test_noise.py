"""The noise of a run, given back and taken: to the bit by the engine, to rounding by hand."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.random import normals

RUN = dict(dt=0.3, t_eval="steps")


@pytest.mark.parametrize("method", ["euler-maruyama", "milstein-symmetric"])
def test_noise_that_was_saved_reproduces_the_run_to_the_bit(eq, method):
    """S4, M17."""
    first = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=9, rng=1, method=method, save_noise=True, **RUN)
    again = sg.solve(
        eq.mixed, (0, 1), [0.3, -0.2], n_paths=9, rng=2, method=method, dW=first.dW, save_noise=True, **RUN
    )
    assert first.dW.shape == (9, 4, 3) and eq.same(first.y, again.y) and eq.same(first.dW, again.dW)
    assert first.dW.base is None or first.dW.base is not first.y  # the result owns its noise


def test_noise_that_was_saved_reproduces_the_run_by_hand(eq):
    """S4: all four steps, the last one shorter, in NumPy."""
    sol = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=5, rng=1, save_noise=True, **RUN)
    for y, dW in zip(sol.y, sol.dW):
        np.testing.assert_allclose(y, eq.by_hand(eq.mixed, 0.0, y[0], dW, [0.3, 0.3, 0.3, 1 - 3 * 0.3]), rtol=1e-13)


def test_increments_are_the_addressed_normals_times_the_root_of_the_step(eq):
    sol = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=3, rng=77, save_noise=True, **RUN)
    root = np.sqrt([0.3, 0.3, 0.3, 1.0 - 3 * 0.3])[:, None]
    for path in range(3):
        assert np.array_equal(sol.dW[path], normals(77, path, count=12).reshape(4, 3) * root)


def test_one_path_takes_and_gives_noise_without_an_axis_for_paths(eq):
    ensemble = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=3, rng=1, save_noise=True, **RUN)
    one = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dW=ensemble.dW[2], **RUN)
    assert eq.same(one.y, ensemble.y[2])


def test_any_array_of_real_numbers_drives_a_run(eq):
    dW = np.arange(24).reshape(2, 4, 3) % 3 - 1
    plain = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=2, dW=dW.astype(float), **RUN)
    for other in (dW, dW.tolist(), np.asfortranarray(dW), dW.astype(np.float32)):
        assert eq.same(sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=2, dW=other, **RUN).y, plain.y)


def test_bridges_start_from_noise_that_is_given(eq):
    dW = np.zeros((2000, 2, 1))
    sol = sg.solve(eq.wiener, (0, 1), [0.0], dt=0.5, n_paths=2000, rng=3, dW=dW, t_eval=[0.25, 0.5])
    assert not sol.y[:, 1].any()
    assert abs(sol.y[:, 0, 0].var() / 0.125 - 1) < 5 * np.sqrt(2 / 2000)  # a bridge from 0 to 0


def test_noise_of_the_wrong_kind(eq):
    good = np.zeros((2, 4, 3))
    run = dict(n_paths=2, dt=0.3)
    for bad in (good[:, :3], good[0], good[..., :2], good[:1], 0.0):
        with pytest.raises(sg.ShapeError, match=r"dW must have shape \(n_paths, n_steps, m\) = \(2, 4, 3\), got"):
            sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dW=bad, **run)
    with pytest.raises(sg.ShapeError, match=r"dW must have shape \(n_steps, m\) = \(4, 3\), got \(2, 4, 3\)"):
        sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dW=good, dt=0.3)
    for bad in (good + 1j, good.astype(str)):
        with pytest.raises(sg.ArgumentError, match="dW must hold real numbers"):
            sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dW=bad, **run)
    good[1, 2, 0] = np.inf
    with pytest.raises(sg.ArgumentError, match="dW must be finite"):
        sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dW=good, **run)


def test_noise_has_its_own_shape_whatever_is_saved_of_the_state(eq):
    """M3: 3 times saved, noise of all 10 steps."""
    sol = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], n_paths=2, dt=0.1, rng=0, t_eval=3, save_noise=True)
    assert sol.y.shape == (2, 3, 2) and sol.dW.shape == (2, 10, 3)
    assert sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, rng=0).dW is None
