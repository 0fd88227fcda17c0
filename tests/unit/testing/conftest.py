"""A small problem, a generator of its symmetry and a state; problems of which one method is wrong."""

import copy

import numpy as np
import pytest

from sgdsde import SGD
from sgdsde.models import DeepLinear, Product


def make(model=None, n=4, **numbers):
    model = DeepLinear([2, 2, 2]) if model is None else model
    rng = np.random.default_rng(3)
    n_in, n_out = (model.dims[0], model.dims[-1]) if isinstance(model, DeepLinear) else (1, 1)
    X, Y = rng.standard_normal((n, n_in)), rng.standard_normal((n, n_out))
    return SGD(model, X, Y, **{"learning_rate": 0.1, "batch_size": 2, "gamma": 0.2, **numbers})


def but(problem, **changes):
    """The problem with other attributes or methods; its compiled steps stay the true ones, unless they are named.

    A method gets the true one as first argument.
    """
    wrong = copy.copy(problem)
    wrong.__class__ = type("Wrong", (SGD,), {})
    for name, change in {"recursion": problem.recursion, "sde": problem.sde, **changes}.items():
        true = getattr(problem, name)
        value = (lambda *a, f=change, t=true, **k: f(t, *a, **k)) if name in changes and callable(change) else change
        owner = wrong if name in vars(problem) else wrong.__class__  # a number of its own, or a property or method
        setattr(owner, name, staticmethod(value) if callable(value) else value)
    return wrong


@pytest.fixture
def case():
    problem = make()
    theta = np.random.default_rng(4).standard_normal(problem.model.dim)
    return problem, problem.model.generator([[1.0, 0.5], [0.5, -2.0]]), theta


@pytest.fixture
def uw():
    return make(Product()), np.array([1.3, -0.4])


@pytest.fixture
def tools():
    return {"make": make, "but": but}
