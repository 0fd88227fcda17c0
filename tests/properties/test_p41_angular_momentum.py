"""UᵀΔU - ΔUᵀU + VΔVᵀ - ΔVVᵀ = 0 in every step of SGD and Euler-Maruyama on layers that rotations leave alone."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.symmetry import layer_angular_momentum
from sgdsde.testing import all_batches, batch_steps, sde_steps
from sgdsde.testing import strategies as own

EPS = np.finfo(float).eps


@settings(max_examples=40)
@given(own.problems(own.models(products=False)), st.data())
def test_of_linear_layers(problem, data):
    model, h = problem.model, 0.1
    theta = data.draw(own.states(model))
    largest = np.linalg.norm(problem.per_sample_gradients(theta), axis=1).max()
    ends = batch_steps(problem, theta, all_batches(problem))
    paths = np.stack([np.broadcast_to(theta, ends.shape), ends], axis=1)
    dW = np.sqrt(h) * data.draw(own.numbers((4, 1, problem.n_samples)))
    driven = sde_steps(problem, theta, dW, h, "per-sample")
    size = np.linalg.norm(theta)
    for states, step in ((paths, problem.learning_rate * largest), (driven, 10 * largest)):
        tolerance = 64 * model.dim * EPS * size * (step + size)
        for layer in range(1, model.depth):
            assert np.abs(layer_angular_momentum(model, states, layer)).max() <= tolerance


@settings(max_examples=20)
@given(st.integers(2, 4), own.numbers((3, 2)), own.numbers((3, 2)), st.data())
def test_of_a_radial_activation(h, X, Y, data):
    U, V = data.draw(own.numbers((2, h))), data.draw(own.numbers((h, 2)))
    dU, dV = np.zeros_like(U), np.zeros_like(V)
    for x, y in zip(X, Y):  # ‖U z f - y‖², z = Vx, f = 1/(1 + |z|²), by hand
        z = V @ x
        f = 1 / (1 + z @ z)
        r = 2 * (U @ z * f - y)
        dU -= 0.1 * np.outer(r, z * f)
        e = U.T @ r
        dV -= 0.1 * np.outer(f * e - 2 * f**2 * (e @ z) * z, x)
    moment = U.T @ dU + V @ dV.T
    size = np.linalg.norm(U) * np.linalg.norm(dU) + np.linalg.norm(V) * np.linalg.norm(dV)
    terms = (
        1 + np.abs(U).max() ** 2 * np.abs(X).max() ** 2 * np.abs(V).max() ** 2 + np.abs(U * 9).max() * np.abs(Y).max()
    )
    assert np.abs(moment - moment.T).max() <= 64 * h * EPS * (size + 9 * terms)
