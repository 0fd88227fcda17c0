"""The measurement itself: one path for all levels, honest intervals, and when it must not give a number."""

import numpy as np
import pytest

from sgdsde import choose_method, weak_order
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.comparison import _judging, _study
from sgdsde.comparison.order import WIDEST, _roots, strong_order
from sgdsde.equation import SDE
from sgdsde.run.solving import solve
from sgdsde.schemes import methods


def zero(t, y):
    return 0.0 * y[0], 0.0


def pull(t, y):
    return -y[0] + 0.3 * np.sin(y[1]), 0.5 * y[0]


def constant(t, y):
    return (1.0, 0.5, 0.0), (0.0, 1.0, -1.0)


def growing(t, y):
    return 0.5 * np.sin(y[0]), 0.4 * y[1]


def brownian():
    return SDE(zero, constant, dim=2, noise="additive")


def multiplicative():
    return SDE(pull, growing, dim=2, noise="diagonal")


MATRIX = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]])
ABOUT = {"method": "none", "noise": "none", "seed": 0, "sigmas": 3.0, "widest": WIDEST}


def judge(squares, dts, expected=None, finest=0.0, size=1.0):
    squares = np.asarray(squares, float)
    lost = np.count_nonzero(~np.isfinite(squares), axis=1)
    about = {**ABOUT, "n_paths": squares.shape[1], "expected": expected, "finest": finest, "size": size}
    return _judging.judge(*_roots(squares), np.asarray(dts, float), lost, **about)


# One path for all levels


def test_brownian_motion_is_exact():
    """Errors of zero give no NaN and no slope: the verdict is 'exact'."""
    result = strong_order(
        brownian(), [0.3, 0.1], (0, 1), reference=lambda t, W: W[:, -1] @ MATRIX.T + [0.3, 0.1], rng=0
    )
    assert result.verdict == "exact" and np.isnan(result.order) and result.errors.max() < 1e-13
    assert "exact" in result.explain() and "exact" in repr(result)


def test_levels_see_one_path_and_the_finest_is_the_run_of_the_seed():
    ends = []

    def keep(solution):
        ends.append(solution.y[:, -1].copy())
        return ends[-1]

    def reference(t, W):
        np.testing.assert_array_equal(t, np.linspace(0, 1, 65))
        assert W.shape == (20, 65, 3) and not W[:, 0].any()
        return W[:, -1] @ MATRIX.T

    strong_order(
        brownian(), [0.0, 0.0], (0, 1), functional=keep, reference=reference, n_paths=20, n_steps=(16, 32, 64), rng=5
    )
    direct = solve(brownian(), (0, 1), [0.0, 0.0], dt=1 / 64, n_paths=20, rng=5, keep="final").y[:, -1]
    np.testing.assert_array_equal(ends[2], direct)
    for end in ends:
        np.testing.assert_allclose(end, direct, rtol=0, atol=1e-13)


def test_chunks_of_paths_change_nothing(monkeypatch):
    settings = {"n_paths": 50, "n_steps": (8, 16, 32), "rng": 1, "refine": 4}
    starts = np.random.default_rng(0).normal(size=(50, 2))
    whole = strong_order(multiplicative(), starts, (0, 1), "milstein", **settings)
    monkeypatch.setattr(_study, "MEMORY", 7 * 32 * 4 * 2)
    sizes = []
    observe = {"functional": lambda solution: sizes.append(solution.y.shape[0]) or solution.y[:, -1]}
    parts = strong_order(multiplicative(), starts, (0, 1), "milstein", **settings, **observe)
    assert sizes[::4] == [7] * 7 + [1]
    np.testing.assert_array_equal(whole.errors, parts.errors)
    assert whole.order == parts.order


def test_another_method_as_reference():
    result = strong_order(multiplicative(), [1.0, 0.5], (0, 1), "euler-maruyama", reference="milstein", rng=3)
    assert result.verdict == "consistent" and result.expected == 0.5, result.explain()


def test_auto_is_the_method_that_is_chosen_for_the_goal():
    cost = {"n_paths": 20, "rng": 0}
    strong = strong_order(multiplicative(), [1.0, 0.5], (0, 1), "auto", n_steps=(4, 8, 16), refine=2, **cost)
    weak = weak_order(multiplicative(), [1.0, 0.5], (0, 1), "auto", n_steps=(4, 8, 16, 32), **cost)
    for result, goal in ((strong, "strong"), (weak, "weak")):
        assert result.method == choose_method(multiplicative(), [1.0, 0.5], goal=goal).method != "euler-maruyama"


def test_no_noise_measures_the_ode_order():
    def still(t, y):
        return 0.0, 0.0

    sde = SDE(pull, still, dim=2, noise="diagonal", calculus="stratonovich")
    for name, n_steps in [("heun", (16, 32, 64, 128)), ("milstein", (16, 32, 64, 128))]:
        order = methods[name].ode_order
        result = strong_order(sde, [1.0, 0.5], (0, 1), name, n_paths=10, n_steps=n_steps, expected=order, rng=0)
        assert result.verdict == "consistent" and np.all(result.stderr <= 1e-15 * result.errors), result.explain()


# When there is no number to give


def test_too_few_paths_are_inconclusive():
    result = strong_order(multiplicative(), [1.0, 0.5], (0, 1), "milstein", n_paths=10, n_steps=(16, 32, 64), rng=6)
    assert result.verdict == "inconclusive" and result.reason
    assert result.interval[0] < result.order < result.interval[1]


def test_paths_that_explode_are_counted_and_never_averaged():
    def cubic(t, y):
        return (-(y[0] ** 3),)

    def linear(t, y):
        return (0.3 * y[0],)

    sde = SDE(cubic, linear, dim=1, noise="diagonal")
    result = strong_order(sde, [4.0], (0, 5), "euler-maruyama", n_paths=200, n_steps=(20, 100, 200), rng=0)
    assert result.verdict == "inconclusive" and "left the finite numbers" in result.reason
    assert result.n_diverged[0] > 0 and np.isinf(result.errors[0]) and not result.n_diverged[1:].any()
    assert list(result.used) == [False, True, True]
    assert "left the finite numbers" in result.explain()


def test_levels_without_such_paths_are_still_measured():
    squares = np.outer(0.1 ** np.arange(4), np.linspace(0.9, 1.1, 50)) ** 2
    squares[0, 7] = np.nan
    result = judge(squares, 0.1 ** np.arange(4), expected=1.0)
    assert list(result.used) == [False, True, True, True] and result.n_diverged[0] == 1
    assert result.verdict == "consistent" and "1 path left" in result.explain()


def test_an_error_below_four_standard_errors_is_no_error():
    heavy = np.full((3, 100), 1e-4)
    heavy[:, 0] = 1e4
    result = judge(heavy * np.array([[16.0], [4.0], [1.0]]), [4, 2, 1], expected=1.0)
    assert result.verdict == "inconclusive" and "standard errors" in result.reason


def test_levels_at_the_rounding_floor_are_left_out():
    squares = np.outer([1e-6, 1e-8, 1e-10, 1e-27], np.linspace(0.9, 1.1, 50))
    result = judge(squares, [1e-1, 1e-2, 1e-3, 1e-4], expected=1.0)
    assert list(result.used) == [True, True, True, False]
    assert result.verdict == "consistent" and abs(result.order - 1) < 1e-12
    assert "rounding" in result.explain()
    assert judge(squares[1:], [1e-2, 1e-3, 1e-4], expected=1.0).verdict == "inconclusive"


# The interval


def test_the_standard_error_knows_that_levels_share_their_paths():
    """Errors that are one number times the step, path by path: the slope has no error, however wide the spread."""
    spread = np.random.default_rng(0).exponential(size=400)
    dts = np.array([1.0, 0.5, 0.25, 0.125])
    shared = judge(dts[:, None] ** 2 * spread, dts, expected=1.0)
    assert abs(shared.order - 1) < 1e-12 and shared.interval == pytest.approx((0.95, 1.05))
    apart = judge(dts[:, None] ** 2 * np.random.default_rng(1).exponential(size=(4, 400)), dts, expected=1.0)
    assert apart.interval[1] - apart.interval[0] > 0.2


@pytest.mark.parametrize("order", [0.5, 1.0])
def test_the_interval_covers(order):
    """2000 measurements with partly shared noise: the spread of the slopes is the standard error, to 10 %."""
    rng = np.random.default_rng(0)
    dts = 2.0 ** -np.arange(5)
    x = np.log2(dts)
    slopes, spreads = [], []
    for _ in range(2000):
        common, own = rng.normal(size=(1, 200)), rng.normal(size=(5, 200))
        squares = dts[:, None] ** (2 * order) * (common + own) ** 2
        mean = squares.mean(axis=1)
        psi = 0.5 / np.log(2) * (squares / mean[:, None] - 1)
        slope, spread = _judging.slope(x, 0.5 * np.log2(mean), psi @ psi.T / 200**2)
        slopes.append(slope)
        spreads.append(spread)
    assert abs(np.mean(slopes) - order) < 0.01
    assert abs(np.std(slopes) / np.mean(spreads) - 1) < 0.1


def test_a_bent_line_widens_the_interval():
    dts = 2.0 ** -np.arange(6)
    noise = np.linspace(0.99, 1.01, 50)
    bent = (dts**0.5 + 2 * dts) ** 2
    result = judge(bent[:, None] * noise, dts)
    assert result.verdict == "inconclusive" or result.interval[1] - result.interval[0] > 0.2


@pytest.mark.parametrize("order", [0.5, 1.0])
def test_the_error_of_a_numerical_reference_is_in_the_interval(order):
    """Against a run of a quarter of the step an order reads too high; the interval reaches back to the truth."""
    dts = 2.0 ** -np.arange(5)
    finest = dts[-1] / 4
    apart = dts - finest if order == 0.5 else (dts - finest) ** 2  # variances subtract, or errors do
    squares = np.outer(apart, np.linspace(0.9, 1.1, 50))
    trusting = judge(squares, dts, finest=0.0)
    result = judge(squares, dts, finest=finest)
    assert result.order == trusting.order > order + 0.02
    assert result.interval[0] < min(order, trusting.interval[0] - 0.02) and result.interval[1] >= trusting.interval[1]


def test_a_coarse_reference_reads_high_and_says_so():
    """The same levels against runs of half and of a sixteenth of the last step: the first interval reaches lower."""
    cost = {"n_paths": 2000, "n_steps": (8, 16, 32, 64), "rng": 0}
    coarse, fine = (
        strong_order(multiplicative(), [1.0, 0.5], (0, 1), "euler-maruyama", refine=r, **cost) for r in (2, 16)
    )
    assert coarse.order > fine.order + 0.05 and coarse.interval[0] < fine.order, (coarse.explain(), fine.explain())
    assert coarse.order - coarse.interval[0] > coarse.interval[1] - coarse.order + 0.03
    trusted = strong_order(
        multiplicative(), [1.0, 0.5], (0, 1), "euler-maruyama", refine=1, reference="milstein", **cost
    )
    assert trusted.order - trusted.interval[0] == pytest.approx(trusted.interval[1] - trusted.order)


# Arguments and words


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"n_paths": 5}, "n_paths must be at least 10"),
        ({"n_steps": (4, 8)}, "n_steps must be at least 3"),
        ({"n_steps": (4, 8, 12)}, "divide the last"),
        ({"n_steps": (8, 4, 16)}, "increasing"),
        ({"refine": 0}, "refine must be at least 1"),
        ({"refine": 1}, "refine must be at least 2 without a reference"),
        ({"sigmas": 0}, "sigmas must be positive"),
        ({"expected": -1.0, "n_paths": 10}, "expected must be at least 0"),
        ({"reference": "x" * 3}, "method must be one of"),
        ({"method": "heun", "sde": multiplicative()}, "to_stratonovich"),
        ({"quantity": len, "functional": len}, "exclude each other"),
        ({"quantity": lambda y: y[:3]}, "quantity must return shape"),
        ({"reference": lambda t, W: W[:, -1]}, "reference must return shape"),
        ({"dt": 0.1}, "dt"),
    ],
)
def test_arguments_are_named(changes, words):
    settings = {"n_paths": 10, "n_steps": (2, 4, 8), "rng": 0, "refine": 2, **changes}
    sde = settings.pop("sde", brownian())
    with pytest.raises((ArgumentError, ShapeError, TypeError), match=words):
        strong_order(sde, [0.0, 0.0], (0, 1), settings.pop("method", None), **settings)


def test_the_result_explains_itself():
    result = strong_order(multiplicative(), [1.0, 0.5], (0, 1), "milstein", n_paths=400, rng=7)
    text = result.explain()
    assert result.method == "milstein" and result.noise == "diagonal" and result.n_paths == 400 and result.seed == 7
    for i in range(5):
        assert f"{result.errors[i]:.4g}" in text and f"{result.dts[i]:.4g}" in text
    assert "consistent with strong order 1" in text and "expected=1" in repr(result)
    again = strong_order(multiplicative(), [1.0, 0.5], (0, 1), "milstein", n_paths=400, rng=result.seed)
    assert again.order == result.order


def test_nothing_expected_is_measured():
    result = strong_order(multiplicative(), [1.0, 0.5], (0, 1), "milstein", quantity=lambda y: y[:, 0], rng=0)
    assert result.verdict == "measured" and result.expected is None and abs(result.order - 1) < 0.2


@pytest.mark.parametrize("study", ["strong_order", "weak_order"])
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"dt": 0.1}, "dt must be left out: an order study sets it itself"),
        ({"checkpoint": "file"}, "checkpoint must be left out"),
        ({"brownian": None}, "brownian must be left out"),
        ({"n_path": 3}, "n_path is no argument of solve"),
    ],
)
def test_options_that_are_not_passed_on(study, options, match):
    import sgdsde as sg

    sde = sg.SDE(lambda t, y: (-y[0],), lambda t, y: (0.5 * y[0],), dim=1, noise="scalar")
    with pytest.raises(sg.ArgumentError, match=match):
        getattr(sg, study)(sde, [1.0], (0, 1), "milstein", n_paths=50, rng=0, **options)
