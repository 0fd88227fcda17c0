"""Functions that numba cannot compile run in Python: the same numbers, one warning, and exceptions that pass."""

import concurrent.futures
import gc
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.special import j0

from sgdsde import SDE, ModelError, ShapeError
from sgdsde.equation import python_increment

pytestmark = pytest.mark.usefixtures("unwarned")

LOOKUP = {"rate": 2.0}


def table_drift(t, y, scale=1.0):
    return (-LOOKUP["rate"] * scale * y[0], float(j0(y[1])))


def quiet(bound):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return bound.kernels()


@pytest.mark.parametrize(
    "diffusion, noise",
    [
        (lambda t, y: (y[0], t), "diagonal"),
        (lambda t, y: (y[0], t), "scalar"),
        (lambda t, y: [[y[0]], [t]], "scalar"),
        (lambda t, y: ((y[0], t, 1), (0, 2, y[1])), "general"),
        (lambda t, y: (0.5, t), "additive"),
    ],
)
def test_same_numbers(lab, diffusion, noise):
    bound = lab.bind(table_drift, diffusion, [1.0, 2.0], noise)
    with pytest.warns(RuntimeWarning, match="drift table_drift cannot be compiled.*LOOKUP|j0"):
        kernels = bound.kernels()
    assert kernels.increment is python_increment.python_increment
    x, t, h, v = lab.draw(2, bound.noise_dim)
    out = lab.increment(bound, x, t, h, v, kernels)
    np.testing.assert_allclose(out, lab.in_python(bound, x, t, h, v), rtol=1e-14)
    compiled = lab.bind(lambda t, y: (-2.0 * y[0], 0.0), diffusion, [1.0, 2.0], noise)
    np.testing.assert_allclose(out[0], lab.increment(compiled, x, t, h, v)[0], rtol=1e-14)


def test_warns_once_for_each_function(lab):
    def other(t, y):
        return (LOOKUP["rate"], y[1])

    base = SDE(table_drift, lambda t, y, *a: (0.5, t), 2, "diagonal")
    with pytest.warns(RuntimeWarning) as caught:
        for scale in (1.0, 2.0):
            base.replace(args=(scale,)).bind(0.0, [1.0, 2.0]).kernels()
            base.bind(0.0, [2.0, 3.0]).kernels()
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the line outside the package
    with pytest.warns(RuntimeWarning, match="diffusion other") as caught:
        base.replace(drift=lambda t, y: y, diffusion=other).bind(0.0, [1.0, 2.0]).kernels()
    assert len(caught) == 1


def test_a_live_dictionary_is_live(lab, monkeypatch):
    bound = lab.bind(lambda t, y: (LOOKUP["rate"],), lambda t, y: (1.0,), 1.0, "additive")
    x, t, h, v = lab.draw(1, 1)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v, quiet(bound)), 2.0 * h[None])
    monkeypatch.setitem(LOOKUP, "rate", 3.0)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v, quiet(bound)), 3.0 * h[None])


def test_a_partial_over_objects(lab):
    bound = lab.bind(partial(lambda table, t, y: (table["k"] * y[0],), {"k": 3.0}), lambda t, y: y, 1.0, "scalar")
    with pytest.warns(RuntimeWarning, match=r"partial\(<lambda>\) cannot be compiled.*functools.partial"):
        kernels = bound.kernels()
    x, t, h, v = lab.draw(1, 1)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, 0 * v, kernels), 3.0 * x * h, rtol=1e-15)


class TableError(LookupError):
    pass


def raises_in_python(t, y):
    if y[0] > 1.5:
        raise TableError(f"y = {y[0]:.2f} is outside", LOOKUP["rate"])
    return (1.0,)


def raises_compiled(t, y):
    if y[0] > 1.5:
        raise ValueError("outside the table")
    return (1.0,)


def caught(function):
    try:
        function()
    except Exception as error:
        return error
    return None


def test_an_exception_in_python_passes_through_every_kernel(lab):
    bound = lab.bind(raises_in_python, lambda t, y: (0.0,), 1.0, "scalar")
    quiet(bound)
    for correction in (False, True):  # called by the engine itself, and by a CORRECTION that the engine calls
        x = np.array([[1.0, 1.6 if correction else 1.49]])
        error = caught(partial(lab.run, bound, x, 500, correction=correction))
        assert type(error) is TableError and error.args[1] == 2.0
        assert "outside" in error.args[0] and "y = 1." in error.args[0]
    lab.run(bound, np.array([[1.0]]), 10)  # and the next run is well


def test_an_exception_in_compiled_code_passes_too(lab):
    for correction in (True, False):  # the correction calls the diffusion alone
        bound = lab.bind(raises_compiled, raises_compiled if correction else lambda t, y: (0.0,), 1.0, "scalar")
        assert bound._compiled()[0].reason == ""
        error = caught(partial(lab.run, bound, np.array([[1.0, 1.6]]), 500, correction=correction))
        assert type(error) is ValueError and error.args == ("outside the table",)
    lab.run(bound, np.array([[1.0]]), 10)


@pytest.mark.parametrize("drift", [raises_in_python, raises_compiled])
def test_an_exception_passes_in_a_thread_of_a_pool(lab, drift):
    bound = lab.bind(drift, lambda t, y: (0.0,), 1.0, "scalar")
    quiet(bound)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad = [pool.submit(lab.run, bound, np.array([[1.6]]), 5) for _ in range(4)]
        good = [pool.submit(lab.run, bound, np.array([[1.0]]), 5) for _ in range(4)]
        assert [type(one.exception()) for one in bad] == [TableError if drift is raises_in_python else ValueError] * 4
        assert [one.exception() for one in good] == [None] * 4


def test_wrong_returns_later_are_errors(lab):
    def drift(t, y):
        return (LOOKUP["rate"],) if y[0] < 1.5 else None

    def diffusion(t, y):
        return ((1.0, 2.0),) if y[0] > 0.5 else ((1.0,),)

    bound = lab.bind(drift, diffusion, 1.0)
    quiet(bound)
    assert isinstance(caught(lambda: lab.run(bound, np.array([[1.6]]), 1)), ModelError)
    assert isinstance(caught(lambda: lab.run(bound, np.array([[0.4]]), 1)), ShapeError)


def test_kernels_live_without_their_equation_and_are_not_kept_for_ever(lab):
    x, t, h, v = lab.draw(1, 1)

    def made():
        return quiet(lab.bind(lambda t, y: (LOOKUP["rate"],), lambda t, y: (1.0,), 1.0, "additive"))

    gc.collect()
    before = set(python_increment._registered)
    kernels = made()
    gc.collect()
    np.testing.assert_allclose(lab.increment(None, x, t, h, 0 * v, kernels), 2.0 * h[None])
    for _ in range(20):
        made()
    gc.collect()
    assert set(python_increment._registered) - before == {int(kernels.p[0])}
    del kernels
    gc.collect()
    assert not set(python_increment._registered) - before


def test_optional_returns_run_in_python(lab):
    def drift(t, y):  # numba's type of this is Optional, which has no entries
        if y[0] > 0.0:
            return (1.0,)
        return None

    bound = lab.bind(drift, lambda t, y: (1.0,), 1.0, "additive")
    with pytest.warns(RuntimeWarning, match="cannot be compiled"):
        bound.kernels()
