"""What compiles again: new numbers never, equal functions never, a changed global or closure always."""

import functools
import types

import numba
import numpy as np

from sgdsde import SDE
from sgdsde.equation import compile

RATE = 2.0
TABLE = np.array([1.0, 2.0])


def drift_at(bound, x=1.0):
    """The drift at a state, from the compiled kernel."""
    k = bound.kernels()
    d, m = bound.dim, bound.noise_dim
    out = np.empty((d, 1))
    k.increment(out, np.full((d, 1), x), np.zeros(1), np.ones(1), np.zeros((m, 1)), k.p, k.data, np.empty(k.work[0]))
    return out[0, 0]


def one(t, y, *args):
    return (1.0,)


def sde(drift, **options):
    return SDE(drift, one, 1, "diagonal", **options)


def test_numbers_states_and_times_never_compile(compilations):
    def drift(t, y, a, table):
        return (a * y[0] + table[-1],)

    base = sde(drift, args=(1.0, np.ones(3)))
    for k in range(20):
        changed = base.replace(args=(1.0 + k, np.full(1 + k, 5.0)))
        bound = changed.bind(0.1 * k, [k])
        assert drift_at(bound) == 1.0 + k + 5.0
        assert drift_at(base.bind(0.0, [1.0], (2.0, np.arange(3.0)))) == 4.0
    assert len(compilations) == 1
    drift_at(base.bind(0.0, [1.0], (2, np.ones(3))))  # an int is another type
    drift_at(base.replace(args=(2.0, np.ones(3, dtype=int))).bind(0.0, [1.0]))
    assert len(compilations) == 3


def test_name_and_calculus_do_not_compile(compilations):
    base = sde(one)
    for other in (base, base.replace(calculus="stratonovich"), base.replace(name="x"), base.replace(noise="additive")):
        drift_at(other.bind(0.0, [1.0]))
    assert len(compilations) == 1


def factory(table, scale):
    def drift(t, y):
        return (scale * y[0] + table[1],)

    return drift


def test_a_function_made_anew_with_equal_values_compiles_once(compilations):
    for _ in range(100):
        bound = sde(factory(np.array([1.0, 2.0]), 3.0)).bind(0.0, [1.0])
        assert drift_at(bound) == 5.0
    assert len(compilations) == 1
    assert drift_at(sde(factory(np.array([1.0, 7.0]), 3.0)).bind(0.0, [1.0])) == 10.0
    assert drift_at(sde(factory(np.array([1.0, 2.0]), 4.0)).bind(0.0, [1.0])) == 6.0
    assert len(compilations) == 3


def test_the_same_for_functions_the_user_compiled(compilations):
    for _ in range(5):
        assert drift_at(sde(numba.njit(factory(np.array([1.0, 2.0]), 3.0))).bind(0.0, [1.0])) == 5.0
    assert len(compilations) == 1


def reads_global(t, y):
    return (RATE * y[0] + TABLE[0],)


def through_helper(t, y):
    return (helper(y[0]),)


def helper(x):
    return RATE * x


def in_a_lambda(t, y):
    return ((lambda c: RATE * c)(y[0]),)


def test_a_changed_global_is_noticed(compilations, monkeypatch):
    bound = sde(reads_global).bind(0.0, [1.0])
    deep, hidden = sde(through_helper).bind(0.0, [1.0]), sde(in_a_lambda).bind(0.0, [1.0])
    assert [drift_at(b) for b in (bound, deep, hidden)] == [3.0, 2.0, 2.0]
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert [drift_at(b) for b in (bound, deep, hidden)] == [6.0, 5.0, 5.0]
    TABLE[0] = 3.0
    assert drift_at(bound) == 8.0
    TABLE[0] = 1.0
    assert drift_at(bound) == 6.0
    assert len(compilations) == 7
    monkeypatch.setitem(globals(), "RATE", 2.0)
    assert drift_at(bound) == 3.0  # what it was before is still there
    assert len(compilations) == 7


def test_a_changed_closure_is_noticed():
    rate = 2.0

    def drift(t, y):
        return (rate * y[0],)

    bound = sde(drift).bind(0.0, [1.0])
    assert drift_at(bound) == 2.0
    rate = 3.0
    assert drift_at(bound) == 3.0


@numba.njit
def compiled_helper(x):
    return RATE * x


def through_compiled_helper(t, y):
    return (compiled_helper(y[0]),)


def test_a_changed_global_of_a_compiled_function_is_noticed(monkeypatch):
    direct = sde(numba.njit(reads_global)).bind(0.0, [1.0])
    bound = sde(through_compiled_helper).bind(0.0, [1.0])
    assert (drift_at(direct), drift_at(bound)) == (3.0, 2.0)
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert (drift_at(direct), drift_at(bound)) == (6.0, 5.0)


parameters = types.ModuleType("parameters")
parameters.rate = 2.0


def reads_module(t, y):
    return (parameters.rate * y[0],)


def test_a_changed_attribute_of_a_module_is_noticed():
    bound = sde(reads_module).bind(0.0, [1.0])
    assert drift_at(bound) == 2.0
    parameters.rate = 4.0
    assert drift_at(bound) == 4.0


def test_values_of_a_partial_are_run_time_numbers(compilations):
    def drift(rate, t, y, shift, scale):
        return (scale * (rate * y[0] + shift),)

    for k in range(5):
        bound = sde(functools.partial(drift, 1.0 * k, scale=2.0), args=(0.5,)).bind(0.0, [1.0])
        assert drift_at(bound) == 2.0 * (k + 0.5)
    assert len(compilations) == 1


def test_sizes_and_kinds_compile(compilations):
    def drift(t, y):
        return -y

    for d, noise in ((1, "scalar"), (2, "scalar"), (2, "diagonal")):
        SDE(drift, lambda t, y: y, d, noise).bind(0.0, np.ones(d)).kernels()
    assert compilations == [(1, 1), (2, 1), (2, 2)]


def test_few_are_kept(compilations, monkeypatch):
    monkeypatch.setattr(compile, "KEPT", 2)
    for k in (1, 2, 3, 3, 2):
        assert drift_at(sde(factory(np.array([0.0, k]), 0.0)).bind(0.0, [1.0])) == k
    assert len(compilations) == 3 and len(compile._kept) == 2
    assert drift_at(sde(factory(np.array([0.0, 1]), 0.0)).bind(0.0, [1.0])) == 1.0  # forgotten, and made again
    assert len(compilations) == 4


def test_a_function_defined_without_a_file_or_a_module(lab):
    space = {}
    exec("def drift(t, y): return (abs(y[0]), max(y[1], 0.5))", space)
    bound = lab.bind(space["drift"], lambda t, y: y, [1.0, 2.0], "diagonal")
    assert bound._compiled()[0].reason == ""
    x, t, h, v = lab.draw(2, 2)
    np.testing.assert_allclose(lab.increment(bound, x, t, h, v), lab.in_python(bound, x, t, h, v), rtol=1e-15)
