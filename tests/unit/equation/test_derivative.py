"""SDE(derivative=...): what it may return, that it is held against the diffusion, and what is made of it."""

import pickle
from functools import partial

import numpy as np
import pytest

import sgdsde as sg
from sgdsde import SDE, ArgumentError, ModelError, ShapeError, to_ito, to_stratonovich
from sgdsde.equation.derivative import derivative_shape, extended_rows
from sgdsde.equation.differences import no_correction


def zero(t, y, *args):
    return np.zeros(len(y))


def forms(d, m):
    """(diffusion, derivative) of G_ij = w_ij sin(y_i + y_(j mod d) + t), as arrays and as nested lists."""
    w = np.cos(np.arange(d * m)).reshape(d, m) + 1.5

    def matrix(t, y, w):
        out = np.empty(w.shape)
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                out[i, j] = w[i, j] * np.sin(y[i] + y[j % w.shape[0]] + t)
        return out

    def cube(t, y, w):
        d, m = w.shape
        out = np.zeros((d, m, d))
        for i in range(d):
            for j in range(m):
                slope = w[i, j] * np.cos(y[i] + y[j % d] + t)
                out[i, j, i] += slope
                out[i, j, j % d] += slope
        return out

    return matrix, cube, w


def wanted(d, m, x, t, h, v, w, drift=0.0):
    out = np.empty_like(x)
    matrix, cube, _ = forms(d, m)
    for b in range(x.shape[1]):
        G, D, u = matrix(t[b], x[:, b], w), cube(t[b], x[:, b], w), v[m:, b].reshape(m, m)
        out[:, b] = drift * h[b] + G @ v[:m, b] + np.einsum("ikl,lj,jk->i", D, G, u)
    return out


@pytest.mark.parametrize("d, m", [(1, 1), (1, 3), (2, 1), (2, 4), (3, 2), (5, 6), (20, 17)])
def test_extended_noise_adds_the_double_sums(lab, d, m):
    """Few entries are written out one by one, many are looped over, and large scratch is taken from `work`."""
    matrix, cube, w = forms(d, m)
    bound = lab.bind(zero, matrix, np.ones(d), args=(w,), derivative=cube)
    x, t, h, _ = lab.draw(d, m)
    v = np.random.default_rng(1).normal(size=(m + m * m, 5))
    got = lab.increment(bound, x, t, h, v)
    scale = np.abs(got).max()
    np.testing.assert_allclose(got, wanted(d, m, x, t, h, v, w), rtol=0, atol=1e-13 * scale)
    plain = lab.bind(zero, matrix, np.ones(d), args=(w,))
    np.testing.assert_array_equal(
        lab.increment(bound, x, t, h, v[:m].copy()), lab.increment(plain, x, t, h, v[:m].copy())
    )
    assert bound.kernels().work[1] == extended_rows(m, "matrix")


def test_a_state_that_does_not_fit_on_the_stack(lab):
    d = 300
    bound = lab.bind(
        lambda t, y: 0.5 * y, lambda t, y: np.sin(y), np.ones(d), "diagonal", derivative=lambda t, y: np.cos(y)
    )
    x, t, h, v = lab.draw(d, 2 * d)
    got = lab.increment(bound, x, t, h, v)
    exact = 0.5 * x * h + np.sin(x) * v[:d] + np.sin(x) * np.cos(x) * v[d:]
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-13)
    column = lab.bind(zero, lambda t, y: np.sin(y), np.ones(d), "scalar", derivative=lambda t, y: np.diag(np.cos(y)))
    u = v[:2].copy()
    exact = np.sin(x) * u[0] + np.sin(x) * np.cos(x) * u[1]
    np.testing.assert_allclose(lab.increment(column, x, t, h, u), exact, rtol=0, atol=1e-13)


NESTED = {
    "tuples": lambda t, y: (((0.0, 1.0), (np.cos(y[0]), 0)), ((y[1], y[0]), (0, 0.0))),
    "lists": lambda t, y: [[[0.0, 1.0], [np.cos(y[0]), 0.0]], [[y[1], y[0]], [0.0, 0.0]]],
    "array": lambda t, y: np.array([[[0.0, 1.0], [np.cos(y[0]), 0.0]], [[y[1], y[0]], [0.0, 0.0]]]),
    "tuple of arrays": lambda t, y: (
        np.array([[0.0, 1.0], [np.cos(y[0]), 0.0]]),
        np.array([[y[1], y[0]], [0.0, 0.0]]),
    ),
}


def square(t, y):
    return (y[1], np.sin(y[0])), (y[0] * y[1], 2.0)


def list_kept(t, y):
    out = [[[0.0, 1.0], [np.cos(y[0]), 0.0]], [[y[1], y[0]], [0.0, 0.0]]]
    out[1][1][0] = 0.0
    return out


@pytest.mark.parametrize("derivative", [*NESTED.values(), list_kept], ids=[*NESTED, "list of lists"])
def test_layouts_of_what_is_returned(lab, derivative, recwarn):
    bound = lab.bind(zero, square, [0.5, 0.7], derivative=derivative)
    x, t, h, _ = lab.draw(2, 2)
    v = np.random.default_rng(2).normal(size=(6, 5))
    got = lab.increment(bound, x, t, h, v)
    for b in range(5):
        G, D = np.array(square(0, x[:, b])), np.array(NESTED["array"](0, x[:, b]))
        exact = G @ v[:2, b] + np.einsum("ikl,lj,jk->i", D, G, v[2:, b].reshape(2, 2))
        np.testing.assert_allclose(got[:, b], exact, rtol=0, atol=1e-14)
    assert not [one for one in recwarn if "Python" in str(one.message)], "it was not compiled"


def test_shapes_by_the_layout_of_the_diffusion():
    assert [derivative_shape(3, 3, form) for form in ("diagonal", "column", "matrix")] == [(3,), (3, 3), (3, 3, 3)]
    column = SDE(zero, lambda t, y: (y[0], y[1]), 2, "scalar", derivative=lambda t, y: ((1.0, 0.0), (0.0, 1.0)))
    assert column.bind(0.0, [1.0, 2.0]).has_derivative
    matrix = column.replace(diffusion=lambda t, y: ((y[0],), (y[1],)))
    with pytest.raises(ShapeError, match=r"derivative returned a tuple of shape \(2, 2\), but shape \(2, 1, 2\)"):
        matrix.bind(0.0, [1.0, 2.0])
    matrix.replace(derivative=lambda t, y: (((1.0, 0.0),), ((0.0, 1.0),))).bind(0.0, [1.0, 2.0])
    one = SDE(zero, lambda t, y: y[0] ** 2, 1, "diagonal", derivative=lambda t, y: 2.0 * y[0])
    one.bind(0.0, [1.0])


def test_a_wrong_derivative_is_named():
    def wrong(t, y):
        return ((0.0, 1.0), (np.cos(y[0]), 0.0)), ((y[1], y[0]), (0.0, 0.01))

    with pytest.raises(ModelError, match=r"derivative \(wrong\) is not .*entry \[1, 1, 1\] is 0.01, .* give 0"):
        SDE(zero, square, 2, derivative=wrong).bind(0.0, [0.5, 0.7])
    swapped = SDE(zero, square, 2, derivative=lambda t, y: np.swapaxes(NESTED["array"](t, y), 1, 2))
    with pytest.raises(ModelError, match="is not the derivative of the diffusion"):
        swapped.bind(0.0, [0.5, 0.7])
    diagonal = SDE(zero, lambda t, y: (y[0] ** 2, np.sin(y[1])), 2, "diagonal")
    with pytest.raises(ModelError, match=r"entry \[1\] is 0.77"):
        diagonal.replace(derivative=lambda t, y: (2.0 * y[0], np.cos(y[1]) + 0.01)).bind(0.0, [0.5, 0.7])


@pytest.mark.parametrize(
    "diffusion, derivative, y0",
    [
        (lambda t, y: (1e8 * np.sin(y[0]),), lambda t, y: (1e8 * np.cos(y[0]),), 1.0),
        (lambda t, y: (1e-8 * np.sin(y[0]),), lambda t, y: (1e-8 * np.cos(y[0]),), 1.0),
        (lambda t, y: (np.sqrt(y[0]),), lambda t, y: (0.5 / np.sqrt(y[0]),), 1e-7),
        (lambda t, y: (np.abs(y[0]),), lambda t, y: (np.sign(y[0]),), 0.0),  # an edge: anything between
        (lambda t, y: (np.sin(1e3 * y[0]),), lambda t, y: (1e3 * np.cos(1e3 * y[0]),), 2.0),
        (lambda t, y: (np.cos(y[0]) - 1.0,), lambda t, y: (-np.sin(y[0]),), 0.0),
        (lambda t, y: (y[0] ** 2,), lambda t, y: (2 * y[0],), 3e5),
    ],
)
def test_a_right_derivative_passes(diffusion, derivative, y0):
    SDE(zero, diffusion, 1, "diagonal", derivative=derivative).bind(0.0, [y0])


def test_of_many_components_some_are_looked_at():
    calls = []

    def diffusion(t, y):
        calls.append(1)
        return np.sin(y)

    sde = SDE(zero, diffusion, 500, "diagonal", derivative=lambda t, y: np.cos(y))
    sde.bind(0.0, np.ones(500))
    assert len(calls) < 80
    with pytest.raises(ModelError, match="is not the derivative"):
        sde.replace(derivative=lambda t, y: -np.cos(y)).bind(0.0, np.ones(500))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"derivative": 3}, "derivative must be a function"),
        ({"noise": "additive"}, "derivative must be None for noise='additive'"),
        ({"derivative": lambda t, y: None}, "derivative returned None"),
        ({"derivative": lambda t, y: (np.nan,)}, "derivative is not finite at the start"),
        ({"derivative": lambda t, y: 1 / 0}, "derivative cannot be evaluated.*ZeroDivisionError"),
        ({"derivative": lambda t, y, a: (a,)}, "derivative takes .* args has 0 entries"),
        ({"derivative": lambda t, y: (1j,)}, "derivative returned complex"),
    ],
)
def test_mistakes(options, words):
    settings = {"noise": "diagonal", "derivative": lambda t, y: (1.0,), **options}
    with pytest.raises((ArgumentError, ModelError, ShapeError), match=words):
        SDE(zero, lambda t, y: (y[0],), 1, **settings).bind(0.0, [1.0])


# The correction, and conversion


def test_the_correction_is_exact(lab):
    d, m = 3, 4
    matrix, cube, w = forms(d, m)
    x = lab.draw(d, m)[0]
    made = lab.correction(lab.bind(zero, matrix, np.ones(d), args=(w,), derivative=cube), x)
    columns = [(matrix(0.3, y, w), cube(0.3, y, w)) for y in x.T]
    exact = np.stack([0.5 * np.einsum("ijl,lj->i", D, G) for G, D in columns], axis=1)
    np.testing.assert_allclose(made, exact, rtol=0, atol=1e-14 * np.abs(exact).max() * m)
    by_differences = lab.correction(lab.bind(zero, matrix, np.ones(d), args=(w,)), x)
    np.testing.assert_allclose(by_differences, exact, rtol=1e-7)
    assert np.abs(by_differences - exact).max() > 1e-13
    apart = lab.bind(zero, lambda t, y: np.sin(y), np.ones(3), "diagonal", derivative=lambda t, y: np.cos(y))
    np.testing.assert_allclose(lab.correction(apart, x), 0.5 * np.sin(x) * np.cos(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("convert, sign", [(to_ito, 1.0), (to_stratonovich, -1.0)])
def test_conversion_takes_the_extended_noise_and_an_exact_drift(lab, convert, sign):
    d, m = 2, 3
    matrix, cube, w = forms(d, m)
    calculus = "stratonovich" if convert is to_ito else "ito"
    bound = convert(SDE(zero, matrix, d, "general", calculus, args=(w,), derivative=cube)).bind(0.0, np.ones(d))
    assert (
        bound.has_derivative
        and not convert(SDE(zero, matrix, d, "general", calculus, args=(w,))).bind(0.0, np.ones(d)).has_derivative
    )
    x, t, h, _ = lab.draw(d, m)
    v = np.random.default_rng(3).normal(size=(m + m * m, 5))
    got = lab.increment(bound, x, t, h, v)
    pairs = [(matrix(s, y, w), cube(s, y, w)) for s, y in zip(t, x.T)]
    drift = np.stack([sign * 0.5 * np.einsum("ijl,lj->i", D, G) for G, D in pairs], axis=1)
    np.testing.assert_allclose(got, wanted(d, m, x, t, h, v, w) + drift * h, rtol=0, atol=1e-13)


def test_a_run_after_conversion_stays_inside_its_scratch():
    """A step's extended noise, and that of the correction in the drift of a converted equation, at once."""
    sde = SDE(zero, square, 2, "general", "stratonovich", derivative=NESTED["tuples"])
    run = {"dt": 1 / 64, "n_paths": 3, "rng": 1}
    itself = sg.solve(sde, (0, 1), [0.5, 0.7], method="milstein", **run)
    converted = sg.solve(to_ito(sde), (0, 1), [0.5, 0.7], method="milstein", **run)
    np.testing.assert_allclose(itself.y, converted.y, rtol=0, atol=1e-12)
    equation, scheme, n = to_ito(sde).bind(0.0, [0.5, 0.7]), sg.methods["milstein"], 3
    k = equation.kernels()
    size = k.work[0] + (k.work[1] + 2) * n  # of its own the step takes d a path
    work = np.full(size + 50, np.nan)
    work[size:] = 7.25
    x, h, dW, aux = np.ones((2, n)), np.full(n, 0.1), np.ones((2, n)), np.ones((4, n))
    step = scheme.kernel("general", "ito", derivative=True)
    step(k.increment, no_correction, x, h, h, dW, aux, np.zeros(2 * n, np.int64), work, k.p, k.data)
    assert np.isfinite(x).all() and (work[size:] == 7.25).all()


# The rest of what a function may be


def test_in_python_it_is_the_same(lab, unwarned):
    table = {"one": 1.0}

    def derivative(t, y):
        return ((0.0, table["one"]), (np.cos(y[0]), 0.0)), ((y[1], y[0]), (0.0, 0.0))

    compiled = lab.bind(zero, square, [0.5, 0.7], derivative=NESTED["tuples"])
    python = lab.bind(zero, square, [0.5, 0.7], derivative=derivative)
    with pytest.warns(RuntimeWarning, match="^derivative .* cannot be compiled and runs in Python"):
        python.kernels()
    x, t, h, _ = lab.draw(2, 2)
    v = np.random.default_rng(4).normal(size=(6, 5))
    np.testing.assert_allclose(lab.increment(python, x, t, h, v), lab.increment(compiled, x, t, h, v), atol=1e-14)
    np.testing.assert_allclose(lab.correction(python, x), lab.correction(compiled, x), atol=1e-14)
    diagonal = lab.bind(
        zero, lambda t, y: (table["one"] * y[0], np.sin(y[1])), [1.0, 1.0], "diagonal",
        derivative=lambda t, y: (1.0, np.cos(y[1])),
    )  # fmt: skip
    with pytest.warns(RuntimeWarning, match="^diffusion"):
        got = lab.increment(diagonal, x, t, h, v[:4].copy())
    g = np.stack([x[0], np.sin(x[1])])
    np.testing.assert_allclose(got, g * v[:2] + g * [np.ones(5), np.cos(x[1])] * v[2:4], atol=1e-14)


def test_a_derivative_that_numba_computes_otherwise_runs_in_python(lab, unwarned):
    bound = lab.bind(
        zero, lambda t, y, n: (0.5 * y[0],), 1.0, "diagonal", args=(2,), derivative=lambda t, y, n: (n**-1,)
    )
    with pytest.warns(RuntimeWarning, match="^derivative .* gives 0 when compiled"):
        got = lab.increment(bound, np.full((1, 1), 2.0), np.zeros(1), np.zeros(1), np.array([[0.0], [1.0]]))
    assert got[0, 0] == 0.5


def test_partials_pickles_and_names(lab):
    def derivative(scale, t, y):
        return ((0.0, scale), (np.cos(y[0]), 0.0)), ((y[1], y[0]), (0.0, 0.0))

    sde = SDE(zero, square, 2, derivative=partial(derivative, 1.0))
    assert "derivative=partial(derivative)" in repr(sde)
    copy = pickle.loads(pickle.dumps(sde))
    x, t, h, _ = lab.draw(2, 2)
    v = np.random.default_rng(5).normal(size=(6, 5))
    one, two = (lab.increment(s.bind(0.0, [0.5, 0.7]), x, t, h, v) for s in (sde, copy))
    np.testing.assert_array_equal(one, two)
    plain = lab.bind(zero, square, [0.5, 0.7], derivative=NESTED["tuples"])
    np.testing.assert_array_equal(one, lab.increment(plain, x, t, h, v))
    assert sde.replace(derivative=None).bind(0.0, [0.5, 0.7]).has_derivative is False


def test_it_is_part_of_what_was_compiled(lab, compilations):
    bounds = [lab.bind(zero, square, [0.5, 0.7], derivative=one) for one in (None, NESTED["tuples"], NESTED["tuples"])]
    for bound in bounds:
        bound.kernels()
    assert len(compilations) == 2


def test_a_derivative_that_is_right_at_a_symmetric_start_alone_is_found():
    """g = 1 + y²: its derivative is zero at y = 0, and so is a wrong one everywhere."""

    def still(t, y):
        return (0.0,)

    def bowl(t, y):
        return (1.0 + y[0] ** 2,)

    wrong = sg.SDE(still, bowl, dim=1, noise="diagonal", derivative=lambda t, y: (0.0 * y[0],))
    with pytest.raises(sg.ModelError, match="derivative"):
        sg.solve(wrong, (0, 0.2), [0.0], method="milstein", dt=0.02, rng=0)
    right = wrong.replace(derivative=lambda t, y: (2.0 * y[0],))
    assert sg.solve(right, (0, 0.2), [0.0], method="milstein", dt=0.02, rng=0).success
