"""A column's bits do not depend on the block it is in, for every kernel of the Runge-Kutta methods."""

import numpy as np
import pytest

from sgdsde.schemes import methods

NAMES = ["sra1", "sra2", "sra3", "sea", "shark", "sriw1", "sriw2", "sri2", "srs2"]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_does_not_depend_on_its_block(lab, name):
    scheme = methods[name]
    calculus = scheme.calculus[0]
    for noise in scheme.strong:
        d, m = (3, 1) if noise == "scalar" else (3, 3)
        x, t, h, dW = lab.draw(d, m, 67)
        made = scheme.aux_for(noise, calculus)
        aux = np.random.default_rng(2).normal(size=(made.rows(d, m) if made else 0, 67)) * h
        increment = lab.apart if noise == "diagonal" else lab.mixed
        step, scratch = scheme.kernel(noise, calculus), scheme.work(d, m)[1]
        whole = lab.take(step, increment, x, t, h, dW, lab.p, scratch, aux=aux)
        for first, last in [(0, 1), (5, 8), (40, 41), (64, 67), (1, 17)]:
            part = [np.ascontiguousarray(one[..., first:last]) for one in (x, t, h, dW)]
            alone = lab.take(step, increment, *part, lab.p, scratch, aux=aux[:, first:last])
            assert np.array_equal(alone, whole[:, first:last])
