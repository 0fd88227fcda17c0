"""`compare` against the formulas it stands for, written out again with plain NumPy and SciPy."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, ttest_ind, ttest_rel

import sgdsde as sg
from sgdsde import ArgumentError, ShapeError, compare


def second(y):
    return y[..., 1]


def test_independent_runs_give_welchs_statistic(solution, normal):
    x, y = normal(1, 12, 3, 2), 2.0 * normal(2, 7, 3, 2) + 0.5
    result = compare(solution(x, seed=1), solution(y, seed=2, method="milstein"), second)
    u, v = x[..., 1], y[..., 1]
    assert not result.paired and result.observable == "second" and result.names == ("euler-maruyama", "milstein")
    np.testing.assert_allclose(result.difference, u.mean(0) - v.mean(0), rtol=1e-13)
    np.testing.assert_allclose(result.stderr_a, u.std(0, ddof=1) / np.sqrt(12), rtol=1e-13)
    np.testing.assert_allclose(result.stderr_b, v.std(0, ddof=1) / np.sqrt(7), rtol=1e-13)
    np.testing.assert_allclose(result.z, ttest_ind(u, v, equal_var=False).statistic, rtol=1e-12)
    pooled = np.sqrt((11 * u.var(0, ddof=1) + 6 * v.var(0, ddof=1)) / 17)
    np.testing.assert_allclose(result.effect_size, (u.mean(0) - v.mean(0)) / pooled, rtol=1e-13)
    for k in range(3):
        other = ks_2samp(u[:, k], v[:, k], method="exact")
        assert (result.ks[k], result.p_value[k]) == pytest.approx((other.statistic, other.pvalue), rel=1e-10)
    assert result.n_a.tolist() == [12] * 3 and result.n_b.tolist() == [7] * 3


def test_runs_with_one_seed_are_paired(solution, normal):
    x = normal(3, 20, 2, 1)
    y = x + 0.01 * normal(4, 20, 2, 1)
    result = compare(solution(x), solution(y, dt=0.05), lambda s: s[:, 0])
    assert result.paired
    np.testing.assert_allclose(result.z, ttest_rel(x[..., 0], y[..., 0]).statistic, rtol=1e-10)
    assert np.all(result.stderr < 0.05 * np.hypot(result.stderr_a, result.stderr_b))
    assert "paired" in repr(result) and "independent" not in repr(result)
    assert result.names == ("euler-maruyama dt=0.1", "euler-maruyama dt=0.05")


@pytest.mark.parametrize("change, is_paired", [
    ({}, True),
    ({"seed": 1}, False),
    ({"calculus": "discrete"}, False),  # another stream of random numbers
    ({"calculus": "stratonovich"}, True),
    ({"path_index": [50, 51, 52, 53]}, False),
])  # fmt: skip
def test_when_runs_share_noise(solution, normal, change, is_paired):
    a, b = solution(normal(5, 4, 2, 1)), solution(normal(6, 4, 2, 1), **change)
    assert compare(a, b).paired is is_paired
    assert compare(a, b, paired=False).paired is False


def test_two_runs_of_sgd_with_one_seed_share_their_batches(solution, normal):
    runs = [solution(normal(k, 4, 2, 1), calculus="discrete", method="sgd") for k in (1, 2)]
    assert compare(*runs).paired


def test_paths_pair_by_number_and_only_the_common_ones_count(solution, normal):
    x, y = normal(7, 5, 2, 1), normal(8, 4, 2, 1)
    result = compare(solution(x, path_index=[4, 3, 2, 1, 0]), solution(y, path_index=[1, 2, 9, 3]), lambda s: s[:, 0])
    d = np.stack([x[3] - y[0], x[2] - y[1], x[1] - y[3]])[..., 0]
    np.testing.assert_allclose(result.difference, d.mean(0), rtol=1e-13)
    np.testing.assert_allclose(result.stderr, d.std(0, ddof=1) / np.sqrt(3), rtol=1e-13)
    assert result.n_a.tolist() == [3, 3] and any("3 path numbers in common" in note for note in result.notes)


def test_pairing_of_runs_without_a_common_path_is_refused(solution, normal):
    a, b = solution(normal(1, 2, 2, 1)), solution(normal(2, 2, 2, 1), path_index=[7, 8], seed=3)
    with pytest.raises(ArgumentError, match="paired must be False"):
        compare(a, b, paired=True)


def test_only_common_times_are_compared(solution, normal):
    x, y = normal(9, 4, 4, 1), normal(10, 4, 3, 1)
    a = solution(x, t=[0.0, 0.3, 0.6, 0.9], seed=1)
    b = solution(y, t=[0.1 * 3 * (1 + 1e-12), 0.5, 0.9], seed=2)
    result = compare(a, b, lambda s: s[:, 0])
    assert result.t.tolist() == [0.3, 0.9]
    np.testing.assert_allclose(result.mean_a, x[:, [1, 3], 0].mean(0), rtol=1e-13)
    np.testing.assert_allclose(result.mean_b, y[:, [0, 2], 0].mean(0), rtol=1e-13)
    assert any("2 times in common, of 4 and 3" in note for note in result.notes)


def test_no_common_time_is_an_error_that_says_so(solution, normal):
    a, b = solution(normal(1, 2, 2, 1), t=[0, 1]), solution(normal(1, 2, 2, 1), t=[0.5, 2])
    with pytest.raises(ArgumentError, match=r"share a time: a has 2 in \[0, 1\], b has 2 in \[0.5, 2\].*t_eval"):
        compare(a, b)


def test_stopped_paths_are_counted_and_never_averaged(solution, normal):
    x, y = normal(11, 6, 3, 2), normal(12, 6, 3, 2)
    x[2, 1:] = np.nan
    a, b = solution(x, seed=1), solution(y, seed=2)
    result = compare(a, b, second)
    assert np.isfinite(result.difference[0]) and np.isnan(result.difference[1:]).all() and np.isnan(result.ks[1:]).all()
    assert result.stopped_a.tolist() == [0, 1, 1] and result.stopped_b.tolist() == [0, 0, 0]
    assert result.n_a.tolist() == [6, 5, 5]
    assert "1 of 6 paths are not finite" in repr(result) and "skip_diverged" in repr(result)
    left = compare(a, b, second, skip_diverged=True)
    alive = np.delete(x[..., 1], 2, axis=0)
    np.testing.assert_allclose(left.mean_a[1:], alive.mean(0)[1:], rtol=1e-13)
    assert "left out" in repr(left)


def test_a_stopped_path_leaves_its_pair(solution, normal):
    x, y = normal(13, 5, 2, 1), normal(14, 5, 2, 1)
    x[0, 1], y[4, 1] = np.nan, np.inf
    result = compare(solution(x), solution(y), lambda s: s[:, 0], skip_diverged=True)
    d = (x - y)[1:4, 1, 0]
    assert result.difference[1] == pytest.approx(d.mean(), rel=1e-13) and result.n_a.tolist() == [5, 3]
    assert result.stderr[1] == pytest.approx(d.std(ddof=1) / np.sqrt(3), rel=1e-13)


def test_a_function_never_sees_a_stopped_path(solution, normal):
    x = normal(15, 3, 2, 1)
    x[1, 1] = np.nan
    seen = []
    compare(solution(x), solution(normal(16, 3, 2, 1)), lambda s: seen.append(s) or s[:, 0])
    assert all(np.isfinite(s).all() and s.ndim == 2 for s in seen)


def test_without_an_observable_every_component_is_compared(solution, normal):
    x, y = normal(17, 9, 2, 6), normal(18, 9, 2, 6)
    y[:, 1, 4] += 5.0
    result = compare(solution(x, seed=1), solution(y, seed=2))
    assert result.z.shape == (2, 6) and result.n_components == 6 and result.labels[4] == "y[4]"
    for c in range(6):
        alone = compare(solution(x, seed=1), solution(y, seed=2), lambda s, c=c: s[:, c])
        for name in ("mean_a", "difference", "stderr", "effect_size", "z", "ks", "p_value"):
            np.testing.assert_allclose(getattr(result, name)[:, c], getattr(alone, name), rtol=1e-12)
    lines = result.table().splitlines()
    assert "y[4]" in lines[2] and "largest |z| of 6" in lines[-1]
    assert len(result.table(component=0).splitlines()) == 3
    with pytest.raises(ArgumentError, match="component"):
        result.table(component=6)


def test_a_name_takes_what_the_runs_observed(solution, normal):
    x, y = normal(19, 4, 2, 2), normal(20, 4, 2, 2)
    a = solution(x, seed=1, observed={"observed:loss": x[..., :1] ** 2, "tracked:law": x})
    b = solution(y, seed=2, observed={"observed:loss": y[..., :1] ** 2, "tracked:law": y})
    result = compare(a, b, "loss")
    np.testing.assert_allclose(result.mean_b, (y[..., 0] ** 2).mean(0), rtol=1e-13)
    assert compare(a, b, "law").labels == ("law[0]", "law[1]")
    with pytest.raises(ArgumentError, match=r"'law', 'loss' in a.*'lose'"):
        compare(a, b, "lose")
    with pytest.raises(ArgumentError, match="nothing was observed"):
        compare(solution(x), solution(y), "loss")


def test_one_path_has_a_difference_and_no_error(solution, normal):
    x, y = normal(21, 1, 2, 1), normal(22, 1, 2, 1)
    result = compare(solution(x, single=True, seed=1), solution(y, single=True, seed=2), lambda s: s[:, 0])
    np.testing.assert_allclose(result.difference, (x - y)[0, :, 0], rtol=1e-15)
    assert np.isnan(result.stderr).all() and np.isnan(result.z).all() and np.isnan(result.effect_size).all()
    assert " - " in result.table()


def test_a_start_that_is_not_random_has_no_z(solution, normal):
    x, y = normal(23, 5, 2, 1), normal(24, 6, 2, 1)
    x[:, 0], y[:, 0] = 10.7, 10.7  # the mean of six of them is not 10.7
    result = compare(solution(x, seed=1), solution(y, seed=2), lambda s: s[:, 0])
    assert np.isnan(result.z[0]) and np.isnan(result.effect_size[0]) and result.ks[0] == 0 and result.p_value[0] == 1
    y[:, 0] += 1.0
    far = compare(solution(x, seed=1), solution(y, seed=2), lambda s: s[:, 0])
    assert far.z[0] == -np.inf


def test_arrays_survive_a_file(solution, normal, tmp_path):
    result = compare(solution(normal(25, 4, 2, 2)), solution(normal(26, 4, 2, 2)))
    np.savez(tmp_path / "c.npz", **result.to_arrays())
    with np.load(tmp_path / "c.npz") as file:
        np.testing.assert_array_equal(file["z"], result.z)
        assert file["names"].tolist() == list(result.names) and bool(file["paired"]) is True


@pytest.mark.parametrize("a, b, observable, options, about", [
    (0, None, None, {}, "a must be a Solution"),
    (None, [1.0], None, {}, "b must be a Solution"),
    (None, None, 3, {}, "observable must be a function"),
    (None, None, None, {"names": "ab"}, "names must be two texts"),
    (None, None, None, {"paired": 1}, "paired must be True or False"),
])  # fmt: skip
def test_wrong_arguments_are_named(solution, normal, a, b, observable, options, about):
    run = solution(normal(27, 3, 2, 1))
    with pytest.raises(ArgumentError, match=about):
        compare(run if a is None else a, run if b is None else b, observable, **options)


def test_a_function_of_the_wrong_shape_is_refused(solution, normal):
    run = solution(normal(28, 3, 2, 2))
    with pytest.raises(ShapeError, match=r"\(n, d\) to \(n,\).*got shape \(\)"):
        compare(run, run, lambda s: s.sum())


def test_a_run_without_paths_is_refused(solution, normal):
    run = solution(normal(29, 3, 2, 1))
    run.values = None
    with pytest.raises(ArgumentError, match="a must have kept its paths"):
        compare(run, run)


def test_a_long_comparison_prints_a_dozen_times(solution, normal):
    run = [solution(normal(k, 3, 101, 1), seed=k) for k in (1, 2)]
    result = compare(*run, lambda s: s[:, 0])
    assert len(result.table().splitlines()) == 102
    assert "12 of 101 times" in repr(result) and len(repr(result).splitlines()) == 15
    assert result.table(max_times=1).splitlines()[1].split()[0] == "100"


@pytest.mark.parametrize(
    "observable", [lambda y: y[:, 0] * 1j, lambda y: ["1"] * len(y), lambda y: y[:, :0], lambda y: [[1.0], [1.0, 2.0]]]
)
def test_an_observable_gives_real_numbers_and_at_least_one(observable):
    sol = linear_run()
    with pytest.raises(ArgumentError, match="observable"):
        sg.compare(sol, sol, observable)


def test_names_are_a_pair():
    sol = linear_run()
    with pytest.raises(ArgumentError, match="names must be two texts"):
        sg.compare(sol, sol, names=3)


def test_an_order_is_refused_what_is_no_equation_level_or_quantity():
    sde = linear()
    for wrong in (None, sg.SDE, "x"):
        with pytest.raises(ArgumentError, match="sde must be an SDE"):
            sg.strong_order(wrong, [1.0], (0, 1))
    for wrong in (4, None, "48"):
        with pytest.raises(ArgumentError, match="n_steps must be a sequence"):
            sg.strong_order(sde, [1.0], (0, 1), n_steps=wrong)
    for name in ("quantity", "functional"):
        with pytest.raises(ArgumentError, match=f"{name} must be a function"):
            sg.strong_order(sde, [1.0], (0, 1), **{name: 3})


def linear():
    return sg.SDE(lambda t, y: (-y[0],), lambda t, y: (0.5,), dim=1, noise="diagonal")


def linear_run():
    return sg.solve(linear(), (0, 1), [1.0], dt=0.5, n_paths=3, rng=0)
