"""A few components wherever they stand: the same as the dense matrix, at the cost of the few."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Affine, Dense, Diagonal, Generator, Scattered, Zero
from sgdsde.algebra.sparse import entries
from sgdsde.symmetry import Charge, MotionTrack, decompose
from sgdsde.symmetry.forms import encode, observe

RNG = np.random.default_rng(3)
FULL = RNG.standard_normal((3, 3))


@pytest.mark.parametrize("matrix", [FULL, FULL + FULL.T, FULL - FULL.T], ids=["any", "symmetric", "antisymmetric"])
def test_all_that_a_block_does_is_that_of_the_dense_matrix(matrix):
    block = Scattered(6, [4, 0, 3], matrix)
    dense = Dense(block.matrix)
    assert np.array_equal(block.matrix[np.ix_([4, 0, 3], [4, 0, 3])], matrix) and np.count_nonzero(block.matrix) <= 9
    x, lam = RNG.standard_normal((2, 5, 6)), RNG.standard_normal((2, 5))
    assert block.apply(x) == pytest.approx(dense.apply(x), rel=1e-13, abs=1e-14)
    assert block.quadratic(x) == pytest.approx(dense.quadratic(x), rel=1e-13, abs=1e-13)
    assert block.exp(lam, x) == pytest.approx(dense.exp(lam, x), rel=1e-11, abs=1e-12)
    b = RNG.standard_normal(6)
    assert block.integral(lam, b) == pytest.approx(dense.integral(lam, b), rel=1e-10, abs=1e-11)
    sigma = RNG.standard_normal((6, 6))
    assert block.trace(sigma) == pytest.approx(dense.trace(sigma), rel=1e-12)
    assert block.norm == pytest.approx(dense.norm, rel=1e-12)
    assert (block.is_symmetric, block.is_antisymmetric) == (dense.is_symmetric, dense.is_antisymmetric)
    A = Generator.blocks([block])
    rows, columns, values = entries(A)
    again = np.zeros((6, 6))
    again[rows, columns] = values
    assert np.array_equal(again, block.matrix)
    if dense.is_symmetric:
        there = block.to_eigenbasis(x)
        assert np.square(there) @ block.eigenvalues == pytest.approx(block.quadratic(x), rel=1e-12, abs=1e-12)
        assert block.from_eigenbasis(there) == pytest.approx(x, rel=1e-13)
        assert (np.abs(there) <= block.mixed(x) * (1 + 1e-12)).all()


def test_sums_stay_scattered_where_they_can():
    one, two = Scattered(6, [4, 0], [[0, 1], [1, 0]]), Scattered(6, [0, 5], [[2, 1], [1, 0]])
    assert isinstance(one.plus(two), Scattered) and np.array_equal(one.plus(two).matrix, one.matrix + two.matrix)
    assert one.plus(Zero(6)) is one and Zero(6).plus(one) is one
    assert np.array_equal(Diagonal(np.arange(6.0)).plus(one).matrix, np.diag(np.arange(6.0)) + one.matrix)
    assert np.array_equal(one.scaled(-3.0).matrix, -3.0 * one.matrix)
    wide = Generator.blocks([one, Diagonal([1.0, 2.0])]) + Generator.blocks([Diagonal([1.0, 2.0]), two])
    assert np.array_equal(
        wide.matrix, np.pad(one.matrix, (0, 2)) + np.pad(two.matrix, (2, 0)) + np.diag([1, 2, 0, 0, 0, 0, 1, 2])
    )


def test_what_is_compiled_reads_it():
    A = Generator.blocks([Zero(2), Scattered(4, [3, 0], [[1.0, 2.0], [2.0, -1.0]])], name="few")
    x = RNG.standard_normal((6, 7))
    out = np.empty((1, 7))
    observe(out, x, np.zeros(7), encode(A), np.empty(0), np.empty(0))
    assert out[0] == pytest.approx(A.quadratic(x.T), rel=1e-13)
    assert Charge(A)(x.T) == pytest.approx(out[0], rel=1e-13)
    assert decompose(x.T, A).charge_changes["few"] == pytest.approx(np.diff(A.quadratic(x.T)), rel=1e-9, abs=1e-11)
    assert MotionTrack(A).generators["few"] is A
    moved = Affine(A, np.ones(6)).exp(0.3, x[:, 0])
    assert moved == pytest.approx(Affine(A.matrix, np.ones(6)).exp(0.3, x[:, 0]), rel=1e-12)


def test_errors_name_what_is_wrong():
    with pytest.raises(ShapeError, match="index must have 2 numbers"):
        Scattered(4, [0], np.eye(2))
    with pytest.raises(ArgumentError, match="index must name no component twice"):
        Scattered(4, [1, 1], np.eye(2))
    with pytest.raises(ArgumentError, match="index must be between 0 and 3"):
        Scattered(4, [1, 4], np.eye(2))
