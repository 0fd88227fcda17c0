"""Orders of methods that see more of the path than its increments: one Brownian path drives every grid.

The steps are written here, so that what is tested is the driving. With areas, dX = (dW¹, dW², X¹ dW²) is integrated
without error, and so is dX = (dW, X¹ dt) with space-time areas: every grid must reach the same end to rounding.
"""

from dataclasses import replace

import numpy as np
import pytest

from sgdsde import SDE, ArgumentError, Brownian, solve, strong_order, weak_order
from sgdsde._abi import STEP
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import NOISE_KINDS, Scheme, methods
from sgdsde.schemes._aux import iterated, space_time


@kernel_uncached(STEP)
def with_areas(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """Derivative-free Milstein: Σ_jk [b^k(Υ^j) − b^k(Y)] I_(j,k) / √h, row j·m + k of aux."""
    m, n = dW.shape
    y, g, support, none = np.empty_like(x), np.empty_like(x), np.empty_like(x), np.zeros_like(h)
    increment(y, x, t, h, dW, p, data, work)
    for j in range(m):
        v = np.zeros_like(dW)
        v[j] = np.sqrt(h)
        increment(g, x, t, none, v, p, data, work)
        support[:] = x + g
        for k in range(m):
            v[k] = aux[j * m + k] / np.sqrt(h)
        increment(g, support, t, none, v, p, data, work)
        y += g
        increment(g, x, t, none, v, p, data, work)
        y -= g
    x += y


@kernel_uncached(STEP)
def transposed(increment, correction, x, t, h, dW, aux, status, work, p, data):
    m = dW.shape[0]
    other = np.empty_like(aux)
    for j in range(m):
        for k in range(m):
            other[j * m + k] = aux[k * m + j]
    with_areas(increment, correction, x, t, h, dW, other, status, work, p, data)


@kernel_uncached(STEP)
def with_space_time(increment, correction, x, t, h, dW, aux, status, work, p, data):
    """a(Y + b (½ΔW + H)) h + b ΔW."""
    y, g, none = np.empty_like(x), np.empty_like(x), np.zeros_like(h)
    increment(y, x, t, none, 0.5 * dW + aux, p, data, work)
    increment(g, x + y, t, h, np.zeros_like(dW), p, data, work)
    increment(y, x, t, none, dW, p, data, work)
    x += y + g


def made(name, step, aux, strong):
    kinds = dict.fromkeys(NOISE_KINDS, strong)
    return Scheme(name, step, calculus=("ito",), strong=kinds, weak=dict.fromkeys(kinds, 1.0), aux=aux)


AREAS = made("with areas", with_areas, iterated("ito"), 1.0)
TRANSPOSED = made("transposed", transposed, iterated("ito"), 1.0)
SPACE_TIME = made("with space-time areas", with_space_time, space_time(), 1.0)


def zero(t, y):
    return 0.0 * y[0], 0.0, 0.0


def area_columns(t, y):
    return (1.0, 0.0), (0.0, 1.0), (0.0, y[0])


def area():
    return SDE(zero, area_columns, dim=3, noise="general")


def integral():
    return SDE(lambda t, y: (0.0, y[0]), lambda t, y: (1.0, 0.0), dim=2, noise="additive")


FEW = {"n_paths": 40, "n_steps": (4, 16, 64), "refine": 4, "rng": 2}


@pytest.mark.parametrize(
    "scheme, sde", [(AREAS, area()), (SPACE_TIME, integral()), ("milstein", area()), ("sri2", area())]
)
def test_a_method_that_is_exact_given_the_path_is_reported_exact(scheme, sde):
    result = strong_order(sde, [0.0] * sde.dim, (0, 1), scheme, **FEW)
    assert result.verdict == "exact" and result.errors.max() < 1e-12, result.explain()
    weak = weak_order(sde, [0.0] * sde.dim, (0, 1), scheme, n_paths=40, n_steps=(4, 8, 16, 32), rng=2)
    assert weak.verdict == "exact" and weak["|y|²"].errors.max() < 1e-12, weak.explain()


def test_a_transposed_area_is_seen():
    """Exact where the areas are in their place; order one half, as without areas, where they are not."""
    cost = {"n_paths": 400, "n_steps": (8, 16, 32, 64, 128), "rng": 5, "sigmas": 5}
    wrong = strong_order(area(), [0.0] * 3, (0, 1), TRANSPOSED, reference=AREAS, refine=1, **cost)
    without = strong_order(area(), [0.0] * 3, (0, 1), "euler-maruyama", reference=AREAS, refine=1, **cost)
    for result in (wrong, without):
        assert abs(result.order - 0.5) < 0.05, result.explain()
    assert wrong.verdict == "inconsistent" and without.verdict == "consistent"
    # E I_(1,2)² = h²/2 a step, E (I_(1,2) − I_(2,1))² = h²; a spread of some 4 % at 400 paths
    np.testing.assert_allclose(without.errors, np.sqrt(without.dts / 2), rtol=0.2)
    np.testing.assert_allclose(wrong.errors, np.sqrt(wrong.dts), rtol=0.2)


def test_areas_give_general_noise_order_one(problems):
    for make in problems.by_noise["general"]:
        problem = make("ito")
        cost = {"n_paths": 300, "n_steps": (8, 16, 32, 64, 128), "rng": 1, "sigmas": 5}
        result = strong_order(problem.sde, problem.y0, (0, 1), AREAS, **cost)
        assert result.verdict == "consistent" and result.expected == 1.0, result.explain()
        assert result.interval[0] > 0.5


def test_the_finest_level_is_the_run_of_the_object():
    ends = []
    sde = area()

    def keep(solution):
        ends.append(solution.y[:, -1].copy())
        return ends[-1]

    result = strong_order(sde, [0.1] * 3, (0, 2), AREAS, functional=keep, reference="milstein-symmetric", **FEW)
    path = Brownian(2, (0, 2), result.seed, levels=8, n_paths=40)
    for end, n in zip(ends, FEW["n_steps"]):
        direct = solve(sde, (0, 2), [0.1] * 3, method=AREAS, dt=2 / n, n_paths=40, brownian=path).y[:, -1]
        np.testing.assert_array_equal(end, direct)
    reference = solve(sde, (0, 2), [0.1] * 3, method="milstein-symmetric", dt=2 / 256, n_paths=40, brownian=path)
    np.testing.assert_array_equal(ends[3], reference.y[:, -1])


def test_an_exact_solution_gets_the_path_of_the_object():
    def exact(t, W):
        path = Brownian(2, (0, 1), 2, levels=6, n_paths=40)
        np.testing.assert_allclose(W[:, 1:], path(t[1:]), rtol=0, atol=1e-13)
        assert not W[:, 0].any()
        return W[:, -1] + [0.0, 0.0]

    sde = SDE(lambda t, y: (0.0, 0.0), lambda t, y: ((1.0, 0.0), (0.0, 1.0)), dim=2, noise="general")
    result = strong_order(sde, [0.0, 0.0], (0, 1), AREAS, reference=exact, **{**FEW, "refine": None})
    assert result.verdict == "exact", result.explain()


def test_chunks_of_paths_change_nothing(monkeypatch):
    from sgdsde.comparison import _study

    whole = strong_order(area(), [0.1] * 3, (0, 1), TRANSPOSED, **FEW)
    monkeypatch.setattr(_study, "MEMORY", 256 * 2 * 7)
    parts = strong_order(area(), [0.1] * 3, (0, 1), TRANSPOSED, **FEW)
    np.testing.assert_array_equal(whole.errors, parts.errors)


@pytest.mark.parametrize("change", [{"n_steps": (4, 12, 36)}, {"refine": 3}])
@pytest.mark.parametrize("method, reference", [(AREAS, None), ("euler-maruyama", AREAS)])
def test_steps_are_powers_of_two(change, method, reference):
    with pytest.raises(ArgumentError, match=r"n_steps and refine must be powers of two.*iterated integrals"):
        strong_order(area(), [0.1] * 3, (0, 1), method, reference=reference, **{**FEW, **change})
    plain = strong_order(area(), [0.1] * 3, (0, 1), "euler-maruyama", **{**FEW, **change})
    assert np.isfinite(plain.errors).all()


def test_numbers_that_are_not_of_the_path_need_no_object():
    """Platen's two-point variables are drawn on every grid: any steps, and no strong order."""
    problem = SDE(lambda t, y: (-0.5 * y[0], 0.3 * y[1], 0.0), area_columns, dim=3, noise="general")
    cost = {"n_paths": 500, "n_steps": (6, 12, 24, 48), "rng": 3, "sigmas": 5}
    result = strong_order(problem, [0.1] * 3, (0, 1), "platen", **cost)
    assert result.verdict == "consistent" and result.expected == 0.0 and abs(result.order) < 0.1, result.explain()


def test_a_scheme_of_another_name_is_not_taken_for_one_of_the_registry():
    renamed = replace(methods["euler-maruyama"], name="mine")
    result = strong_order(area(), [0.1] * 3, (0, 1), renamed, **FEW)
    assert result.method == "mine"
