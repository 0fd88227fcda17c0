"""Normals: the documented formula to rounding, and the same bits however a request is cut."""

from itertools import pairwise

import numba
import numpy as np
import pytest

from sgdsde.random.normal import _cos_sin, _radius, fill_normals

KEY = np.uint64(0x0123456789ABCDEF)


def draw(first, rows, paths, purpose=0, key=KEY):
    out = np.full((rows, len(paths)), np.nan)
    fill_normals(out, first, np.asarray(paths, dtype=np.uint64), purpose, key)
    return out


def documented(v, w):
    """z0, z1 from the words v, w by the formula that `sgdsde.random.normal` documents, with NumPy's functions."""
    u = ((v >> np.uint64(11)).astype(float) + 1) / 2.0**53
    x = (((w >> np.uint64(12)) | np.uint64(1)).astype(float) - 2.0**51) / 2.0**52
    r = np.sqrt(-2 * np.log(u)) * np.where(w & np.uint64(2), -1.0, 1.0)
    c, s = np.cos(np.pi / 2 * x), np.sin(np.pi / 2 * x)
    exchange = (w & np.uint64(1)) != 0
    return r * np.where(exchange, s, c), r * np.where(exchange, c, s)


def extreme_words():
    """Words of all sizes, from both ends of the range, and around the places where the reductions change branch."""
    rng = np.random.default_rng(0)
    plain = rng.integers(0, 2**64, 200_000, dtype=np.uint64)
    small = plain >> rng.integers(0, 64, plain.size).astype(np.uint64)
    branch = np.uint64(int(2**63.5))  # u = sqrt(1/2)
    near = rng.integers(0, 2**20, 1000, dtype=np.uint64)
    return np.concatenate([plain, small, ~small, branch + near, branch - near, near << np.uint64(40)])


@numba.njit
def _evaluate(v, radius, cosine, sine):
    for i in range(v.size):
        radius[i] = _radius(v[i])
        cosine[i], sine[i] = _cos_sin(v[i])


def test_polynomials_agree_with_libm_on_all_words():
    v = extreme_words()
    radius, cosine, sine = np.empty((3, v.size))
    _evaluate(v, radius, cosine, sine)
    u = ((v >> np.uint64(11)).astype(float) + 1) / 2.0**53
    x = (((v >> np.uint64(12)) | np.uint64(1)).astype(float) - 2.0**51) / 2.0**52
    assert np.abs(x).max() < 0.5 and (x != 0).all()
    np.testing.assert_allclose(radius, np.sqrt(-2 * np.log(u)), rtol=6e-16, atol=0)
    np.testing.assert_allclose(cosine, np.cos(np.pi / 2 * x), rtol=6e-16, atol=0)
    np.testing.assert_allclose(sine, np.sin(np.pi / 2 * x), rtol=6e-16, atol=0)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a long double of 64 bits or more")
def test_error_below_6e_16_against_extended_precision():
    v = extreme_words()
    radius, cosine, sine = np.empty((3, v.size))
    _evaluate(v, radius, cosine, sine)
    wide = np.longdouble
    half_pi = wide("1.57079632679489661923132169163975144")
    u = ((v >> np.uint64(11)).astype(wide) + 1) / wide(2) ** 53
    x = (((v >> np.uint64(12)) | np.uint64(1)).astype(wide) - wide(2) ** 51) / wide(2) ** 52
    r = np.sqrt(-2 * np.log(u))
    for mine, exact in ((cosine, np.cos(half_pi * x)), (sine, np.sin(half_pi * x))):
        assert np.all(np.abs(radius * mine - r * exact) <= 6e-16 * np.abs(r * exact))


def test_blocks_follow_the_documented_formula(reference):
    for first, rows, columns in ((0, 9, 3), (2**40 + 1, 6, 20), (7, 5, 1), (2, 2, 65)):
        paths = np.arange(columns, dtype=np.uint64) * np.uint64(2**49 + 12345)
        v, w = reference.block_words(first, rows, paths, 3, int(KEY))
        both = np.stack(documented(v, w), axis=1).reshape(-1, columns)
        expected = both[first % 2 : first % 2 + rows]
        np.testing.assert_allclose(draw(first, rows, paths, 3), expected, rtol=1e-15, atol=0)


def test_tails_reach_beyond_8_sigma():
    v = np.array([0, 2**11, 2**64 - 1], dtype=np.uint64)
    radius, cosine, sine = np.empty((3, 3))
    _evaluate(v, radius, cosine, sine)
    np.testing.assert_allclose(radius[:2], [np.sqrt(106 * np.log(2)), np.sqrt(104 * np.log(2))], rtol=4e-16)
    assert radius[0] > 8.57 and radius[2] == 0.0


def test_bits_do_not_depend_on_cuts_in_rows_or_columns():
    rng = np.random.default_rng(1)
    for trial in range(150):
        R, B = int(rng.integers(1, 201)), int(rng.integers(1, 71))
        if trial < 70:
            B = trial + 1
        first = int(rng.integers(0, 2 ** rng.integers(1, 41)))
        paths = rng.integers(0, 2**56, B, dtype=np.uint64)
        whole = draw(first, R, paths, trial % 5)
        assert np.isfinite(whole).all()
        rows = [0, *sorted(rng.integers(0, R + 1, 3)), R]
        columns = [0, *sorted(rng.integers(0, B + 1, 2)), B]
        for r0, r1 in pairwise(rows):
            for b0, b1 in pairwise(columns):
                piece = draw(first + int(r0), int(r1 - r0), paths[b0:b1], trial % 5)
                assert np.array_equal(piece, whole[r0:r1, b0:b1])
        r, b = int(rng.integers(R)), int(rng.integers(B))
        assert draw(first + r, 1, paths[b : b + 1], trial % 5)[0, 0] == whole[r, b]


def test_nothing_is_written_outside_the_block():
    for rows, columns in ((1, 1), (2, 7), (3, 8), (5, 64), (130, 1), (9, 65), (0, 3), (0, 9)):
        for first in (0, 1):
            frame = np.full((rows + 2, columns), np.nan)
            fill_normals(frame[1:-1], first, np.arange(columns, dtype=np.uint64), 0, KEY)
            assert np.isnan(frame[[0, -1]]).all() and np.isfinite(frame[1:-1]).all()


@pytest.mark.parametrize("fastmath", [False, True])
def test_bits_survive_being_inlined_into_another_kernel(fastmath):
    @numba.njit(fastmath=fastmath)
    def outer(out, path, key):
        fill_normals(out, 5, path, 1, key)
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = 2.0 * out[i, j]

    path = np.arange(11, dtype=np.uint64)
    out = np.empty((20, 11))
    outer(out, path, KEY)
    assert np.array_equal(out, 2.0 * draw(5, 20, path, 1))
