"""Settings of the demo: its arguments, checked; its data; the problem and the start."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["Settings", "problem_and_start", "read"]

HIDDEN = 10
SCALE = 0.7
"""Of the start: entries are N(0, SCALE²/fan-in)."""


class Settings(NamedTuple):
    """The arguments of the demo, checked."""

    seed: int
    out: Path
    paths: int
    steps: int
    """Of SGD, towards the equilibrium."""
    law_steps: int
    """Of SGD, for the law of the charge."""
    learning_rate: float
    batch_size: int
    gamma: float
    data: str
    X: np.ndarray
    Y: np.ndarray


def read(args: argparse.Namespace) -> Settings:
    """Check every argument before anything is compiled or run; makes the folder."""
    seed = _check.count("--seed", args.seed, least=0, most=2**64 - 1)
    paths = _check.count("--paths", args.paths, least=3, most=100_000)
    steps = _check.count("--steps", args.steps, least=80, most=10**9)
    learning_rate = _check.positive("--learning-rate", args.learning_rate)
    gamma = _check.number("--gamma", args.gamma, least=0.0)
    if learning_rate * gamma >= 0.5:
        product = learning_rate * gamma
        raise ArgumentError(f"--learning-rate times --gamma must be below 0.5, for 1 - 2ηγ > 0, got {product:g}")
    name, X, Y = _digits() if args.data is None else _file(args.data)
    batch_size = _check.count("--batch-size", args.batch_size, most=len(X))
    import matplotlib  # noqa: F401  missing packages are found before the work, not after it

    out = Path(args.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--out must be a folder, or can be made one, got {args.out!r} ({error})") from None
    return Settings(seed, out, paths, steps, steps // 8, learning_rate, batch_size, gamma, name, X, Y)


def problem_and_start(settings: Settings) -> tuple[Any, np.ndarray]:
    """The SGD problem, and θ of shape (d,) from the seed."""
    from sgdsde.models import DeepLinear
    from sgdsde.sgd import SGD

    outputs = settings.Y.shape[1] if settings.Y.ndim == 2 else 1
    model = DeepLinear([settings.X.shape[1], HIDDEN, outputs])
    problem = SGD(
        model,
        settings.X,
        settings.Y,
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
        gamma=settings.gamma,
    )
    return problem, model.init(rng=settings.seed, scale=SCALE)


def _digits() -> tuple[str, np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return "handwritten digits", digits.data / 16, np.eye(10)[digits.target]


def _file(path: str) -> tuple[str, np.ndarray, np.ndarray]:
    wanted = f"--data must be an .npz file with arrays X and Y of numbers, got {path}"
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ArgumentError(f"{wanted}, which holds a single array")
        with file:
            if not {"X", "Y"} <= set(file.files):
                raise ArgumentError(f"{wanted}, which holds {', '.join(file.files) or 'nothing'}")
            X, Y = file["X"], file["Y"]
    except ArgumentError:
        raise
    except OSError as error:
        raise ArgumentError(f"{wanted} ({error.strerror})") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentError(wanted) from error
    X = _check.array("X of --data", X, ("N", "inputs"))
    Y = _check.array("Y of --data", Y, ("N",) if Y.ndim == 1 else ("N", "outputs"))
    if len(X) != len(Y) or len(X) < 2:
        raise ArgumentError(f"X and Y of --data must have one number of rows, at least 2, got {len(X)} and {len(Y)}")
    if not X.shape[1] or not Y.size:
        raise ArgumentError(f"X and Y of --data must have columns, got shapes {X.shape} and {Y.shape}")
    return str(path), X, Y
