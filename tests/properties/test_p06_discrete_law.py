"""C(θ') = (1 - 2ηγ)²C(θ) + η²ĝᵀAĝ for every batch that SGD can draw, and the steps of a run are such steps."""

import numpy as np
from hypothesis import given, settings

from sgdsde.testing import all_batches, assert_discrete_law, batch_steps
from sgdsde.testing import strategies as own


@given(own.cases())
def test_every_batch(case):
    assert_discrete_law(*case)


large = own.cases(own.models(products=False), min_samples=6, replacement=False)


@settings(max_examples=40)
@given(large.filter(lambda case: case.problem.batch_size > 4))
def test_large_batches_which_go_by_matrix_products(case):
    assert_discrete_law(*case)


@settings(max_examples=50)
@given(own.cases())
def test_a_run_takes_the_steps_of_its_batches(case):
    problem, _, theta = case
    run = problem.run(theta, 1, n_paths=5, rng=7).y[:, 1]
    steps = batch_steps(problem, theta, all_batches(problem))
    apart = np.abs(run[:, None] - steps).max(axis=2).min(axis=1)
    assert (apart <= 1e-13 * (1 + np.abs(steps).max())).all()
