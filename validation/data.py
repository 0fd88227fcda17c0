"""Data for the claims: small, seeded, with label noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def teacher_student(
    dims: Sequence[int], n_samples: int, *, label_noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """X (N, d_x) standard normal, Y = X Vᵀ + noise (N, d_y), V with entries of variance 1/d_x."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, dims[0]))
    V = rng.standard_normal((dims[-1], dims[0])) / np.sqrt(dims[0])
    return X, X @ V.T + label_noise * rng.standard_normal((n_samples, dims[-1]))
