"""`assert_laws`: every law that applies, for models of one's own, and which it leaves out."""

from functools import lru_cache

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._jit import kernel_uncached
from sgdsde.models import Product
from sgdsde.models.model import SAMPLE
from sgdsde.testing import BrokenLaw, assert_laws


@lru_cache
def slightly_wrong(true):
    """A SAMPLE kernel whose gradients are 1.001 of what they should be, which tangency does not see."""

    @kernel_uncached(SAMPLE)
    def sample(out, theta, i, q, data, work):
        true(out, theta, i, q, data, work)
        for k in range(out.shape[0]):
            out[k] *= 1.001

    return sample


class Wrong(Product):
    def compiled(self, factor=None):
        made = super().compiled(factor)
        return made._replace(sample=slightly_wrong(made.sample))


def test_all_laws_hold_and_say_how_well(case):
    ratios = assert_laws(*case)
    assert len(ratios) == 21 and all(0 <= value <= 1 for value in ratios.values())
    assert {"assert_discrete_law", "assert_equal_means", "assert_noise"} <= set(ratios)


def test_a_model_that_is_wrong_is_found():
    model, data = Product(), ([1.0, 2.0, -1.0], [0.5, 1.0, 1.0])
    for made, holds in ((model, True), (Wrong(), False)):
        problem = sg.SGD(made, *data, learning_rate=0.1)
        A = made.symmetries()["W1/W2"]
        if holds:
            assert_laws(problem, A, [1.0, 0.5])
        else:
            sg.testing.assert_tangent(problem, A, [1.0, 0.5])
            with pytest.raises(BrokenLaw):
                assert_laws(problem, A, [1.0, 0.5])


def test_what_cannot_be_enumerated_is_left_out(tools):
    problem = tools["make"](n=30, batch_size=3)
    ratios = assert_laws(problem, problem.model.symmetries()["B=I"], np.ones(8))
    assert "assert_discrete_mean" not in ratios and "assert_euler_maruyama_mean" not in ratios
    assert "assert_euler_maruyama_law" in ratios


@pytest.mark.parametrize("generator, theta, words", [
    (sg.scaling(7), np.ones(8), "generator acts on 7 components, the problem has 8"),
    (sg.scaling(8), np.ones(7), r"theta must have shape \(8,\)"),
    (np.eye(8, k=1), np.ones(8), "generator must be symmetric"),
])  # fmt: skip
def test_arguments(case, generator, theta, words):
    with pytest.raises(sg.ArgumentError, match=words):
        assert_laws(case[0], generator, theta)
