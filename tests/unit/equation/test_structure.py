"""The measured kind of a noise: by values, not by how it is declared or written."""

import numpy as np
import pytest

from sgdsde import SDE, ArgumentError, ModelError, noise_structure
from sgdsde.equation.structure import NoiseStructure


def zero(t, y, *args):
    return np.zeros(len(y))


def measured(diffusion, d, noise="general", y0=None, t0=0.0, **options):
    y0 = np.arange(1.0, d + 1) if y0 is None else y0
    return noise_structure(SDE(zero, diffusion, d, noise, **options), y0, t0)


def flags(result):
    return (result.kind, result.additive, result.diagonal, result.commutative)


def test_a_diagonal_matrix_that_is_not_diagonal_noise():
    # Stratonovich G = diag(x2, x1): E x1(1) = 1 from (1, 1), and a "diagonal" Milstein gives 1.65.
    result = measured(lambda t, y: (y[1], y[0]), 2, "diagonal")
    assert flags(result) == ("general", False, False, False)
    assert "entry" in result.witness and "changes with y[" in result.witness
    one = measured(lambda t, y: (y[0], y[1] + 1e-6 * y[0]), 2, "diagonal")
    assert not one.diagonal and "entry 1 of the diagonal changes with y[0]" in one.witness


def test_diagonal_noise():
    result = measured(lambda t, y: (np.sin(y[0]), 2.0, y[2] ** 2), 3, "diagonal")
    assert flags(result) == ("diagonal", False, True, True)
    result = measured(lambda t, y: ((y[0] ** 2, 0.0), (0.0, y[1])), 2)  # by value, whatever it is called
    assert flags(result) == ("diagonal", False, True, True)
    assert flags(measured(lambda t, y: (y[0] ** 2,), 1, "diagonal")) == ("scalar", False, True, True)
    result = measured(lambda t, y: ((y[0] ** 2, 1e-6), (0.0, y[1])), 2)
    assert not result.diagonal and "G[0, 1] = 1e-06 is off the diagonal" in result.witness


TABLES = {
    (1, 1): lambda t, y, s: ((1.0 + t,),),
    (2, 3): lambda t, y, s: ((1.0, t, 3.0), (4.0, 5.0 * t, s * y[0])),
    (3, 2): lambda t, y, s: ((1.0, 2.0), (s * y[1] + t, 4.0), (5.0, 6.0)),
}


@pytest.mark.parametrize("d, m", TABLES)
def test_additive_is_measured_by_value(d, m):
    # 0·y is free of y, and so is what depends on time.
    for noise in ("general", "commutative"):
        result = measured(TABLES[d, m], d, noise, args=(0.0,), t0=0.3)
        assert result.kind == "additive" and result.commutative
    if d > 1:
        result = measured(TABLES[d, m], d, args=(1e-9,))
        assert not result.additive and "not additive, G[" in result.witness


def test_no_noise():
    assert flags(measured(lambda t, y: (0.0, 0.0), 2, "diagonal")) == ("none", True, True, True)
    assert flags(measured(lambda t, y: ((0.0,), (0.0,)), 2)) == ("none", True, False, True)

    class Nothing:
        dim, noise_dim = 2, 0
        kernels = None

    assert noise_structure(Nothing(), [1.0, 1.0]).kind == "none"


def test_scalar_noise():
    assert flags(measured(lambda t, y: (y[1], y[0]), 2, "scalar")) == ("scalar", False, False, True)
    assert measured(lambda t, y: ((y[0],), (y[2],), (1.0,)), 3).kind == "scalar"


def rotation(t, y):
    return ((y[1], y[0]), (-y[0], y[1]))  # rotates, and scales: they commute


def shear(t, y):
    return ((y[1], y[0]), (-y[0], 0.0))  # rotates, and stretches one axis


def test_commuting_and_not():
    assert flags(measured(rotation, 2)) == ("commutative", False, False, True)
    result = measured(shear, 2)
    assert flags(result) == ("general", False, False, False)
    assert "columns 0 and 1 have a commutator" in result.witness
    assert result.measured["commutator"] > 0.1 > 1e-6 > result.measured["tolerance"]
    # A component that adds up an area is the standard case of noise that does not commute.
    assert measured(lambda t, y: ((1.0, 0.0), (0.0, 1.0), (0.0, y[0])), 3, y0=[0.0, 0.0, 0.0]).kind == "general"


COLUMNS = {
    (2, 3): lambda t, y, s: ((y[0], 2 * y[0], 3 * y[0]), (y[1], 2 * y[1], 3 * y[1] + s * y[0] ** 2)),
    (1, 4): lambda t, y, s: ((y[0], 2 * y[0], 3 * y[0], 4 * y[0] + s),),
    (3, 2): lambda t, y, s: ((y[0], 2 * y[0] + s * y[1] * y[2]), (y[1], 2 * y[1]), (y[2], 2 * y[2])),
}


@pytest.mark.parametrize("d, m", COLUMNS)
def test_commuting_with_other_numbers_of_noises(d, m):
    # x·(1 ... m): every column is a multiple of the state; and the same with one column bent.
    assert measured(COLUMNS[d, m], d, args=(0.0,)).kind == "commutative"
    bent = measured(COLUMNS[d, m], d, args=(0.5,))
    assert bent.kind == "general" and not bent.commutative


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scales(scale):
    options = {"args": (scale,)}
    assert measured(lambda t, y, s: ((s * y[1], s * y[0]), (-s * y[0], s * y[1])), 2, **options).kind == "commutative"
    assert measured(lambda t, y, s: ((s * y[1], s * y[0]), (-s * y[0], 0.0)), 2, **options).kind == "general"
    y0 = [scale, 2 * scale]
    assert measured(rotation, 2, y0=y0).kind == "commutative"
    assert measured(shear, 2, y0=y0).kind == "general"
    assert measured(lambda t, y: (y[1], y[0]), 2, "diagonal", y0=y0).kind == "general"
    assert measured(lambda t, y: y**2, 2, "diagonal", y0=y0).kind == "diagonal"


def spiral(t, y, s):
    radial = s * np.sin(y[0] ** 2 + y[1] ** 2)
    return ((-s * y[1], radial * y[0]), (s * y[0], radial * y[1]))  # turns, and moves along the radius


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_commuting_columns_that_are_curved(scale):
    result = measured(spiral, 2, args=(scale,))
    assert result.kind == "commutative", result


def test_a_weak_and_a_nearly_commuting_noise():
    # The smallest commutator that is told from the error of the differences.
    weak = measured(lambda t, y: ((y[1], y[0]), (-y[0], y[1] + 1e-5 * y[0])), 2)
    assert weak.kind == "general" and weak.measured["commutator"] < 1e-4
    curved = measured(lambda t, y: ((np.exp(np.sin(5 * y[0])), 2 * np.exp(np.sin(5 * y[0]))),), 1)
    assert curved.kind == "commutative"


def test_states_outside_the_domain_are_left_out():
    def diffusion(t, y):
        return ((np.sqrt(y[0]), 0.0), (np.sqrt(y[0]), np.sqrt(1.0 - y[0])))

    for y0 in ([1e-9, 1.0], [0.99, 0.1]):
        result = measured(diffusion, 2, y0=y0)
        assert result.kind == "general", result

    # Two columns along a root and one apart from them: they commute, right up to the edge.
    def apart(t, y):
        return ((np.sqrt(y[0]), 2.0 * np.sqrt(y[0]), 0.0), (0.0, 0.0, y[1]))

    assert measured(apart, 2, y0=[1e-9, 1.0]).kind == "commutative"
    sparse = measured(lambda t, y: (np.sqrt(1.0 - y[0]),), 1, "scalar", y0=[0.999])
    assert sparse.measured["points"] < 4


def test_a_function_that_raises_elsewhere():
    def diffusion(t, y):
        if y[0] < 1.0:
            raise ValueError("too small")
        return (y[0], y[1])

    assert measured(diffusion, 2, "diagonal", y0=[1.0, 1.0]).kind == "diagonal"


def test_where_it_is_measured():
    sde = SDE(zero, lambda t, y: (max(y[0], 2.0),), 1, "scalar")
    assert noise_structure(sde, [1.0]).kind == "additive"
    assert noise_structure(sde, [3.0]).kind == "scalar"
    assert noise_structure(sde).kind == "additive"  # between 1 and 2
    bound = sde.bind(0.0, [3.0])
    assert noise_structure(bound).kind == "scalar"  # where it is bound
    assert noise_structure(bound, [1.0]).kind == "additive"
    assert noise_structure(SDE(zero, lambda t, y, a: a * y, 2, "scalar", args=(1.0,)), args=(0.0,)).kind == "none"


def test_many_columns_are_sampled():
    def diffusion(t, y):
        out = np.zeros((2, 100))
        for j in range(100):
            out[0, j], out[1, j] = y[1] * j, y[0]
        return out

    result = measured(diffusion, 2)
    assert result.kind == "general" and result.measured["columns"] == 16 and result.measured["noise_dim"] == 100
    wide = noise_structure(SDE(zero, lambda t, y: y**2, 80, "diagonal"))
    assert wide.kind == "diagonal"
    crossed = noise_structure(SDE(zero, lambda t, y: y[::-1], 80, "diagonal"))
    assert crossed.kind == "general"


def test_errors():
    sde = SDE(zero, lambda t, y: y, 2, "diagonal")
    with pytest.raises(ArgumentError, match="equation must be"):
        noise_structure(3.0)
    with pytest.raises(ArgumentError, match="args are already settled"):
        noise_structure(sde.bind(0.0, [1.0, 1.0]), args=(1.0,))
    with pytest.raises(ArgumentError, match="y0 must have shape"):
        noise_structure(sde.bind(0.0, [1.0, 1.0]), [1.0])

    root = SDE(zero, lambda t, y: (np.sqrt(y[0]),), 1, "scalar").bind(0.0, [1.0])
    with pytest.raises(ModelError, match="not finite, at y="):
        noise_structure(root, [-1.0])


def test_it_prints_as_a_sentence():
    result = measured(shear, 2)
    assert isinstance(result, NoiseStructure)
    assert str(result).startswith("general noise: not additive, G[")
    assert str(measured(lambda t, y: (1.0, 2.0), 2, "diagonal")) == "additive noise"
