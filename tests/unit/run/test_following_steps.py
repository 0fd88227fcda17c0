"""Steps that follow the state: the same Brownian path, exact increments, the same bits in any block; refusals."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._abi import REFINEMENT
from sgdsde._errors import DIVERGED, STEP_SIZE
from sgdsde.random import normals
from sgdsde.run.stepping import SUBSTEP_BITS

START = [0.3, -0.2]


def part(t, y, a, b):
    return 1.0 / (1.0 + 5.0 * y[0] * y[0] + 0.3 * t)


def eighth(t, y):
    return 0.125


def by_hand(sde, size, y0, dW, h, path, key):
    """Euler-Maruyama in NumPy: the bridges from numbers (step·2^20 + substep)·m of the path."""
    y, m = np.array(y0, float), dW.shape[1]
    out, taken = [y.copy()], []
    for k, w in enumerate(dW):
        left, rest, j = h, w.copy(), 0
        while left > 0.0:
            t = k * h + (h - left)
            length = size(t, y, *sde.args) * h
            if length >= left:
                length, inner = left, rest
            else:
                z = normals(key, path, REFINEMENT, ((k << SUBSTEP_BITS) + j) * m, m)
                inner = length / left * rest + np.sqrt(length * (left - length) / left) * z
            y = y + np.asarray(sde.drift(t, y, *sde.args)) * length + np.asarray(sde.diffusion(t, y, *sde.args)) @ inner
            rest, left, j = rest - inner, (0.0 if length == left else left - length), j + 1
        taken.append(j)
        out.append(y.copy())
    return np.array(out), taken


def test_every_path_takes_steps_of_its_own(eq):
    run = dict(dt=0.25, n_paths=5, rng=11, t_eval="steps", save_noise=True, step_size=part)
    sol = sg.solve(eq.mixed, (0, 2), START, **run)
    numbers = []
    for path in range(5):
        wanted, taken = by_hand(eq.mixed, part, START, sol.dW[path], 0.25, path, 11)
        np.testing.assert_allclose(sol.y[path], wanted, rtol=0, atol=1e-13)
        numbers += taken
    assert len(set(numbers)) > 2 and min(numbers) >= 2
    plain = sg.solve(eq.mixed, (0, 2), START, **{**run, "step_size": None})
    assert eq.same(plain.dW, sol.dW) and np.abs(plain.y - sol.y).max() > 1e-3


@pytest.mark.parametrize("how", [{"block_size": 1}, {"block_size": 16, "chunk_steps": 3}, {"threads": 2}])
def test_bits_do_not_depend_on_the_company(eq, how):
    run = dict(dt=0.25, rng=11, t_eval="steps", step_size=part)
    sol = sg.solve(eq.mixed, (0, 2), START, n_paths=40, **run)
    assert eq.same(sg.solve(eq.mixed, (0, 2), START, n_paths=40, **how, **run).y, sol.y)
    assert eq.same(sg.solve(eq.mixed, (0, 2), START, path_index=[31, 2], **how, **run).y, sol.y[[31, 2]])


def test_whole_steps_are_the_plain_run(eq):
    run = dict(dt=0.3, n_paths=9, rng=2, t_eval="steps")  # the last step is shorter
    plain = sg.solve(eq.mixed, (0, 1), START, **run)
    assert eq.same(sg.solve(eq.mixed, (0, 1), START, step_size=lambda t, y, a, b: 1.0, **run).y, plain.y)


def test_the_brownian_path_is_that_of_the_grid(eq):
    """dY = dW: whatever the steps, Y on the grid is W."""
    run = dict(dt=0.25, n_paths=20, rng=2, t_eval="steps")
    plain = sg.solve(eq.wiener, (0, 2), [0.0], **run)
    sol = sg.solve(eq.wiener, (0, 2), [0.0], step_size=lambda t, y: 1 / (1 + 9 * y[0] ** 2), **run)
    np.testing.assert_allclose(sol.y, plain.y, rtol=0, atol=1e-14)


def test_increments_inside_a_step_have_their_law(eq):
    """Y_1 = W, Y_2 = Σ W ΔW, so W² - 2Y_2 = Σ ΔW²: mean T, variance 2T²/n for n equal steps. Gates at 5 σ."""

    def drift(t, y):
        return 0.0, 0.0

    def noise(t, y):
        return 1.0, y[0]

    sde = sg.SDE(drift, noise, dim=2, noise="scalar")
    n_paths = 40_000
    y = sg.solve(sde, (0, 2), [0.0, 0.0], dt=1.0, n_paths=n_paths, rng=5, step_size=eighth, keep="final").y[:, -1]
    squares = y[:, 0] ** 2 - 2 * y[:, 1]
    n, T = 16, 2.0
    variance = 2 * T**2 / n
    fourth = 3 * variance**2 * (1 + 4 / n)  # of a scaled chi-square: kurtosis 3 + 12/n
    assert abs(squares.mean() - T) < 5 * np.sqrt(variance / n_paths)
    assert abs(squares.var() - variance) < 5 * np.sqrt((fourth - variance**2) / n_paths)


def test_it_survives_where_equal_steps_explode():
    def drift(t, y):
        return (-(y[0] ** 3),)

    def noise(t, y):
        return (0.5 * y[0],)

    sde = sg.SDE(drift, noise, dim=1, noise="scalar")
    with pytest.warns(sg.DivergenceWarning, match="20 of 20 paths left the finite numbers"):
        sg.solve(sde, (0, 1), [20.0], dt=0.1, n_paths=20, rng=0)
    sol = sg.solve(sde, (0, 1), [20.0], dt=0.1, n_paths=20, rng=0, step_size=lambda t, y: 1 / (1 + y[0] ** 2))
    assert sol.success and np.abs(sol.y[:, -1]).max() < 3


def test_a_size_that_is_no_size_stops_its_path_alone(eq):
    def drift(t, y):
        return (1.0,)

    def nothing(t, y):
        return (0.0,)

    sde = sg.SDE(drift, nothing, dim=1, noise="additive")
    with pytest.warns(sg.DivergenceWarning, match=r"1 of 3 paths: step_size gave no usable step"):
        sol = sg.solve(
            sde, (0, 1), [[0.0], [-5.0], [-6.0]], dt=0.125, n_paths=3, rng=0, t_eval="steps",
            step_size=lambda t, y: 1.0 if y[0] < 0.5 else 0.0,
        )  # fmt: skip
    assert sol.path_status.tolist() == [STEP_SIZE, 0, 0] and sol.t_stopped[0] == 0.625 and sol.n_diverged == 0
    np.testing.assert_allclose(sol.y[1:, :, 0], [-5 + sol.t, -6 + sol.t])
    with pytest.warns(sg.DivergenceWarning):
        cubic = sg.solve(eq.cubic, (0, 3), [1.5], dt=0.125, rng=0, step_size=eighth)
    assert cubic.path_status[0] == DIVERGED


REFUSED = [
    (dict(step_size=lambda t, y, a, b: 0.0), sg.ModelError, r"step_size must be in \(0, 1\].*at the start it is 0"),
    (dict(step_size=lambda t, y, a, b: 1.5), sg.ModelError, r"at the start it is 1.5"),
    (dict(step_size=lambda t, y, a, b: (0.5, 0.5)), sg.ShapeError, "step_size must return one number, got 2"),
    (dict(step_size=0.5), sg.ArgumentError, 'step_size must be "auto" or a function'),
    (dict(step_size="auto"), sg.ArgumentError, 'step_size="auto" is for models that know'),
    (dict(step_size=part, t_eval=[0.0, 0.3]), sg.ArgumentError, "t_eval must lie on the grid"),
    (dict(step_size=part, method="sri2"), sg.ArgumentError, "step_size cannot be used with method 'sri2'"),
    (dict(step_size=part, brownian=sg.random.Brownian(3, (0, 1), 0)), sg.ArgumentError, "brownian cannot be used"),
]


@pytest.mark.parametrize(("how", "error", "match"), REFUSED)
def test_what_it_cannot_be_combined_with(eq, how, error, match):
    if how.get("method", "heun") not in sg.methods:
        pytest.skip("no such method")
    with pytest.raises(error, match=match):
        sg.solve(eq.mixed, (0, 1), START, dt=0.25, rng=0, **how)


def test_laws_of_one_step_length_are_refused():
    problem = sg.SGD(sg.models.Product(), sg.models.uw_gauss(), None, learning_rate=0.01)
    law = sg.ChargeLaw(sg.Charge(problem.model.symmetries()["W1/W2"]), problem)
    with pytest.raises(sg.ArgumentError, match="track cannot be used with step_size"):
        sg.solve(problem.sde(), (0, 1), [1.0, 1.0], rng=0, track=law, step_size=eighth)
