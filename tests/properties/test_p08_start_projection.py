"""2Aθ·Δθ = -4γhC at the start of a step: along the orbit, SGD and Euler-Maruyama move by weight decay alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sgdsde.testing import all_batches, assert_start_projection, batch_steps, sde_steps
from sgdsde.testing import strategies as own


@given(own.cases())
def test_of_sgd(case):
    problem, A, theta = case
    ends = batch_steps(problem, theta, all_batches(problem))
    assert_start_projection(problem, A, np.stack([np.broadcast_to(theta, ends.shape), ends], axis=1))


@given(own.cases(), st.floats(1e-3, 0.3), st.data())
def test_of_euler_maruyama(case, h, data):
    problem, A, theta = case
    dW = np.sqrt(h) * data.draw(own.numbers((4, 1, problem.n_samples)))
    assert_start_projection(problem, A, sde_steps(problem, theta, dW, h, "per-sample"), h)


@given(own.cases(learning_rate=1e-3))
def test_of_every_step_of_a_run(case):
    problem, A, theta = case
    assert_start_projection(problem, A, problem.run(theta, 2, n_paths=2, rng=3, t_eval="steps"))
