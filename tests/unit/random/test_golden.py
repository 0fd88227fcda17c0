"""Numbers of version 1, pinned. If one of these must change, raise RNG_VERSION and write the new numbers beside it."""

import hashlib

import numpy as np

from sgdsde.random import RNG_VERSION, fill_indices, fill_normals, indices, normals, subset

NORMALS = {  # (key, path, purpose, first): four numbers
    (0, 0, 0, 0): ["0x1.fd7f5823e1d51p-2", "0x1.54cccb994bb3fp-4", "0x1.e51de85073de6p-1", "-0x1.109c20353aab7p+0"],
    (42, 731, 0, 1): ["-0x1.39d4528981d24p-1", "-0x1.6e58fe47643c8p-1", "0x1.e75d1308b13cdp-2", "0x1.6fab79a1af309p-5"],
    (18446744073709551615, 72057594037927935, 255, 1099511627776): [
        "-0x1.ae27668c08dadp-9",
        "-0x1.b8f310df4fba5p-3",
        "0x1.6ff49a316de7ap-3",
        "-0x1.e476ca75d8cf7p+0",
    ],
}
INDICES = [1534, 1600, 1407, 351, 549, 1055]
SUBSET = [51, 381, 883, 1011, 753, 485]
BLOCK_SHA256 = "5ef3d19ecb9ef4dd42e4a4298404bac65bfc9c87f7b174fb3e9ff88e7c6686b2"
INDEX_SHA256 = "4873f556d3ff323835ed0c6f2c0c126dfd08ed3bb19450b9626eb1a56fc54c8f"


def test_version():
    assert RNG_VERSION == 1


def test_normals_bit_by_bit():
    for (key, path, purpose, first), pinned in NORMALS.items():
        got = normals(key, path, purpose=purpose, first=first, count=4)
        assert [float(z).hex() for z in got] == pinned


def test_indices_and_subsets():
    assert indices(42, 5, 1797, first=3, count=6).tolist() == INDICES
    assert subset(42, 5, 1797, 6, first=12).tolist() == SUBSET


def test_a_whole_block():
    out = np.empty((301, 77))
    address = (12345, np.arange(77, dtype=np.uint64) * np.uint64(987654321987), 3, np.uint64(0xDEADBEEFCAFEBABE))
    fill_normals(out, *address)
    assert hashlib.sha256(out.astype("<f8").tobytes()).hexdigest() == BLOCK_SHA256
    fill_indices(out, *address, 1797)
    assert hashlib.sha256(out.astype("<f8").tobytes()).hexdigest() == INDEX_SHA256
