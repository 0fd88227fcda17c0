"""bᵀθ' = (1 - 2ηγ)bᵀθ: a translation that no loss sees has a charge without noise, in every step of SGD."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import sgdsde as sg
from sgdsde.algebra import translation
from sgdsde.symmetry import NoetherCharge
from sgdsde.testing import strategies as own

EPS = np.finfo(float).eps


@settings(max_examples=30)
@given(st.integers(1, 2), st.integers(2, 3), st.sampled_from([0.0, 0.05]), st.data())
def test_the_shift_of_softmax_outputs(n_in, n_out, gamma, data):
    model = sg.models.SoftmaxRegression(n_in, n_out)
    X, theta = data.draw(own.numbers((4, n_in))), data.draw(own.states(model))
    labels = data.draw(st.lists(st.integers(0, n_out - 1), min_size=4, max_size=4))
    problem = sg.SGD(model, X, labels, learning_rate=0.1, batch_size=2, gamma=gamma)
    run = problem.run(theta, 6, 3, rng=0, t_eval="steps")
    for v in model.translations().values():
        charge = NoetherCharge(translation(v))
        wanted = (1 - 2 * 0.1 * gamma) ** np.arange(7) * charge(theta)
        np.testing.assert_allclose(charge(run.y), np.tile(wanted, (3, 1)), atol=64 * 7 * model.dim * EPS * (9 + 9))
        assert charge.terms(problem, theta).noise == 0.0
