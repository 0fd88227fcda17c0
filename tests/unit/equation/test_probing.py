"""Mistakes in a function are found in Python, at the start, in one error that names it."""

import functools

import numba
import numpy as np
import pytest

from sgdsde import SDE, ArgumentError, ModelError, ShapeError


def ones(t, y, *args):
    return np.ones(len(y))


def bind(drift, diffusion=ones, d=2, noise="diagonal", **options):
    return SDE(drift, diffusion, d, noise, **options).bind(0.0, np.arange(1.0, d + 1))


def test_wrong_number_of_arguments():
    def decay(t, y, rate):
        return -rate * y

    with pytest.raises(ModelError, match=r"drift \(decay\) takes \(t, y, rate\).*args has 0 entries.*rate") as caught:
        bind(decay)
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(ModelError, match=r"diffusion.*args has 2 entries"):
        bind(lambda t, y, a, b: y, lambda t, y, a: y, args=(1.0, 2.0))
    with pytest.raises(ModelError, match=r"drift \(order\).*entry|entries"):

        def order(y):
            return y

        bind(order)


@pytest.mark.parametrize("wrap", [lambda f: f, numba.njit, lambda f: functools.partial(f)])
def test_index_out_of_bounds(wrap):
    @wrap
    def beyond(t, y):
        return (y[0], y[2])  # compiled, this reads what lies behind y

    with pytest.raises(ModelError, match=r"beyond.*t=0, y=\[1., 2.\]: IndexError: index 2") as caught:
        bind(beyond)
    assert isinstance(caught.value.__cause__, IndexError)


def test_negative_indices_wrap_as_in_python(lab):
    bound = bind(lambda t, y: (y[-1], y[-2]))
    x, t, h, v = lab.draw(2, 2)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v), x[::-1] * h, rtol=1e-15)


@pytest.mark.parametrize("returned", [(1j, 0.0), np.array([1.0, 2j])])
def test_complex(returned):
    with pytest.raises(ModelError, match=r"drift .*complex"):
        bind(lambda t, y: returned)


def test_none_text_and_other_things():
    with pytest.raises(ModelError, match="drift returned None"):
        bind(lambda t, y: None)
    with pytest.raises(ModelError, match="drift returned"):
        bind(lambda t, y: ("a", "b"))
    with pytest.raises(ModelError, match="drift returned"):
        bind(lambda t, y: {"x": 1.0})
    with pytest.raises(ModelError, match="drift returned"):
        bind(lambda t, y: (c for c in y))
    with pytest.raises(ModelError, match="diffusion returned"):
        bind(ones, lambda t, y: (None, 1.0))
    with pytest.raises(ShapeError, match="diffusion returned"):
        bind(ones, lambda t, y: ((1.0, 2.0), (3.0,)), noise="general")


def test_not_finite_at_the_start():
    with pytest.raises(ModelError, match=r"drift .*not finite at the start: entry 1 is inf at t=0, y=\[1., 2.\]"):
        bind(lambda t, y: (0.0, np.float64(1.0) / t))
    with pytest.raises(ModelError, match=r"diffusion .*entry \(1, 0\) is nan"):
        bind(ones, lambda t, y: ((1.0,), (np.sqrt(-y[0]),)), noise="general")


def test_an_exception_inside_is_chained():
    def broken(t, y):
        raise RuntimeError("no table for this")

    with pytest.raises(ModelError, match=r"drift .*broken.*RuntimeError: no table for this") as caught:
        bind(broken)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_functions_are_called_at_the_start_only():
    # G = sqrt(y) has no value left of zero, and nobody asked for one.
    seen = []

    def diffusion(t, y):
        seen.append((t, *y))
        return (np.sqrt(y[0]),)

    SDE(lambda t, y: (1.0,), diffusion, 1, "diagonal").bind(0.25, [1e-9])
    assert set(seen) == {(0.25, 1e-9)}


def test_a_function_may_change_its_y():
    def greedy(t, y):
        y *= 0.0
        return y

    bound = bind(greedy, lambda t, y: y)
    np.testing.assert_array_equal(bound.y0, [1.0, 2.0])


def test_args_are_read_only_copies():
    values = np.array([1.0, 2.0])

    def writes(t, y, a):
        a[0] = 3.0
        return a

    with pytest.raises(ModelError, match=r"drift .*read-only"):
        bind(writes, args=(values,))
    bound = bind(lambda t, y, a: a, args=(values,))
    values[:] = np.nan
    np.testing.assert_array_equal(bound.args[0], [1.0, 2.0])


class Decay:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, t, y):
        return -self.rate * y

    def drift(self, t, y):
        return -self.rate * y


@pytest.mark.parametrize(
    "drift",
    [
        Decay(2.0),
        Decay(2.0).drift,
        functools.partial(lambda rate, t, y: -rate * y, 2.0),
        functools.partial(lambda t, y, rate: [-rate * c for c in y], rate=2.0),
        numba.njit(lambda t, y: (-2.0 * y[0], -2.0 * y[1])),
        lambda t, y: [-2.0 * y[0], -2.0 * y[1]],
        lambda t, y, *args: -2.0 * y,
        lambda t, y, rate=2.0: -rate * y,
    ],
)
def test_any_callable(lab, drift, unwarned, recwarn):
    bound = bind(drift)
    x, t, h, v = lab.draw(2, 2)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v), -2.0 * x * h, rtol=1e-15)
    slow = isinstance(drift, Decay) or hasattr(drift, "__self__")
    assert [w.category for w in recwarn] == [RuntimeWarning] * slow


def test_arguments_of_the_constructor():
    for wrong, match in (
        ({"drift": 3.0}, "drift must be a function"),
        ({"diffusion": [ones]}, "diffusion must be a function"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"dim": 2.0}, "dim must be an integer"),
        ({"noise": "white"}, "noise must be one of"),
        ({"calculus": "Ito"}, "calculus must be one of"),
        ({"args": 2.0}, "args must be a tuple"),
        ({"args": "ab"}, "args must be a tuple"),
        ({"args": ({"a": 1},)}, r"args\[0\] must be a number"),
        ({"args": (1.0, (2.0, None))}, r"args\[1\]\[1\] must be a number"),
        ({"args": (1j,)}, r"args\[0\] must be a number"),
        ({"args": (2**70,)}, r"args\[0\]"),
        ({"name": 3}, "name must be text"),
    ):
        with pytest.raises(ArgumentError, match=match):
            SDE(**{"drift": ones, "diffusion": ones, "dim": 2, **wrong})


def test_replace_and_repr():
    sde = SDE(ones, lambda t, y, a, b: y, 2, "diagonal", args=(1.0, np.ones((2, 3))), name="lab")
    assert repr(sde) == "SDE('lab', ones, <lambda>, dim=2, noise='diagonal', calculus='ito', args=(1.0, array(2, 3)))"
    other = sde.replace(args=(2.0, 3), calculus="stratonovich")
    assert (other.args, other.calculus, sde.calculus, other.drift) == ((2.0, 3), "stratonovich", "ito", ones)
    with pytest.raises(ArgumentError, match=r"replace takes .*got dt"):
        sde.replace(dt=1)
    assert "1 noise" in repr(SDE(ones, ones, 1, "diagonal").bind(0.0, [1.0]))
