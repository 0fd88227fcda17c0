"""A teacher's data: inputs of a given covariance, targets of a linear map of them with label noise."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.datasets.gaussian_teacher import DATA, GaussianTeacher, covariance_matrix, teacher_matrix

__all__ = ["TeacherStudent", "teacher_student"]

TEACHER = 2**56 - 1
"""The path whose numbers are V; samples are paths 0, 1, …"""


class TeacherStudent(NamedTuple):
    """Samples and the law they were drawn from: ``X, Y, law = datasets.teacher_student(…)``."""

    X: np.ndarray
    """(N, d_x)."""
    Y: np.ndarray
    """(N, d_y)."""
    law: GaussianTeacher
    """To be given to `SGD` in place of X and Y for fresh samples at each step."""


def teacher_student(
    n_samples: int,
    V: Any,
    Sigma_x: Any = 1.0,
    Sigma_eps: Any = 0.0,
    *,
    label_noise: float = 0.0,
    rng: Any = None,
) -> TeacherStudent:
    """N samples of x ~ N(0, Σ_x), y = Vx + ε, ε ~ N(0, Σ_ε + label_noise²·I).

    Parameters
    ----------
    n_samples : int
        N.
    V : (d_y, d_x) array_like, or two integers
        The teacher; (d_y, d_x) as a tuple of two integers draws it, entries N(0, 1/d_x), from the same seed.
    Sigma_x, Sigma_eps : number, vector or matrix
        Covariances, as in `GaussianTeacher`.
    label_noise : float
        Standard deviation of noise that is the same and independent in every output; added to Σ_ε.
    rng : None, int, SeedSequence or Generator
        An int in [0, 2**64) is the key and gives the same data always; more samples never change those before.

    Returns
    -------
    TeacherStudent
        X, Y and the law.

    Examples
    --------
    >>> X, Y, law = teacher_student(100, (2, 3), Sigma_x=[1.0, 1.0, 9.0], label_noise=0.5, rng=0)
    >>> X.shape, Y.shape, law.Sigma_eps[0, 0]
    ((100, 3), (100, 2), np.float64(0.25))
    >>> more = teacher_student(200, (2, 3), Sigma_x=[1.0, 1.0, 9.0], label_noise=0.5, rng=0)
    >>> bool((more.X[:100] == X).all() and (more.Y[:100] == Y).all())
    True
    """
    from sgdsde.random.stream import key_from, normals
    from sgdsde.run.memory import refuse_more_than_half

    key = key_from(rng)
    if isinstance(V, tuple) and len(V) == 2 and all(isinstance(n, (int, np.integer)) for n in V):
        d_y, d_x = (_check.count(f"V[{i}]", n) for i, n in enumerate(V))
        V = normals(key, TEACHER, DATA, count=d_y * d_x).reshape(d_y, d_x) / np.sqrt(d_x)
    V = teacher_matrix(V)
    Sigma_eps = covariance_matrix("Sigma_eps", Sigma_eps, V.shape[0])
    noise = _check.number("label_noise", label_noise, least=0.0)
    if noise > 1e70:
        raise ArgumentError(f"label_noise must be of a size that can be squared, got {noise:.3g}")
    Sigma_eps = Sigma_eps + noise**2 * np.eye(V.shape[0])
    n = _check.count("n_samples", n_samples)
    if n >= TEACHER:
        raise ArgumentError(f"n_samples must be below 2**56 - 1, got {n}")
    law = GaussianTeacher(V, Sigma_x, Sigma_eps)
    refuse_more_than_half(8.0 * n * sum(V.shape), f"data of {n} samples", ["fewer samples", "the law itself as data"])
    return TeacherStudent(*law.draw(n, key), law)
