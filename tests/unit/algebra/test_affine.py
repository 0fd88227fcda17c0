"""An affine generator does what its matrix of one row more does, in each structure."""

import pickle

import numpy as np
import pytest
from scipy.linalg import expm

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, Dense, Diagonal, Generator, Sandwich, Zero, rotation, scaling, translation

RNG = np.random.default_rng(0)
L, R, D = (RNG.standard_normal((n, n)) / 2 for n in (2, 3, 2))
KINDS = {
    "any": [Sandwich((2, 3), L, R), Zero(1), Diagonal([1.0, -2.0]), Dense(D)],
    "symmetric": [Sandwich((2, 3), L + L.T, R + R.T), Zero(1), Diagonal([1.0, 0.0]), Dense(D + D.T)],
    "one-sided": [Sandwich((2, 3), L), Sandwich((1, 3), None, R), Zero(2)],
    "nothing": [Zero(11)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_group_is_that_of_the_matrix_with_one_row_more(kind):
    linear, b = Generator.blocks(KINDS[kind]), RNG.standard_normal(11)
    a, theta, lam = Affine(linear, b), RNG.standard_normal((4, 11)), np.array([0.3, -1.0, 1.5, 0.0])
    wider = np.zeros((12, 12))
    wider[:-1, :-1], wider[:-1, -1] = linear.matrix, b
    expected = [(expm(s * wider) @ np.append(x, 1.0))[:-1] for s, x in zip(lam, theta)]
    assert np.allclose(a.exp(lam, theta), expected, rtol=1e-12, atol=1e-12)
    assert np.allclose(a.exp(0.4, a.exp(-0.9, theta)), a.exp(-0.5, theta), rtol=1e-11, atol=1e-12)
    assert np.allclose(a.apply(theta), theta @ linear.matrix.T + b, rtol=0, atol=1e-14)
    slope = (a.exp(1e-6, theta) - a.exp(-1e-6, theta)) / 2e-6
    assert np.allclose(slope, a.apply(theta), rtol=1e-8, atol=1e-8)


def test_a_large_exponent_of_a_diagonal_does_not_overflow_before_the_result_does():
    a = Affine(Generator.diagonal([1.0, -1.0]), [1e-300, 1.0])
    moved = a.exp(800.0, [0.0, 0.0])
    assert moved == pytest.approx([np.exp(800.0 - 300 * np.log(10)), 1.0], rel=1e-12)
    with pytest.raises(ArgumentError, match="beyond the finite numbers"):
        Affine(Generator.diagonal([1.0, -1.0]), [1.0, 0.0]).exp(800.0, [0.0, 0.0])


def test_its_quadratic_has_twice_the_direction_as_gradient():
    a = Affine(Generator.blocks(KINDS["symmetric"]), RNG.standard_normal(11))
    x, v = RNG.standard_normal((2, 11))
    slope = (a.quadratic(x + v) - a.quadratic(x - v)) / 2  # exact for a quadratic
    assert slope == pytest.approx(2 * a.apply(x) @ v, rel=1e-12)
    assert isinstance(a.quadratic(x), float) and a.quadratic(np.stack([x, v])).shape == (2,)
    sigma = RNG.standard_normal((11, 11))
    assert a.trace(sigma) == a.linear.trace(sigma) and a.norm == a.linear.norm and a.is_symmetric
    assert not a.is_antisymmetric and np.array_equal(a.matrix, a.linear.matrix)


def test_sums_keep_the_constant():
    a, b = translation([1.0, 0.0, 2.0], "t"), scaling(3)
    x = RNG.standard_normal(3)
    for total in (a + b, b + a):
        assert np.allclose(total.apply(x), x + [1.0, 0.0, 2.0]) and total.name
    assert np.allclose((a - 2.0 * b).apply(x), a.shift - 2 * x) and np.allclose((-a).apply(x), -a.shift)
    assert np.allclose((np.float64(0.5) * a).shift, a.shift / 2) and (a + b).named("n").name == "n"
    with pytest.raises(TypeError):
        a * "2"
    with pytest.raises(ShapeError, match="same θ"):
        a + scaling(2)


def test_translations_are_told_by_their_direction():
    b = translation([0.0, 1.0, 1.0])
    assert repr(b) == "Affine('translation', dim=3, translation)" and "|b| = 1" in repr(Affine(scaling(1), [1.0]))
    assert np.array_equal(b.exp([1.0, 2.0], np.zeros(3)), [[0, 1, 1], [0, 2, 2]]) and b.is_symmetric
    copy = pickle.loads(pickle.dumps(b))
    assert np.array_equal(copy.shift, b.shift) and copy.name == b.name
    with pytest.raises(ArgumentError, match="must not be zero"):
        translation([0.0, 0.0])
    with pytest.raises(ShapeError, match="shift must have shape"):
        Affine(scaling(2), [1.0])
    with pytest.raises(ValueError):
        b.shift[0] = 1.0


def test_a_rotation_around_another_point_leaves_that_point():
    centre = np.array([2.0, -1.0])
    a = rotation(2, 0, 1)
    around = Affine(a, -a.apply(centre))
    assert np.allclose(around.exp(1.3, centre), centre, atol=1e-14) and around.is_antisymmetric
