"""What models say of themselves is all that discovery finds in them: every generator has a name, and no more."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models import MLP, DeepLinear, DiagonalLinear, Product, RadialNetwork, ScaleInvariant, SoftmaxRegression
from sgdsde.models.naming import Family, Named, charged
from sgdsde.symmetry import discover_symmetries

RNG = np.random.default_rng(11)
MODELS = [
    *(DeepLinear(dims) for dims in ([3, 3, 2], [1, 3, 2], [2, 3, 1], [1, 3, 1], [2, 3, 1, 2], [1, 2, 2, 1], [2, 1, 2])),
    *(MLP(dims, "identity") for dims in ([2, 2, 2], [2, 3, 1], [1, 2, 1], [2, 2, 2, 2])),
    MLP([1, 2, 1], "identity", biases=False),
    MLP([2, 2, 3], "identity", loss="softmax"),
    MLP([2, 2, 3], "relu", loss="softmax"),
    MLP([2, 3, 3], "tanh", loss="softmax"),
    SoftmaxRegression(2, 3),
    Product(3, 2),
    Product(2, 3),
    DiagonalLinear(2, 2, 2),
    RadialNetwork([2, 3, 2]),
    ScaleInvariant([2, 2, 1], norm="layers"),
]


def problem_of(model):
    X = RNG.standard_normal((30, getattr(model, "dims", (getattr(model, "n_inputs", 1),))[0]))
    outputs = getattr(model, "dims", (1,))[-1]
    softmax = getattr(getattr(model, "loss_function", None), "name", "") == "softmax"
    Y = RNG.integers(0, outputs, 30) if softmax else RNG.standard_normal((30, outputs))
    if outputs == 1:
        Y = Y[:, 0]
    return sg.SGD(model, X[:, 0] if isinstance(model, Product) else X, Y, learning_rate=0.1)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_names_span_what_discovery_finds(model):
    named, problem = model.symmetries(), problem_of(model)
    assert len(list(named)) == len(named) == len(set(named))
    rows = [np.append(A.matrix.ravel(), getattr(A, "shift", np.zeros(model.dim))) for A in named.values()]
    found = discover_symmetries(problem)
    assert found.complete and found.declared_missing == () and found.extra == ()
    assert np.linalg.matrix_rank(np.array(rows)) == found.dim
    for name, A in named.items():
        assert A.name == name and sg.check_symmetry(problem, A)
        assert (name in named.charged()) == (isinstance(A, sg.Generator) and A.is_symmetric)


def test_consumers_take_what_fits_of_a_whole_list():
    model = MLP([3, 3, 3], "identity", loss="softmax")
    X, Y = RNG.standard_normal((40, 3)), RNG.integers(0, 3, 40)
    problem = sg.SGD(model, X, Y, learning_rate=0.01, batch_size=4, gamma=0.01)
    every, theta = model.symmetries(), model.init(0)
    linear = {name: A for name, A in every.items() if isinstance(A, sg.Generator)}
    assert len(linear) == 10 and len(every) == 10 + 3 + 4 and len(every.charged()) == 7
    assert list(sg.symmetry.group_equilibrium(problem, theta, every).charges) == list(every.charged())
    assert len(sg.OrbitProjection(every, problem).charges) == 6  # B=I follows from the others
    assert list(sg.symmetry.MotionTrack(every).generators) == list(linear)
    assert sg.symmetry.charge_rank(every, theta) == 6
    assert list(problem.validity(theta).charges) == list(every.charged())
    assert list(sg.FluctuationDissipation(problem).generators) == list(every.charged())
    assert len(sg.decompose(theta[None] * [[1.0], [1.1]], every).charge_changes) == 7 + 4


def test_of_a_long_list_the_first_are_taken_where_none_are_named():
    model = MLP([2, 80, 1], "relu")
    problem = sg.SGD(model, RNG.standard_normal((9, 2)), RNG.standard_normal(9), learning_rate=0.01)
    names = list(model.symmetries())
    assert list(sg.FluctuationDissipation(problem).generators) == names[:16]
    assert list(problem.validity(model.init(0)).charges) == names[:64]


def test_the_shears_of_one_input_and_one_output_are_no_part_of_the_algebra_of_layers():
    model = DeepLinear([1, 3, 1])
    states = RNG.standard_normal((4, model.dim))
    parts = sg.decompose(states, model)
    assert "gl(3)" in parts.directions and not any("crossing" in name for name in parts.charge_changes)
    for name, change in parts.charge_changes.items():
        assert change == pytest.approx(np.diff(model.symmetries()[name].quadratic(states)), rel=1e-8, abs=1e-9)
    given = sg.decompose(states, model, algebra="given")
    crossing = model.symmetries()["crossing(0,2)"].quadratic(states)
    assert given.charge_changes["crossing(0,2)"] == pytest.approx(np.diff(crossing), rel=1e-8, abs=1e-9)


def test_every_model_answers_alike():
    own = sg.models.from_functions(
        lambda t, x, y: (t[0] * t[1] - y) ** 2, "differences", dim=2,
        symmetries={"u/w": np.diag([1.0, -1.0]), "turn": sg.rotation(2, 0, 1)},
    )  # fmt: skip
    assert list(own.symmetries()) == ["u/w", "turn"] and list(own.symmetries().charged()) == ["u/w"]
    none = sg.models.LinearRegression(2).symmetries()
    assert none == {} and none.charged() == {} and repr(none) == "<no symmetries>"


def test_names_are_looked_up_exactly():
    family = Family("x:B[", 12, lambda i, j, name: (i, j, name), charged=True, twice=True)
    names = Named({"one": lambda: 1}, [family, Family("turn(", 1, None)])
    assert (
        len(names) == 1 + 78 and list(names)[:3] == ["one", "x:B[0,0]", "x:B[0,1]"] and list(names)[-1] == "x:B[11,11]"
    )
    assert names["x:B[3,11]"] == (3, 11, "x:B[3,11]") and "and" not in repr(names) and "79 symmetries" in repr(names)
    for wrong in ("x:B[11,3]", "x:B[3,12]", "x:B[03,4]", "x:B[3,4)", "B[0,0]", "turn(0,1)", "x:B[0,0]x", "", None, 1):
        assert wrong not in names
    assert list(charged({"A": sg.rescaling(2), "turn": sg.rotation(2, 0, 1), "shift": sg.translation([1.0, 0.0])})) == [
        "A"
    ]
    assert list(charged(DeepLinear([2, 3, 2]).symmetries(), 3)) == ["B=I", "B[0,0]", "B[0,1]"]
