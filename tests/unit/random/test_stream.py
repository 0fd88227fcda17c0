"""What may be passed as `rng`, the numbers of one path from Python, and NumPy's global generator left in peace."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError
from sgdsde.random import (
    fill_indices,
    fill_normals,
    fill_subsets,
    indices,
    key_from,
    normals,
    subset,
    subset_work,
)


@pytest.mark.parametrize("key", [0, 1, 2**63, 2**64 - 1])
def test_an_integer_is_the_key(key):
    assert key_from(key) == key and type(key_from(key)) is int


@pytest.mark.parametrize("key", [np.int64(5), np.uint8(5), np.array(5)])
def test_numpy_integers_are_integers(key):
    assert key_from(key) == 5 and type(key_from(key)) is int


def test_none_is_fresh():
    keys = {key_from(None) for _ in range(50)} | {key_from() for _ in range(50)}
    assert len(keys) == 100 and all(0 <= k < 2**64 for k in keys)
    assert max(keys) >= 2**60  # all 64 bits are used: fails with probability 16**-100


def test_a_seed_sequence_gives_one_key_and_its_children_others():
    sequence = np.random.SeedSequence(7)
    expected = int(np.random.SeedSequence(7).generate_state(1, np.uint64)[0])
    assert key_from(sequence) == key_from(sequence) == expected
    assert len({key_from(s) for s in [sequence, *sequence.spawn(3)]}) == 4


def test_a_generator_gives_one_draw_and_moves_on_once():
    for bits in (np.random.PCG64, np.random.MT19937, np.random.Philox):
        used, twin = np.random.Generator(bits(3)), np.random.Generator(bits(3))
        expected = [int(k) for k in twin.integers(0, 2**64 - 1, 2, dtype=np.uint64, endpoint=True)]
        assert [key_from(used), key_from(used)] == expected
        assert used.random() == twin.random()
    assert key_from(np.random.PCG64(3)) == key_from(np.random.default_rng(3))


@pytest.mark.parametrize(
    "rng", [True, np.True_, -1, 2**64, 1.0, np.float64(3), "1", [1], (1, 2), np.array([1]), np.random, 1j, b"x"]
)
def test_anything_else_is_refused_by_name(rng):
    with pytest.raises(ArgumentError, match=r"^rng must be an integer in 0\.\.2\*\*64-1, None, .*; got "):
        key_from(rng)


def test_the_legacy_generator_is_refused_with_a_way_out():
    with pytest.raises(ArgumentError, match=r"default_rng\(seed\)"):
        key_from(np.random.RandomState(1))


def test_the_global_generator_is_neither_read_nor_changed():
    def everything():
        key = key_from(np.random.default_rng(1))
        return (*normals(key, 0, count=5), *indices(key, 0, 10, count=5), *subset(key, 0, 10, 5), key_from(3))

    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    one = everything()
    key_from(None)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0] and np.array_equal(before[1], after[1]) and before[2:] == after[2:]
    np.random.seed(2)  # noqa: NPY002
    assert everything() == one
    np.random.seed(1)  # noqa: NPY002
    fresh = key_from(None)
    np.random.seed(1)  # noqa: NPY002
    assert key_from(None) != fresh


def test_numbers_of_one_path_are_those_of_the_block():
    paths, key = np.arange(9, dtype=np.uint64) + np.uint64(727), 2**63 + 1
    block = np.empty((12, 9))
    for purpose in (0, 3):
        fill_normals(block, 5, paths, purpose, np.uint64(key))
        mine = normals(key, path=731, purpose=purpose, first=5, count=12)
        assert mine.shape == (12,) and mine.dtype == np.float64
        assert np.array_equal(mine, block[:, 4])
        fill_indices(block, 5, paths, purpose, np.uint64(key), 99)
        assert np.array_equal(indices(key, path=731, n=99, purpose=purpose, first=5, count=12), block[:, 4])
        fill_subsets(block, 5, paths, purpose, np.uint64(key), 99, np.empty(subset_work(12)))
        assert np.array_equal(subset(key, path=731, n=99, size=12, purpose=purpose, first=5), block[:, 4])
    assert normals(1, 0).shape == (1,) and normals(1, 0, count=0).shape == (0,)


def test_indices_and_subsets_are_integers_in_range():
    many = indices(1, 2, 7, count=1000)
    assert many.dtype == np.int64 and set(many) == set(range(7))
    batch = subset(1, 2, 7, 3, first=6)
    assert batch.dtype == np.int64 and len(set(batch)) == 3 and set(batch) <= set(range(7))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: normals(-1, 0), "key"),
        (lambda: normals(2**64, 0), "key"),
        (lambda: normals(1.0, 0), "key"),
        (lambda: normals(1, -1), "path"),
        (lambda: normals(1, 2**56), "path"),
        (lambda: normals(1, 0, purpose=256), "purpose"),
        (lambda: normals(1, 0, first=-1), "first"),
        (lambda: normals(1, 0, first=2**63 - 1, count=1), "count"),
        (lambda: normals(1, 0, count=-1), "count"),
        (lambda: indices(1, 0, 0), "n"),
        (lambda: indices(1, 0, 2**53 + 1), "n"),
        (lambda: subset(1, 0, 5, 6), "size"),
        (lambda: subset(1, 0, 5, 0), "size"),
    ],
)
def test_bad_addresses_are_refused_by_name(call, name):
    with pytest.raises(ArgumentError, match=f"^{name} must be"):
        call()


def test_the_ends_of_the_range_work():
    top = normals(2**64 - 1, 2**56 - 1, purpose=255, first=2**63 - 3, count=2)
    assert np.isfinite(top).all() and top[0] != top[1]
