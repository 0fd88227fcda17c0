"""Increments along and across the symmetry: exact identities, Sylvester against the pseudo-inverse, singular points."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import solve_sylvester

from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.algebra import Generator, rescaling, rotation
from sgdsde.models import DeepLinear, SoftmaxRegression
from sgdsde.symmetry import LinearLayers, decompose
from sgdsde.symmetry import directions as module

RNG = np.random.default_rng(11)
DIMS = (5, 3, 4)


def whole(shapes):
    """Generators of every B = E_ij at every interface, none of them symmetric in general."""
    found = []
    for k in range(len(shapes) - 1):
        h = shapes[k][0]
        for e in np.eye(h * h).reshape(-1, h, h):
            factors = [(None, None)] * len(shapes)
            factors[k], factors[k + 1] = (-e, None), (None, e)
            found.append(Generator.layered(shapes, factors))
    return found


def by_pinv(generators, base, delta):
    j = np.stack([a.apply(base) for a in generators], axis=1)
    return j @ np.linalg.pinv(j, rcond=1e-12) @ delta


def two_layers(base):
    return base[:15].reshape(3, 5), base[15:].reshape(4, 3)


def test_the_whole_algebra_is_the_pseudo_inverse_and_the_sylvester_equation():
    shapes = [(3, 5), (4, 3)]
    states = RNG.standard_normal((20, 27))
    parts = decompose(states, LinearLayers(shapes))
    for n in range(19):
        base, delta = (states[n] + states[n + 1]) / 2, states[n + 1] - states[n]
        assert np.allclose(parts.parallel[n], by_pinv(whole(shapes), base, delta), rtol=0, atol=1e-13)
        (w, u), (dw, du) = two_layers(base), two_layers(delta)
        b = solve_sylvester(u.T @ u, w @ w.T, u.T @ du - dw @ w.T)  # K2
        assert np.allclose(parts.parallel[n], np.concatenate([(-b @ w).ravel(), (u @ b).ravel()]), atol=1e-12)


@pytest.mark.parametrize("dims", [(5, 3, 4), (2, 4, 3), (1, 3, 1), (2, 3, 2, 4), (3, 2, 4, 2, 3)])
def test_every_depth_and_width_is_the_pseudo_inverse(dims):
    shapes = [(n, m) for m, n in pairwise(dims)]
    d = sum(r * c for r, c in shapes)
    states = RNG.standard_normal((4, d))
    parts = decompose(states, LinearLayers(shapes))
    for n in range(3):
        expected = by_pinv(whole(shapes), (states[n] + states[n + 1]) / 2, states[n + 1] - states[n])
        assert np.allclose(parts.parallel[n], expected, rtol=0, atol=1e-12)


def test_the_iterative_solver_agrees_with_the_dense_one(monkeypatch):
    shapes = [(4, 3), (5, 4), (4, 5), (2, 4)]
    states = RNG.standard_normal((3, 60))
    dense = decompose(states, LinearLayers(shapes)).parallel
    monkeypatch.setattr(module, "MOST_DENSE", 0)
    assert np.allclose(decompose(states, LinearLayers(shapes)).parallel, dense, rtol=0, atol=1e-11)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_rank_deficient_points(rank):
    shapes = [(3, 5), (4, 3)]
    w = RNG.standard_normal((3, rank)) @ RNG.standard_normal((rank, 5))
    u = RNG.standard_normal((4, rank)) @ RNG.standard_normal((rank, 3))
    base = np.concatenate([w.ravel(), u.ravel()])
    step = RNG.standard_normal(27)
    part = decompose(np.stack([base - step / 2, base + step / 2]), LinearLayers(shapes)).parallel[0]
    assert np.isfinite(part).all()
    if rank == 0:
        assert np.abs(part).max() < 1e-14  # the origin is fixed by the whole group
    else:
        assert np.allclose(part, by_pinv(whole(shapes), base, step), rtol=0, atol=1e-13)


def test_nearly_singular_points_lose_no_accuracy():
    shapes = [(2, 3), (3, 2)]
    w = np.diag([1.0, 1e-9]) @ np.linalg.qr(RNG.standard_normal((3, 2)))[0].T
    u = np.linalg.qr(RNG.standard_normal((3, 2)))[0] @ np.diag([1.0, 1e-9])
    base, b = np.concatenate([w.ravel(), u.ravel()]), np.array([[0.3, 1e8], [-1e8, 2e8]])
    along = np.concatenate([(-b @ w).ravel(), (u @ b).ravel()])
    part = LinearLayers(shapes).project(base[None], along[None])[0]
    assert np.abs(part - along).max() < 1e-15 * np.abs(b).max() * 10  # eps of the vector added up, not of its square


def test_the_parts_are_orthogonal_add_up_and_project_once(make_two_layer):
    symmetries = make_two_layer().model.symmetries()
    states = RNG.standard_normal((3, 6, 10))
    for generators, algebra in ((symmetries, "whole"), (symmetries, "given"), (LinearLayers([(2, 3), (2, 2)]), None)):
        parts = decompose(states, generators, algebra=algebra)
        assert parts.parallel.shape == (3, 5, 10)
        assert np.abs(np.einsum("ptd,ptd->pt", parts.parallel, parts.orthogonal)).max() < 1e-13
        assert np.allclose(parts.parallel + parts.orthogonal, np.diff(states, axis=1), rtol=0, atol=1e-15)
        middle, along = (states[:, :-1] + states[:, 1:]) / 2, parts.parallel
        again = decompose(np.stack([middle - along / 2, middle + along / 2], axis=-2), generators, algebra=algebra)
        assert np.allclose(again.parallel[..., 0, :], along, rtol=0, atol=1e-13)
        still = decompose(states[:, :1].repeat(2, axis=1), generators, algebra=algebra)
        assert np.array_equal(still.parallel, np.zeros((3, 1, 10))) and np.isnan(still.fraction).all()


@pytest.mark.parametrize("algebra", ["whole", "given"])
def test_the_parallel_part_carries_the_whole_change_of_every_charge(make_two_layer, algebra):
    symmetries = make_two_layer().model.symmetries()
    states = 10 * RNG.standard_normal((4, 5, 10))
    parts = decompose(states, symmetries, algebra=algebra)
    for name, a in symmetries.items():
        assert np.allclose(parts.charge_changes[name], np.diff(a.quadratic(states), axis=-1), rtol=0, atol=1e-11)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_the_ito_part_of_a_step_is_the_decay_alone(make_two_layer, gamma):
    problem = make_two_layer(gamma=gamma)
    symmetries, eta = problem.model.symmetries(), problem.learning_rate
    states = [RNG.standard_normal(10)]
    for i in RNG.integers(0, 6, 30):  # SGD, batch 1
        x = states[-1]
        states.append((1 - 2 * eta * gamma) * x - 0.1 * eta * problem.per_sample_gradients(x)[i])
    states = np.array(states)
    parts = decompose(states, symmetries, rule="ito")
    for name, a in symmetries.items():
        charge = a.quadratic(states[:-1])
        assert np.allclose(parts.charge_changes[name], -4 * gamma * eta * charge, rtol=0, atol=1e-13)
        assert np.abs(np.diff(a.quadratic(states))).max() > 1e-4
    if gamma == 0:
        assert np.abs(parts.parallel).max() < 1e-14  # A6
        assert np.abs(decompose(states, symmetries).parallel).max() > 1e-4


def test_generators_that_do_nothing_or_repeat_change_nothing():
    states = RNG.standard_normal((5, 4))
    one = rescaling(4)
    expected = decompose(states, one).parallel
    assert np.allclose(decompose(states, [one, 2.0 * one, 0.0 * one]).parallel, expected, rtol=0, atol=1e-14)
    assert np.array_equal(decompose(states, 0.0 * one).parallel, np.zeros((4, 4)))
    moved = decompose(np.array([[1.0, 0.0], [1.1, 0.3]]), rotation(2, 0, 1))
    assert moved.charge_changes == {} and 0 < moved.fraction < 1


def test_the_whole_algebra_is_taken_only_where_it_is_known_to_be_one(make_two_layer):
    symmetries = make_two_layer().model.symmetries()
    states = RNG.standard_normal((3, 10))
    assert "gl(2)" in decompose(states, symmetries).directions  # every symmetric B is there
    assert "span of 3" in decompose(states, list(symmetries.values())).directions
    assert "gl(2)" in decompose(states, list(symmetries.values()), algebra="whole").directions
    diagonal = {name: symmetries[name] for name in ("B00", "B11")}  # as of ReLU units: no more than these is known
    assert "span of 2" in decompose(states, diagonal).directions
    model = DeepLinear([3, 2, 2])
    assert "gl(2)" in decompose(states, model).directions
    assert "span of 5" in decompose(states, model, algebra="given").directions
    deep = DeepLinear([2, 3, 4, 2])
    parts = decompose(RNG.standard_normal((3, deep.dim)), deep)
    assert "gl(3) + gl(4)" in parts.directions and set(parts.charge_changes) == set(deep.symmetries().charged())
    one = decompose(RNG.standard_normal((3, deep.dim)), {"first": deep.symmetries()["layer1:B=I"]})
    assert "span of 1" in one.directions


def test_a_solution_brings_its_model_and_its_times(make_two_layer):
    class Solved:
        t, y = np.array([0.0, 1.0, 3.0]), RNG.standard_normal((2, 3, 10))
        problem = type("P", (), {"model": DeepLinear([3, 2, 2])})()

    parts = decompose(Solved, DeepLinear([3, 2, 2]).symmetries())
    assert np.array_equal(parts.t, Solved.t) and "gl(2)" in parts.directions
    parts = decompose(RNG.standard_normal((2, 10)), DeepLinear([3, 2, 2]).symmetries())
    assert "gl(2)" in parts.directions and list(parts.charge_changes) == ["B=I", "B[0,0]", "B[0,1]", "B[1,1]"]


def test_many_charges_are_made_when_they_are_asked_for():
    model = DeepLinear([3, 60, 2])
    states = RNG.standard_normal((3, model.dim))
    parts = decompose(states, model)
    assert len(parts.charge_changes) == 1 + 60 * 61 // 2 and "and 1823 charges more" in str(parts)
    change = parts.charge_changes["B[3,7]"]
    C = model.symmetries()["B[3,7]"].quadratic(states)
    assert change == pytest.approx(np.diff(C), rel=1e-9, abs=1e-9)


def test_a_model_with_translations_moves_along_them_too():
    model = SoftmaxRegression(2, 3)
    states = RNG.standard_normal((4, model.dim))
    parts = decompose(states, model)
    v = model.translations()["b1"]
    assert parts.charge_changes["b1"] == pytest.approx(2 * np.diff(states, axis=0) @ v)
    rows = parts.orthogonal.reshape(3, -1) @ np.array(list(model.translations().values())).T
    assert np.abs(rows).max() < 1e-14


def test_lengths_displacements_and_words():
    states = np.array([[2.0, 1.0], [2.2, 0.9], [2.1, 1.0]])
    parts = decompose(states, rescaling(2))
    assert parts.displacement_parallel.shape == (3, 2)
    total = parts.displacement_parallel + parts.displacement_orthogonal
    assert np.allclose(total, states - states[0], atol=1e-15)
    assert np.allclose(np.diff(parts.length_parallel), np.linalg.norm(parts.parallel, axis=1))
    along, across = np.sum(parts.parallel**2), np.sum(parts.orthogonal**2)
    assert parts.fraction == pytest.approx(along / (along + across))
    assert parts.fractions.shape == (2,) and parts.length_orthogonal[0] == 0
    assert "change of C[rescaling]" in repr(parts) and "midpoint rule, 2 increments" in repr(parts)
    assert "(3 paths)" in repr(decompose(np.stack([states, states, 2 * states]), rescaling(2)))


def test_lost_paths_stay_lost_and_the_others_do_not_mind():
    states = RNG.standard_normal((2, 4, 10))
    states[1, 2:] = np.nan
    parts = decompose(states, LinearLayers([(2, 3), (2, 2)]))
    assert np.isnan(parts.parallel[1, 1:]).all() and np.isfinite(parts.parallel[1, 0]).all()
    assert np.array_equal(parts.parallel[0], decompose(states[0], LinearLayers([(2, 3), (2, 2)])).parallel)
    assert np.isnan(parts.fraction[1]) and np.isfinite(parts.fraction[0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: decompose(np.ones((3, 2)), rescaling(4)), ShapeError, "must have 4 components"),
        (lambda: decompose(np.ones(4), rescaling(4)), ShapeError, "n_times at least 2"),
        (lambda: decompose(np.ones((1, 4)), rescaling(4)), ShapeError, "n_times at least 2"),
        (lambda: decompose("y", rescaling(4)), ArgumentError, "trajectory must be a Solution or an array"),
        (lambda: decompose(np.ones((3, 4)), []), ArgumentError, "generators must hold at least one"),
        (lambda: decompose(np.ones((3, 4)), {"a": 3}), ArgumentError, r"generators\['a'\] must be a Generator"),
        (lambda: decompose(np.ones((3, 4)), [rescaling(4), rescaling(2)]), ShapeError, "act on one θ"),
        (lambda: decompose(np.ones((3, 4)), rescaling(4), rule="start"), ArgumentError, "rule must be one of"),
        (lambda: LinearLayers([(3, 2)]), ShapeError, "at least two matrices"),
        (lambda: LinearLayers([(3, 2), (2, 2)]), ShapeError, "matrix 2 must have 3 columns"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
