"""Arguments of a wrong type are named, with what was wanted."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import theory


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.critical_learning_rate(3), "exponent must be a function"),
        (lambda: theory.sde_exponent("x", 0.1), "population must be a Population"),
        (lambda: theory.relaxation_rates(np.eye(2)), "layers must be what two_layer_equilibrium returns"),
        (lambda: theory.modified_loss(3, [1.0]), "problem must be an SGD problem"),
        (lambda: theory.modified_gradient(None, [1.0]), "problem must be an SGD problem"),
        (lambda: theory.slow_potential(None, [1.0]), "problem must be an SGD problem"),
        (lambda: theory.active_norms([]), "weights must be a sequence of matrices"),
        (lambda: theory.active_norms(3), "weights must be a sequence of matrices"),
        (lambda: theory.active_norms([np.eye(2), np.eye(3)]), r"weights\[1\] must have 2 columns"),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(sg.SgdsdeError, match=message):
        call()
