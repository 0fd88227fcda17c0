"""With h = 0 or v = 0 the increment runs one of the two functions: the other is not called at all."""

import numpy as np
import pytest


def raises(t, y):
    if y[0] > 0.0:
        raise ValueError("called")
    return (1.0, 2.0)


def quiet(t, y):
    return y[0], y[1] ** 2


def test_the_noise_alone_does_not_call_the_drift(lab):
    bound = lab.bind(raises, quiet, [-1.0, 1.0], "diagonal")
    x, t, h, v = lab.draw(2, 2)
    np.testing.assert_allclose(lab.increment(bound, x, t, 0 * h, v), [x[0] * v[0], x[1] ** 2 * v[1]], rtol=1e-15)
    with pytest.raises(ValueError, match="called"):
        lab.increment(bound, x, t, h, v)


def test_the_drift_alone_does_not_call_the_diffusion(lab):
    bound = lab.bind(quiet, raises, [-1.0, 1.0], "diagonal")
    x, t, h, v = lab.draw(2, 2)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v), [x[0] * h, x[1] ** 2 * h], rtol=1e-15)
    with pytest.raises(ValueError, match="called"):
        lab.increment(bound, x, t, h, v)


@pytest.mark.parametrize("column", [0, 3, 4])
def test_one_column_that_moves_is_enough_for_both(lab, column):
    bound = lab.bind(quiet, lambda t, y: (1.0 + y[1], t), [1.0, 1.0], "diagonal")
    x, t, h, v = lab.draw(2, 2)
    for one in (h, v):
        zero = np.zeros_like(one)
        zero[..., column] = one[..., column]
        step, noise = (zero, v) if one is h else (h, zero)
        wanted = lab.in_python(bound, x, t, step, noise)
        np.testing.assert_allclose(lab.increment(bound, x, t, step, noise), wanted, rtol=1e-14, atol=1e-14)
