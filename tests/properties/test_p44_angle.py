"""The polar angle of a rotation-invariant loss of two parameters does not move, as long as the radius is above zero."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde.algebra import rotation
from sgdsde.symmetry import Angles
from sgdsde.testing import strategies as own

EPS = np.finfo(float).eps
ANGLE = Angles(rotation(2, 0, 1))


@settings(max_examples=40)
@given(own.numbers(2).filter(lambda x: x @ x > 1e-2), st.sampled_from([0.0, 0.1]), st.integers(0, 2**32 - 1))
def test_of_sgd_and_euler_maruyama(theta, gamma, seed):
    # ℓ_i = (|θ|² - y_i)²/8: ∇ℓ_i = (|θ|² - y_i)θ/2.
    rng, eta, steps = np.random.default_rng(seed), 0.02, 200
    y = rng.uniform(0, 4, 5)
    batches = eta * np.eye(5)[rng.integers(5, size=steps)]
    dW = np.sqrt(eta) * rng.standard_normal((steps, 5))
    noise = np.sqrt(eta) / np.sqrt(5) * (dW - dW.mean(axis=1, keepdims=True))
    for weights in (batches, eta / 5 - noise):  # of the gradients of the samples, in SGD and in Euler-Maruyama
        path = [theta]
        for c in weights:
            x = path[-1]
            path.append((1 - 2 * eta * gamma) * x - c @ np.outer((x @ x - y) / 2, x))
        path = np.array(path)
        if (np.sum(path[1:] * path[:-1], axis=1) <= 0).any() or not np.isfinite(path).all():
            continue  # through zero
        phi = ANGLE.along(path)[:, 0]
        assert np.abs(phi - phi[0]).max() <= 8 * EPS * steps
        assert np.abs(ANGLE.identity_along(path)).max() <= 16 * EPS * np.max(np.sum(path**2, axis=1))
    flipped = np.array([theta, -0.5 * theta])
    assert abs(abs(np.diff(ANGLE.along(flipped)[:, 0])[0]) - np.pi) < 1e-12
