"""Files of the IDX format, as MNIST comes in: read from a folder of yours, compressed or not, nothing is fetched.

An IDX file is two zero bytes, a byte for the type of a number, one for how many axes there are, the length of each axis
as four bytes, most significant first, and the numbers in C order (Y. LeCun, C. Cortes, C. Burges, "The MNIST database
of handwritten digits", section "File formats").
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.datasets.arrays import Data, one_hot_rows

__all__ = ["mnist", "read_idx"]

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
PARTS = {"train": "train", "test": "t10k"}


def mnist(path: Any, part: str = "train", *, n_samples: int | None = None, one_hot: bool = True) -> Data:
    """MNIST, or any data set in its format (Fashion-MNIST, KMNIST), from a folder of your own.

    Parameters
    ----------
    path : str or path
        The folder that holds ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte`` (``t10k-…`` for the test
        part), as they are or with ``.gz``; ``train-images.idx3-ubyte`` is found too.
    part : {"train", "test"}
        60 000 or 10 000 images.
    n_samples : int, optional
        The first so many alone.
    one_hot : bool
        Targets as rows of the 10 × 10 unit matrix, for squared loss; False gives class numbers (N,), for softmax.

    Returns
    -------
    Data
        X (N, 784), grey levels in [0, 1]; Y (N, 10) or (N,). X of all 60 000 takes 376 MB.

    Raises
    ------
    ArgumentError
        The folder or a file is not there, is cut off, or is not of this format: which, and what was wanted.
    """
    folder = _path(path)
    if not folder.is_dir():
        raise ArgumentError(
            f"path must be a folder that holds the IDX files of MNIST, got {str(folder)!r}, which is "
            + ("a file" if folder.exists() else "not there")
        )
    stem = PARTS[_check.choice("part", part, PARTS)]
    images, labels = read_idx(_find(folder, stem, "images", 3)), read_idx(_find(folder, stem, "labels", 1))
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or images.size == 0:
        raise ArgumentError(
            f"path must hold images (N, rows, columns) and as many labels (N,), got {images.shape} and {labels.shape} "
            f"in {str(folder)!r}"
        )
    if images.dtype != np.uint8 or labels.dtype != np.uint8:
        raise ArgumentError(
            f"path must hold images and labels of unsigned bytes (type 08), got {images.dtype} and {labels.dtype} in "
            f"{str(folder)!r}"
        )
    n = len(labels) if n_samples is None else _check.count("n_samples", n_samples, most=len(labels))
    X = images[:n].reshape(n, -1) / 255.0
    return Data(X, one_hot_rows(labels[:n].astype(np.int64), 10, one_hot))


def read_idx(path: Any) -> np.ndarray:
    """The array of one IDX file, compressed by gzip or not, in the type it is stored in.

    Raises
    ------
    ArgumentError
        The file is not there, is cut off, or is not of this format.
    """
    file = _path(path)
    name = f"path {str(file)!r}"
    try:
        content = file.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ArgumentError(f"{name} must be a file that can be read: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or content[3] == 0:
        begins = content[:4].hex(" ") or "nothing"
        raise ArgumentError(f"{name} must be in IDX format, 00 00, a type 08..0e, a number of axes; it begins {begins}")
    kind: np.dtype[Any] = np.dtype(TYPES[content[2]])
    n_axes = content[3]
    start = 4 + 4 * n_axes
    shape = tuple(int(n) for n in np.frombuffer(content[4:start], dtype=">u4")) if len(content) >= start else ()
    wanted = start + kind.itemsize * int(np.prod(shape, dtype=object))
    if len(shape) != n_axes or len(content) != wanted:
        raise ArgumentError(
            f"{name} must hold {wanted} bytes for the shape {shape} in its header, got {len(content)}: is it cut off?"
        )
    try:
        return np.frombuffer(content, dtype=kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))
    except ValueError as error:
        raise ArgumentError(f"{name} must have a shape that an array can have, got {shape}: {error}") from error


def _path(path: Any) -> Path:
    try:
        return Path(os.fsdecode(path)).expanduser()
    except (TypeError, RuntimeError) as error:
        raise ArgumentError(f"path must be a path, got {_check.show(path)}: {error}") from error


def _find(folder: Path, stem: str, what: str, n_axes: int) -> Path:
    names = [f"{stem}-{what}{dot}idx{n_axes}-ubyte{end}" for dot in "-." for end in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    there = sorted(p.name for p in folder.iterdir())[:8]
    holds = ", ".join(there) or "nothing"
    raise ArgumentError(f"path must hold one of {', '.join(names)}; {str(folder)!r} holds {holds}")
