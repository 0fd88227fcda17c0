"""Philox4x32-10 gives the published answers, and the address of a call is what the documentation says."""

import numpy as np
import pytest

from sgdsde.random.philox import philox4x32_10, words

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)  # counter, then key: digits of pi

# The vectors "philox4x32 10" of the authors' file kat_vectors (Random123).
KNOWN = [
    ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]


def uint64(*values):
    return [np.uint64(v) for v in values]


@pytest.mark.parametrize(("given", "answer"), KNOWN)
def test_known_answers(given, answer, reference):
    assert tuple(int(x) for x in philox4x32_10(*uint64(*given))) == answer
    assert reference.philox(*given) == answer


def test_words_are_philox_of_the_documented_address(reference):
    rng = np.random.default_rng(5)
    for _ in range(500):
        call, key = (int(x) for x in rng.integers(0, 2**64, 2, dtype=np.uint64))
        path, purpose = int(rng.integers(0, 2**56)), int(rng.integers(0, 256))
        got = tuple(int(x) for x in words(*uint64(call, path, purpose, key)))
        assert got == reference.words(call, path, purpose, key)


def test_every_bit_of_the_address_matters():
    base = dict(call=2**40 + 12345, path=2**50 + 678, purpose=9, key=2**60 + 11)
    seen = {tuple(words(*uint64(*base.values())))}
    flips = [(name, bit) for name, bits in dict(call=64, path=56, purpose=8, key=64).items() for bit in range(bits)]
    for name, bit in flips:
        seen.add(tuple(words(*uint64(*{**base, name: base[name] ^ (1 << bit)}.values()))))
    assert len(seen) == 1 + len(flips)
