"""The control variate: its sum by hand, its mean zero whatever its weights, and its weights the derivative."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.comparison._control import NAME, Control, controllable
from sgdsde.sgd.optimizers import SVAG, HeavyBall

RNG = np.random.default_rng(0)
MODEL = sg.models.DeepLinear([2, 2, 1])
PROBLEM = sg.SGD(MODEL, RNG.normal(size=(6, 2)), RNG.normal(size=6), learning_rate=0.1, batch_size=2, gamma=0.05)
THETA = MODEL.init(rng=0)
OF = {"square": lambda y: (y**2).sum(axis=1), "loss": PROBLEM.loss}
N, TIME = 8, 0.8


def drift(theta, order):
    """-∇L_γ, and at order 2 -∇(L_γ + (η/4)‖∇L_γ‖²) by differences."""

    def first(x):
        return -PROBLEM.gradient(x) - 2 * PROBLEM.gamma * x

    if order == 1:
        return first(theta)
    e = 1e-5 * np.eye(theta.size)
    slope = np.array([(first(theta + one) @ first(theta + one) - first(theta - one) @ first(theta - one)) for one in e])
    return first(theta) - 0.25 * PROBLEM.learning_rate * slope / 2e-5


def end(theta, k, order, h):
    for _ in range(k, N):
        theta = theta + h * drift(theta, order)
    return np.array([float(f(theta[None])[0]) for f in OF.values()])


def runs(kind, n_paths, track, rng=1):
    if kind == "sgd":
        return PROBLEM.run(THETA, N, n_paths, rng=rng, t_eval="steps", track=track)
    if kind == "svag":
        return PROBLEM.replace(learning_rate=0.2, optimizer=SVAG(2)).run(
            THETA, N, n_paths, rng=rng, t_eval="steps", track=track
        )
    equation = PROBLEM.sde(order=int(kind[-1]))
    return sg.solve(equation, (0, TIME), THETA, n_paths=n_paths, dt=TIME / N, rng=rng, t_eval="steps", track=track)


@pytest.mark.parametrize("kind", ["sgd", "svag", "sde 1", "sde 2"])
def test_it_is_the_sum_of_what_each_step_adds_to_its_mean(kind):
    order = 2 if kind == "sde 2" else 1
    control = Control(OF, THETA, (0.0, TIME), N)
    run = runs(kind, 2, control)
    h, wanted = TIME / N, np.zeros((2, 2))
    still = THETA
    for k in range(N):
        still = still + h * drift(still, order)
        e = 1e-4 * np.eye(THETA.size)
        psi = np.stack(
            [(end(still + one, k + 1, order, h) - end(still - one, k + 1, order, h)) / 2e-4 for one in e], axis=1
        )
        for b in range(2):
            wanted[b] += psi @ (run.y[b, k + 1] - run.y[b, k] - h * drift(run.y[b, k], order))
    np.testing.assert_allclose(run.tracked[NAME][:, -1], wanted, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["sgd", "svag", "sde 1", "sde 2"])
def test_its_mean_is_zero_and_it_is_the_first_order_of_the_spread(kind):
    run = runs(kind, 4000, Control(OF, THETA, (0.0, TIME), N))
    z = run.tracked[NAME][:, -1]
    assert (abs(z.mean(axis=0)) < 5 * z.std(axis=0) / np.sqrt(4000)).all()
    for k, f in enumerate(OF.values()):
        assert np.corrcoef(f(run.y[:, -1]), z[:, k])[0, 1] > 0.5


def test_who_has_one():
    assert controllable(PROBLEM.recursion().scheme, PROBLEM)
    for other in (PROBLEM.replace(sampling="epochs"), PROBLEM.replace(optimizer=HeavyBall(0.5))):
        assert not controllable(other.recursion().scheme, other)


def test_a_path_that_explodes_without_noise_has_none():
    control = Control(OF, 1e3 * np.ones(THETA.size), (0.0, 80.0), N)
    watcher = control.__track__(PROBLEM.recursion(), PROBLEM.recursion().scheme)
    assert (watcher.data[: N * 2 * THETA.size] == 0.0).all()
