"""Compiled functions give what Python gives, stay inside their arrays, and say which function is at fault."""

import numba
import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError


def diffusion(t, y, *args):
    return (0.0,)


def slope(drift, *args, y=2.0):
    """(y(1) - y(0)) / 1 by one step of the engine, which is drift(0, y)."""
    sde = sg.SDE(drift, diffusion, dim=1, noise="diagonal", args=args)
    return sg.solve(sde, (0, 1), [y], dt=1.0, rng=0).y[-1, 0] - y


POWERS = {
    "int ** -1": (lambda t, y, n: (n**-1,), (2,)),
    "int ** negative int": (lambda t, y, n, k: (n**k * y[0],), (4, -1)),
    "beyond 64 bits": (lambda t, y, n: (n * n * y[0],), (10**10,)),
    "inside an array of ints": (lambda t, y, a: (a[0] ** -1.0 + float(a[1]) ** -1,), (np.array([2, 4]),)),
}


@pytest.mark.parametrize("case", POWERS)
def test_a_function_gives_what_python_gives(case, unwarned):
    function, args = POWERS[case]
    wanted = function(0.0, np.array([2.0]), *args)[0]
    if case.startswith("inside"):
        assert slope(function, *args) == pytest.approx(wanted, rel=1e-15)
        return
    with pytest.warns(RuntimeWarning, match=r"drift .* runs in Python.*when compiled and .* in Python"):
        assert slope(function, *args) == pytest.approx(wanted, rel=1e-15)


def test_a_diffusion_too(unwarned):
    sde = sg.SDE(lambda t, y, n: (0.0,), lambda t, y, n: ((n**-1, 0.0),), dim=1, noise="general", args=(2,))
    with pytest.warns(RuntimeWarning, match=r"diffusion .* gives 0 when compiled and 0\.75 in Python"):
        sol = sg.solve(sde, (0, 1), [0.0], dt=1.0, dW=[[1.0, 7.0]])
    assert sol.y[-1, 0] == 0.5


def test_an_observer_too(unwarned):
    sde = sg.SDE(lambda t, y, n: (0.0,), diffusion, dim=1, noise="diagonal", args=(2,))
    with pytest.warns(RuntimeWarning, match="observe.* gives 0 when compiled and 0.5 in Python"):
        sol = sg.solve(sde, (0, 1), [0.0], dt=1.0, rng=0, observe={"n": lambda t, y, n: n**-1})
    assert (sol.observed["n"] == 0.5).all()


def test_rounding_of_values_that_cancel_is_no_disagreement(recwarn):
    def drift(t, y, a):
        return (np.sin(y[0]) + (1.0 - np.cos(y[0])) / (y[0] - np.pi + 1e-9) ** 2 * 1e-30 + y[0] * a - y[0] * a,)

    assert abs(slope(drift, 0.1, y=np.pi)) < 1e-9
    assert not [w for w in recwarn if "compiled" in str(w.message)]


def test_new_arguments_are_held_against_python_anew(unwarned):
    def drift(t, y, n, k):
        return (float(n**k),)

    sde = sg.SDE(drift, diffusion, dim=1, noise="diagonal", args=(2, 3))
    assert sg.solve(sde, (0, 1), [0.0], dt=1.0, rng=0).y[-1, 0] == 8.0
    with pytest.warns(RuntimeWarning, match="gives 0 when compiled"):
        assert sg.solve(sde, (0, 1), [0.0], dt=1.0, rng=0, args=(2, -3)).y[-1, 0] == 0.125


def test_what_a_person_compiled_is_taken_at_its_word(recwarn):
    drift = numba.njit(lambda t, y, n: (float(n**-1),))
    assert slope(drift, 2) == 0.0
    assert not [w for w in recwarn if "compiled" in str(w.message)]


@pytest.mark.parametrize("write", [False, True])
def test_an_index_outside_an_array_is_an_error(write):
    def read(t, y, table):
        return (table[int(t * 1000)],)

    def wrote(t, y, table):
        if t > 0.4:
            y[int(t * 1000)] = 1.0
        return (0.0,)

    sde = sg.SDE(wrote if write else read, diffusion, dim=1, noise="diagonal", args=(np.arange(3.0),))
    with pytest.raises(IndexError, match="out of bounds"):
        sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0)


def test_an_index_outside_an_array_of_an_observer_is_an_error():
    sde = sg.SDE(lambda t, y: (0.0,), lambda t, y: (1.0,), dim=1, noise="diagonal")
    with pytest.raises(IndexError, match="out of bounds"):
        sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0, observe=lambda t, y: y[int(t * 1000)])


def test_an_index_outside_an_array_of_a_helper_is_an_error():
    def helper(a, k):
        return a[k]

    sde = sg.SDE(lambda t, y: (helper(y, int(t * 1000)),), diffusion, dim=1, noise="diagonal")
    with pytest.raises(IndexError, match="out of bounds"):
        sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0)


def test_the_function_at_fault_is_named(unwarned):
    scalar = np.array(1.0)
    with pytest.warns(RuntimeWarning, match="^drift .* drift returns .*0d"):
        slope(lambda t, y: scalar)


def test_complex_numbers_later_on_are_laid_at_the_function_that_returns_them(unwarned):
    sde = sg.SDE(lambda t, y: (0.0,) if t < 0.5 else (1j,), diffusion, dim=1, noise="diagonal")
    with pytest.warns(RuntimeWarning, match="^drift .* returns complex numbers"):
        with pytest.raises(ModelError, match="drift returned complex numbers"):
            sg.solve(sde, (0, 1), [1.0], dt=0.25, rng=0)


@pytest.mark.parametrize("function", [sg.to_ito, sg.to_stratonovich, sg.noise_structure])
def test_a_class_is_no_equation(function):
    with pytest.raises(ArgumentError, match="must be an SDE .* got <class"):
        function(sg.SDE)
