"""The measurement of weak orders: paired levels, honest intervals, the Monte-Carlo floor seen, and exactness."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from sgdsde import SDE, ArgumentError, ShapeError, solve, weak_order
from sgdsde._abi import AUX, AUXILIARY
from sgdsde._jit import kernel_uncached
from sgdsde.comparison import _judging, _study
from sgdsde.comparison._means import Sums
from sgdsde.comparison.order_result import OrderResult, WeakOrderResult
from sgdsde.comparison.weak import WIDEST
from sgdsde.random.normal import fill_normals
from sgdsde.schemes import methods
from sgdsde.schemes._scheme import Aux

# dX = A X dt + Σ_j B_j X dW_j, d = 2, m = 3: the columns do not commute, and E XXᵀ solves a linear equation
A = np.array([[-0.5, 2.0], [-2.0, -1.0]])
B = np.array([[[0.3, 0.0], [0.0, -0.3]], [[0.0, 0.4], [0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0]]])
Y0 = np.array([1.0, 0.5])


def linear_drift(t, y):
    return -0.5 * y[0] + 2.0 * y[1], -2.0 * y[0] - 1.0 * y[1]


def linear_columns(t, y):
    return (0.3 * y[0], 0.4 * y[1], 0.0), (-0.3 * y[1], 0.0, 0.5 * y[0])


def linear():
    return SDE(linear_drift, linear_columns, dim=2, noise="general")


def moments(T):
    """E X (2,) and E XXᵀ (2, 2)."""
    one = np.eye(2)
    square = np.kron(A, one) + np.kron(one, A) + sum(np.kron(b, b) for b in B)
    return expm(A * T) @ Y0, (expm(square * T) @ np.outer(Y0, Y0).ravel()).reshape(2, 2)


def first(y):
    return y[:, 0]


def product(y):
    return y[:, 0] * y[:, 1]


def geometric(noise=0.5):
    return SDE(lambda t, y, s: (-y[0],), lambda t, y, s: (s * y[0],), dim=1, noise="scalar", args=(noise,))


def area_columns(t, y):
    return (1.0, 0.0), (0.0, 1.0), (0.0, y[0])


def area():
    return SDE(lambda t, y: (0.0 * y[0], 0.0, 0.0), area_columns, dim=3, noise="general")


def area_square(y):
    return y[:, 2] ** 2


# What it measures


def test_euler_maruyama_has_order_one_for_every_moment():
    mean, square = moments(1.0)
    of = {"first": first, "product": product, "|y|²": lambda y: (y**2).sum(axis=1)}
    exact = {"first": mean[0], "product": square[0, 1], "|y|²": np.trace(square)}
    cost = {"functions": of, "n_steps": (8, 16, 32, 64), "sigmas": 5, "rng": 1}
    result = weak_order(linear(), Y0, (0, 1), "euler-maruyama", reference=exact, n_paths=200_000, **cost)
    assert result.verdict == "consistent" and result.expected == 1.0, result.explain()
    assert set(result.by_function) == set(of) and abs(result.order - 1) < 0.2
    fine = weak_order(linear(), Y0, (0, 1), "euler-maruyama", reference="milstein-symmetric", n_paths=20_000, **cost)
    for name in of:  # the fine run has little noise beside the level, so a tenth of the paths see the same errors
        slack = 5 * np.hypot(result[name].stderr, fine[name].stderr) + 0.1 * result[name].errors
        assert np.all(np.abs(result[name].errors - fine[name].errors) < slack)


def test_platen_has_order_two_where_the_columns_do_not_commute():
    _, square = moments(1.0)
    cost = {"functions": product, "reference": square[0, 1], "rng": 3, "sigmas": 5}
    result = weak_order(linear(), Y0, (0, 1), "platen", n_steps=(2, 4, 8), n_paths=400_000, **cost)
    assert result.verdict == "consistent" and result.expected == 2.0, result.explain()
    assert result.interval[0] > 1.5, result.explain()


@kernel_uncached(AUX)
def signs_of_root_h(aux, dW, h, path, step, key, p, data, work):
    fill_normals(aux, step * aux.shape[0], path, AUXILIARY, key)
    for i in range(aux.shape[0]):
        for b in range(aux.shape[1]):
            aux[i, b] = np.copysign(np.sqrt(h[b]), aux[i, b])


def test_two_point_variables_of_the_wrong_size_are_seen_in_the_second_moment():
    """E (∫W¹dW²)² = ½ is met on every level, to what sampling sees; with V = ±√h it is not, however small h."""
    cost = {"functions": area_square, "reference": 0.5, "n_paths": 20_000, "n_steps": (4, 8, 16, 32), "rng": 0}
    right = weak_order(area(), [0.0] * 3, (0, 1), "platen", **cost)
    assert right.verdict == "inconclusive" and "no error is seen, and none is larger than 0.0" in right.reason
    assert np.isnan(right.order)
    made = Aux(signs_of_root_h, rows=lambda d, m: m * (m - 1) // 2)
    wrong = weak_order(area(), [0.0] * 3, (0, 1), replace(methods["platen"], aux={("general", "ito"): made}), **cost)
    assert wrong.verdict == "inconsistent" and wrong.order < 0.1, wrong.explain()
    h = wrong["area_square"].dts
    np.testing.assert_allclose(wrong["area_square"].errors, (1 - h) / 4, atol=5 * 0.012)


def test_levels_in_place_of_a_reference():
    """Differences of neighbours fall as the error does, and are what two runs with one seed differ by."""
    result = weak_order(geometric(), [1.0], (0, 1), n_paths=20_000, functions=first, rng=4, sigmas=5)
    assert result.verdict == "consistent" and result.method == "euler-maruyama", result.explain()
    one = result["first"]
    assert one.dts.tolist() == [1 / 4, 1 / 8, 1 / 16, 1 / 32] and one.errors.shape == (4,)
    # the finest level is the run of the seed
    fine = solve(geometric(), (0, 1), [1.0], dt=1 / 64, n_paths=20_000, rng=result.seed, keep="final", save_noise=True)
    coarse = solve(
        geometric(), (0, 1), [1.0], dt=1 / 32, n_paths=20_000, dW=fine.dW.reshape(20_000, 32, 2, 1).sum(axis=2), rng=0
    )
    apart = coarse.y[:, -1, 0] - fine.y[:, -1, 0]
    assert one.errors[-1] == pytest.approx(abs(apart.mean()), rel=1e-9)
    assert one.stderr[-1] == pytest.approx(apart.std(ddof=1) / np.sqrt(20_000), rel=1e-9)


def test_levels_are_thirds():
    cost = {"n_paths": 5000, "n_steps": (3, 9, 27, 81), "functions": first, "rng": 0}
    result = weak_order(geometric(), [1.0], (0, 1), "euler-maruyama", **cost)
    assert result.verdict == "consistent", result.explain()


# When there is no number to give


def test_few_paths_are_inconclusive_and_no_order():
    """Weak order 2 with 10⁴ paths: the bias is below the noise, a slope would be anything."""
    result = weak_order(geometric(), [1.0], (0, 1), "platen", reference=np.exp(-1.75), n_paths=10_000, rng=0)
    assert result.verdict == "inconclusive" and "4" in result.reason
    seen = weak_order(
        geometric(), [1.0], (0, 1), "platen", reference=np.exp(-1.75), n_steps=(1, 2, 4, 8, 16), n_paths=10_000, rng=0
    )
    assert seen.verdict == "inconclusive" and "order 2 would take some" in seen.reason, seen.explain()
    assert seen.interval[1] - seen.interval[0] > 0.5


@pytest.mark.parametrize("seed", range(20))
def test_a_floor_is_never_called_an_order(seed):
    """An error of 0.1 h² under a noise of 10⁻³: whatever the draw, it is inconclusive."""
    dts = 2.0 ** -np.arange(2, 7)
    noise = 1e-3 * np.random.default_rng(seed).normal(size=5)
    result = judge(0.1 * dts**2 + noise, 1e-6 * np.eye(5), dts, expected=2.0)
    assert result.verdict == "inconclusive"


def test_no_error_at_all_is_exact_when_paths_agree_and_unknown_when_they_are_sampled():
    brownian = SDE(lambda t, y: (0.0,), lambda t, y: (1.0,), dim=1, noise="additive")
    paired = weak_order(brownian, [0.0], (0, 1), "euler-maruyama", n_paths=100, rng=0)
    assert paired.verdict == "exact" and "rounding" in paired.explain() and np.isnan(paired.order)
    sampled = weak_order(brownian, [0.0], (0, 1), "euler-maruyama", reference=1.0, n_paths=1000, rng=0)
    assert sampled.verdict == "inconclusive" and "none is larger than" in sampled.reason


def test_a_mean_without_bias_is_not_taken_for_an_order():
    """dX = X dW: E Y is right at any step while paths differ by √h."""
    sde = SDE(lambda t, y: (0.0 * y[0],), lambda t, y: (y[0],), dim=1, noise="scalar")
    result = weak_order(sde, [1.0], (0, 1), "euler-maruyama", functions=first, n_paths=5000, rng=1)
    assert result.verdict == "inconclusive" and "no error is seen" in result.reason


def test_paths_that_explode_are_counted_and_never_averaged():
    sde = SDE(lambda t, y: (-(y[0] ** 3),), lambda t, y: (0.3 * y[0],), dim=1, noise="diagonal")
    result = weak_order(sde, [4.0], (0, 5), "euler-maruyama", n_steps=(20, 40, 80, 160), n_paths=200, rng=0)
    one = result["|y|²"]
    assert result.verdict == "inconclusive" and one.n_diverged[0] > 0 and not one.used[0]
    assert "left the finite numbers" in result.explain()


def judge(errors, covariance, dts, expected=None, size=1.0):
    errors = np.asarray(errors, float)
    about = {"method": "none", "noise": "none", "n_paths": 100, "seed": 0, "sigmas": 3.0, "kind": "weak", "of": "f"}
    lost = np.zeros(errors.size, int)
    return _judging.judge(
        errors, np.asarray(covariance, float), np.asarray(dts, float), lost, size=size, finest=0.0, widest=WIDEST,
        expected=expected, **about,
    )  # fmt: skip


def test_an_error_that_changes_its_sign_has_no_power():
    dts = np.array([1.0, 0.5, 0.25, 0.125])
    result = judge(0.1 * dts**2 - 0.05 * dts, 1e-16 * np.eye(4), dts, expected=1.0)
    assert result.verdict == "inconclusive"
    crossed = judge([0.2, 0.1, -0.05, -0.025], 1e-16 * np.eye(4), dts, expected=1.0)
    assert crossed.verdict == "inconclusive" and "changes its sign" in crossed.reason
    negative = judge([-0.2, -0.1, -0.05, -0.025], 1e-16 * np.eye(4), dts, expected=1.0)
    assert negative.verdict == "consistent" and negative.order == pytest.approx(1.0)


def test_an_error_of_nothing_on_one_level():
    result = judge([0.2, 0.0, 0.05], np.diag([1e-6] * 3), [1.0, 0.5, 0.25], expected=1.0)
    assert result.verdict == "inconclusive" and np.isfinite(result.order)


# The interval


def test_the_interval_covers():
    """2000 measurements whose levels share their noise: the spread of the slopes is the standard error, to 10 %."""
    rng = np.random.default_rng(0)
    dts = 2.0 ** -np.arange(4)
    mix = rng.normal(size=(4, 6))
    covariance = 1e-5 * mix @ mix.T
    root = np.linalg.cholesky(covariance)
    slopes, spreads = [], []
    for _ in range(2000):
        errors = 0.3 * dts + root @ rng.normal(size=4)
        relative = errors * np.log(2)
        slope, spread = _judging.slope(np.log2(dts), np.log2(errors), covariance / np.outer(relative, relative))
        slopes.append(slope)
        spreads.append(spread)
    assert abs(np.mean(slopes) - 1) < 0.03
    assert abs(np.std(slopes) / np.sqrt(np.mean(np.square(spreads))) - 1) < 0.1


def test_sums_of_pieces_are_those_of_the_whole():
    rows = np.random.default_rng(0).normal(size=(5, 103)) + 1e3
    sums = Sums(5, 1)
    for part in np.split(rows, [1, 40, 100], axis=1):
        sums.add(part)
    np.testing.assert_allclose(sums.mean, rows.mean(axis=1), rtol=1e-14)
    np.testing.assert_allclose(sums.covariance(), np.cov(rows) / 103, rtol=1e-10)
    rows[2, 7] = np.inf
    sums.add(rows)
    assert sums.lost.tolist() == [0, 0, 1, 0, 0] and np.isfinite(sums.covariance()).all()


def test_chunks_of_paths_change_nothing(monkeypatch):
    cost = {"n_paths": 500, "n_steps": (4, 8, 16, 32), "rng": 1}
    starts = np.random.default_rng(0).normal(size=(500, 2))
    whole = weak_order(linear(), starts, (0, 1), "euler-maruyama", **cost)
    monkeypatch.setattr(_study, "MEMORY", 32 * 3 * 130)
    parts = weak_order(linear(), starts, (0, 1), "euler-maruyama", **cost)
    np.testing.assert_allclose(parts["|y|²"].errors, whole["|y|²"].errors, rtol=1e-12)
    np.testing.assert_allclose(parts["|y|²"].stderr, whole["|y|²"].stderr, rtol=1e-12)


# Several functions together


def result(verdict, order, expected=1.0, name="f"):
    reach = 0.1
    return OrderResult(
        order=order, interval=(order - reach, order + reach), expected=expected, verdict=verdict, reason="because",
        errors=np.ones(3), stderr=np.ones(3), dts=np.ones(3), used=np.ones(3, bool), method="none", noise="none",
        n_paths=10, n_diverged=np.zeros(3, int), seed=0, kind="weak", of=name,
    )  # fmt: skip


@pytest.mark.parametrize(
    "parts, verdict, order",
    [
        ([("consistent", 1.02), ("consistent", 0.97)], "consistent", 0.97),
        ([("consistent", 1.02), ("inconsistent", 2.0)], "consistent", 1.02),  # one function may have a smaller error
        ([("inconsistent", 2.0)], "inconsistent", 2.0),  # alone it is not what the trait says
        ([("consistent", 1.0), ("inconsistent", 0.5), ("inconclusive", 0.3)], "inconsistent", 0.5),
        ([("consistent", 1.0), ("inconclusive", 0.3)], "inconclusive", 0.3),
        ([("inconsistent", 2.0), ("inconclusive", 0.3)], "inconclusive", 0.3),
        ([("consistent", 1.0), ("exact", np.nan)], "consistent", 1.0),
        ([("exact", np.nan), ("exact", np.nan)], "exact", np.nan),
    ],
)
def test_the_lowest_order_decides(parts, verdict, order):
    together = WeakOrderResult({str(i): result(*part, name=str(i)) for i, part in enumerate(parts)})
    assert together.verdict == verdict
    np.testing.assert_equal(together.order, order)
    assert f"by '{together.deciding.of}'" in repr(together)


def test_the_result_explains_itself():
    found = weak_order(linear(), Y0, (0, 1), functions={"a": first, "b": product}, n_paths=2000, rng=7)
    text = found.explain()
    assert "mean of a" in text and "mean of b" in text and "together: " in text and "of 2" in repr(found)
    assert found.method == "euler-maruyama" and found.noise == "general" and found.n_paths == 2000 and found.seed == 7
    for one in (found["a"], found["b"]):
        for i in range(4):
            assert f"{one.errors[i]:.4g}" in text and f"{one.stderr[i]:.2g}" in text
    again = weak_order(linear(), Y0, (0, 1), functions={"a": first, "b": product}, n_paths=2000, rng=found.seed)
    np.testing.assert_array_equal(again["b"].errors, found["b"].errors)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"n_paths": 5}, "n_paths must be at least 10"),
        ({"n_steps": (4, 8, 16)}, "n_steps must be at least 4"),
        ({"n_steps": (4, 8), "reference": 1.0}, "n_steps must be at least 3"),
        ({"n_steps": (2, 4, 8, 32)}, "grow by one factor"),
        ({"n_steps": (4, 8, 12, 16)}, "divide the last"),
        ({"refine": 2}, "refine is for a method"),
        ({"refine": 2, "reference": 1.0}, "refine is for a method"),
        ({"refine": 0, "reference": "milstein-symmetric"}, "refine must be at least 1"),
        ({"sigmas": 0}, "sigmas must be positive"),
        ({"expected": -1.0}, "expected must be at least 0"),
        ({"reference": "x" * 3}, "method must be one of"),
        ({"reference": {"g": 1.0}}, r"exact mean of each function \['first'\]"),
        ({"reference": {"f": 1.0}, "functions": {"f": first, "g": product}}, "exact mean of each function"),
        ({"reference": np.nan}, r"reference\['first'\] must be a finite real number"),
        ({"functions": 3}, "functions must be a function"),
        ({"functions": {}}, "functions must be a function"),
        ({"functions": {1: first}}, "functions must be a function"),
        ({"functions": {"f": lambda y: y[:3, 0]}}, r"functions\['f'\] must return shape \(10,\)"),
        ({"functions": {"f": lambda y: y}}, r"functions\['f'\] must return one number for each path"),
        ({"method": "heun"}, "to_stratonovich"),
        ({"sde": 3}, "sde must be an SDE"),
        ({"dt": 0.1}, "dt"),
    ],
)
def test_arguments_are_named(changes, words):
    settings = {"n_paths": 10, "n_steps": (2, 4, 8, 16), "rng": 0, "functions": first, **changes}
    sde = settings.pop("sde", linear())
    with pytest.raises((ArgumentError, ShapeError, TypeError), match=words):
        weak_order(sde, Y0, (0, 1), settings.pop("method", None), **settings)
