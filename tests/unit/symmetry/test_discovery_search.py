"""How the search goes about it: two ways that agree, other draws of the data, what is refused and what is doubtful."""

from dataclasses import replace

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, TooLargeError
from sgdsde.models import MLP, DeepLinear, Product
from sgdsde.symmetry import _lie_layered, _lie_search, _lie_states, discover_symmetries
from sgdsde.symmetry._lie_general import general
from sgdsde.symmetry._lie_layered import Piece, Space, arrays, spaces
from sgdsde.symmetry._lie_states import Gap, Inert, States, Triangle, null_space

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 3)), RNG.standard_normal((12, 2))


def spanned(found, theta):
    return np.array([a.apply(theta).ravel() for a in found.generators])


@pytest.mark.parametrize("model", [DeepLinear([3, 3, 2]), MLP([3, 2, 2], activation="leaky_relu")])
def test_both_searches_span_the_same(model):
    theta = RNG.standard_normal((model.dim + 2, model.dim))
    one, other = (discover_symmetries(model, X, Y, search=s) for s in ("general", "structured"))
    both = np.vstack([spanned(one, theta), spanned(other, theta)])
    assert one.dim == other.dim == np.linalg.matrix_rank(both, tol=1e-6) > 0
    assert one.complete and not other.complete and "structured search" in str(other)


def test_the_general_search_sees_what_has_no_structure():
    class Silent(Product):
        def symmetries(self):  # what a model says of itself is added to what a search finds
            return {}

    one, other = (discover_symmetries(Silent(3), X[:, 0], Y[:, 0], search=s) for s in ("general", "structured"))
    assert (one.dim, other.dim) == (15, 9)  # of so(3,3), the part gl(3) that acts on each factor by itself


def test_rows_of_conditions_are_the_gradient_along_each_candidate():
    pieces = (Piece("left", 0, (2, 3)), Piece("right", 6, (4, 2)), Piece("diagonal", 14, (2, 1)))
    pieces += (Piece("rows", 16, (2, 2)), Piece("columns", 16, (2, 2)))
    space, g, x = Space("s", pieces), RNG.standard_normal((5, 20)), RNG.standard_normal(20)
    rows = space.rows(g, x)
    assert rows.shape == (5, 14) and space.unknown == 14
    for k, c in enumerate(np.eye(space.unknown)):
        a = space.generator(c, 20)
        assert np.allclose(rows[:, k], g @ a.apply(x), atol=1e-13)
        assert np.allclose(space.generator(space.transposed(c), 20).matrix, a.matrix.T)


def test_candidates_follow_the_shapes_of_the_arrays():
    shapes = {"W1": (3, 2), "b1": (3,), "W2": (4, 3), "b2": (4,)}
    assert arrays(shapes, 25)[2] == ("W2", 9, (4, 3)) and arrays({}, 7) == [("theta", 0, (7, 1))]
    found, skipped = spaces(shapes, 25)
    assert [s.name for s in found] == ["W1/b1/W2", "W2/b2", "W1", "W2", "diagonal"] and not skipped
    assert [p.side for p in found[0].pieces] == ["left", "left", "right"]
    kernel = spaces({"K": (2, 1, 3), "s": ()}, 7)[0]
    assert kernel[0].pieces[0].shape == (2, 3)
    wide, skipped = spaces({"W1": (50, 40), "W2": (2, 50)}, 2100)
    assert [s.name for s in wide] == ["W2", "rows and columns"]
    assert skipped == ["W1/W2 (5000 unknowns)", "W1 (4100 unknowns)", "W2 (2504 unknowns)"]


def test_a_wide_model_is_searched_by_rows_and_columns(monkeypatch):
    monkeypatch.setattr(_lie_layered, "WIDEST", 30)
    model = MLP([3, 6, 2], activation="relu")
    found = discover_symmetries(model, X, Y, search="structured")
    assert found.dim == 6 and found.extra == () and any("W1/b1/W2" in name for name in found.skipped)
    assert "left out: W1/b1/W2" in str(found)


def test_few_samples_have_symmetries_that_others_break():
    model = DeepLinear([3, 2, 2])
    few = discover_symmetries(model, X[:2], Y[:2], redraw=(X[2:], Y[2:]))
    assert few.type == "gl(2)" and few.dim == 4 and few.n_samples == 12
    assert len(few.fragile) == 2 and all(a.linear.parts == () for a in few.fragile)
    v = few.fragile[0].shift[:6].reshape(2, 3)
    assert np.allclose(X[:2] @ v.T, 0.0, atol=1e-9) and not np.allclose(X @ v.T, 0.0, atol=1e-2)
    assert "2 hold on part of the data and are broken by the rest" in str(few)
    alone = discover_symmetries(model, X[:2], Y[:2])
    assert len(alone.translations) == 2 and alone.fragile == ()
    halves = discover_symmetries(model, X[:4], Y[:4], redraw="halves")
    assert halves.type == "gl(2)" and len(halves.fragile) == 2
    assert discover_symmetries(model, X, Y, redraw="halves").fragile == ()
    blind = discover_symmetries(model, X * [0.0, 1.0, 1.0], Y, redraw="halves")  # dead on each half, and not fragile
    assert blind.dead_names == ("W1[:,0]",) and blind.fragile == ()


def test_the_result_does_not_depend_on_the_states():
    model = DeepLinear([2, 2, 2])
    names = [[repr(a) for a in discover_symmetries(model, X[:, :2], Y, rng=k).generators] for k in range(3)]
    assert names[0] == names[1] == names[2]
    assert discover_symmetries(sg.SGD(model, X[:, :2], Y, learning_rate=0.1), rng=1).dim == 4


def test_samples_are_read_some_at_a_time(monkeypatch):
    monkeypatch.setattr(_lie_states, "ROWS", 5)
    problem = sg.SGD(DeepLinear([3, 2, 2]), X, Y, learning_rate=0.1)
    states = States(problem, np.random.default_rng(0))
    x = states.draw()
    assert [len(g) for g in states.gradients(x)] == [5, 5, 2]
    assert np.array_equal(np.vstack(list(states.gradients(x))), problem.per_sample_gradients(x))
    r, g = states.triangle(x), problem.per_sample_gradients(x)
    assert np.allclose((r.T @ r) / np.trace(r.T @ r), g.T @ g / np.sum(g * g), atol=1e-12)
    assert discover_symmetries(problem).type == "gl(2)"


def test_null_spaces_come_with_their_gap():
    rows = RNG.standard_normal((9, 3)) @ RNG.standard_normal((3, 5))
    triangle = Triangle(5)
    for part in np.split(rows, 3):
        triangle.add(part)
    null, gap = triangle.null_space(1e-9)
    assert null.shape == (2, 5) and np.allclose(rows @ null.T, 0.0, atol=1e-12) and gap.ratio > 1e9
    assert np.array_equal(null_space(np.zeros((2, 3)), 1e-9)[0], np.eye(3))
    assert np.array_equal(null_space(np.zeros((0, 3)), 1e-9)[0], np.eye(3))
    assert Gap(1e-12, 1e-3).worst(Gap(1e-4, 1.0)) == Gap(1e-4, 1.0)


def test_what_is_inert_is_taken_off():
    dead, v = np.array([1]), np.array([[0.6, 0.0, 0.8, 0.0]])
    inert = Inert(4, dead, v, Gap(0.0, np.inf), True)
    assert inert.count == 2 and inert.rest().shape == (2, 4)
    x = RNG.standard_normal((3, 4))
    assert np.allclose(inert.remove(x), x @ inert.rest().T @ inert.rest(), atol=1e-14)
    assert np.allclose(inert.basis() @ inert.rest().T, 0.0, atol=1e-14)


def test_all_generators_are_orthonormal_solutions():
    problem = sg.SGD(DeepLinear([3, 2, 2]), X, Y, learning_rate=0.1)
    states = States(problem, np.random.default_rng(0))
    inert = Inert.find(states, 1e-10)
    found, gap = general(states, inert, 1e-7, 1000)
    assert found.shape == (4, 10, 11) and gap.other > 1e-5
    x = states.draw()
    j = found[:, :, :-1] @ x + found[:, :, -1]
    assert np.abs(problem.per_sample_gradients(x) @ j.T).max() < 1e-10
    alpha, beta = states.size * np.sqrt(11), np.sqrt(11)
    scaled = np.concatenate([alpha * found[:, :, :-1], beta * found[:, :, -1:]], axis=2).reshape(4, -1)
    assert np.allclose(scaled @ scaled.T, np.eye(4), atol=1e-9)
    assert general(states, inert, 1e-7, 10) is None


def test_a_symmetry_of_the_states_tried_alone_fails_the_check(monkeypatch, make_uw):
    """A loss with a term that is nothing at the size of the states of the search, and something further out."""
    problem = make_uw((1.0, 2.0), (1.0, -1.0))
    plain_losses, plain_gradients = problem.losses, problem.gradients
    problem.losses = lambda t: plain_losses(t) + max(0.0, t[0] - 6.0) ** 2
    problem.gradients = lambda t: plain_gradients(t) + 2 * max(0.0, t[0] - 6.0) * np.array([1.0, 0.0])
    monkeypatch.setattr(_lie_states, "SCALES", (0.05,))
    near = discover_symmetries(problem, rng=3)
    assert near.dim == 1 and not near.failed
    checked = _lie_search.errors

    def far(states, many, finite=True):
        monkeypatch.setattr(_lie_states, "SCALES", (50.0,))
        return checked(states, many, finite)

    monkeypatch.setattr("sgdsde.symmetry.discovery.errors", far)
    found = discover_symmetries(problem, rng=3)
    assert found.dim == 0 and len(found.failed) == 1 and "1 failed the check at new states" in str(found)


def test_a_declared_symmetry_that_is_none_is_missing(make_two_layer):
    problem = make_two_layer((3, 2, 2))
    wrong = sg.scaling(problem.model.dim)
    right = problem.model.symmetries()
    problem.model.symmetries = lambda: {**right, "wrong": wrong}
    found = discover_symmetries(problem)
    assert not found.failed and found.declared_missing == ("wrong",) and found.type == "gl(2)" and found.extra == ()
    assert {a.name for a in found.symmetric} == set(right) and "not found: wrong" in str(found)


def test_a_gap_that_is_not_clear_is_said_to_be_so(make_uw):
    problem = make_uw((1.0, 2.0), (1.0, -1.0))
    plain = problem.gradients
    problem.gradients = lambda t: plain(t) + 1e-2 * np.array([t[0], 2 * t[1] ** 2])
    found = discover_symmetries(problem, tolerance=1e-2)
    assert 1e-5 < found.gap.zero < 1e-2 and found.failed and found.dim == 0
    doubtful = replace(found, gap=Gap(1e-6, 1e-4))
    assert not doubtful.clear and "is in doubt" in str(doubtful) and "in doubt" not in str(discover_symmetries(problem))


def test_refusals_name_the_argument(make_uw):
    model = DeepLinear([3, 2, 2])
    problem = sg.SGD(model, X, Y, learning_rate=0.1)
    for use, message in (
        (lambda: discover_symmetries(model), "X must be given with a model"),
        (lambda: discover_symmetries(problem, X, Y), "X and Y must be left out"),
        (lambda: discover_symmetries(problem, search="all"), "search must be one of"),
        (lambda: discover_symmetries(problem, tolerance=0), "tolerance must be positive"),
        (lambda: discover_symmetries(problem, redraw="thirds"), "redraw must be one of 'halves'"),
        (lambda: discover_symmetries(problem, redraw=3), "redraw must be 'halves' or a pair"),
        (lambda: discover_symmetries(make_uw(), redraw="halves"), "redraw needs an SGD problem"),
        (lambda: discover_symmetries(model, X[:1], Y[:1], redraw="halves"), "at least two samples"),
        (lambda: discover_symmetries("model"), "problem must be an SGD problem"),
    ):
        with pytest.raises(ArgumentError, match=message):
            use()
    bad = make_uw()
    bad.gradients = lambda t: np.full((2, 2), np.nan)
    with pytest.raises(ModelError, match="not finite at a state"):
        discover_symmetries(bad)


def test_a_general_search_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(_lie_search, "MOST_UNKNOWN", 10)
    with pytest.raises(TooLargeError, match="use search='structured'"):
        discover_symmetries(DeepLinear([3, 2, 2]), X, Y, search="general")
    monkeypatch.setattr(_lie_search, "UNKNOWN_UNASKED", 10)
    assert not discover_symmetries(DeepLinear([3, 2, 2]), X, Y).complete


def test_a_model_that_sees_nothing_has_nothing():
    found = discover_symmetries(DeepLinear([3, 2, 2]), np.zeros((4, 3)), Y[:4])
    assert found.dim == 0 and found.dead_names == ("W1", "W2") and found.type == "none"
