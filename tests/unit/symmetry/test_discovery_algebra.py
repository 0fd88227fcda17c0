"""Algebras with a known structure are named and measured rightly, in a basis turned at random."""

import numpy as np
import pytest

from sgdsde.algebra import Affine, Generator, rotation, translation
from sgdsde.symmetry._lie_algebra import closure, structure
from sgdsde.symmetry._lie_basis import Span, echelon

RNG = np.random.default_rng(0)


def units(n, keep=lambda i, j: True):
    for i in range(n):
        for j in range(n):
            if keep(i, j):
                e = np.zeros((n, n))
                e[i, j] = 1.0
                yield e


def orthogonal(p, q):
    """so(p, q): ηA antisymmetric."""
    eta = np.diag([1.0] * p + [-1.0] * q)
    return [eta @ (e - e.T) for e in units(p + q, lambda i, j: i < j)]


def special(n):
    off = list(units(n, lambda i, j: i != j))
    return off + [np.diag(np.eye(n)[k] - np.eye(n)[k + 1]) for k in range(n - 1)]


def beside(a, b):
    n, m = a[0].shape[0], b[0].shape[0]
    return [np.pad(x, ((0, m), (0, m))) for x in a] + [np.pad(x, ((n, 0), (n, 0))) for x in b]


def turned(matrices):
    """The same algebra in another basis of it and of the space."""
    mix = RNG.standard_normal((len(matrices), len(matrices)))
    s = np.eye(len(matrices[0])) + 0.3 * RNG.standard_normal(matrices[0].shape)
    return [s @ np.tensordot(row, np.array(matrices), 1) @ np.linalg.inv(s) for row in mix]


def named(generators, remove=lambda x: x):
    d = generators[0].dim
    return structure(generators, RNG.standard_normal((d + 3, d)), remove)


def of(matrices):
    return named([Generator.from_matrix(m) for m in turned(matrices)])


CASES = [
    ("so(3)", orthogonal(3, 0), (0, 3, 0, (0, 3, 0))),
    ("sl(2)", special(2), (0, 3, 0, (2, 1, 0))),
    ("sl(2)", orthogonal(2, 1), (0, 3, 0, (2, 1, 0))),
    ("gl(3)", list(units(3)), (1, 8, 1, (5, 3, 1))),
    ("so(3) + so(3) = so(4)", orthogonal(4, 0), (0, 6, 0, (0, 6, 0))),
    ("sl(2) + sl(2) = so(2,2)", orthogonal(2, 2), (0, 6, 0, (4, 2, 0))),
    ("sl(4) = so(3,3)", orthogonal(3, 3), (0, 15, 0, (9, 6, 0))),
    ("so(5)", orthogonal(5, 0), (0, 10, 0, (0, 10, 0))),
    ("so(3,2)", orthogonal(3, 2), (0, 10, 0, (6, 4, 0))),
    ("gl(2) + gl(3)", beside(list(units(2)), list(units(3))), (2, 11, 2, (7, 4, 2))),
    ("gl(2) + so(3)", beside(list(units(2)), orthogonal(3, 0)), (1, 6, 1, (2, 4, 1))),
    ("abelian(3)", list(units(3, lambda i, j: i == j)), (3, 0, 3, (0, 0, 3))),
    ("solvable(3)", list(units(3, lambda i, j: i < j)), (1, 1, 3, (0, 0, 3))),
    ("gl(2) ⋉ abelian(2)", list(units(3, lambda i, j: i < 2)), (0, 5, 3, (3, 1, 2))),
]


@pytest.mark.parametrize(("name", "matrices", "numbers"), CASES, ids=[case[0] for case in CASES])
def test_known_algebras_are_named(name, matrices, numbers):
    s = of(matrices)
    assert (s.name, s.closed) == (name, True)
    centre, derived, radical, killing = numbers
    assert (s.centre, s.derived, s.radical, s.killing) == (centre, derived, radical, killing)


def test_structure_constants_are_the_brackets():
    matrices = turned(list(units(2)))
    f = named([Generator.from_matrix(m) for m in matrices]).constants
    for i, a in enumerate(matrices):
        for j, b in enumerate(matrices):
            assert np.allclose(a @ b - b @ a, np.tensordot(f[i, j], np.array(matrices), 1), atol=1e-9)


def test_motions_of_space_are_rotations_and_translations():
    turns = [rotation(3, 0, 1), rotation(3, 1, 2), rotation(3, 0, 2)]
    moves = [translation(e) for e in np.eye(3)]
    around = [Affine(a, -a.apply([1.0, 2.0, 3.0])) for a in turns]
    for rotations in (turns, around):
        assert named([*rotations, *moves]).name == "so(3) ⋉ abelian(3)"
    assert named(around).name == "so(3)" and named([rotation(3, 0, 1)]).name == "so(2)"
    heisenberg = [Generator.from_matrix(e) for e in units(3, lambda i, j: i < j)]
    assert named(heisenberg).derived == 1


def test_brackets_that_lead_out_are_seen():
    two = [rotation(3, 0, 1), rotation(3, 1, 2)]
    assert not named(two).closed and named(two).name == "not closed"
    flat = named(two, remove=lambda x: x * np.array([0.0, 0.0, 1.0]))  # their bracket moves what is taken off, or not
    assert flat.name == "not closed"


def test_the_smallest_subalgebra_that_holds_some():
    f = named([Generator.from_matrix(m) for m in orthogonal(3, 0)]).constants
    assert len(closure(f, np.eye(3)[:1])) == 1 and len(closure(f, np.eye(3)[:2])) == 3


def test_an_echelon_form_is_read_and_spans_the_same():
    rows = np.array([[1.0, 0, 0, -1, 0], [0, 1, 0, 0, 2], [0, 0, 0, 1, 1]])
    mixed = np.array([[0.3, -1.0, 0.2], [1.0, 0.5, 0.1], [-0.4, 0.2, 1.1]]) @ rows
    out = echelon(mixed, 1e-7)
    assert np.array_equal(out, np.round(out)) and np.linalg.matrix_rank(np.vstack([out, rows])) == 3
    span = Span(5)
    assert [span.add(v) for v in (*rows, rows[0] + rows[1], np.zeros(5))] == [True, True, True, False, False]
