"""Indices and subsets: exact against big-integer arithmetic, uniform by counting, the same however cut."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from sgdsde.random.integers import fill_indices, fill_subsets, subset_work

KEY = 0xFEDCBA9876543210
GATE_P = 5e-7  # of a chi-square with a fixed seed: false alarm <= 1e-6


def indices(first, rows, paths, n, purpose=2, key=KEY):
    out = np.full((rows, len(paths)), np.nan)
    fill_indices(out, first, np.asarray(paths, dtype=np.uint64), purpose, np.uint64(key), n)
    return out


def subsets(first, size, paths, n, purpose=2, key=KEY):
    out = np.full((size, len(paths)), np.nan)
    work = np.full(subset_work(size), 3.0)  # garbage that looks like entries of the table
    fill_subsets(out, first, np.asarray(paths, dtype=np.uint64), purpose, np.uint64(key), n, work)
    return out


@pytest.mark.parametrize("n", [1, 2, 6, 1797, 2**32 - 1, 2**32, 2**32 + 1, 10**12 + 39, 2**53 - 1, 2**53])
def test_indices_are_the_upper_half_of_the_product(n, reference):
    paths = [0, 1, 2**55 + 3]
    for first, rows in ((0, 7), (2**40 + 1, 6)):
        got = indices(first, rows, paths, n)
        for b, path in enumerate(paths):
            assert [int(i) for i in got[:, b]] == [
                reference.word(first + r, path, 2, KEY) * n >> 64 for r in range(rows)
            ]


def test_indices_do_not_depend_on_cuts():
    rng = np.random.default_rng(2)
    for B in range(1, 71):
        R, first = int(rng.integers(1, 60)), int(rng.integers(0, 2**40))
        paths = rng.integers(0, 2**56, B, dtype=np.uint64)
        whole = indices(first, R, paths, 1797)
        r, b = int(rng.integers(0, R + 1)), int(rng.integers(0, B + 1))
        assert np.array_equal(indices(first + r, R - r, paths[b:], 1797), whole[r:, b:])
        assert np.array_equal(indices(first, r, paths[:b], 1797), whole[:r, :b])


def test_indices_are_uniform_and_neighbours_independent():
    out = indices(0, 200, np.arange(500), 10).astype(int)
    assert stats.chisquare(np.bincount(out.ravel(), minlength=10)).pvalue > GATE_P
    pairs = out[0::2] * 10 + out[1::2]
    assert stats.chisquare(np.bincount(pairs.ravel(), minlength=100)).pvalue > GATE_P
    pairs = out[:, 0::2] * 10 + out[:, 1::2]
    assert stats.chisquare(np.bincount(pairs.ravel(), minlength=100)).pvalue > GATE_P


def shuffle(drawn, n):
    """The start of a permutation of range(n) by Fisher and Yates, as in a textbook, from 64-bit words."""
    a = list(range(n))
    for s, word in enumerate(drawn):
        t = s + (word * (n - s) >> 64)
        a[s], a[t] = a[t], a[s]
    return a[: len(drawn)]


@pytest.mark.parametrize(
    ("n", "size"), [(1, 1), (2, 2), (5, 1), (5, 4), (6, 3), (40, 40), (257, 64), (1797, 32), (300, 299)]
)
def test_subsets_are_a_textbook_shuffle(n, size, reference):
    for first in (0, 1, 3 * size, 2**40 + 1):
        paths = [0, 7, 2**55]
        got = subsets(first, size, paths, n)
        for b, path in enumerate(paths):
            drawn = [reference.word(first + s, path, 2, KEY) for s in range(size)]
            assert list(got[:, b]) == shuffle(drawn, n)


@pytest.mark.parametrize("n", [1, 2, 3, 64, 1000])
def test_a_subset_of_all_is_a_permutation(n):
    out = subsets(5, n, np.arange(20), n)
    assert np.array_equal(np.sort(out, axis=0), np.repeat(np.arange(n, dtype=float)[:, None], 20, axis=1))


def test_subsets_of_a_huge_range_are_distinct():
    out = subsets(0, 1000, np.arange(5), 2**53)
    assert all(np.unique(column).size == 1000 for column in out.T)
    assert out.min() >= 0 and out.max() < 2**53 and out.max() > 2**52


def test_all_subsets_and_orders_are_equally_likely():
    out = subsets(0, 3, np.arange(60_000), 5).astype(int)
    orders = {p: i for i, p in enumerate(permutations(range(5), 3))}
    counts = np.bincount([orders[tuple(c)] for c in out.T], minlength=60)
    assert stats.chisquare(counts).pvalue > GATE_P
    chosen = {frozenset(p) for p in orders}
    by_subset = [sum(counts[i] for p, i in orders.items() if frozenset(p) == c) for c in chosen]
    assert len(by_subset) == 10 and stats.chisquare(by_subset).pvalue > GATE_P


def test_subsets_of_a_path_do_not_depend_on_its_neighbours():
    paths = np.array([3, 1, 2**40, 8], dtype=np.uint64)
    whole = subsets(12, 4, paths, 100)
    for b in range(4):
        assert np.array_equal(subsets(12, 4, paths[b : b + 1], 100)[:, 0], whole[:, b])


def test_scratch_is_enough_and_no_more_is_touched():
    for size in (1, 2, 3, 4, 5, 31, 32, 33, 1000):
        need = subset_work(size)
        work = np.full(need + 1, np.nan)
        fill_subsets(np.empty((size, 1)), 0, np.zeros(1, dtype=np.uint64), 2, np.uint64(1), size, work)
        assert np.isnan(work[need]) and need >= 4 * size and need <= 8 * size
