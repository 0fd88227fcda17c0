"""The compiled INCREMENT is f·h + G·v of the user's functions, column by column, whatever they return."""

import time

import numba
import numpy as np
import pytest

from sgdsde import ModelError
from sgdsde._abi import INCREMENT
from sgdsde._jit import kernel_uncached

EXACT = {"rtol": 4e-15, "atol": 4e-15}


def same(lab, bound, seed=0, B=5):
    """The compiled kernel against Python; and h = 0, v = 0 give the noise and the drift alone."""
    assert bound._compiled()[0].reason == ""
    x, t, h, v = lab.draw(bound.dim, bound.noise_dim, B, seed)
    out = lab.increment(bound, x, t, h, v)
    np.testing.assert_allclose(out, lab.in_python(bound, x, t, h, v), **EXACT)
    noise, drift = lab.increment(bound, x, t, 0 * h, v), lab.increment(bound, x, t, h, 0 * v)
    np.testing.assert_allclose(noise, lab.in_python(bound, x, t, 0 * h, v), **EXACT)
    np.testing.assert_allclose(noise + drift, out, **EXACT)
    return out, noise, drift


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_general_noise(lab, d, m):
    weights = np.cos(np.arange(d * m)).reshape(d, m) + 2.0

    def drift(t, y, weights):
        return np.sin(y)

    def diffusion(t, y, weights):
        out = np.empty(weights.shape)
        for i in range(len(weights)):
            for j in range(weights.shape[1]):
                out[i, j] = weights[i, j] * y[0] + t * y[-1] ** 2
        return out

    out, noise, _ = same(lab, lab.bind(drift, diffusion, np.ones(d), args=(weights,)))
    assert np.abs(out).min() > 1e-3
    # From the definition, independent of the package: sum over the noises of entry times increment.
    x, t, _, v = lab.draw(d, m)
    by_hand = [sum((weights[i, j] * x[0] + t * x[-1] ** 2) * v[j] for j in range(m)) for i in range(d)]
    np.testing.assert_allclose(noise, by_hand, **EXACT)


def scalar_tuple(t, y):
    return (0.1 * y[1], t)


def scalar_column(t, y):
    return ((0.1 * y[1],), (t,))


@pytest.mark.parametrize("noise", ["scalar", "general", "commutative"])
def test_one_noise_by_every_route_is_the_same_to_the_bit(lab, noise):
    # Seeds give the same increments by every route, and one formula gives the same bits.
    def drift(t, y):
        return (y[0] * y[1], -y[0])

    routes = [scalar_column, lambda t, y: np.array([[0.1 * y[1]], [t]]), lambda t, y: [[0.1 * y[1]], [t]]]
    if noise == "scalar":
        routes += [scalar_tuple, lambda t, y: [0.1 * y[1], t], lambda t, y: np.array([0.1 * y[1], t])]
    outs = [same(lab, lab.bind(drift, g, [1.0, 2.0], noise))[0] for g in routes]
    outs.append(same(lab, lab.bind(drift, scalar_column, [1.0, 2.0], "general"))[0])
    for out in outs[1:]:
        np.testing.assert_array_equal(out, outs[0])


def test_diagonal_as_vector_or_matrix(lab):
    def drift(t, y):
        return (y[0] * y[1], -y[0], t)

    vector = same(lab, lab.bind(drift, lambda t, y: (y[0], y[1] ** 2, 0.5), np.ones(3), "diagonal"))[0]
    full = same(lab, lab.bind(drift, lambda t, y: ((y[0], 0, 0), (0, y[1] ** 2, 0), (0, 0, 0.5)), np.ones(3)))[0]
    np.testing.assert_allclose(full, vector, rtol=1e-15, atol=1e-15)


def filled(t, y):
    out = np.zeros((2, 3))
    out[0, 1], out[1, 2] = y[0], y[1]
    return out


def appended(t, y):
    out = []
    for c in y:
        out.append(-c)
    return out


RETURNS = {
    "mixed tuple": (lambda t, y: (1, -y[1]), lambda t, y: ((1, y[0], True), (y[1], 2, 0.5))),
    "list": (lambda t, y: [1, -y[1]], lambda t, y: [[1, y[0], 0], [y[1], 2, 0.5]]),
    "array": (lambda t, y: np.array([1, -y[1]]), lambda t, y: np.array([[1, y[0], 0], [y[1], 2, 0.5]])),
    "dtype": (lambda t, y: np.asarray([1, -y[1]], dtype=float), lambda t, y: np.array(((1, y[0]), (y[1], 2)))),
    "expression": (lambda t, y: -y * y, lambda t, y: y.reshape(2, 1) * y),
    "y itself": (lambda t, y: y, lambda t, y: y.reshape(2, 1)),
    "loops": (appended, filled),
    "tuple of arrays": (lambda t, y: y[::-1], lambda t, y: (y, 2 * y)),
    "tuple of lists": (lambda t, y: -y, lambda t, y: ([y[0], 1.0], [t, y[1]])),
    "list of tuples": (appended, lambda t, y: [(y[0], 1, t), (t, y[1], 1)]),
    "list of arrays": (appended, lambda t, y: [c * y for c in y]),
    "branches": (
        lambda t, y: [y[0], 1.0] if y[0] > 1.0 else [1.0, y[1]],
        lambda t, y: np.array([[y[0]], [t]]) if y[0] > 1.0 else np.array([[t], [y[1]]]),
    ),
    "integers": (lambda t, y: (1, 2), lambda t, y: np.array([[1, 2], [3, 4]])),
}


@pytest.mark.parametrize("name", RETURNS)
def test_whatever_is_returned(lab, name):
    drift, diffusion = RETURNS[name]
    same(lab, lab.bind(drift, diffusion, [1.0, 1.2]))


def test_a_number_for_one_component(lab):
    same(lab, lab.bind(lambda t, y: -y[0], lambda t, y: 1, 1.0, "scalar"))
    same(lab, lab.bind(lambda t, y: 2, lambda t, y: y[0] ** 2, 1.0, "diagonal"))


@pytest.mark.parametrize("d", [2, 300])
def test_a_changed_y_stays_inside_its_function(lab, d):
    def drift(t, y):
        y *= 2.0
        return y  # the same memory

    def diffusion(t, y):
        y[0] = 100.0
        y[-1] += 1.0
        return y

    bound = lab.bind(drift, diffusion, np.ones(d), "diagonal")
    x, t, h, v = lab.draw(d, d)
    out = lab.increment(bound, x, t, h, v)  # checks that x is left alone
    G = x.copy()
    G[0], G[-1] = 100.0, G[-1] + 1.0
    np.testing.assert_allclose(out, 2 * x * h + G * v, **EXACT)


def test_args_arrive_with_their_types_and_shapes(lab):
    def drift(t, y, a, n, flag, table, counts, mask, nested):
        # Each line fails to compile, or gives another number, if a type is lost.
        picked = table[n // 2, counts[n] % 2]
        total = picked if flag else -picked
        for k in range(len(mask)):
            if mask[k]:
                total += nested[1][0] * counts[k]
        return (a * total + (7 >> n), nested[0] * y[1])

    def args(a, n, flag, size, seed):
        rng = np.random.default_rng(seed)
        table, counts, mask = rng.normal(size=(2, 2)), rng.integers(-5, 5, size), rng.random(size) < 0.5
        return (a, n, flag, table, counts, mask, (2.5, (np.float32(1.5), 3)))

    sde = lab.SDE(drift, lambda t, y, *args: (y[0], args[0]), 2, "diagonal", args=args(1.5, 2, True, 5, 0))
    same(lab, sde.bind(0.0, [1.0, 2.0]))
    for changed in (args(-2.5, 1, False, 5, 1), args(0.5, 3, True, 11, 2)):
        same(lab, sde.bind(0.0, [1.0, 2.0], changed))
        same(lab, sde.replace(args=changed).bind(0.0, [1.0, 2.0]))


def test_integers_and_bools_of_any_width(lab):
    big = 2**62 + 1  # not a double
    counts = [np.array([3, 200], dtype=dtype) for dtype in (np.uint8, np.int16, np.uint64)]

    def drift(t, y, big, *counts):
        return (float(big - 2**62), 1.0 * (counts[0][1] + counts[1][0] + counts[2][1]))

    out = same(lab, lab.bind(drift, lambda t, y, *args: y, [1.0, 1.0], "diagonal", args=(big, *counts)))[2]
    h = lab.draw(2, 2)[2]
    np.testing.assert_array_equal(out, [1.0 * h, 403.0 * h])


def test_arrays_in_any_order_of_memory(lab):
    a = np.arange(6.0).reshape(2, 3)
    for view in (np.asfortranarray(a), np.arange(12.0).reshape(2, 6)[:, ::2], a.astype(np.float32)):
        drift = same(lab, lab.bind(lambda t, y, a: a[:, 1] * y, lambda t, y, a: a, [1.0, 1.0], args=(view,)))[2]
        x, _, h, _ = lab.draw(2, 3)
        np.testing.assert_allclose(drift, view[:, 1:2] * x * h, **EXACT)


@pytest.mark.parametrize("d, m", [(40, 11), (300, 2)])
def test_many_components(lab, d, m):
    A = np.random.default_rng(0).normal(size=(d, d)) / d

    def drift(t, y, A):
        out = np.empty(len(y))
        for i in range(len(y)):
            out[i] = np.sum(A[i] * y)
        return out

    bound = lab.bind(drift, lambda t, y, A: y.reshape(d, 1) * A[0, :m], np.ones(d), args=(A,))
    assert bound.kernels().work == (0 if d <= 256 else 2 * d, 0)
    same(lab, bound)
    same(lab, lab.bind(lambda t, y: list(y), lambda t, y: [c**2 for c in y], np.ones(d), "diagonal"))


def test_compiled_functions_are_used_as_they_are(lab):
    calls = numba.njit(lambda t, y: (y[0] + y[1], y[0]))
    signed = numba.njit("UniTuple(f8, 2)(f8, f8[:])")(lambda t, y: (y[0], t))
    same(lab, lab.bind(calls, signed, [1.0, 2.0], "diagonal"))
    assert len(calls.signatures) == 1 and len(signed.signatures) == 1


def helper(y):
    return second(y) + SHIFT


def second(y):
    return y[1] ** 2


SHIFT = 3.0


def factorial(n):
    return 1.0 if n < 2 else n * factorial(n - 1)


def test_plain_functions_that_are_called_are_compiled_too(lab):
    def inner(y):
        return helper(y) * y[0]

    same(lab, lab.bind(lambda t, y: (helper(y), inner(y)), lambda t, y: (factorial(4), y[1]), [1.0, 2.0], "diagonal"))


@pytest.mark.parametrize("kind", ["uw", "sin", "general"])
def test_bits_of_a_column_do_not_depend_on_its_block(lab, kind):
    drift = {
        "uw": lambda t, y: (-y[1] * (y[0] * y[1] - 1.0), -y[0] * (y[0] * y[1] - 1.0)),
        "sin": lambda t, y: (np.sin(y[0]) * y[1] + t, np.exp(-y[1] * y[1])),
        "general": lambda t, y: -y * y[0] + y[1] ** 3,
    }[kind]
    bound = lab.bind(drift, lambda t, y: ((0.1 * y[1], y[0] * y[1]), (0.1 * y[0] - t, 1.0)), [1.0, 2.0])
    x, t, h, v = lab.draw(2, 2, 67)
    whole = lab.increment(bound, x, t, h, v)
    for size in (1, 2, 3, 8, 13):
        for start in range(0, 67, size):
            part = (np.ascontiguousarray(one[..., start : start + size]) for one in (x, t, h, v))
            np.testing.assert_array_equal(lab.increment(bound, *part), whole[:, start : start + size])


def cut(t, y):
    return y if y[0] < 2.0 else y[:1]


def cut_list(t, y):
    if y[0] < 2.0:
        return [y[0], y[1]]
    return [y[0]]  # as a tuple this would not compile


def turned(t, y):
    return np.ones((2, 3)) if y[0] < 2.0 else np.ones((3, 2))


@pytest.mark.parametrize("label, function", [("drift", cut), ("drift", cut_list), ("diffusion", turned)])
def test_another_shape_later_is_an_error_and_no_wild_read(lab, label, function):
    functions = {"drift": lambda t, y: y, "diffusion": lambda t, y: y.reshape(2, 1), label: function}
    bound = lab.bind(functions["drift"], functions["diffusion"], [1.0, 1.0])
    assert bound._compiled()[0].reason == ""
    x, t, h, v = lab.draw(2, bound.noise_dim)
    lab.increment(bound, x, t, h, v)
    x[0, 3] = 2.5
    with pytest.raises(ModelError, match=f"{label} returned another shape than at the start"):
        lab.increment(bound, x, t, h, v)


def test_as_fast_as_written_by_hand(lab):
    def drift(t, y, a):
        return [-y[1] * (y[0] * y[1] - a), -y[0] * (y[0] * y[1] - a)]

    def diffusion(t, y, a):
        return np.array([0.1 * y[1], 0.1 * y[0]])

    @kernel_uncached(INCREMENT)
    def by_hand(out, x, t, h, v, p, data, work):
        for b in range(x.shape[1]):
            r = x[0, b] * x[1, b] - p[0]
            out[0, b] = -x[1, b] * r * h[b] + 0.1 * x[1, b] * v[0, b]
            out[1, b] = -x[0, b] * r * h[b] + 0.1 * x[0, b] * v[0, b]

    kernels = lab.bind(drift, diffusion, [1.0, 0.5], "scalar", args=(1.0,)).kernels()
    x, t, h, v = lab.draw(2, 1, 256)
    out = np.empty_like(x)

    @numba.njit
    def many(increment, out, x, t, h, v, p, n):
        for _ in range(n):
            increment(out, x, t, h, v, p, p, p)

    def seconds(increment):
        start = time.perf_counter()
        many(increment, out, x, t, h, v, kernels.p, 2000)
        return time.perf_counter() - start

    for k in (by_hand, kernels.increment):
        seconds(k)
    # The fastest of interleaved runs: others may use the machine. An allocation a call would be 30 times slower.
    pairs = [(seconds(by_hand), seconds(kernels.increment)) for _ in range(20)]
    assert min(new for _, new in pairs) < 4.0 * min(old for old, _ in pairs)
