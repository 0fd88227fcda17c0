"""Every law of the package at states of the networks that are neither `DeepLinear` nor `Product`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sgdsde as sg
from sgdsde.models import MLP, DiagonalLinear, RadialNetwork, ScaleInvariant
from sgdsde.testing import assert_laws
from sgdsde.testing import strategies as own


@pytest.mark.parametrize(
    "model",
    [
        DiagonalLinear(2, depth=3, width=2),
        RadialNetwork([2, 2, 2], "squared", biases=True),
        ScaleInvariant([3, 1]),
        ScaleInvariant([2, 2, 2]),
        ScaleInvariant([2, 2, 2], "layers"),
    ],
    ids=repr,
)
def test_all_laws_hold(model):
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((4, k)) for k in (getattr(model, "n_inputs", 0) or model.dims[0], 2))
    Y = Y[:, : 1 if isinstance(model, DiagonalLinear) else model.dims[-1]]
    problem = sg.SGD(model, X, Y, learning_rate=0.1, gamma=0.1, batch_size=2)
    for A in [A for A in model.symmetries().values() if A.is_symmetric][:2]:
        ratios = assert_laws(problem, A, rng.standard_normal(model.dim))
        assert len(ratios) >= 17 and max(ratios.values()) <= 1


@settings(max_examples=10)
@given(own.cases(st.sampled_from([DiagonalLinear(3), DiagonalLinear(2, 3), DiagonalLinear(1, 2)])))
def test_strategies_know_diagonal_networks(case):
    assert "assert_discrete_law" in assert_laws(*case)


@settings(max_examples=10)
@given(st.data())
def test_strategies_have_data_for_every_network_with_squared_loss(data):
    for model in (MLP([3, 2]), RadialNetwork([2, 2, 3]), ScaleInvariant([4, 2])):
        X, Y = data.draw(own.data(model))
        assert X.shape[1] == model.dims[0] and Y.shape == (X.shape[0], model.dims[-1])


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (own.data(MLP([3, 2], loss="softmax")), "data must be given"),
        (own.generators(RadialNetwork([2, 2, 3])), "must declare a symmetric generator"),
    ],
)
def test_strategies_say_what_they_cannot_do(strategy, message):
    @settings(max_examples=1, database=None)
    @given(strategy)
    def drawn(value):
        pass

    with pytest.raises(sg.ArgumentError, match=message):
        drawn()
