"""Every structured form of a generator does what its dense matrix does."""

import pickle

import numpy as np
import pytest
from scipy.linalg import expm

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Dense, Diagonal, Generator, Sandwich, Zero, rescaling, rotation, scaling

RNG = np.random.default_rng(0)
SIX = RNG.standard_normal((6, 6))
L, R = RNG.standard_normal((2, 2)), RNG.standard_normal((3, 3))


def general():
    blocks = [Sandwich((2, 3), L, R), Zero(1), Diagonal([1.0, -2.0]), Dense(RNG.standard_normal((2, 2)))]
    return Generator.blocks(blocks, "general")


def symmetric():
    blocks = [Sandwich((2, 3), L + L.T, R + R.T), Zero(1), Diagonal([1.0, -2.0]), Dense(SIX[:2, :2] + SIX[:2, :2].T)]
    return Generator.blocks(blocks, "symmetric")


@pytest.mark.parametrize("make", [general, symmetric])
def test_a_structured_generator_acts_as_its_matrix(make):
    a = make()
    dense, theta, sigma = a.matrix, RNG.standard_normal((3, 4, 11)), RNG.standard_normal((11, 11))
    assert np.allclose(a.apply(theta), theta @ dense.T, rtol=0, atol=1e-14)
    assert np.allclose(a.quadratic(theta), np.einsum("abi,ij,abj->ab", theta, dense, theta), rtol=0, atol=1e-13)
    assert np.allclose(a.exp(0.3, theta), theta @ expm(0.3 * dense).T, rtol=1e-12, atol=1e-13)
    assert a.trace(sigma) == pytest.approx(np.trace(sigma @ dense), abs=1e-13)
    assert a.norm == pytest.approx(np.linalg.norm(dense, 2), rel=1e-13)
    assert isinstance(a.quadratic(theta[0, 0]), float)


def test_the_matrix_of_a_layered_generator_is_the_kronecker_form_of_the_theory():
    b = L + L.T  # K1: θ = [W, U], blockdiag(-kron(B, I_dx), kron(I_dy, B))
    a = Generator.layered([(2, 3), (4, 2)], [(-b, None), (None, b)])
    expected = np.zeros((14, 14))
    expected[:6, :6], expected[6:, 6:] = -np.kron(b, np.eye(3)), np.kron(np.eye(4), b)
    assert np.array_equal(a.matrix, expected)
    w, u = RNG.standard_normal((2, 3)), RNG.standard_normal((4, 2))
    moved = a.apply(np.concatenate([w.ravel(), u.ravel()]))
    assert np.allclose(moved, np.concatenate([(-b @ w).ravel(), (u @ b).ravel()]), rtol=0, atol=1e-15)


def test_right_factors_that_are_not_symmetric_act_from_the_right():
    a = Generator.layered([(2, 3)], [(L, R)])
    w = RNG.standard_normal((2, 3))
    assert np.allclose(a.matrix @ w.ravel(), (L @ w + w @ R).ravel(), rtol=0, atol=1e-14)


def test_the_eigenbasis_is_orthonormal_and_diagonalises():
    a = symmetric()
    q = a.to_eigenbasis(np.eye(11)).T  # rows: eigenvectors
    assert np.allclose(q @ q.T, np.eye(11), atol=1e-14)
    assert np.allclose(q @ a.matrix @ q.T, np.diag(a.eigenvalues), atol=1e-13)
    theta = RNG.standard_normal(11)
    assert np.allclose(a.from_eigenbasis(a.to_eigenbasis(theta)), theta, rtol=0, atol=1e-14)
    assert np.all(a.mixed(theta) >= np.abs(a.to_eigenbasis(theta)) * (1 - 1e-14))
    assert np.array_equal(Generator.diagonal([3.0, 1.0]).mixed([-2.0, 1e-200]), [2.0, 1e-200])


def test_the_group_composes_and_begins_at_one():
    a, theta = symmetric(), RNG.standard_normal(11)
    assert np.allclose(a.exp(0.4, a.exp(-0.9, theta)), a.exp(-0.5, theta), atol=1e-12)
    assert np.allclose(a.exp(0.0, theta), theta, rtol=0, atol=1e-14)


def test_an_array_of_parameters_moves_each_state_by_its_own():
    theta, lam = RNG.standard_normal((5, 11)), RNG.standard_normal(5) / 3
    for a in (general(), symmetric()):
        moved = a.exp(lam, theta)
        assert moved.shape == (5, 11)
        assert np.allclose(moved, [a.exp(s, x) for s, x in zip(lam, theta)], rtol=0, atol=1e-13)
        assert a.exp(lam, theta[0]).shape == (5, 11)


def test_large_exponents_on_small_components_stay_finite():
    a = Generator.diagonal([1.0, -1.0])
    moved = a.exp(800.0, [1e-300, 5.0])
    assert moved[0] == pytest.approx(np.exp(800 + np.log(1e-300)), rel=1e-12)
    assert moved[1] == 0.0
    assert np.array_equal(a.exp(5000.0, [0.0, 1.0]), [0.0, 0.0])


def test_a_result_beyond_the_finite_numbers_is_an_error():
    swap = Generator.from_matrix([[0.0, 1.0], [1.0, 0.0]])
    for a in (Generator.diagonal([1.0]), swap, rotation(2, 0, 1) + scaling(2)):
        with pytest.raises(ArgumentError, match="beyond the finite numbers"):
            a.exp(1000.0, np.ones(a.dim))
    with pytest.raises(ArgumentError, match="lam must be finite"):
        scaling(2).exp(np.inf, np.ones(2))


def test_kinds_of_symmetry_are_told_apart():
    assert symmetric().is_symmetric and not symmetric().is_antisymmetric
    assert not general().is_symmetric and not general().is_antisymmetric
    turn = rotation(5, 3, 1)
    assert turn.is_antisymmetric and not turn.is_symmetric
    assert Generator.layered([(2, 3)], [(L - L.T, R - R.T)]).is_antisymmetric
    almost = SIX + SIX.T
    almost[0, 1] *= 1 + 4e-16
    assert Generator.from_matrix(almost).is_symmetric
    almost[0, 1] *= 1 + 1e-9
    assert not Generator.from_matrix(almost).is_symmetric
    with pytest.raises(ArgumentError, match="eigenvalues needs a symmetric generator"):
        _ = turn.eigenvalues


def test_a_one_sided_block_has_the_norm_of_its_factor():
    for block in (Sandwich((2, 3), L), Sandwich((2, 3), None, R)):
        assert block.norm == pytest.approx(np.linalg.norm(block.matrix, 2), rel=1e-13)


def test_a_large_two_sided_block_has_its_norm_without_a_dense_matrix():
    left, right = RNG.standard_normal((30, 30)), RNG.standard_normal((30, 30))
    block = Sandwich((30, 30), left, right)
    assert block.norm == pytest.approx(np.linalg.norm(block.matrix, 2), rel=1e-9)


# --- sums -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        scaling(11),
        rescaling(11, [0, 9], [3]),
        rotation(11, 2, 8),
        general(),
        Generator.blocks([Zero(6), Dense(SIX[:5, :5])]),
    ],
    ids=["scaling", "rescaling", "rotation", "general", "dense"],
)
def test_sums_differences_and_multiples_are_those_of_the_matrices(other):
    a = symmetric()
    assert np.allclose((a + other).matrix, a.matrix + other.matrix, rtol=0, atol=1e-15)
    assert np.allclose((other - a).matrix, other.matrix - a.matrix, rtol=0, atol=1e-15)
    assert np.allclose((np.float64(2.5) * a).matrix, 2.5 * a.matrix) and np.allclose((-a).matrix, -a.matrix)


def test_sums_keep_their_structure():
    b = np.diag([1.0, 2.0])
    a = Generator.layered([(2, 3), (4, 2)], [(-b, None), (None, b)])
    total = a + 2 * scaling(14) + a
    assert [type(block) for _, block in total.parts] == [Sandwich, Sandwich]
    assert total.layers([(2, 3), (4, 2)]) is not None
    assert [type(block) for _, block in (rescaling(6) + scaling(6, [1])).parts] == [Diagonal]


# --- layers -----------------------------------------------------------------------------------------------------------


def test_layers_give_back_what_a_layered_generator_was_made_of():
    shapes = [(2, 3), (3, 2), (1, 3)]
    factors = [(L, None), (R, None), (None, R)]
    found = Generator.layered(shapes, factors).layers(shapes)
    for pair, given in zip(found, factors):
        assert all((x is None and y is None) or np.array_equal(x, y) for x, y in zip(pair, given))
    assert Generator.layered(shapes, [(None, None)] * 2 + [(None, R)]).layers(shapes)[0] == (None, None)


def test_layers_recognise_diagonal_generators_of_that_form_and_no_others():
    shapes = [(2, 3), (4, 2)]
    (left, right), _ = scaling(14).layers(shapes)
    assert np.array_equal(left, np.eye(2)) and right is None
    rows = Generator.diagonal(np.concatenate([np.repeat([1.0, 5.0], 3), np.tile([2.0, 3.0], 4)]))
    (left, _), (none, columns) = rows.layers(shapes)
    assert np.array_equal(left, np.diag([1.0, 5.0]))
    assert np.array_equal(Sandwich((4, 2), none, columns).matrix, rows.matrix[6:, 6:])
    assert Generator.diagonal(np.arange(14.0) ** 2).layers(shapes) is None
    assert Generator.from_matrix(RNG.standard_normal((14, 14))).layers(shapes) is None
    assert Generator.layered([(3, 2), (4, 2)], [(R, None), (None, None)]).layers(shapes) is None
    with pytest.raises(ShapeError, match="add up to 14"):
        rows.layers([(2, 3)])


# --- named generators, errors, words ----------------------------------------------------------------------------------


def test_named_generators_have_the_charges_of_the_theory():
    theta = np.array([1.0, 2.0, 3.0, 5.0])
    assert scaling(4).quadratic(theta) == 39.0
    assert scaling(4, block=slice(2, None)).quadratic(theta) == 34.0
    assert rescaling(4).quadratic(theta) == 5.0 - 34.0
    assert rescaling(4, up=[3], down=0).quadratic(theta) == 24.0
    assert np.allclose(rotation(4, 0, 3).exp(np.pi / 2, [1.0, 0, 0, 0]), [0, 0, 0, 1.0], atol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rescaling(3), "dim must be even"),
        (lambda: rescaling(4, up=[0]), "given together"),
        (lambda: rescaling(4, up=[0, 1], down=[1]), "must not overlap"),
        (lambda: scaling(3, block=[0, 3]), "block must name components 0..2"),
        (lambda: scaling(3, block=[0.5]), "block must be a slice or integers"),
        (lambda: rotation(3, 1, 1), "i and j must differ"),
        (lambda: Generator.from_matrix(np.ones((2, 3))), "square"),
        (lambda: Generator.from_matrix([[np.nan]]), "finite"),
        (lambda: Generator.diagonal([1.0 + 1j]), "real"),
        (lambda: Generator.layered([(2, 3)], [(R, None)]), "left must have shape \\(2, 2\\)"),
        (lambda: Generator.layered([(2, 3)], []), "factors must hold a pair"),
        (lambda: Generator.blocks([np.eye(2)]), "blocks must hold"),
        (lambda: scaling(3) + scaling(4), "same θ"),
        (lambda: scaling(3).apply(np.ones(4)), r"theta must have shape \(..., 3\) for generator 'scaling'"),
        (lambda: scaling(3).apply("abc"), "theta must hold real numbers"),
        (lambda: scaling(3).trace(np.eye(2)), "sigma must have shape"),
    ],
)
def test_errors_name_the_argument(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_words_and_pickles():
    a = symmetric()
    assert repr(a).startswith("Generator('symmetric', dim=11, symmetric: [0:6] Sandwich(2, 3) W -> L W + W R, ")
    assert "antisymmetric" in repr(rotation(2, 0, 1)) and "not symmetric" in repr(general())
    copy = pickle.loads(pickle.dumps(a))
    assert np.array_equal(copy.matrix, a.matrix) and copy.name == "symmetric"
    with pytest.raises(ValueError):
        Generator.diagonal([1.0]).parts[0][1].vector[0] = 2.0


def test_what_is_no_exponent_block_or_group_of_components_is_refused():
    a = Generator.diagonal([1.0, -1.0])
    for lam in ("x", 1j, [[1.0], [1.0, 2.0]]):
        with pytest.raises(ArgumentError, match="lam must"):
            a.exp(lam, [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"lam must have a shape that fits .*\(3,\), got \(2,\)"):
        a.exp(np.ones(2), np.ones((3, 2)))
    for factors in (None, [1], [(None,)], [(None, None, 1)], "ab"):
        with pytest.raises(ArgumentError, match="factors must"):
            Generator.layered([(2, 3)], factors)
    with pytest.raises(ArgumentError, match="blocks must be a sequence"):
        Generator.blocks(None)
    with pytest.raises(ArgumentError, match="block must name at least one"):
        scaling(3, slice(5, 9))
    with pytest.raises(ArgumentError, match="up must name at least one"):
        rescaling(4, slice(2, 2), [1])
