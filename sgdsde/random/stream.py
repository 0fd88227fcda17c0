"""From what a person passes as `rng` to a key, and the numbers of one path, read off from Python.

A seed and the number of a path determine every random number of that path: path 7 of 10 is path 7 of 10 000, on any
number of threads. One seed in two runs therefore means the same noise in both (common random numbers).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from sgdsde._abi import BATCH, DRIVING
from sgdsde._check import count as check_count
from sgdsde._check import show
from sgdsde._errors import ArgumentError

__all__ = ["RNG_VERSION", "indices", "key_from", "normals", "subset"]

RNG_VERSION = 1
"""Raised whenever the same seed gives other numbers than before. The tests pin the numbers of each version."""

_MOST_KEY = 2**64 - 1
_MOST_PATH = 2**56 - 1
_MOST_PURPOSE = 2**8 - 1
_MOST_NUMBER = 2**63 - 1
_MOST_INDEX = 2**53


def key_from(rng: Any = None) -> int:
    """The 64-bit key of a random stream.

    Parameters
    ----------
    rng : int, None, numpy.random.SeedSequence, numpy.random.BitGenerator or numpy.random.Generator
        An integer in 0 .. 2**64 - 1 is the key itself. None takes fresh entropy from the operating system. A
        SeedSequence gives the first 64-bit word of its state, the same one each time. A Generator (or BitGenerator)
        draws one integer and so moves on: two runs with one Generator differ.

    Returns
    -------
    int
        The key, to be passed as `rng` again to repeat a run.

    Raises
    ------
    ArgumentError
        For anything else. NumPy's global generator (`np.random.seed`, RandomState) is neither read nor changed, ever.

    Examples
    --------
    >>> key_from(42)
    42
    >>> key_from(np.random.SeedSequence(42)) == key_from(np.random.SeedSequence(42))
    True
    """
    if rng is None:
        rng = np.random.SeedSequence()
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0])
    if isinstance(rng, np.random.BitGenerator):
        rng = np.random.Generator(rng)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, _MOST_KEY, dtype=np.uint64, endpoint=True))
    wanted = f"an integer in 0..2**64-1, None, a numpy SeedSequence or a numpy Generator; got {show(rng)}"
    if rng is np.random or isinstance(rng, np.random.RandomState):
        raise ArgumentError(
            f"rng must be {wanted}. The global and the legacy generators of numpy are not used; "
            "pass np.random.default_rng(seed) or the seed itself"
        )
    try:
        if isinstance(rng, (bool, np.bool_)):
            raise TypeError
        key = operator.index(rng)
    except TypeError:
        raise ArgumentError(f"rng must be {wanted}") from None
    if not 0 <= key <= _MOST_KEY:
        raise ArgumentError(f"rng must be {wanted}")
    return key


def _address(key: Any, path: Any, purpose: Any, first: Any, count: Any) -> tuple[Any, ...]:
    key = check_count("key", key, least=0, most=_MOST_KEY)
    path = check_count("path", path, least=0, most=_MOST_PATH)
    purpose = check_count("purpose", purpose, least=0, most=_MOST_PURPOSE)
    first = check_count("first", first, least=0, most=_MOST_NUMBER)
    count = check_count("count", count, least=0, most=_MOST_NUMBER - first)
    return np.empty((count, 1)), first, np.array([path], dtype=np.uint64), purpose, np.uint64(key)


def normals(key: int, path: int, purpose: int = DRIVING, first: int = 0, count: int = 1) -> np.ndarray:
    """Standard normal numbers first .. first + count - 1 of one path.

    Parameters
    ----------
    key : int
        The seed, 0 .. 2**64 - 1: `key_from(rng)`, or the `seed` of a solution.
    path : int
        Number of the path, 0 .. 2**56 - 1.
    purpose : int
        Which stream of the path (`sgdsde._abi`); DRIVING is the noise of the grid, where step k of an equation with m
        Brownian motions has the numbers k m .. k m + m - 1, and its increments are sqrt(h) times these.
    first, count : int
        0 <= first, 0 <= count, first + count < 2**63.

    Returns
    -------
    float64 array (count,)

    Examples
    --------
    >>> whole = normals(1, path=731, count=10)
    >>> bool((normals(1, path=731, first=4, count=3) == whole[4:7]).all())
    True
    """
    from sgdsde.random.normal import fill_normals

    out, *address = _address(key, path, purpose, first, count)
    fill_normals(out, *address)
    return out[:, 0]


def indices(key: int, path: int, n: int, purpose: int = BATCH, first: int = 0, count: int = 1) -> np.ndarray:
    """Uniform indices 0 .. n-1, numbers first .. first + count - 1 of one path, independent of each other.

    Parameters are those of `normals`, and n in 1 .. 2**53. Returns an int64 array (count,).

    Examples
    --------
    >>> bool((indices(1, path=0, n=6, first=2, count=3) == indices(1, path=0, n=6, count=5)[2:]).all())
    True
    """
    from sgdsde.random.integers import fill_indices

    n = check_count("n", n, most=_MOST_INDEX)
    out, *address = _address(key, path, purpose, first, count)
    fill_indices(out, *address, n)
    return out[:, 0].astype(np.int64)


def subset(key: int, path: int, n: int, size: int, purpose: int = BATCH, first: int = 0) -> np.ndarray:
    """`size` different indices out of 0 .. n-1 in random order: the batch drawn without replacement at word `first`.

    Batch number k of a run has first = k * size. size = n gives a random permutation. Returns an int64 array (size,).

    Examples
    --------
    >>> sorted(int(i) for i in subset(1, path=0, n=4, size=4))
    [0, 1, 2, 3]
    """
    from sgdsde.random.integers import fill_subsets, subset_work

    n = check_count("n", n, most=_MOST_INDEX)
    size = check_count("size", size, most=n)
    out, *address = _address(key, path, purpose, first, size)
    fill_subsets(out, *address, n, np.empty(subset_work(size)))
    return out[:, 0].astype(np.int64)
