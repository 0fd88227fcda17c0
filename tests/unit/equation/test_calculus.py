"""The correction ½ Σ_j (b_j·∇)b_j against formulas, and conversion between the calculi."""

import numpy as np
import pytest

from sgdsde import SDE, ArgumentError, noise_structure, to_ito, to_stratonovich
from sgdsde.equation import calculus, differences
from sgdsde.equation._equation import Problem

CLOSE = {"rtol": 1e-8, "atol": 1e-9}


def zero(t, y, *args):
    return np.zeros(len(y))


def jacobian_correction(columns, slopes, x):
    """½ Σ_j Σ_l b_lj ∂_l b_ij from a matrix (d, m) and its derivatives (d, m, d) at each column of x."""
    return np.stack([0.5 * np.einsum("lj,ijl->i", columns(y), slopes(y)) for y in x.T], axis=1)


@pytest.mark.parametrize("d, m", [(1, 3), (2, 1), (2, 4), (3, 2)])
def test_general_noise_against_the_jacobian(lab, d, m):
    weights = np.cos(np.arange(d * m)).reshape(d, m) + 1.5

    def diffusion(t, y, w):
        out = np.empty(w.shape)
        for i in range(len(w)):
            for j in range(w.shape[1]):
                out[i, j] = w[i, j] * np.sin(y[0] + t) + y[-1] ** 2
        return out

    def columns(y):
        return weights * np.sin(y[0] + 0.3) + y[-1] ** 2

    def slopes(y):
        out = np.zeros((d, m, d))
        out[:, :, 0] += weights * np.cos(y[0] + 0.3)
        out[:, :, -1] += 2 * y[-1]
        return out

    bound = lab.bind(zero, diffusion, np.ones(d), args=(weights,))
    x = lab.draw(d, m, 7)[0]
    wanted = jacobian_correction(columns, slopes, x)
    np.testing.assert_allclose(lab.correction(bound, x), wanted, **CLOSE)
    assert np.abs(wanted).min() > 1e-2


def test_correction_needs_few_evaluations_only_where_noise_is_measured_diagonal(lab):
    x = lab.draw(3, 3)[0]
    apart = lab.bind(zero, lambda t, y: (y[0] ** 2, np.sin(y[1]), 2.0), np.ones(3), "diagonal")
    assert apart.measured_diagonal()
    wanted = np.array([x[0] ** 3, 0.5 * np.sin(x[1]) * np.cos(x[1]), 0 * x[2]])
    np.testing.assert_allclose(lab.correction(apart, x), wanted, **CLOSE)
    # G = diag(y2, y1): b_1 = y2 e_1 has no derivative along itself. Shifting all components at once would find y1·y2/2.
    crossed = lab.bind(zero, lambda t, y: (y[1], y[0] * y[2], y[2] * y[0]), np.ones(3), "diagonal")
    assert not crossed.measured_diagonal()
    wanted = np.array([0 * x[0], 0 * x[1], 0.5 * x[2] * x[0] ** 2])
    np.testing.assert_allclose(lab.correction(crossed, x), wanted, **CLOSE)


def test_additive_noise_has_none(lab):
    bound = lab.bind(zero, lambda t, y: ((1.0, t), (0.0, 2.0)), [1.0, 1.0], "additive")
    assert bound.kernels(correction=True).correction is differences.no_correction
    np.testing.assert_array_equal(lab.correction(bound, np.ones((2, 3))), np.zeros((2, 3)))
    constant = lab.bind(zero, lambda t, y: ((1.0, t), (0.0, 2.0)), [1.0, 1.0])  # additive, and not declared
    np.testing.assert_array_equal(lab.correction(constant, np.ones((2, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("noise", ["scalar", "diagonal", "general"])
def test_near_the_edge_of_the_domain(lab, noise):
    # b = sqrt(y): (b·d/dy) b / 2 = 1/4 everywhere, but y - eps·b is negative where y is small.
    bound = lab.bind(zero, matrix_root if noise == "general" else root, [1.0, 1.0], noise)
    x = np.array([[1.0, 1e-3, 1e-6, 1e-15], [1.0, 2.0, 3.0, 4.0]])
    made = lab.correction(bound, x)[0]
    np.testing.assert_allclose(made[:3], 0.25, rtol=1e-5)
    np.testing.assert_allclose(made[3], 0.25, rtol=1e-2)  # the step suits the largest component
    alone = lab.bind(zero, lambda t, y: (np.sqrt(y[0]),), 1.0, "scalar" if noise == "general" else noise)
    np.testing.assert_allclose(lab.correction(alone, np.array([[1e-10, 1e-200]])), 0.25, rtol=1e-5)
    # As people write it; right down to states a thousand times smaller than a step of the differences would be.
    clipped = lab.bind(zero, lambda t, y: (np.sqrt(max(y[0], 0.0)),), 1.0, "scalar" if noise == "general" else noise)
    np.testing.assert_allclose(lab.correction(clipped, np.array([[1e-4, 1e-6, 1e-7]])), 0.25, rtol=1e-3)


def root(t, y):
    return (np.sqrt(y[0]), y[1])


def matrix_root(t, y):
    return ((np.sqrt(y[0]),), (y[1],))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_scales(lab, scale):
    bound = lab.bind(zero, lambda t, y, s: (s * np.sin(y[0]), s * y[1]), [1.0, 1.0], "scalar", args=(scale,))
    x = lab.draw(2, 1)[0]
    wanted = 0.5 * scale**2 * np.array([np.sin(x[0]) * np.cos(x[0]), x[1]])
    np.testing.assert_allclose(lab.correction(bound, x), wanted, rtol=1e-8)


def test_a_column_without_noise_and_the_block(lab):
    bound = lab.bind(zero, lambda t, y: ((np.sqrt(y[0]), 0.0), (y[1], y[0] * y[1])), [1.0, 1.0])
    x = np.array([[0.0, 1.0, 1e-9, 2.0, 0.5], [0.0, 2.0, 3.0, 0.0, 1.0]])
    whole = lab.correction(bound, x)
    np.testing.assert_array_equal(whole[:, 0], [0.0, 0.0])
    for b in range(5):
        np.testing.assert_array_equal(lab.correction(bound, x[:, b : b + 1].copy())[:, 0], whole[:, b])


def test_kernels_are_made_once(lab):
    bound = lab.bind(zero, lambda t, y: (y[0], y[1]), [1.0, 1.0], "scalar", args=())
    one, two = bound.kernels(correction=True), bound.kernels(correction=True)
    assert one.correction is two.correction
    made, work = calculus.column_correction(one.increment, 2, 1, (3, 4))
    assert made is one.correction and work == (3, 4 + 12)
    converted = to_stratonovich(bound.sde)
    first, second = (converted.bind(0.0, [1.0, 1.0]).kernels() for _ in range(2))
    assert first.increment is second.increment is not one.increment


def geometric(calculus):
    return SDE(lambda t, y, a, b: -a * y, lambda t, y, a, b: b * y, 2, "diagonal", calculus, args=(0.5, 2.0))


def test_geometric_brownian_motion(lab):
    # X∘dW has the Itô drift ½X: with dX = -½X dt + 2X∘dW it is (-½ + 2)X.
    x, t, h, v = lab.draw(2, 2)
    bound = to_ito(geometric("stratonovich")).bind(0.0, [1.0, 1.0])
    assert (bound.calculus, bound.noise, bound.dim, bound.noise_dim, bound.block) == ("ito", "diagonal", 2, 2, None)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, v), 1.5 * x * h + 2.0 * x * v, **CLOSE)
    np.testing.assert_allclose(lab.increment(bound, x, t, 0 * h, v), 2.0 * x * v, rtol=1e-15)
    np.testing.assert_allclose(lab.correction(bound, x), 2.0 * x, **CLOSE)
    back = to_stratonovich(geometric("ito")).bind(0.0, [1.0, 1.0])
    np.testing.assert_allclose(lab.increment(back, x, t, h, v), -2.5 * x * h + 2.0 * x * v, **CLOSE)
    assert back.calculus == "stratonovich"


def test_new_args_and_replace(lab):
    converted = to_ito(geometric("stratonovich"))
    x, t, h, v = lab.draw(2, 2)
    for bound in (
        converted.bind(0.0, [1.0, 1.0], (0.0, 1.0)),
        converted.replace(args=(0.0, 1.0)).bind(0.0, [1.0, 1.0]),
    ):
        np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v), 0.5 * x * h, **CLOSE)
    with pytest.raises(ArgumentError):
        converted.replace(drift=3)


def test_what_needs_no_conversion():
    ito, additive = geometric("ito"), SDE(zero, lambda t, y: (1.0, t), 2, "additive")
    assert to_ito(ito) is ito
    strat = to_stratonovich(additive)
    assert isinstance(strat, SDE) and (strat.calculus, strat.drift) == ("stratonovich", zero)
    there_and_back = to_ito(to_stratonovich(ito))
    assert there_and_back is ito
    assert "to_stratonovich(SDE(" in repr(to_stratonovich(ito))


def test_other_problems_can_be_converted(lab):
    class Other:
        def __init__(self, sde):
            self.sde = sde

        def bind(self, t0, y0, args=None):
            return self.sde.bind(t0, y0, args)

    problem = to_ito(Other(geometric("stratonovich")))
    assert isinstance(problem, Problem)
    x, t, h, v = lab.draw(2, 2)
    np.testing.assert_allclose(lab.increment(problem.bind(0.0, [1.0, 1.0]), x, t, h, 0 * v), 1.5 * x * h, **CLOSE)
    bound = to_stratonovich(Other(geometric("stratonovich"))).bind(0.0, [1.0, 1.0])
    np.testing.assert_array_equal(lab.increment(bound, x, t, h, 0 * v), -0.5 * x * h)
    with pytest.raises(ArgumentError, match="problem must be"):
        to_ito(3.0)


def test_structure_is_that_of_the_equation():
    sde = SDE(zero, lambda t, y: (y[1], y[0]), 2, "scalar", "stratonovich")
    assert noise_structure(to_ito(sde).bind(0.0, [1.0, 2.0]), [1.0, 2.0]).kind == "scalar"


def test_python_functions_too(lab, unwarned):
    table = {"b": 2.0}
    sde = SDE(zero, lambda t, y: (table["b"] * y[0],), 1, "scalar", "stratonovich")
    with pytest.warns(RuntimeWarning, match="diffusion <lambda> cannot be compiled"):
        bound = to_ito(sde).bind(0.0, [1.0])
        kernels = bound.kernels()
    x, t, h, v = lab.draw(1, 1)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, v, kernels), 2.0 * x * h + 2.0 * x * v, **CLOSE)
