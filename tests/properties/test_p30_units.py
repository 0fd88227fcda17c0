"""‖u_i‖² - ‖w_i‖² - b_i² of every unit of relu and leaky relu networks: one recursion for each batch, at kinks too."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdsde import SGD
from sgdsde.models import MLP
from sgdsde.testing import assert_unit_balance
from sgdsde.testing import strategies as own


@settings(max_examples=60)
@given(own.problems(own.relu_networks(), max_batches=64), st.data())
def test_every_unit_and_every_batch(problem, data):
    assert_unit_balance(problem, data.draw(own.states(problem.model)))


def test_units_at_their_kinks():
    for kind in ({"activation": "relu"}, {"activation": "leaky_relu", "slope": 0.5}):
        problem = SGD(MLP([2, 2, 2], **kind), [[1.0, 2.0], [2.0, 1.0]], np.eye(2), learning_rate=0.1, gamma=0.1)
        theta = [1.0, 1.0, -1.0, 2.0, -3.0, 0.0, 1.0, -2.0, 0.5, 1.0, 0.25, -1.0]  # z = (0, 3), (0, 0)
        assert (np.array([[1, 2], [2, 1]]) @ [1.0, 1.0] - 3.0 == 0).all()
        assert_unit_balance(problem, theta)
