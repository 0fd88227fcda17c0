"""C₁, C₂ and the decay of uw against the charges of real networks; the slips of the paper told apart."""

import numpy as np
import pytest

from sgdsde.models import DeepLinear, Product, uw_gauss
from sgdsde.sgd import SGD
from sgdsde.symmetry import Charge
from sgdsde.theory import LawOfBalance, two_layer_equilibrium, uw_decay


def test_the_rate_is_that_of_the_charge():
    rng = np.random.default_rng(0)
    X, Y, theta = rng.standard_normal((7, 3)), rng.standard_normal((7, 2)), rng.standard_normal(5)
    model = DeepLinear([3, 1, 2])
    problem = SGD(model, X, Y, learning_rate=0.1, batch_size=2, gamma=0.03)
    w, u = theta[:3], theta[3:]
    r = (X @ w)[:, None] * u - Y
    interactions = 2 * X[:, :, None] * r[:, None, :]
    law = LawOfBalance.of(interactions)
    wanted = Charge(model.generator([[1.0]])).rate(problem, theta)
    assert law.rate(u, w, T=0.05, gamma=0.03) == pytest.approx(wanted, rel=1e-12)
    raw = LawOfBalance(*(np.einsum(s, interactions, interactions) / 7 for s in ("nki,nkj->ij", "nki,nli->kl")))
    assert abs(raw.rate(u, w, T=0.05, gamma=0.03) - wanted) > 0.01 * abs(wanted)  # E[∇ℓ∇ℓᵀ] in place of the covariance


def test_the_stationary_ratio_is_within_its_bounds(task_of, samples_of):
    task = task_of(3, d_x=3, d_y=2, rank=1)
    X, Y = samples_of(task)
    layers = two_layer_equilibrium(task)
    r = X @ task.V.T - Y
    law = LawOfBalance.of(2 * X[:, :, None] * r[:, None, :])
    assert abs(law.rate(layers.W2[:, 0], layers.W1[0], T=1.0)) < 1e-12 * np.trace(law.C1)
    low, high = law.ratio_bounds()
    assert low < layers.norms[1] / layers.norms[0] < high


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_uw_decays_at_the_rate_of_its_charges(scale):
    model, data = Product(width=2, scale=scale), uw_gauss(0.8, 0.6)
    problem = SGD(model, data, learning_rate=0.1, batch_size=2, gamma=0.3)
    theta = np.array([1.0, -0.4, 0.3, 2.0])
    rate = uw_decay(data, model.value(theta), T=0.05, gamma=0.3, scale=scale)
    for i in range(2):
        charge = Charge(model.symmetries()[f"W1/W2[{i}]"])
        assert charge.rate(problem, theta) == pytest.approx(-rate * charge(theta), rel=1e-12)  # 4γ, not γ
    assert uw_decay(data, [0.0, 1.0], T=0.05).shape == (2,)
