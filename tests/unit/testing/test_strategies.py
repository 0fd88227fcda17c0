"""Strategies keep their bounds, reach what matters, and are not needed for the laws."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from sgdsde import ArgumentError
from sgdsde.models import DeepLinear, Model, Population, Product
from sgdsde.testing import assert_laws
from sgdsde.testing import strategies as own

QUICK = settings(max_examples=300, database=None)


@given(own.cases(), st.data())
def test_bounds(case, data):
    problem, A, theta = case
    assert problem.model.dim == A.dim == theta.size <= 30
    assert 1 <= problem.batch_size <= problem.n_samples <= 8
    assert max(np.abs(part).max() for part in (theta, problem.X, problem.Y)) <= 3 and theta.any()
    assert 0 <= problem.gamma <= 0.5 and 1e-3 <= problem.learning_rate <= 0.3
    assert A.is_symmetric and A.norm > 0
    assert abs(data.draw(own.group_parameters(A))) * A.norm <= 2 * (1 + 1e-12)


@pytest.mark.parametrize("wanted", [
    lambda c: c.problem.n_samples == 1,
    lambda c: c.problem.batch_size > 2 and c.problem.replacement,
    lambda c: c.problem.batch_size > 2 and not c.problem.replacement,
    lambda c: c.problem.gamma == 0,
    lambda c: c.problem.gamma > 0,
    lambda c: isinstance(c.problem.model, Product) and c.problem.model.width > 1,
    lambda c: isinstance(c.problem.model, DeepLinear) and c.problem.model.depth == 4,
    lambda c: c.problem.model.dim > 20,
    lambda c: c.generator.parts[0][1].__class__.__name__ == "Dense",
    lambda c: c.generator.parts[0][1].__class__.__name__ == "Sandwich",
    lambda c: np.unique(np.abs(c.generator.eigenvalues)).size > 2,
    lambda c: (c.theta == 0).any(),
    lambda c: (c.theta % 0.25 != 0).all(),
])  # fmt: skip
def test_what_matters_is_drawn(wanted):
    find(own.cases(), wanted, settings=settings(QUICK, max_examples=1000, phases=[Phase.generate]))


@given(own.rotations(4))
def test_rotations_are_orthogonal(O):
    assert np.abs(O @ O.T - np.eye(4)).max() < 1e-14


@settings(max_examples=10)
@given(own.cases(Product(), own.populations()))
def test_laws_of_the_data(case):
    assert isinstance(case.problem.X, Population)
    assert "assert_euler_maruyama_mean" in assert_laws(*case)


class Tanh(Model):
    dim, shapes = 1, {"w": (1,)}

    def __repr__(self):
        return "Tanh()"


def test_the_data_of_an_unknown_model_must_be_given():
    with pytest.raises(ArgumentError, match=r"data must be given for Tanh\(\)"):
        find(own.problems(Tanh()), lambda _: True, settings=QUICK)


def test_values_and_strategies_for_every_setting():
    model = DeepLinear([1, 1, 1])
    data = st.just((np.ones((3, 1)), np.zeros((3, 1))))
    for given_model, given_gamma in [(model, 0.25), (st.just(model), st.just(0.25))]:
        made = own.problems(given_model, data, gamma=given_gamma, replacement=False, learning_rate=0.125)
        problem = find(made, lambda p: p.batch_size == 2, settings=QUICK)
        numbers = problem.model.dims, problem.n_samples, problem.gamma, problem.replacement, problem.learning_rate
        assert numbers == ((1, 1, 1), 3, 0.25, False, 0.125)


def test_hypothesis_is_needed_for_strategies_alone():
    code = """
import sys
sys.modules["hypothesis"] = None
import sgdsde as sg
assert "sgdsde.run.engine" not in sys.modules
model = sg.models.Product()
problem = sg.SGD(model, [1.0, 2.0], [0.5, 1.0], learning_rate=0.1)
print(sg.testing.assert_tangent(problem, model.symmetries()["W1/W2"], [1.0, 2.0]) <= 1)
try:
    sg.testing.strategies
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True",
        "sgdsde.testing.strategies needs hypothesis, which is not installed: install sgdsde[testing]",
    ]
