"""Moments over paths: streamed or of what was kept, the same bits; NumPy's values; paths that are missing."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.run.statistics import Tree, moments_of


def test_streamed_moments_are_those_of_all_paths_to_the_bit(eq):
    run = dict(
        dt=0.1, n_paths=777, rng=3, t_eval=[0, 0.33, 1], observe={"norm": lambda t, y, a, b: y[0] ** 2 + y[1] ** 2}
    )
    kept = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], **run)
    for block_size, threads in ((None, None), (1, 1), (16, 2), (256, 2)):
        stats = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], keep="stats", block_size=block_size, threads=threads, **run)
        for what in ("y", "norm"):
            for name in ("mean", "var", "std", "stderr", "count"):
                assert eq.same(getattr(stats, name)(what), getattr(kept, name)(what)), (block_size, what, name)
    assert stats.values is None
    with pytest.raises(sg.SgdsdeError, match='keep="stats"'):
        stats.y  # noqa: B018
    with pytest.raises(sg.SgdsdeError, match='keep="stats"'):
        stats.observed  # noqa: B018


def test_moments_are_those_of_numpy(eq):
    """M18."""
    sol = sg.solve(eq.mixed, (0, 1), [0.3, -0.2], dt=0.1, n_paths=301, rng=3, t_eval=3)
    y = sol.y[:, 1:]
    np.testing.assert_allclose(sol.mean()[1:], y.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(sol.var()[1:], y.var(axis=0, ddof=1), rtol=1e-13)
    np.testing.assert_allclose(sol.std()[1:], y.std(axis=0, ddof=1), rtol=1e-13)
    np.testing.assert_allclose(sol.stderr()[1:], y.std(axis=0, ddof=1) / np.sqrt(301), rtol=1e-13)
    assert np.array_equal(sol.moments.smallest, sol.y.min(axis=0)) and np.all(sol.count() == 301)
    assert np.array_equal(sol.moments.largest, sol.y.max(axis=0)) and not sol.var()[0].any()
    with pytest.raises(sg.ArgumentError, match="what must be one of 'y', got 'z'"):
        sol.mean("z")


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 100, 257, 511])
@pytest.mark.parametrize("size", [1, 2, 64])
def test_the_tree_does_not_depend_on_blocks_or_order(n, size):
    values = np.random.default_rng(n).normal(size=(n, 2, 3)) + 1e3
    values[:: 7 + n // 2, 1, 2] = np.nan
    expected = moments_of(values).values
    tree, blocks = Tree(), list(range(-(-n // size)))
    np.random.default_rng(1).shuffle(blocks)
    for block in blocks:
        part = values[block * size : (block + 1) * size]
        tree.add(np.ascontiguousarray(np.moveaxis(part, 0, -1)), block, size)
    assert np.array_equal(tree.result().values, expected, equal_nan=True)
    good = np.isfinite(values[:, 1, 2])
    assert expected[0, 1, 2] == good.sum()
    if good.sum() > 1:
        np.testing.assert_allclose(expected[1, 1, 2], values[good, 1, 2].mean(), rtol=1e-14)
        np.testing.assert_allclose(expected[2, 1, 2], ((values[good, 1, 2] - 1e3) ** 2).sum() - good.sum() * (
            values[good, 1, 2].mean() - 1e3) ** 2, rtol=1e-9)  # fmt: skip


def test_large_and_offset_values_do_not_spoil_the_moments():
    values = np.full((3, 1, 1), np.nan)
    values[1] = 1e200  # alone among missing ones: its square overflows, its variance is unknown
    alone = moments_of(values)
    assert alone.count[0, 0] == 1 and alone.mean[0, 0] == 1e200 and np.isnan(alone.var[0, 0])
    assert alone.values[2, 0, 0] == 0.0
    values = 1e9 + np.arange(1000.0).reshape(-1, 1, 1)
    assert moments_of(values).var[0, 0] == pytest.approx(np.arange(1000.0).var(ddof=1), rel=1e-12)
